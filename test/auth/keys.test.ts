import { describe, expect, test } from 'bun:test'
import { and, eq } from 'drizzle-orm'
import { createKeys } from '../../src/auth/keys.ts'
import type { Tx } from '../../src/db/database.ts'
import { DIALECTS } from '../support/database.ts'
import { auditCount, expectProblem, useWorld } from '../support/scenario.ts'
import { addKey, addPerson } from '../support/tenants.ts'

const HOUR = 3_600_000
const SCOPES = ['prompts.create', 'prompts.list', 'workspace_user_api_keys.create', 'workspace_users.create']

describe.each(DIALECTS)('what a key may do follows its person and its workspace: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys }) => {
    for (const role of ['admin', 'manager', 'member'] as const) {
      const userId = await addPerson(gatehouse, made.organisation_id, 'member')
      names[role] = userId
      await write((tx) => insertMember(tx, userId, role))
      const tenant = { organisationId: made.organisation_id, workspaceId: made.workspace_id, collectionId: '', userId }
      keys[role] = await addKey(gatehouse, tenant, 'workspace-user', SCOPES)
    }
  })

  /** A change behind the API's back; without `tx.changed` like one of another node that was not heard of yet. */
  const write = (work: (tx: Tx) => Promise<unknown>): Promise<unknown> => {
    const { gatehouse, made } = world()
    const actor = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    return gatehouse.audited(actor, { action: 'test.set_up' }, work)
  }
  const insertMember = (tx: Tx, userId: string, role: string) => {
    const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
    const row = { workspaceId: world().made.workspace_id, userId, role, ...times }
    return tx.insert(tx.tables.workspaceMembers).values(row).returning({ userId: tx.tables.workspaceMembers.userId })
  }
  const setRole = (who: string, role: string, isHeardOf = true) =>
    write(async (tx) => {
      const { workspaceMembers: t } = tx.tables
      const userId = world().names[who]!
      await tx.update(t).set({ role }).where(eq(t.userId, userId)).returning({ userId: t.userId })
      if (isHeardOf) tx.changed('user', userId)
    })
  const setSecurity = (settings: object | null, isHeardOf = true) =>
    write(async (tx) => {
      const { workspaces: t } = tx.tables
      const id = world().made.workspace_id
      const securitySettings = settings === null ? null : JSON.stringify(settings)
      await tx.update(t).set({ securitySettings }).where(eq(t.id, id)).returning({ id: t.id })
      if (isHeardOf) tx.changed('workspace', id)
    })
  const setOrganisation = (settings: object) =>
    write(async (tx) => {
      const { organisations: t } = tx.tables
      const id = world().made.organisation_id
      await tx
        .update(t)
        .set({ settings: JSON.stringify(settings) })
        .where(eq(t.id, id))
        .returning({ id: t.id })
      tx.changed('organisation', id)
    })

  const as = (who: string) => ({ key: world().keys[who]! })
  const mint = (who: string) => {
    const body = { name: 'k', scopes: ['prompts.create'] }
    return world().call('POST', '/v1/api-keys/workspace/user', body, as(who))
  }
  const list = (who: string) => world().call('GET', '/v1/prompts', undefined, as(who))
  const create = (who: string) =>
    world().call('POST', '/v1/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' }, as(who))

  test('a manager and a workspace admin make keys, a member makes none (spec 5.2, 5.3)', async () => {
    expect((await mint('admin')).status).toBe(200)
    expect((await mint('manager')).status).toBe(200)
    expectProblem(await mint('member'), 'forbidden')
    expect((await list('member')).status).toBe(200)
  })

  test("a demotion holds on the next request, and so does a promotion; the key's scopes stay", async () => {
    await setRole('manager', 'member')
    expectProblem(await mint('manager'), 'forbidden')
    expect((await list('manager')).status).toBe(200)
    await setRole('manager', 'manager')
    expect((await mint('manager')).status).toBe(200)
  })

  test('a security setting of the workspace holds on the next request', async () => {
    await setSecurity({ membersViewPrompts: false, membersWriteApiKeys: true })
    expectProblem(await list('member'), 'forbidden')
    expect((await list('manager')).status).toBe(200)
    expect((await mint('member')).status).toBe(200)
    await setSecurity(null)
    expect((await list('member')).status).toBe(200)
    expectProblem(await mint('member'), 'forbidden')
  })

  test("one of the organisation too, and the workspace's own goes first", async () => {
    await setOrganisation({ security_settings: { membersViewPrompts: false } })
    expectProblem(await list('member'), 'forbidden')
    await setSecurity({ membersViewPrompts: true })
    expect((await list('member')).status).toBe(200)
    await setOrganisation({})
    await setSecurity(null)
  })

  describe('a node that has not heard of it yet', () => {
    const unchanged = async (act: () => Promise<unknown>) => {
      const before = await auditCount(world())
      await act()
      expect(await auditCount(world())).toBe(before)
    }

    test('lets a demoted person change nothing', async () => {
      await setRole('manager', 'member', false)
      await unchanged(async () => expectProblem(await mint('manager'), 'forbidden'))
      await setRole('manager', 'manager')
    })

    test('lets nobody act by what they have just lost of the rest, which the ceiling goes by', async () => {
      await setSecurity({ membersViewPrompts: false }, false)
      await unchanged(async () => {
        const answer = await create('member')
        expectProblem(answer, 'stale')
        expect(answer.headers.get('retry-after')).toBe('1')
      })
      await setSecurity({ membersViewPrompts: false })
      expect((await create('member')).status).toBe(200)
      await setSecurity(null)
    })

    test('lets a person who gained something go on', async () => {
      await setRole('member', 'manager', false)
      expect((await create('member')).status).toBe(200)
      await setRole('member', 'member')
    })

    test('lets a person who left the workspace change nothing', async () => {
      const userId = world().names['admin']!
      const { workspaceMembers: t } = world().gatehouse.read.tables
      const own = and(eq(t.userId, userId), eq(t.workspaceId, world().made.workspace_id))
      await write((tx) => tx.delete(t).where(own).returning({ userId: t.userId }))
      await unchanged(async () => expectProblem(await create('admin'), 'forbidden'))
      await write((tx) => insertMember(tx, userId, 'admin'))
    })

    test('lets a secret that was replaced change nothing', async () => {
      const { apiKeys: t } = world().gatehouse.read.tables
      const { gatehouse, keys } = world()
      const digest = gatehouse.digestKey(keys['admin']!)
      await write((tx) => tx.update(t).set({ digest: 'new' }).where(eq(t.digest, digest)).returning({ id: t.id }))
      await unchanged(async () => expectProblem(await create('admin'), 'unauthenticated'))
    })
  })

  describe('the cache', () => {
    const cached = async () => {
      const keys = createKeys(world().gatehouse.read, { enforcesRotation: false })
      await keys.load()
      return keys
    }
    const change = (set: object) =>
      write((tx) => {
        const { apiKeys: t } = tx.tables
        return tx.update(t).set(set).where(eq(t.userId, world().names['manager']!)).returning({ id: t.id })
      })

    test('knows both secrets of a rotated key, and forgets the old one as soon as it is ended', async () => {
      const { gatehouse, names, made } = world()
      const now = Date.now()
      const own = { organisationId: made.organisation_id, workspaceId: made.workspace_id, collectionId: '' }
      const clear = await addKey(gatehouse, { ...own, userId: names['manager']! }, 'workspace-user', SCOPES)
      const digest = gatehouse.digestKey(clear)
      const keys = await cached()
      const { keyId } = keys.find(digest, now)!
      const rotate = (set: object) =>
        write((tx) => tx.update(tx.tables.apiKeys).set(set).where(eq(tx.tables.apiKeys.id, keyId)))
      await rotate({ digest: 'second', previousDigest: digest, previousDigestExpiresAt: now + HOUR })
      await keys.reload(keyId)
      expect([...keys.find('second', now)!.permissions]).toContain('workspace_user_api_keys.create')
      expect([...keys.find(digest, now)!.permissions]).toEqual(['prompts.create', 'prompts.list'])
      expect(keys.find(digest, now + HOUR)).toBeUndefined()
      await rotate({ digest: 'third', previousDigest: null, previousDigestExpiresAt: null })
      await keys.reload(keyId)
      expect([digest, 'second', 'third'].map((one) => keys.find(one, now)?.keyId)).toEqual([
        undefined,
        undefined,
        keyId,
      ])
    })

    test('a key that was seen as expired stays so when the clock steps back, also after it was read again', async () => {
      const { gatehouse, keys: clear, names } = world()
      const digest = gatehouse.digestKey(clear['manager']!)
      const keys = await cached()
      const now = Date.now()
      await change({ expiresAt: now + HOUR })
      await keys.reloadWhere({ userId: names['manager']! })
      expect(keys.find(digest, now)).toBeDefined()
      expect(keys.find(digest, now + HOUR)).toBeUndefined()
      for (const again of [() => keys.reloadWhere({ userId: names['manager']! }), () => keys.load()]) {
        await again()
        expect(keys.find(digest, now)).toBeUndefined()
      }
      await change({ expiresAt: now + 2 * HOUR })
      await keys.reloadWhere({ userId: names['manager']! })
      expect(keys.find(digest, now)).toBeDefined()
      await change({ expiresAt: null })
    })

    test('holds as many keys as there are live ones, however often they are read', async () => {
      const keys = await cached()
      const count = keys.count()
      await Promise.all([keys.load(), keys.reloadWhere({ workspaceId: world().made.workspace_id }), keys.load()])
      expect(keys.count()).toBe(count)
    })
  })
})
