import { GRANTABLE, type Permission, SYSTEM_PERMISSIONS } from '../../schema/api/permissions.ts'
import type { SecuritySetting, SecuritySettings } from '../../schema/api/security-settings.ts'
import type { KeyType } from './caller.ts'

/** The person behind a user key, as they stand in the organisation and in the key's workspace. */
export interface Person {
  organisationRole: 'owner' | 'admin' | 'member'
  /** null: no member of the workspace */
  workspaceRole: 'admin' | 'manager' | 'member' | null
}

/** What decides what a key may do; only the workspace's boundary is left, which `tenancy.ts` draws for each thing. */
export interface Grounds {
  type: KeyType
  /** what the key was given */
  scopes: readonly string[]
  /** user keys only; null for all others */
  person: Person | null
  security: Readonly<SecuritySettings>
}

/**
 * What a caller may do (spec 5): what its key type can hold ∩ its scopes ∩ the role of its person ∩ the security
 * settings of its workspace.
 */
export function effectivePermissions({ type, scopes, person, security }: Grounds): ReadonlySet<Permission> {
  const role = roleOf(type, person)
  const may = (permission: Permission): boolean => {
    if (!HOLDABLE[type].has(permission)) return false
    if (role === undefined) return type !== 'workspace-user'
    const cell = ROWS.get(permission)?.[role] ?? true
    return typeof cell === 'boolean' ? cell : security[cell]
  }
  return new Set((scopes as readonly Permission[]).filter(may))
}

/** An old secret in its transition window manages neither keys nor people (decision 31): a rotation may mean a leak. */
export const permissionsOfOldSecret = (permissions: ReadonlySet<Permission>): ReadonlySet<Permission> =>
  new Set([...permissions].filter((permission) => !/^\w+_(?:api_keys|users)\./.test(permission)))

const HOLDABLE: Record<KeyType, ReadonlySet<Permission>> = {
  ...GRANTABLE,
  system: new Set(SYSTEM_PERMISSIONS),
}

/** Whom the table below tells apart. Organisation owners and admins are implicitly admins of every workspace. */
type Role = 'service' | 'member' | 'manager' | 'admin' | 'organisation'

/** undefined: no role limits the key (admin and system keys), or a user key's person has none here and may do nothing. */
function roleOf(type: KeyType, person: Person | null): Role | undefined {
  if (type === 'workspace-service') return 'service'
  if (type !== 'workspace-user' || person === null) return undefined
  return person.organisationRole === 'member' ? (person.workspaceRole ?? undefined) : 'organisation'
}

type Cell = boolean | SecuritySetting
type Row = { permissions: readonly Permission[] } & Partial<Record<Role, Cell>>

const view = <F extends string>(family: F) => [`${family}.read`, `${family}.list`] as const
const write = <F extends string>(family: F) => [`${family}.create`, `${family}.update`, `${family}.delete`] as const

/**
 * Where a workspace key needs more than the scope: a setting that is on, or (`false`) a role that it is never for. What
 * is not written is a yes. Data visibility binds people, not service keys (file 00 section 2.3).
 *
 * `membersViewAllData` and its like are in no row: they decide which rows a list shows, not who may list.
 */
const TABLE: readonly Row[] = [
  {
    permissions: ['logs.view', 'logs.export'],
    member: 'membersViewLogs',
    manager: 'managersViewLogs',
    organisation: 'organisationAdminsViewLogs',
  },
  {
    permissions: ['logs.list'],
    member: 'membersViewLogMetadata',
    manager: 'managersViewLogMetadata',
    organisation: 'organisationAdminsViewLogMetadata',
  },
  { permissions: ['analytics.view'], member: 'membersViewAnalytics', manager: 'managersViewAnalytics' },
  { permissions: view('prompts'), member: 'membersViewPrompts', manager: 'managersViewPrompts' },
  {
    permissions: [...write('prompts'), 'prompts.publish'],
    member: 'membersWritePrompts',
    manager: 'managersWritePrompts',
  },
  { permissions: view('configs'), member: 'membersViewConfigs', manager: 'managersViewConfigs' },
  { permissions: write('configs'), member: 'membersWriteConfigs', manager: 'managersWriteConfigs' },
  { permissions: view('guardrails'), member: 'membersViewGuardrails', manager: 'managersViewGuardrails' },
  { permissions: write('guardrails'), member: 'membersWriteGuardrails', manager: 'managersWriteGuardrails' },
  // A provider is the successor of a virtual key (file 06).
  {
    permissions: [...view('providers'), ...view('virtual_keys')],
    member: 'membersViewVirtualKeys',
    manager: 'managersViewVirtualKeys',
  },
  {
    permissions: [...write('providers'), ...write('virtual_keys'), 'virtual_keys.duplicate', 'virtual_keys.copy'],
    member: 'membersWriteVirtualKeys',
    manager: 'managersWriteVirtualKeys',
  },
  // Members have nothing to do with keys (spec 5.3). Where a setting lets them, the ceiling keeps them to their own.
  { permissions: view('workspace_user_api_keys'), member: 'membersViewApiKeys', manager: 'managersViewApiKeys' },
  {
    permissions: [...write('workspace_user_api_keys'), 'workspace_user_api_keys.rotate'],
    member: 'membersWriteApiKeys',
    manager: 'managersWriteApiKeys',
  },
  { permissions: view('workspace_service_api_keys'), member: false, manager: 'managersViewApiKeys' },
  {
    permissions: [...write('workspace_service_api_keys'), 'workspace_service_api_keys.rotate'],
    member: false,
    manager: 'managersWriteApiKeys',
  },
  // Spec is silent on these; the settings that exist for them are the managers' alone (file 00 section 2.3).
  { permissions: write('policies'), member: false },
  {
    permissions: [...write('mcp_servers'), ...write('agent_servers')],
    member: false,
    manager: 'managersWriteMcpServers',
  },
  { permissions: write('workspace_integrations'), member: false, manager: 'managersWriteWsIntegrations' },
  {
    permissions: [...write('workspace_mcp_integrations'), ...write('workspace_agent_integrations')],
    member: false,
    manager: 'managersWriteWsMcpIntegrations',
  },
  // By spec 5.4 no workspace key does these, whoever is behind it; the ecosystem's way is opt-in (D-75, D-76).
  { permissions: ['workspaces.update'], ...exceptMembers('managersUpdateWs') },
  { permissions: write('workspace_users'), ...exceptMembers('managersWriteWsUsers') },
]

function exceptMembers(cell: SecuritySetting): Partial<Record<Role, Cell>> {
  return { service: cell, member: false, manager: cell, admin: cell, organisation: cell }
}

const ROWS: ReadonlyMap<Permission, Row> = new Map(
  TABLE.flatMap((row) => row.permissions.map((permission) => [permission, row] as const)),
)

/** Who stands above whom (decision 32), lowest first. `none`: the system caller, and people outside the workspace. */
export const RANKS = ['none', 'member', 'manager', 'workspace_admin', 'organisation_admin', 'owner'] as const
export type Rank = (typeof RANKS)[number]

export function rankOf({ organisationRole, workspaceRole }: Person): Rank {
  if (organisationRole === 'owner') return 'owner'
  if (organisationRole === 'admin') return 'organisation_admin'
  return workspaceRole === 'admin' ? 'workspace_admin' : (workspaceRole ?? 'none')
}

/** A user key ranks as its person, an admin key as an organisation admin, a service key as a manager (decision 29). */
export function rankOfKey(type: KeyType, person: Person | null): Rank {
  if (type === 'organisation-service') return 'organisation_admin'
  if (type === 'workspace-service') return 'manager'
  return type === 'workspace-user' && person !== null ? rankOf(person) : 'none'
}
