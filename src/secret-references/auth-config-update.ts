import { type AuthConfig, type ManagerType, SECRET_FIELDS } from '../../schema/api/secret-references.ts'
import type { Complaint } from '../errors.ts'
import { type AuthFields, authConfigComplaints, pickAuthConfig, shapeOf } from './auth-config.ts'
import { isSecretField, maskedValue } from './mask.ts'

/** Where stored secrets are sent (decision 44). No secret is part of two shapes, so a new discriminator takes new ones. */
const ADDRESS_FIELDS = [
  'vault_addr',
  'vault_namespace',
  'vault_auth_mount',
  'azure_vault_url',
  'azure_entra_tenant_id',
] as const

/**
 * A stored auth_config with what was sent laid over it, key by key (file 04). What clients read and send back is
 * ignored: `masked_` fields, and the mask of a stored secret under the secret's own name. Null clears an optional field;
 * what is of no use in another shape of the family is dropped.
 *
 * @param allow `outbound.allow`
 * @returns     the new one, good only if there are no complaints
 */
export function updatedAuthConfig(
  managerType: ManagerType,
  stored: AuthConfig,
  sent: AuthFields,
  allow: readonly string[],
): { authConfig: AuthConfig; complaints: Complaint[] } {
  const before = stored as unknown as AuthFields
  const fields = withoutMasks(before, sent)
  const shape = shapeOf(managerType, { ...before, ...fields })
  const kept = Object.entries(before).filter(([name]) => shape === undefined || Object.hasOwn(shape.properties, name))
  const merged = { ...Object.fromEntries(kept), ...fields }
  return {
    authConfig: pickAuthConfig(managerType, merged),
    complaints: [...authConfigComplaints(managerType, merged, allow), ...movedComplaints(before, fields, merged)],
  }
}

/** What a client has not just read here. */
export const withoutMasks = (stored: AuthFields, sent: AuthFields): AuthFields =>
  Object.fromEntries(
    Object.entries(sent).filter(([name, value]) => {
      const own = stored[name]
      const isOwnMask = isSecretField(name) && typeof own === 'string' && value === maskedValue(own)
      return !name.startsWith('masked_') && !isOwnMask
    }),
  )

/** Stored secrets that would go where they have not been before: whoever sends them there must know them. */
function movedComplaints(before: AuthFields, fields: AuthFields, merged: AuthFields): Complaint[] {
  const moved = ADDRESS_FIELDS.filter((name) => addressOf(name, before[name]) !== addressOf(name, merged[name]))
  if (moved.length === 0) return []
  const changes = `${moved.join(' and ')} ${moved.length === 1 ? 'changes' : 'change'}`
  return SECRET_FIELDS.filter((name) => typeof merged[name] === 'string' && !Object.hasOwn(fields, name)).map(
    (name) => ({ path: `auth_config.${name}`, message: `${changes}, so send ${name} again` }),
  )
}

/** Two spellings of one origin are one address. */
function addressOf(name: (typeof ADDRESS_FIELDS)[number], value: unknown): unknown {
  const isUrl = name === 'vault_addr' || name === 'azure_vault_url'
  return isUrl && typeof value === 'string' ? (URL.parse(value)?.origin ?? value) : (value ?? null)
}
