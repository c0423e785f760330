import { describe, expect, test } from 'bun:test'
import { GRANTABLE, type Permission } from '../../schema/api/permissions.ts'
import { DEFAULT_SECURITY } from '../../schema/api/security-settings.ts'
import type { KeyType } from '../../src/auth/caller.ts'
import {
  assertMayGive,
  assertMayMint,
  assertNoUpwardMove,
  type Minted,
  type Minter,
  mayTouchKeyOf,
  ranksAbove,
} from '../../src/auth/ceiling.ts'
import { effectivePermissions, type Person, RANKS, rankOfKey } from '../../src/auth/roles.ts'
import { GatehouseError } from '../../src/errors.ts'

const PEOPLE = {
  owner: { organisationRole: 'owner', workspaceRole: null },
  orgadmin: { organisationRole: 'admin', workspaceRole: null },
  wsadmin: { organisationRole: 'member', workspaceRole: 'admin' },
  manager: { organisationRole: 'member', workspaceRole: 'manager' },
  member: { organisationRole: 'member', workspaceRole: 'member' },
} as const satisfies Record<string, Person>
type Name = keyof typeof PEOPLE

/** A key whose person, acting or accountable, is `ann`. */
function minter(type: KeyType, name?: Name, scopes?: readonly Permission[], expiresAt: number | null = null): Minter {
  const person = name === undefined ? null : PEOPLE[name]
  const held = scopes ?? [...GRANTABLE[type as keyof typeof GRANTABLE]]
  // Self-service on, so that a member gets as far as the ceiling.
  const security = { ...DEFAULT_SECURITY, membersViewApiKeys: true, membersWriteApiKeys: true }
  const permissions = effectivePermissions({ type, scopes: held, person, security })
  return { type, permissions, rank: rankOfKey(type, person), accountableUserId: 'ann', expiresAt }
}

const admin = minter('organisation-service')
const service = minter('workspace-service')
const userOf = (name: Name) => minter('workspace-user', name)
const forPerson = (name: Name, id = 'bob'): Minted['person'] => ({ id, ...PEOPLE[name] })

const minted = (over: Partial<Minted> = {}): Minted => ({
  type: 'workspace-service',
  scopes: ['prompts.read'],
  expiresAt: null,
  person: null,
  ...over,
})

function outcome(act: () => void): string {
  try {
    act()
    return 'done'
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    expect(error.message).not.toMatch(/404|not found|ann|bob/)
    return error.code
  }
}

describe('nobody gives what they do not have', () => {
  const few = minter('organisation-service', undefined, ['prompts.read', 'organisation_service_api_keys.create'])
  const memberAlone = userOf('member')
  test.each<[string, Minter, Permission[], string]>([
    ['one of its own', few, ['prompts.read'], 'done'],
    ['one that it lacks', few, ['prompts.update'], 'forbidden'],
    ['one that it lacks among its own', few, ['prompts.read', 'audit_logs.list'], 'forbidden'],
    ['an admin key gives the data plane without holding it', few, ['completions.write', 'logs.write'], 'done'],
    ['and all of it', admin, ['guardrails.invoke', 'mcp.invoke', 'agents.invoke'], 'done'],
    ['a service key counts as the manager', minter('workspace-service', undefined, []), ['logs.write'], 'done'],
    ['so does a manager', minter('workspace-user', 'manager', []), ['completions.write'], 'done'],
    ['so does a workspace admin', minter('workspace-user', 'wsadmin', []), ['completions.write'], 'done'],
    ['a member gives what it holds', memberAlone, ['completions.write'], 'done'],
    ['a member gives no data plane that it lacks', minter('workspace-user', 'member', []), ['logs.write'], 'forbidden'],
    ['a scope that the role makes void is not had', memberAlone, ['workspace_service_api_keys.create'], 'forbidden'],
    ['a scope that a setting makes void is not had', userOf('owner'), ['workspace_users.create'], 'forbidden'],
    ['nor one of the organisation', userOf('owner'), ['audit_logs.list'], 'forbidden'],
  ])('%s', (_name, who, scopes, expected) => {
    expect(outcome(() => assertMayGive(who, scopes))).toBe(expected)
    expect(outcome(() => assertMayMint(who, minted({ scopes })))).toBe(expected)
  })
})

describe('a key that ends mints none like itself that ends later', () => {
  const ending = (type: KeyType) => minter(type, type === 'workspace-user' ? 'manager' : undefined, undefined, 1000)
  test.each<[string, Minter, Partial<Minted>, string]>([
    ['its own type, for ever', ending('workspace-service'), { expiresAt: null }, 'forbidden'],
    ['its own type, a moment longer', ending('workspace-service'), { expiresAt: 1001 }, 'forbidden'],
    ['its own type, as long', ending('workspace-service'), { expiresAt: 1000 }, 'done'],
    ['another type', ending('organisation-service'), { expiresAt: null }, 'done'],
    ['an admin key by an admin key', ending('organisation-service'), { type: 'organisation-service' }, 'forbidden'],
    [
      'a user key for its own person',
      ending('workspace-user'),
      { type: 'workspace-user', person: forPerson('manager', 'ann') },
      'forbidden',
    ],
    [
      'a user key for another person',
      ending('workspace-user'),
      { type: 'workspace-user', person: forPerson('member') },
      'done',
    ],
    ['a key that does not end', service, { expiresAt: null }, 'done'],
  ])('%s', (_name, who, over, expected) => {
    expect(outcome(() => assertMayMint(who, minted(over)))).toBe(expected)
  })
})

// Whom a key may make user keys for. Decision 32: nobody above oneself, except one's own accountable person.
const FOR = `
             owner orgadmin wsadmin manager member
admin          .      x        x       x      x
service        .      .        .       x      x
owner          x      x        x       x      x
orgadmin       .      x        x       x      x
wsadmin        .      .        x       x      x
manager        .      .        .       x      x
member         .      .        .       .      .
`
const [whom = '', ...rows] = FOR.trim().split('\n')

describe.each(
  rows.map((row) => {
    const [who = '', ...cells] = row.trim().split(/\s+/)
    return [who, cells] as const
  }),
)('%s makes user keys for nobody above', (who, cells) => {
  const by = who === 'admin' ? admin : who === 'service' ? service : userOf(who as Name)
  const mint = (name: Name, id: string) =>
    outcome(() => assertMayMint(by, minted({ type: 'workspace-user', scopes: [], person: forPerson(name, id) })))

  test.each(
    whom
      .trim()
      .split(/\s+/)
      .map((name, i) => [name as Name, cells[i] === 'x'] as const),
  )('%s: %p', (name, allowed) => {
    expect(mint(name, 'bob')).toBe(allowed ? 'done' : 'forbidden')
  })

  test('but for its own accountable person', () => {
    for (const name of Object.keys(PEOPLE) as Name[]) expect(mint(name, 'ann')).toBe('done')
  })
})

describe('people change nobody above them, nor themselves', () => {
  const roleOf = (name: 'owner' | 'admin' | 'member', id = 'bob') => ({ id, organisationRole: name })
  test.each<[string, Parameters<typeof assertNoUpwardMove>, string]>([
    ['a member becomes an admin', [admin, roleOf('member'), 'admin'], 'done'],
    ['an admin becomes a member', [admin, roleOf('admin'), 'member'], 'done'],
    ['an owner becomes a member', [admin, roleOf('owner'), 'member'], 'forbidden'],
    ['nobody is made an owner', [admin, roleOf('admin'), 'owner'], 'forbidden'],
    ["the key's own person is promoted", [admin, roleOf('member', 'ann'), 'admin'], 'forbidden'],
    ["the key's own person is demoted", [admin, roleOf('admin', 'ann'), 'member'], 'forbidden'],
    ['a member is removed', [admin, roleOf('member'), null], 'done'],
    ['an admin is removed', [admin, roleOf('admin'), null], 'done'],
    ['an owner is removed', [admin, roleOf('owner'), null], 'forbidden'],
    ["the key's own person is removed", [admin, roleOf('admin', 'ann'), null], 'done'],
    ['a workspace key promotes', [service, roleOf('member'), 'admin'], 'forbidden'],
    ['a workspace key removes an admin', [service, roleOf('admin'), null], 'forbidden'],
  ])('%s', (_name, move, expected) => {
    expect(outcome(() => assertNoUpwardMove(...move))).toBe(expected)
  })
})

test("a member's self-service covers the member's own user keys and no others", () => {
  const caller = (name: Name) => ({ ...userOf(name), userId: 'ann' }) as Parameters<typeof mayTouchKeyOf>[0]
  expect(mayTouchKeyOf(caller('member'), 'ann')).toBe(true)
  for (const userId of ['bob', null]) {
    expect(mayTouchKeyOf(caller('member'), userId)).toBe(false)
    expect(mayTouchKeyOf(caller('manager'), userId)).toBe(true)
  }
})

test('ranks are in one order', () => {
  for (const [i, one] of RANKS.entries())
    for (const [j, other] of RANKS.entries()) expect(ranksAbove(one, other)).toBe(i > j)
})
