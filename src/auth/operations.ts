import type { Permission } from '../../schema/api/permissions.ts'
import type { KeyType } from './caller.ts'

/** One call of the interface, and who may make it. */
export interface Operation {
  method: Method
  /** below `/v1`, with the parameters of our routes: `/prompts/:promptId` */
  path: string
  /** one of them is enough; none: nothing has to be held */
  permissions: readonly Permission[]
  /** types of key that may make the call, holding one of the permissions; none: the call is public */
  keys: ReadonlySet<KeyType>
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type Row = [method: Method, path: string, permissions: Permission | Permission[] | null, keys: string]

const anyKey = (verb: 'list' | 'read' | 'update' | 'delete' | 'rotate'): Permission[] => [
  `organisation_service_api_keys.${verb}`,
  `workspace_service_api_keys.${verb}`,
  `workspace_user_api_keys.${verb}`,
]
type Crudl = 'create' | 'read' | 'update' | 'delete' | 'list'
const anyIntegration = (verb: Crudl): Permission[] => [
  `organisation_integrations.${verb}`,
  `workspace_integrations.${verb}`,
]
const anyGuardrail = (verb: Crudl): Permission[] => [`guardrails.${verb}`, `organisation_guardrails.${verb}`]

const GRAPHS = [
  'requests',
  'cost',
  'latency',
  'tokens',
  'users',
  'users/requests',
  'errors',
  'errors/rate',
  'errors/stacks',
  'errors/status-codes',
  'requests/rescued',
  'cache/hit-rate',
  'cache/latency',
  'feedbacks',
  'feedbacks/scores',
  'feedbacks/weighted',
  'feedbacks/ai-models',
]

/** What the table below says of the keys: o = admin, s = workspace service, u = workspace user, x = system. */
const LETTERS: Record<string, KeyType> = {
  o: 'organisation-service',
  s: 'workspace-service',
  u: 'workspace-user',
  x: 'system',
}

const operation = ([method, path, permissions, keys]: Row): Operation => ({
  method,
  path,
  permissions: permissions === null ? [] : [permissions].flat(),
  keys: new Set([...keys].flatMap((letter) => LETTERS[letter] ?? [])),
})

const CONTRACT: Row[] = [
  // files 01 and 02: prompts, versions, render
  ['POST', '/prompts', 'prompts.create', 'osu'],
  ['GET', '/prompts', 'prompts.list', 'osu'],
  ['GET', '/prompts/:promptId', 'prompts.read', 'osu'],
  ['PUT', '/prompts/:promptId', 'prompts.update', 'osu'],
  ['DELETE', '/prompts/:promptId', 'prompts.delete', 'osu'],
  ['GET', '/prompts/:promptId/versions', 'prompts.read', 'osu'],
  ['GET', '/prompts/:promptId/versions/:versionId', 'prompts.read', 'osu'],
  ['PUT', '/prompts/:promptId/versions/:versionId', 'prompts.update', 'osu'],
  ['PUT', '/prompts/:promptId/makeDefault', 'prompts.publish', 'osu'],
  ['POST', '/prompts/:promptId/render', 'prompts.render', 'osux'],
  // file 03: partials, collections, labels, which have no scopes of their own
  ['POST', '/prompts/partials', 'prompts.create', 'osu'],
  ['GET', '/prompts/partials', 'prompts.list', 'osu'],
  ['GET', '/prompts/partials/:partialId', 'prompts.read', 'osu'],
  ['PUT', '/prompts/partials/:partialId', 'prompts.update', 'osu'],
  ['DELETE', '/prompts/partials/:partialId', 'prompts.delete', 'osu'],
  ['GET', '/prompts/partials/:partialId/versions', 'prompts.read', 'osu'],
  ['PUT', '/prompts/partials/:partialId/makeDefault', 'prompts.publish', 'osu'],
  ['POST', '/collections', 'prompts.create', 'osu'],
  ['GET', '/collections', 'prompts.list', 'osu'],
  ['GET', '/collections/:collectionId', 'prompts.read', 'osu'],
  ['PUT', '/collections/:collectionId', 'prompts.update', 'osu'],
  ['DELETE', '/collections/:collectionId', 'prompts.delete', 'osu'],
  ['POST', '/labels', 'prompts.create', 'osu'],
  ['GET', '/labels', 'prompts.list', 'osu'],
  ['GET', '/labels/:labelId', 'prompts.read', 'osu'],
  ['PUT', '/labels/:labelId', 'prompts.update', 'osu'],
  ['DELETE', '/labels/:labelId', 'prompts.delete', 'osu'],
  // file 04: secret references
  ['POST', '/secret-references', 'secret_references.create', 'o'],
  ['GET', '/secret-references', 'secret_references.list', 'ox'],
  ['GET', '/secret-references/:secretReferenceId', 'secret_references.read', 'ox'],
  ['PUT', '/secret-references/:secretReferenceId', 'secret_references.update', 'o'],
  ['DELETE', '/secret-references/:secretReferenceId', 'secret_references.delete', 'o'],
  // file 05: integrations, of the organisation or of one workspace
  ['POST', '/integrations', anyIntegration('create'), 'osu'],
  ['GET', '/integrations', anyIntegration('list'), 'osux'],
  ['GET', '/integrations/:integrationId', anyIntegration('read'), 'osux'],
  ['PUT', '/integrations/:integrationId', anyIntegration('update'), 'osu'],
  ['DELETE', '/integrations/:integrationId', anyIntegration('delete'), 'osu'],
  ['GET', '/integrations/:integrationId/models', anyIntegration('read'), 'osux'],
  ['PUT', '/integrations/:integrationId/models', anyIntegration('update'), 'osu'],
  ['DELETE', '/integrations/:integrationId/models', anyIntegration('update'), 'osu'],
  ['GET', '/integrations/:integrationId/workspaces', 'organisation_integrations.read', 'o'],
  ['PUT', '/integrations/:integrationId/workspaces', 'organisation_integrations.update', 'o'],
  // file 06: providers and virtual keys
  ['POST', '/providers', 'providers.create', 'osu'],
  ['GET', '/providers', 'providers.list', 'osux'],
  ['GET', '/providers/:providerId', 'providers.read', 'osux'],
  ['PUT', '/providers/:providerId', 'providers.update', 'osu'],
  ['DELETE', '/providers/:providerId', 'providers.delete', 'osu'],
  ['POST', '/virtual-keys', 'virtual_keys.create', 'osu'],
  ['GET', '/virtual-keys', 'virtual_keys.list', 'osu'],
  ['GET', '/virtual-keys/:virtualKeyId', 'virtual_keys.read', 'osu'],
  ['PUT', '/virtual-keys/:virtualKeyId', 'virtual_keys.update', 'osu'],
  ['DELETE', '/virtual-keys/:virtualKeyId', 'virtual_keys.delete', 'osu'],
  // file 07: configs
  ['POST', '/configs', 'configs.create', 'osu'],
  ['GET', '/configs', 'configs.list', 'osux'],
  ['GET', '/configs/:configId', 'configs.read', 'osux'],
  ['PUT', '/configs/:configId', 'configs.update', 'osu'],
  ['DELETE', '/configs/:configId', 'configs.delete', 'osu'],
  ['GET', '/configs/:configId/versions', 'configs.read', 'osux'],
  // file 08: API keys; the permission that counts is the one of the key in question
  ['POST', '/api-keys/organisation/service', 'organisation_service_api_keys.create', 'o'],
  [
    'POST',
    '/api-keys/organisation/user',
    ['organisation_service_api_keys.create', 'workspace_user_api_keys.create'],
    'osu',
  ],
  ['POST', '/api-keys/workspace/service', 'workspace_service_api_keys.create', 'osu'],
  ['POST', '/api-keys/workspace/user', 'workspace_user_api_keys.create', 'osu'],
  ['GET', '/api-keys', anyKey('list'), 'osu'],
  ['GET', '/api-keys/:apiKeyId', anyKey('read'), 'osu'],
  ['PUT', '/api-keys/:apiKeyId', anyKey('update'), 'osu'],
  ['DELETE', '/api-keys/:apiKeyId', anyKey('delete'), 'osu'],
  ['POST', '/api-keys/:apiKeyId/rotate', [...anyKey('rotate'), ...anyKey('update')], 'osu'],
  // file 09: people and invites
  ['GET', '/admin/users', 'organisation_users.list', 'o'],
  ['GET', '/admin/users/:userId', 'organisation_users.read', 'o'],
  ['PUT', '/admin/users/:userId', 'organisation_users.update', 'o'],
  ['DELETE', '/admin/users/:userId', 'organisation_users.delete', 'o'],
  ['POST', '/admin/users/invites', 'organisation_users.create', 'o'],
  ['GET', '/admin/users/invites', 'organisation_users.list', 'o'],
  ['GET', '/admin/users/invites/:inviteId', 'organisation_users.read', 'o'],
  ['DELETE', '/admin/users/invites/:inviteId', 'organisation_users.delete', 'o'],
  ['POST', '/admin/users/invites/:inviteId/resend', 'organisation_users.create', 'o'],
  // file 10: workspaces and members; what workspace keys may write here is opt-in (decision 34)
  ['POST', '/admin/workspaces', 'workspaces.create', 'o'],
  ['GET', '/admin/workspaces', 'workspaces.list', 'osu'],
  ['GET', '/admin/workspaces/:workspaceId', 'workspaces.read', 'osu'],
  ['PUT', '/admin/workspaces/:workspaceId', 'workspaces.update', 'osu'],
  ['DELETE', '/admin/workspaces/:workspaceId', 'workspaces.delete', 'o'],
  ['POST', '/admin/workspaces/:workspaceId/users', 'workspace_users.create', 'osu'],
  ['GET', '/admin/workspaces/:workspaceId/users', 'workspace_users.list', 'osu'],
  ['GET', '/admin/workspaces/:workspaceId/users/:userId', 'workspace_users.read', 'osu'],
  ['PUT', '/admin/workspaces/:workspaceId/users/:userId', 'workspace_users.update', 'osu'],
  ['DELETE', '/admin/workspaces/:workspaceId/users/:userId', 'workspace_users.delete', 'osu'],
  // file 11: organisation settings
  ['GET', '/admin/organisation/defaults', 'organisation_settings.read', 'o'],
  ['PUT', '/admin/organisation/defaults', 'organisation_settings.update', 'o'],
  ['GET', '/workspace-exclusions/input-guardrails', 'organisation_exclusions.list', 'o'],
  ['PUT', '/workspace-exclusions/input-guardrails', 'organisation_exclusions.update', 'o'],
  ['GET', '/workspace-exclusions/output-guardrails', 'organisation_exclusions.list', 'o'],
  ['PUT', '/workspace-exclusions/output-guardrails', 'organisation_exclusions.update', 'o'],
  // file 12: the audit trail
  ['GET', '/audit-logs', 'audit_logs.list', 'o'],
  // file 13: logs
  ['POST', '/logs', 'logs.write', 'sux'],
  ['GET', '/logs/:logId', 'logs.view', 'osu'],
  ['POST', '/logs/exports', 'logs.export', 'osu'],
  ['GET', '/logs/exports', ['logs.export', 'logs.list'], 'osu'],
  ['GET', '/logs/exports/:exportId', 'logs.export', 'osu'],
  ['PUT', '/logs/exports/:exportId', 'logs.export', 'osu'],
  ['POST', '/logs/exports/:exportId/start', 'logs.export', 'osu'],
  ['POST', '/logs/exports/:exportId/cancel', 'logs.export', 'osu'],
  ['GET', '/logs/exports/:exportId/download', 'logs.export', 'osu'],
  ['GET', '/logs/exports/field-restrictions', 'logs.export', 'osu'],
  // file 14: feedback, for workspace keys alone (spec 5.4); not among what the system caller does (decision 16)
  ['POST', '/feedback', ['logs.write', 'completions.write'], 'su'],
  ['PUT', '/feedback/:feedbackId', ['logs.write', 'completions.write'], 'su'],
  // file 15: analytics
  ...GRAPHS.map((graph): Row => ['GET', `/analytics/graphs/${graph}`, 'analytics.view', 'osu']),
  ['GET', '/analytics/summary/cache', 'analytics.view', 'osu'],
  ['GET', '/analytics/groups/users', 'analytics.view', 'osu'],
  ['GET', '/analytics/groups/ai-models', 'analytics.view', 'osu'],
  ['GET', '/analytics/groups/metadata/:metadataKey', 'analytics.view', 'osu'],
  ['GET', '/analytics/groups/workspaces', 'analytics.view', 'osu'],
  ['GET', '/analytics/groups/:groupBy', 'analytics.view', 'osu'],
  // file 16: policies
  ['POST', '/policies/usage-limits', 'policies.create', 'osu'],
  ['GET', '/policies/usage-limits', 'policies.list', 'osu'],
  ['GET', '/policies/usage-limits/:policyId', 'policies.read', 'osu'],
  ['PUT', '/policies/usage-limits/:policyId', 'policies.update', 'osu'],
  ['DELETE', '/policies/usage-limits/:policyId', 'policies.delete', 'osu'],
  ['POST', '/policies/rate-limits', 'policies.create', 'osu'],
  ['GET', '/policies/rate-limits', 'policies.list', 'osu'],
  ['GET', '/policies/rate-limits/:policyId', 'policies.read', 'osu'],
  ['PUT', '/policies/rate-limits/:policyId', 'policies.update', 'osu'],
  ['DELETE', '/policies/rate-limits/:policyId', 'policies.delete', 'osu'],
  ['GET', '/policies/usage-limits/:policyId/entities', 'policies.read', 'osu'],
  ['PUT', '/policies/usage-limits/:policyId/entities/:entityId/reset', 'policies.update', 'osu'],
  // file 17: guardrails, SCIM
  ['POST', '/guardrails', anyGuardrail('create'), 'osu'],
  ['GET', '/guardrails', anyGuardrail('list'), 'osu'],
  ['GET', '/guardrails/:guardrailId', anyGuardrail('read'), 'osu'],
  ['PUT', '/guardrails/:guardrailId', anyGuardrail('update'), 'osu'],
  ['DELETE', '/guardrails/:guardrailId', anyGuardrail('delete'), 'osu'],
  ['GET', '/scim/workspaces', 'organisation_settings.read', 'o'],
  ['POST', '/scim/workspaces', 'organisation_settings.update', 'o'],
  ['DELETE', '/scim/workspaces/:mappingId', 'organisation_settings.update', 'o'],
  ['GET', '/scim/groups', 'organisation_settings.read', 'o'],
]

const OURS: Row[] = [
  ['POST', '/admin/users/invites/accept', null, ''],
  ['GET', '/admin/organisation/settings', 'organisation_settings.read', 'o'],
  ['PUT', '/admin/organisation/settings', 'organisation_settings.update', 'o'],
  ['POST', '/secret-references/test', 'secret_references.test', 'o'],
  ['POST', '/secret-references/:secretReferenceId/test', 'secret_references.test', 'o'],
  ['GET', '/secret-references/:secretReferenceId/health', 'secret_references.read', 'o'],
  ['POST', '/secret-references/:secretReferenceId/resolve', 'secret_references.read', 'x'],
  // another spelling of a call above
  ['PUT', '/integrations/:integrationId/integration-models', anyIntegration('update'), 'osu'],
  ['POST', '/policies/usage-limits/:policyId/entities/reset', 'policies.update', 'osu'],
]

/** The 149 operations of the contract, in its order, whether their routes exist yet or not. */
export const OPERATIONS: readonly Operation[] = CONTRACT.map(operation)

/** What we add to them. */
export const EXTENSIONS: readonly Operation[] = OURS.map(operation)
