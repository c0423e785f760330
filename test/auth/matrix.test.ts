import { describe, expect, test } from 'bun:test'
import { PERMISSIONS, type Permission } from '../../schema/api/permissions.ts'
import { DEFAULT_SECURITY } from '../../schema/api/security-settings.ts'
import type { KeyType } from '../../src/auth/caller.ts'
import { effectivePermissions, type Person } from '../../src/auth/roles.ts'

const person = (
  organisationRole: Person['organisationRole'],
  workspaceRole: Person['workspaceRole'],
): { type: KeyType; person: Person } => ({ type: 'workspace-user', person: { organisationRole, workspaceRole } })

/** The columns of the table. Each caller's key has every scope there is, also those that its type cannot hold. */
const CALLERS: Record<string, { type: KeyType; person: Person | null }> = {
  admin: { type: 'organisation-service', person: null },
  service: { type: 'workspace-service', person: null },
  owner: person('owner', null),
  orgadmin: person('admin', null),
  wsadmin: person('member', 'admin'),
  manager: person('member', 'manager'),
  member: person('member', 'member'),
  stranger: person('member', null),
  system: { type: 'system', person: null },
}

// By hand, from spec 5, file 00 section 3 and decisions 16, 29 and 34; settings at their defaults.
const TABLE = `
                                                                       admin service owner orgadmin wsadmin manager member stranger system
organisation_users: create read update delete list                       x      .      .      .        .       .      .      .        .
organisation_service_api_keys: create read update delete list rotate     x      .      .      .        .       .      .      .        .
workspace_service_api_keys: create read update delete list rotate        x      x      x      x        x       x      .      .        .
workspace_user_api_keys: create read update delete list rotate           x      x      x      x        x       x      .      .        .
organisation_settings: read update                                       x      .      .      .        .       .      .      .        .
organisation_guardrails: create read update delete list                  x      .      .      .        .       .      .      .        .
organisation_exclusions: update list                                     x      .      .      .        .       .      .      .        .
audit_logs: list                                                         x      .      .      .        .       .      .      .        .
plugins: create update list                                              x      .      .      .        .       .      .      .        .
deployments: create read update delete list                              x      .      .      .        .       .      .      .        .
secret_references: create update delete test                             x      .      .      .        .       .      .      .        .
secret_references: read list                                             x      .      .      .        .       .      .      .        x
workspaces: create delete update                                         x      .      .      .        .       .      .      .        .
workspaces: read list                                                    x      x      x      x        x       x      x      .        .
workspace_users: create update delete                                    x      .      .      .        .       .      .      .        .
workspace_users: read list                                               x      x      x      x        x       x      x      .        .
prompts: create read update delete list publish                          x      x      x      x        x       x      x      .        .
prompts: render                                                          x      x      x      x        x       x      x      .        x
completions: write                                                       .      x      x      x        x       x      x      .        .
configs: create update delete                                            x      x      x      x        x       x      x      .        .
configs: read list                                                       x      x      x      x        x       x      x      .        x
providers: create update delete                                          x      x      x      x        x       x      x      .        .
providers: read list                                                     x      x      x      x        x       x      x      .        x
policies: create update delete                                           x      x      x      x        x       x      .      .        .
policies: read list                                                      x      x      x      x        x       x      x      .        .
guardrails: create read update delete list                               x      x      x      x        x       x      x      .        .
guardrails: invoke                                                       .      x      x      x        x       x      x      .        .
virtual_keys: create read update delete list duplicate copy              x      x      x      x        x       x      x      .        .
organisation_integrations: create update delete                          x      .      .      .        .       .      .      .        .
organisation_integrations: read                                          x      .      .      .        .       .      .      .        x
organisation_integrations: list                                          x      x      x      x        x       x      x      .        x
workspace_integrations: create update delete                             x      x      x      x        x       x      .      .        .
workspace_integrations: read list                                        x      x      x      x        x       x      x      .        x
organisation_mcp_integrations: create read update delete                 x      .      .      .        .       .      .      .        .
organisation_mcp_integrations: list                                      x      x      x      x        x       x      x      .        .
organisation_agent_integrations: create read update delete               x      .      .      .        .       .      .      .        .
organisation_agent_integrations: list                                    x      x      x      x        x       x      x      .        .
workspace_mcp_integrations: create update delete                         x      x      x      x        x       x      .      .        .
workspace_mcp_integrations: read list                                    x      x      x      x        x       x      x      .        .
workspace_agent_integrations: create update delete                       x      x      x      x        x       x      .      .        .
workspace_agent_integrations: read list                                  x      x      x      x        x       x      x      .        .
mcp_servers: create update delete                                        x      x      x      x        x       x      .      .        .
mcp_servers: read list                                                   x      x      x      x        x       x      x      .        .
agent_servers: create update delete                                      x      x      x      x        x       x      .      .        .
agent_servers: read list                                                 x      x      x      x        x       x      x      .        .
mcp: invoke                                                              .      x      x      x        x       x      x      .        .
agents: invoke                                                           .      x      x      x        x       x      x      .        .
analytics: view                                                          x      x      x      x        x       x      x      .        .
logs: export list view                                                   x      x      x      x        x       x      x      .        .
logs: write                                                              .      x      x      x        x       x      x      .        x
`

const [columns = '', ...lines] = TABLE.trim().split('\n')
const names = columns.trim().split(/\s+/)
const EXPECTED = new Map(
  lines.flatMap((line) => {
    const [, family = '', actions = '', cells = ''] = /^(\w+): ([\w ]+?) {2,}(.+)$/.exec(line) ?? []
    const may = Object.fromEntries(cells.split(/ +/).map((cell, i) => [names[i], cell === 'x']))
    return actions.split(' ').map((action) => [`${family}.${action}` as Permission, may] as const)
  }),
)

test('the table has a row for every permission, and for nothing else', () => {
  expect(names).toEqual(Object.keys(CALLERS))
  expect([...EXPECTED.keys()].sort()).toEqual([...PERMISSIONS].sort())
  for (const may of EXPECTED.values()) expect(Object.keys(may)).toEqual(names)
})

describe.each(Object.entries(CALLERS))('%s', (name, caller) => {
  const effective = effectivePermissions({ ...caller, scopes: PERMISSIONS, security: DEFAULT_SECURITY })

  test.each([...EXPECTED])(`%s`, (permission, may) => {
    expect(effective.has(permission)).toBe(may[name] === true)
  })

  test('one scope gives no more than itself', () => {
    for (const permission of PERMISSIONS) {
      const alone = effectivePermissions({ ...caller, scopes: [permission], security: DEFAULT_SECURITY })
      expect([...alone]).toEqual(effective.has(permission) ? [permission] : [])
    }
  })

  test('a key without scopes, or with one that is none, may do nothing', () => {
    for (const scopes of [[], ['prompts', 'prompts.*', '*', '', 'constructor', '__proto__']])
      expect(effectivePermissions({ ...caller, scopes, security: DEFAULT_SECURITY }).size).toBe(0)
  })
})

test('a user key without its person may do nothing', () => {
  const grounds = { type: 'workspace-user', person: null, scopes: PERMISSIONS, security: DEFAULT_SECURITY } as const
  expect(effectivePermissions(grounds).size).toBe(0)
})

test('a person behind another type of key changes nothing', () => {
  for (const type of ['organisation-service', 'workspace-service', 'system'] as const) {
    const of = (person: Person | null) =>
      effectivePermissions({ type, person, scopes: PERMISSIONS, security: DEFAULT_SECURITY })
    expect(of({ organisationRole: 'member', workspaceRole: null })).toEqual(of(null))
  }
})
