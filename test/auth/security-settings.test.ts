import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { PERMISSIONS } from '../../schema/api/permissions.ts'
import {
  DEFAULT_SECURITY,
  OwnSecuritySettings,
  type SecuritySetting,
  SecuritySettings,
  SecuritySettingsUpdate,
} from '../../schema/api/security-settings.ts'
import { securityOf } from '../../src/auth/key-rows.ts'
import { effectivePermissions, type Person } from '../../src/auth/roles.ts'

const OF = {
  service: { type: 'workspace-service', person: null },
  member: { type: 'workspace-user', person: { organisationRole: 'member', workspaceRole: 'member' } },
  manager: { type: 'workspace-user', person: { organisationRole: 'member', workspaceRole: 'manager' } },
  wsadmin: { type: 'workspace-user', person: { organisationRole: 'member', workspaceRole: 'admin' } },
  orgadmin: { type: 'workspace-user', person: { organisationRole: 'admin', workspaceRole: null } },
  owner: { type: 'workspace-user', person: { organisationRole: 'owner', workspaceRole: 'member' } },
} as const satisfies Record<string, { type: string; person: Person | null }>
type Who = keyof typeof OF

const members: Who[] = ['member']
const managers: Who[] = ['manager']
const organisation: Who[] = ['orgadmin', 'owner']
const write = (family: string) => ['create', 'update', 'delete'].map((verb) => `${family}.${verb}`)
const view = (family: string) => ['read', 'list'].map((verb) => `${family}.${verb}`)
const keys = (family: string) => [...write(family), `${family}.rotate`]
const prompts = [...write('prompts'), 'prompts.publish']
const models = [...write('providers'), ...write('virtual_keys'), 'virtual_keys.duplicate', 'virtual_keys.copy']

/** Setting, default, whose keys it is about, what they have with it and lack without it. */
const TABLE: [SecuritySetting, boolean, Who[], string[]][] = [
  ['membersViewLogs', true, members, ['logs.view', 'logs.export']],
  ['membersViewLogMetadata', true, members, ['logs.list']],
  ['membersViewAnalytics', true, members, ['analytics.view']],
  ['membersViewAllData', true, members, []],
  ['membersViewPrompts', true, members, view('prompts')],
  ['membersWritePrompts', true, members, prompts],
  ['membersViewConfigs', true, members, view('configs')],
  ['membersWriteConfigs', true, members, write('configs')],
  ['membersViewGuardrails', true, members, view('guardrails')],
  ['membersWriteGuardrails', true, members, write('guardrails')],
  ['membersViewVirtualKeys', true, members, [...view('providers'), ...view('virtual_keys')]],
  ['membersWriteVirtualKeys', true, members, models],
  ['membersViewApiKeys', false, members, view('workspace_user_api_keys')],
  ['membersWriteApiKeys', false, members, keys('workspace_user_api_keys')],
  ['managersViewLogs', true, managers, ['logs.view', 'logs.export']],
  ['managersViewLogMetadata', true, managers, ['logs.list']],
  ['managersViewAnalytics', true, managers, ['analytics.view']],
  ['managersViewAllData', true, managers, []],
  ['managersViewPrompts', true, managers, view('prompts')],
  ['managersWritePrompts', true, managers, prompts],
  ['managersViewConfigs', true, managers, view('configs')],
  ['managersWriteConfigs', true, managers, write('configs')],
  ['managersViewGuardrails', true, managers, view('guardrails')],
  ['managersWriteGuardrails', true, managers, write('guardrails')],
  ['managersViewVirtualKeys', true, managers, [...view('providers'), ...view('virtual_keys')]],
  ['managersWriteVirtualKeys', true, managers, models],
  ['managersViewApiKeys', true, managers, [...view('workspace_user_api_keys'), ...view('workspace_service_api_keys')]],
  ['managersWriteApiKeys', true, managers, [...keys('workspace_user_api_keys'), ...keys('workspace_service_api_keys')]],
  ['managersUpdateWs', false, ['service', 'manager', 'wsadmin', ...organisation], ['workspaces.update']],
  ['managersWriteWsUsers', false, ['service', 'manager', 'wsadmin', ...organisation], write('workspace_users')],
  ['managersWriteMcpServers', true, managers, [...write('mcp_servers'), ...write('agent_servers')]],
  ['managersWriteWsIntegrations', true, managers, write('workspace_integrations')],
  [
    'managersWriteWsMcpIntegrations',
    true,
    managers,
    [...write('workspace_mcp_integrations'), ...write('workspace_agent_integrations')],
  ],
  ['organisationAdminsViewLogs', true, organisation, ['logs.view', 'logs.export']],
  ['organisationAdminsViewLogMetadata', true, organisation, ['logs.list']],
]

const having = (who: Who, setting: SecuritySetting, value: boolean) =>
  effectivePermissions({ ...OF[who], scopes: PERMISSIONS, security: { ...DEFAULT_SECURITY, [setting]: value } })

describe.each(TABLE)('%s', (setting, byDefault, whose, gives) => {
  test.each(Object.keys(OF) as Who[])('means nothing else to %s', (who) => {
    const on = having(who, setting, true)
    const off = having(who, setting, false)
    expect([...on].filter((permission) => !off.has(permission)).sort()).toEqual(
      (whose.includes(who) ? [...gives].sort() : []) as never[],
    )
    expect([...off].filter((permission) => !on.has(permission))).toEqual([])
  })

  test(`is ${byDefault ? 'on' : 'off'} until somebody says otherwise`, () => {
    expect(DEFAULT_SECURITY[setting]).toBe(byDefault)
  })
})

test('the table has every setting', () => {
  expect(TABLE.map(([setting]) => setting).sort()).toEqual(Object.keys(SecuritySettings.properties).sort() as never[])
})

test('admin and system keys are bound by no setting', () => {
  const none = Object.fromEntries(Object.keys(DEFAULT_SECURITY).map((name) => [name, false])) as typeof DEFAULT_SECURITY
  for (const type of ['organisation-service', 'system'] as const) {
    const of = (security: typeof none) => effectivePermissions({ type, person: null, scopes: PERMISSIONS, security })
    expect(of(none)).toEqual(of(DEFAULT_SECURITY))
  }
})

describe('whose value counts', () => {
  const organisation = JSON.stringify({ security_settings: { membersViewLogs: false, membersWriteConfigs: false } })
  const workspace = JSON.stringify({ membersWriteConfigs: true, membersViewApiKeys: true })
  test.each([
    ['nobody has set anything', '{}', null, {}],
    [
      "the organisation's, where the workspace has none",
      organisation,
      null,
      { membersViewLogs: false, membersWriteConfigs: false },
    ],
    [
      "the workspace's, where it has one",
      organisation,
      workspace,
      { membersViewLogs: false, membersViewApiKeys: true },
    ],
  ])('%s', (_name, general, own, differs) => {
    expect(securityOf(general, own)).toEqual({ ...DEFAULT_SECURITY, ...differs })
  })
})

test('a write names known settings only, and any of them', () => {
  expect(Value.Check(SecuritySettingsUpdate, {})).toBe(true)
  expect(Value.Check(SecuritySettingsUpdate, { membersViewLogs: false, membersViewPrompts: null })).toBe(true)
  expect(Value.Check(OwnSecuritySettings, { membersViewPrompts: null })).toBe(false)
  expect(Value.Check(SecuritySettingsUpdate, { membersViewLogs: 'no' })).toBe(false)
  expect(Value.Check(SecuritySettingsUpdate, { membersViewLog: false })).toBe(false)
})
