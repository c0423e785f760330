import type {
  AuthConfig,
  ManagerType,
  SecretReference,
  SecretReferenceRow as SecretReferenceRowWire,
} from '../../schema/api/secret-references.ts'
import { parseNullable } from '../json.ts'
import { maskAuthConfig } from './mask.ts'
import type { SecretReferenceRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()

export const presentSecretReferenceRow = (row: SecretReferenceRow): SecretReferenceRowWire => ({
  id: row.id,
  name: row.name,
  slug: row.slug,
  description: row.description,
  manager_type: row.managerType as ManagerType,
  secret_path: row.secretPath,
  status: 'ACTIVE',
  created_at: iso(row.createdAt),
  last_updated_at: iso(row.lastUpdatedAt),
  object: 'secret-reference',
})

/** @param isClear for the system caller alone (decision 16) */
export const presentSecretReference = (
  row: SecretReferenceRow,
  authConfig: AuthConfig,
  isClear: boolean,
): SecretReference => ({
  ...presentSecretReferenceRow(row),
  organisation_id: row.organisationId,
  secret_key: row.secretKey,
  allow_all_workspaces: row.allowAllWorkspaces,
  tags: parseNullable<Record<string, unknown>>(row.tags),
  ...(row.cacheSeconds !== null && { cache_seconds: row.cacheSeconds }),
  created_by: row.createdBy,
  auth_config: isClear ? ({ ...authConfig } as Record<string, string>) : maskAuthConfig(authConfig),
})
