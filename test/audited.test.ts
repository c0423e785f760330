import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { type Audited, createTrail } from '../src/audit/audited.ts'
import type { Actor, Caller } from '../src/auth/caller.ts'
import type { Database, Tx } from '../src/db/database.ts'
import { auditTrail, TEST_AUDIT_KEYS } from './support/audit.ts'
import { DIALECTS, openTestDatabase, type TestDatabase } from './support/database.ts'

describe.each(DIALECTS)('audited: %s', (dialect) => {
  let opened: TestDatabase
  let db: Database
  let audited: Audited
  const organisationId = Bun.randomUUIDv7()
  const workspaceId = Bun.randomUUIDv7()
  const userId = Bun.randomUUIDv7()
  const request = {
    requestId: 'r1',
    method: 'POST',
    uri: '/v1/things?x=1',
    clientIp: '192.0.2.1',
    headers: { 'user-agent': 'test' },
    body: { name: 'Prompt' },
  }
  const cli: Actor = { kind: 'cli', uid: 1000, organisationId, command: 'bootstrap' }

  beforeAll(async () => {
    opened = await openTestDatabase(dialect)
    db = opened.db
    audited = createTrail(db, { keys: () => TEST_AUDIT_KEYS }).audited
    await write(async (tx) => {
      const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
      await tx.insert(tx.tables.organisations).values({ id: organisationId, name: 'o', createdAt: tx.now })
      await tx
        .insert(tx.tables.users)
        .values({ id: userId, organisationId, email: 'a@b.example', role: 'member', status: 'active', ...times })
      await tx
        .insert(tx.tables.workspaces)
        .values({ id: workspaceId, organisationId, slug: 'w', name: 'w', isDefault: true, status: 'active', ...times })
      await tx.insert(tx.tables.workspaceMembers).values({ workspaceId, userId, role: 'member', ...times })
    })
  })
  afterAll(() => opened.drop())

  const write = <T>(work: (tx: Tx) => Promise<T>) => db.transaction({ action: 'test' }, work)
  const events = () => auditTrail(db.read)
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    )

  /** A caller whose user key is in the database. */
  async function userKey(
    overrides: { expiresAt?: number; deletedAt?: number } = {},
  ): Promise<Extract<Actor, { kind: 'key' }>> {
    const keyId = Bun.randomUUIDv7()
    const permissions = ['prompts.create'] as const
    await write((tx) =>
      tx.insert(tx.tables.apiKeys).values({
        id: keyId,
        organisationId,
        workspaceId,
        userId,
        accountableUserId: userId,
        type: 'workspace-user',
        name: 'k',
        scopes: JSON.stringify(permissions),
        digest: keyId,
        masked: 'gk…',
        creationMode: 'api',
        createdAt: tx.now,
        lastUpdatedAt: tx.now,
        ...overrides,
      }),
    )
    const caller: Caller = {
      keyId,
      type: 'workspace-user',
      organisationId,
      workspaceId,
      accountableUserId: userId,
      userId,
      permissions: new Set(permissions),
      rank: 'member',
      expiresAt: null,
      endsAt: null,
      isPreviousSecret: false,
      limiter: undefined,
      digest: keyId,
    }
    return { kind: 'key', caller, permissions, request }
  }

  test('a change leaves one row that says who, what, where and when', async () => {
    const actor = await userKey()
    const before = (await events()).length
    const now = await audited(actor, { action: 'prompts.create', details: { a: 1 } }, async (tx) => {
      tx.event.resourceId = 'p1'
      tx.event.resourceName = 'Prompt'
      return tx.now
    })
    const rows = await events()
    expect(rows.length).toBe(before + 1)
    expect(rows[0]).toEqual({
      seq: (rows[1]?.seq ?? 0) + 1,
      timestamp: new Date(now).toISOString(),
      clock: 0,
      organisation_id: organisationId,
      workspace_id: workspaceId,
      user_type: 'api_key',
      user_id: actor.caller.keyId,
      accountable_user_id: userId,
      resource_type: 'prompts',
      action: 'create',
      resource_id: 'p1',
      resource_name: 'Prompt',
      method: 'POST',
      uri: '/v1/things?x=1',
      request_id: 'r1',
      client_ip: '192.0.2.1',
      request_headers: { 'user-agent': 'test' },
      query_params: { x: '1' },
      request_body: { name: 'Prompt' },
      response_status_code: 200,
      details: expect.objectContaining({ a: 1 }),
    })
  })

  test('at the command line the row names the system user and the command', async () => {
    await audited(cli, { action: 'organisations.create', workspaceId: null }, async () => {})
    const [row] = await events()
    expect(row).toMatchObject({
      user_type: 'cli',
      user_id: 'cli:1000',
      workspace_id: null,
      details: { command: 'bootstrap' },
    })
  })

  test('if the change fails there is no row, and if the row fails there is no change', async () => {
    const before = (await events()).length
    const id = Bun.randomUUIDv7()
    const add = (tx: Tx) => tx.insert(tx.tables.organisations).values({ id, name: 'x', createdAt: tx.now })
    await failure(
      audited(cli, { action: 'test' }, async (tx) => {
        await add(tx)
        throw new Error('refused')
      }),
    )
    const unwritable = { action: 'test', details: { n: 1n } }
    expect(await failure(audited(cli, unwritable, async (tx) => void (await add(tx))))).toBeInstanceOf(TypeError)
    const { organisations } = db.read.tables
    expect(await db.read.select().from(organisations).where(eq(organisations.id, id))).toEqual([])
    expect((await events()).length).toBe(before)
  })

  test('numbers have no gap and no double, however many changes are made at once and however many fail', async () => {
    await Promise.allSettled(
      Array.from({ length: 60 }, (_, i) =>
        audited(cli, { action: 'test' }, async () => {
          if (i % 3 === 0) throw new Error('refused')
        }),
      ),
    )
    const seqs = (await events()).map(({ seq }) => seq).reverse()
    expect(seqs.length).toBeGreaterThanOrEqual(40)
    expect(seqs).toEqual(seqs.map((_, i) => i + 1))
  })

  test('a change inside a change is refused at once instead of waiting for its own end', async () => {
    const error = await failure(
      audited(cli, { action: 'outer' }, () => audited(cli, { action: 'inner' }, async () => {})),
    )
    expect(String(error)).toContain('inside another change')
    await audited(cli, { action: 'after' }, async () => {})
  })

  const setUser = (status: string) =>
    write((tx) => tx.update(tx.tables.users).set({ status }).where(eq(tx.tables.users.id, userId)).returning())
  const setWorkspace = (status: string) =>
    write((tx) =>
      tx.update(tx.tables.workspaces).set({ status }).where(eq(tx.tables.workspaces.id, workspaceId)).returning(),
    )
  const nothing = async () => {}

  test.each([
    { name: 'a deleted key', key: { deletedAt: 1 }, prepare: nothing, restore: nothing },
    { name: 'an expired key', key: { expiresAt: 1 }, prepare: nothing, restore: nothing },
    { name: 'a removed person', key: {}, prepare: () => setUser('removed'), restore: () => setUser('active') },
    {
      name: 'an archived workspace',
      key: {},
      prepare: () => setWorkspace('archived'),
      restore: () => setWorkspace('active'),
    },
  ])('$name changes nothing, however old the cache that let it in', async ({ key, prepare, restore }) => {
    const actor = await userKey(key)
    await prepare()
    const before = (await events()).length
    let hasRun = false
    const error = await failure(
      audited(actor, { action: 'test' }, async () => {
        hasRun = true
      }),
    )
    await restore()
    expect(error).toMatchObject({ code: 'unauthenticated' })
    expect([hasRun, (await events()).length]).toEqual([false, before])
  })

  // Only SQLite takes several changes into one commit, so there is nothing to ask PostgreSQL.
  test.each(dialect === 'sqlite' ? (['api_key', 'user', undefined] as const) : [])(
    'a key that an earlier change of the same commit ended changes nothing (%p was said to have changed)',
    async (kind) => {
      const actor = await userKey()
      const label = () => audited(actor, { action: 'labels.create' }, async (tx) => tx.changed('label', 'l'))
      const [first, , last] = await Promise.allSettled([
        label(),
        audited(cli, { action: 'api_keys.delete' }, async (tx) => {
          const { apiKeys } = tx.tables
          await tx.update(apiKeys).set({ deletedAt: tx.now }).where(eq(apiKeys.id, actor.caller.keyId))
          if (kind !== undefined) tx.changed(kind, actor.caller.keyId)
        }),
        label(),
      ])
      expect(first.status).toBe('fulfilled')
      expect(last).toMatchObject({ status: 'rejected', reason: { code: 'unauthenticated' } })
    },
  )

  test('a key of another organisation, and one that never was, change nothing', async () => {
    const actor = await userKey({ expiresAt: Date.now() + 60_000 })
    const strangers: Caller[] = [
      { ...actor.caller, organisationId: Bun.randomUUIDv7() },
      { ...actor.caller, keyId: Bun.randomUUIDv7() },
    ]
    for (const caller of strangers) {
      expect(await failure(audited({ ...actor, caller }, { action: 'test' }, async () => {}))).toMatchObject({
        code: 'unauthenticated',
      })
    }
    await audited(actor, { action: 'test' }, async () => {})
  })
})
