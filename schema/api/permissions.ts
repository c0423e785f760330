/**
 * The one list of permissions: key scopes on the wire, route guards, and the `resource.action` of audit rows.
 * `keys` says which key types may hold the family: o = organisation service, s = workspace service, u = workspace user.
 */
const crudl = ['create', 'read', 'update', 'delete', 'list'] as const

const FAMILIES = {
  organisation_users: { actions: crudl, keys: 'o' },
  organisation_service_api_keys: { actions: [...crudl, 'rotate'], keys: 'o' },
  workspace_service_api_keys: { actions: [...crudl, 'rotate'], keys: 'osu' },
  workspace_user_api_keys: { actions: [...crudl, 'rotate'], keys: 'osu' },
  organisation_settings: { actions: ['read', 'update'], keys: 'o' },
  organisation_guardrails: { actions: crudl, keys: 'o' },
  organisation_exclusions: { actions: ['update', 'list'], keys: 'o' },
  audit_logs: { actions: ['list'], keys: 'o' },
  plugins: { actions: ['create', 'update', 'list'], keys: 'o' },
  deployments: { actions: crudl, keys: 'o' },
  secret_references: { actions: [...crudl, 'test'], keys: 'o' },
  workspaces: { actions: crudl, keys: 'osu', workspaceActions: ['read', 'update', 'list'] },
  workspace_users: { actions: crudl, keys: 'osu' },
  prompts: { actions: [...crudl, 'publish', 'render'], keys: 'osu' },
  completions: { actions: ['write'], keys: 'su' },
  configs: { actions: crudl, keys: 'osu' },
  providers: { actions: crudl, keys: 'osu' },
  policies: { actions: crudl, keys: 'osu' },
  guardrails: { actions: crudl, keys: 'osu' },
  // data plane: workspace keys only
  'guardrails#': { actions: ['invoke'], keys: 'su' },
  virtual_keys: { actions: [...crudl, 'duplicate', 'copy'], keys: 'osu' },
  organisation_integrations: { actions: crudl, keys: 'osu', workspaceActions: ['list'] },
  workspace_integrations: { actions: crudl, keys: 'osu' },
  organisation_mcp_integrations: { actions: crudl, keys: 'osu', workspaceActions: ['list'] },
  organisation_agent_integrations: { actions: crudl, keys: 'osu', workspaceActions: ['list'] },
  workspace_mcp_integrations: { actions: crudl, keys: 'osu' },
  workspace_agent_integrations: { actions: crudl, keys: 'osu' },
  mcp_servers: { actions: crudl, keys: 'osu' },
  agent_servers: { actions: crudl, keys: 'osu' },
  mcp: { actions: ['invoke'], keys: 'su' },
  agents: { actions: ['invoke'], keys: 'su' },
  analytics: { actions: ['view'], keys: 'osu' },
  logs: { actions: ['export', 'list', 'view'], keys: 'osu' },
  'logs#': { actions: ['write'], keys: 'su' },
} as const satisfies Record<string, { actions: readonly string[]; keys: string; workspaceActions?: readonly string[] }>

type Families = typeof FAMILIES
type Base<F extends string> = F extends `${infer B}#` ? B : F
export type Permission = { [F in keyof Families]: `${Base<F>}.${Families[F]['actions'][number]}` }[keyof Families]

const entries = Object.entries(FAMILIES) as [
  string,
  { actions: readonly string[]; keys: string; workspaceActions?: readonly string[] },
][]
const permissionsOf = (letter: 'o' | 's' | 'u'): Permission[] =>
  entries.flatMap(([family, { actions, keys, workspaceActions }]) => {
    if (!keys.includes(letter)) return []
    const allowed = letter === 'o' ? actions : (workspaceActions ?? actions)
    return allowed.map((action) => `${family.replace('#', '')}.${action}` as Permission)
  })

/** What each key type may hold (file 00 section 3). */
export const GRANTABLE = {
  'organisation-service': new Set(permissionsOf('o')),
  'workspace-service': new Set(permissionsOf('s')),
  'workspace-user': new Set(permissionsOf('u')),
} as const

export const PERMISSIONS: readonly Permission[] = [
  ...new Set([...GRANTABLE['organisation-service'], ...GRANTABLE['workspace-service']]),
]

/** What the system caller of spec 2.5 may do, no more and no less (decision 16). */
export const SYSTEM_PERMISSIONS: readonly Permission[] = [
  'prompts.render',
  'logs.write',
  ...(
    ['secret_references', 'providers', 'configs', 'organisation_integrations', 'workspace_integrations'] as const
  ).flatMap((family) => [`${family}.read`, `${family}.list`] as const),
]

/** `organisation-service-api-keys.rotate` and `policies:create` are spellings found in the ecosystem's prose (D-66). */
export const normalisePermission = (written: string): string => written.replaceAll('-', '_').replace(':', '.')
