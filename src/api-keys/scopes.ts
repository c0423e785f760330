import { GRANTABLE, normalisePermission, PERMISSIONS, type Permission } from '../../schema/api/permissions.ts'
import type { KeyType } from '../auth/caller.ts'
import { invalid, invalidField } from '../errors.ts'
import { nearest } from '../http/complaints.ts'

/** The key types of the API; system keys are made and ended at the command line alone (decision 16). */
export type ApiKeyType = Exclude<KeyType, 'system'>

export const API_KEY_TYPES: readonly ApiKeyType[] = ['organisation-service', 'workspace-service', 'workspace-user']

const FAMILIES = {
  'organisation-service': 'organisation_service_api_keys',
  'workspace-service': 'workspace_service_api_keys',
  'workspace-user': 'workspace_user_api_keys',
} as const

/** The permission family of a key type: `organisation_service_api_keys` and its like. */
export const familyOf = (type: ApiKeyType) => FAMILIES[type]

/** The resource that audit rows name. */
export const resourceOf = (type: KeyType): string => (type === 'system' ? 'system_api_keys' : FAMILIES[type])

/** Names from before 2024 that clients still send along (file 00 section 3): they mean nothing any more. */
const FORMER = /^(?:organisations|generations)\./

/**
 * Known scopes that the key type may hold, in the caller's order, once each.
 *
 * @param field where they were written, for complaints
 * @throws GatehouseError `invalid` with all complaints
 */
export function readScopes(type: ApiKeyType, written: readonly string[], field = 'scopes'): Permission[] {
  const known = written.map(normalisePermission).filter((scope) => !FORMER.test(scope))
  if (written.length > 0 && known.length === 0) throw invalidField(field, 'holds no scope that is still in use')
  const scopes = [...new Set(known)] as Permission[]
  const grantable: ReadonlySet<Permission> = GRANTABLE[type]
  const complaints = scopes.flatMap((scope, i) => {
    if (grantable.has(scope)) return []
    const path = `${field}[${i}]`
    if (PERMISSIONS.includes(scope)) return [{ path, message: `cannot be held by a key of type ${type}` }]
    const near = nearest(scope, PERMISSIONS)
    return [{ path, message: near === undefined ? 'is not a scope' : `is not a scope; did you mean ${near}?` }]
  })
  if (complaints.length > 0) throw invalid(complaints)
  return scopes
}
