import type {
  AuthConfig,
  CreateSecretReference,
  ManagerType,
  UpdateSecretReference,
} from '../../schema/api/secret-references.ts'
import { type Complaint, invalid } from '../errors.ts'
import { secretPathComplaint } from '../secret-managers/secret-path.ts'
import { authConfigComplaints, pickAuthConfig } from './auth-config.ts'
import { updatedAuthConfig, withoutMasks } from './auth-config-update.ts'
import type { SecretReferenceRow, SecretTags } from './store.ts'

/**
 * The auth_config of a new reference, all of whose fields were looked at as far as they alone tell; no manager is asked.
 *
 * @param allow `outbound.allow`
 * @throws GatehouseError `invalid` with all complaints
 */
export function readNewReference(body: CreateSecretReference, allow: readonly string[]): AuthConfig {
  const { manager_type: managerType, auth_config: fields, slug } = body
  const authConfig = pickAuthConfig(managerType, fields)
  assertNone([
    ...authConfigComplaints(managerType, fields, allow),
    ...pathComplaints(managerType, body.secret_path, authConfig),
    ...(slug && UUID.test(slug) ? [{ path: 'slug', message: 'must not look like an id' }] : []),
    ...complaintsOf(body),
  ])
  return authConfig
}

/**
 * The auth_config of a reference after an update, and the columns that the update changes beside it.
 *
 * @param allow `outbound.allow`
 * @throws GatehouseError `invalid` with all complaints
 */
export function readUpdate(
  row: SecretReferenceRow,
  stored: AuthConfig,
  body: UpdateSecretReference,
  allow: readonly string[],
): { authConfig: AuthConfig; columns: Partial<SecretReferenceRow> } {
  const { auth_config: sent, secret_path: secretPath = row.secretPath } = body
  const managerType = row.managerType as ManagerType
  const { authConfig, complaints } =
    sent === undefined ? { authConfig: stored, complaints: [] } : updatedAuthConfig(managerType, stored, sent, allow)
  assertNone([...complaints, ...pathComplaints(managerType, secretPath, authConfig), ...complaintsOf(body)])
  return { authConfig, columns: columnsOf(body) }
}

const NULL_CLEARS = ['description', 'secret_key', 'tags', 'cache_seconds'] as const
const NULL_IS_ABSENT = ['name', 'secret_path', 'allow_all_workspaces', 'allowed_workspaces'] as const

/** Whether an update says anything; `manager_type`, `slug` and masked values say nothing (file 04). */
export const saysAnything = (body: UpdateSecretReference): boolean =>
  NULL_CLEARS.some((name) => body[name] !== undefined) ||
  NULL_IS_ABSENT.some((name) => body[name] !== undefined && body[name] !== null) ||
  Object.keys(withoutMasks({}, body.auth_config ?? {})).length > 0

function columnsOf(body: UpdateSecretReference): Partial<SecretReferenceRow> {
  const { name, description, secret_path, secret_key, tags, cache_seconds } = body
  const allowAll = body.allowed_workspaces ? false : (body.allow_all_workspaces ?? undefined)
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(secret_path !== undefined && { secretPath: secret_path }),
    ...(secret_key !== undefined && { secretKey: secret_key }),
    ...(tags !== undefined && { tags: textOfTags(tags) }),
    ...(cache_seconds !== undefined && { cacheSeconds: cache_seconds }),
    ...(allowAll !== undefined && { allowAllWorkspaces: allowAll }),
  }
}

export const textOfTags = (tags: SecretTags | null): string | null => (tags === null ? null : JSON.stringify(tags))

const LONGEST_TAGS_BYTES = 8192
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

function complaintsOf(body: CreateSecretReference | UpdateSecretReference): Complaint[] {
  const { tags, allow_all_workspaces: allowAll, allowed_workspaces: allowed } = body
  const isTooLong = tags && Buffer.byteLength(JSON.stringify(tags)) > LONGEST_TAGS_BYTES
  const isBoth = allowAll === true && allowed
  return [
    ...(isTooLong ? [{ path: 'tags', message: `must be at most ${LONGEST_TAGS_BYTES} bytes of JSON` }] : []),
    ...(isBoth
      ? [{ path: 'allowed_workspaces', message: 'cannot be given with allow_all_workspaces = true; send one of them' }]
      : []),
  ]
}

function pathComplaints(managerType: ManagerType, secretPath: string, authConfig: AuthConfig): Complaint[] {
  const region = 'aws_region' in authConfig ? authConfig.aws_region : undefined
  const message = secretPathComplaint(managerType, secretPath, region)
  return message === undefined ? [] : [{ path: 'secret_path', message }]
}

/** @throws GatehouseError `invalid` */
export function assertNone(complaints: Complaint[]): void {
  if (complaints.length > 0) throw invalid(complaints)
}
