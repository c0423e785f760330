import type { RateLimit, UsageLimits } from '../../schema/api/limits.ts'
import type { Metadata } from '../../schema/api/metadata.ts'
import type { WorkspaceSettings } from '../../schema/api/organisation-settings.ts'
import type { OwnSecuritySettings } from '../../schema/api/security-settings.ts'
import type { Workspace, WorkspaceDetail } from '../../schema/api/workspaces.ts'
import { effectiveRole } from '../members/role.ts'
import type { Person, WorkspaceRow, WorkspaceStatus } from './store.ts'

export type NameFormat = 'display' | 'plain'

/** The JSON columns of a workspace. */
export const contentOf = (row: WorkspaceRow) => ({
  metadata: (JSON.parse(row.defaults ?? '{}') as { metadata?: Metadata }).metadata ?? null,
  usageLimits: JSON.parse(row.usageLimits ?? 'null') as UsageLimits[] | null,
  rateLimits: JSON.parse(row.rateLimits ?? 'null') as RateLimit[] | null,
  securitySettings: JSON.parse(row.securitySettings ?? '{}') as OwnSecuritySettings,
  settings: JSON.parse(row.settings ?? '{}') as Partial<WorkspaceSettings>,
})

/** `<icon> <name>`: what clients show, and what they send back to confirm a deletion. */
export const displayName = ({ icon, name }: Pick<WorkspaceRow, 'icon' | 'name'>): string =>
  icon === null ? name : `${icon} ${name}`

export function presentWorkspace(row: WorkspaceRow, format: NameFormat = 'display'): Workspace {
  const { metadata, usageLimits, rateLimits, securitySettings } = contentOf(row)
  return {
    id: row.id,
    slug: row.slug,
    name: format === 'plain' ? row.name : displayName(row),
    icon: row.icon,
    description: row.description,
    status: row.status as WorkspaceStatus,
    is_default: zeroOne(row.isDefault),
    defaults: { ...(metadata !== null && { metadata }), is_default: zeroOne(row.isDefault), object: 'workspace' },
    usage_limits: usageLimits,
    rate_limits: rateLimits,
    security_settings: securitySettings,
    scim_source_id: null,
    created_at: new Date(row.createdAt).toISOString(),
    last_updated_at: new Date(row.lastUpdatedAt).toISOString(),
    object: 'workspace',
  }
}

export function presentWorkspaceDetail(row: WorkspaceRow, people: Person[], format?: NameFormat): WorkspaceDetail {
  const workspace = presentWorkspace(row, format)
  return {
    ...workspace,
    defaults: { ...workspace.defaults, input_guardrails: [], output_guardrails: [], user_api_key_config: null },
    organisation_id: row.organisationId,
    // Texts all of them: a client reads each member as a map of texts.
    users: people.map((person) => ({
      id: person.id,
      role: effectiveRole(person),
      email: person.email,
      first_name: person.firstName,
      last_name: person.lastName,
    })),
    settings: { ...OF_THE_ORGANISATION, ...contentOf(row).settings },
    last_reset_at: null,
    created_by: row.createdBy,
    creation_source: row.createdBy === null ? 'cli' : 'api',
  }
}

const OF_THE_ORGANISATION: WorkspaceSettings = {
  debug_log: null,
  user_api_key_ttl: null,
  user_key_metadata: null,
  user_api_key_count: null,
  user_api_key_max_ttl: null,
  user_key_metadata_override: null,
}

const zeroOne = (is: boolean): 0 | 1 => (is ? 1 : 0)
