import type { TArray, TSchema } from '@sinclair/typebox'
import { Config } from '../../schema/config.ts'

/** One setting: its place in the file, its environment name, its contract. */
export interface Field {
  section: string
  name: string
  /** `server.port` */
  path: string
  /** `GATEHOUSE_SERVER_PORT` (decision 6) */
  env: string
  schema: TSchema
}

export const SECTIONS = Object.entries(Config.properties).map(([name, { properties }]) => ({
  name,
  fields: Object.entries(properties as Record<string, TSchema>).map(
    ([field, schema]): Field => ({
      section: name,
      name: field,
      path: `${name}.${field}`,
      env: `GATEHOUSE_${name}_${field}`.toUpperCase(),
      schema,
    }),
  ),
}))

export const FIELDS: readonly Field[] = SECTIONS.flatMap(({ fields }) => fields)

/** What a value of the setting looks like, in words: `integer 0 to 65535`, `one of none, sampled, all`. */
export function typeOf(schema: TSchema): string {
  if (schema['anyOf']) return `one of ${(schema['anyOf'] as { const: string }[]).map((each) => each.const).join(', ')}`
  if (schema['reference']) return 'reference'
  if (schema['expects'] === 'an absolute path') return 'path'
  if (schema['type'] === 'array')
    return `list of ${(schema as TArray).items['type'] === 'object' ? 'tables' : 'strings'}`
  const range = schema['minimum'] === undefined ? '' : ` ${schema['minimum']} to ${schema['maximum']}`
  return `${schema['type']}${range}`
}
