import { GRANTABLE, normalisePermission, PERMISSIONS, type Permission } from '../../schema/api/permissions.ts'
import type { KeyType } from '../auth/caller.ts'
import { invalid } from '../errors.ts'
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

/**
 * Known scopes that the key type may hold, in the caller's order, once each.
 *
 * @param field where they were written, for complaints
 * @throws GatehouseError `invalid` with all complaints
 */
export function readScopes(type: ApiKeyType, written: readonly string[], field = 'scopes'): Permission[] {
  const scopes = [...new Set(written.map(normalisePermission))] as Permission[]
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
