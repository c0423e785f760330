import type { Metadata, MetadataSchema } from '../../schema/api/metadata.ts'
import { type Complaint, invalid, shown } from '../errors.ts'

/**
 * Holds the metadata of a key or a workspace against the schema that the organisation has set for it.
 *
 * @param path the field that holds it, for complaints: `defaults.metadata`
 * @throws GatehouseError `invalid` with all complaints
 */
export function assertMetadata(schema: MetadataSchema | null, metadata: Metadata | null, path: string): void {
  if (schema === null) return
  const complaints = complaintsOf(schema, metadata ?? {}, path)
  if (complaints.length > 0) throw invalid(complaints)
}

const BECAUSE = 'by the metadata schema of the organisation'

function complaintsOf(schema: MetadataSchema, metadata: Metadata, path: string): Complaint[] {
  const { properties = {}, required = [], additionalProperties = true } = schema
  const missing = required
    .filter((name) => !Object.hasOwn(metadata, name))
    .map((name) => ({ path: `${path}.${shown(name)}`, message: `is required ${BECAUSE}` }))
  const wrong = Object.entries(metadata).flatMap(([name, value]) => {
    const message = Object.hasOwn(properties, name)
      ? complaintOf(properties[name] ?? {}, value)
      : additionalProperties
        ? undefined
        : 'is not a name that is allowed'
    return message === undefined ? [] : [{ path: `${path}.${shown(name)}`, message: `${message} ${BECAUSE}` }]
  })
  return [...missing, ...wrong]
}

type Property = NonNullable<MetadataSchema['properties']>[string]

function complaintOf({ enum: values, minLength = 0, maxLength }: Property, value: string): string | undefined {
  // No numbers: some clients take the digits 404 anywhere in an error for "gone" (decision 3).
  const length = [...value].length
  if (values !== undefined && !values.includes(value)) return 'is none of the texts that are allowed'
  if (length < minLength) return 'is too short'
  if (length > (maxLength ?? length)) return 'is too long'
  return undefined
}
