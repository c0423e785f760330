import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { eq, sql } from 'drizzle-orm'
import { MIGRATIONS } from '../../schema/db/migrations.ts'
import { followChanges, pruneChanges } from '../../src/db/changes.ts'
import type { Change, Database, Tx } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { freshPostgresUrl } from '../support/postgres.ts'

const isThere = (await freshPostgresUrl()) !== undefined

const open = (url: string, pollMs = 50) => openDatabase({ dialect: 'postgres', url, pollMs })
const change = <T>(db: Database, work: (tx: Tx) => Promise<T>) => db.transaction({ action: 'test' }, work)
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

async function until(condition: () => boolean, ms: number): Promise<number> {
  const start = performance.now()
  while (!condition() && performance.now() - start < ms) await Bun.sleep(2)
  return performance.now() - start
}

async function withNodes(count: number, work: (nodes: Database[], url: string) => Promise<void>): Promise<void> {
  const url = (await freshPostgresUrl())!
  const nodes = await Promise.all(Array.from({ length: count }, () => open(url)))
  try {
    await work(nodes, url)
  } finally {
    await Promise.all(nodes.map((node) => node.close()))
  }
}

describe.skipIf(!isThere)('several nodes on one PostgreSQL', () => {
  test('nodes that start together on an empty database migrate it once and are one installation', () =>
    withNodes(4, async (nodes) => {
      const { installation, schemaMigrations } = nodes[0]!.read.tables
      const rows = await Promise.all(nodes.map((node) => node.read.select().from(installation)))
      expect(new Set(rows.flat().map(({ instanceId }) => instanceId)).size).toBe(1)
      const applied = (await nodes[0]!.read.select().from(schemaMigrations)).map(({ version }) => version)
      expect(applied.toSorted()).toEqual(MIGRATIONS.postgres.map(({ version }) => version))
    }))

  test('a change on one node is announced on the other within the bound of a second', () =>
    withNodes(2, async ([a, b]) => {
      const heard: Change[] = []
      b!.onCommitted(async (changes) => void heard.push(...changes))
      await change(a!, async (tx) => tx.changed('prompt', 'p1'))
      expect(await until(() => heard.length > 0, 2_000)).toBeLessThan(1_000)
      expect(heard).toEqual([{ kind: 'prompt', id: 'p1' }])
    }))

  test('all nodes hear of all changes in one order', () =>
    withNodes(3, async (nodes) => {
      const heard = nodes.map(() => [] as string[])
      for (const [i, node] of nodes.entries()) {
        node.onCommitted(async (changes) => void heard[i]!.push(...changes.map(({ id }) => id)))
      }
      const writes = Array.from({ length: 90 }, (_, i) =>
        change(nodes[i % 3]!, async (tx) => tx.changed('user', String(await tx.revise()))),
      )
      await Promise.all(writes)
      await until(() => heard.every((ids) => ids.length === 90), 2_000)
      const inOrder = Array.from({ length: 90 }, (_, i) => String(i + 1))
      expect(heard).toEqual([inOrder, inOrder, inOrder])
    }))

  test('a node that was away until its changes were pruned is told to load everything again', () =>
    withNodes(1, async ([node], url) => {
      for (const id of ['1', '2', '3']) await change(node!, async (tx) => tx.changed('user', id))
      const client = new SQL(url, { max: 1 })
      const heardFrom = async (seen: number) => {
        const heard: Change[] = []
        const feed = followChanges(client, 60_000, seen)
        feed.onCommitted(async (changes) => void heard.push(...changes))
        await feed.reach(seen + 1)
        await feed.stop()
        return heard
      }
      expect(await heardFrom(1)).toEqual([
        { kind: 'user', id: '2' },
        { kind: 'user', id: '3' },
      ])
      await pruneChanges(client, Date.now() + 1_000)
      await change(node!, async (tx) => tx.changed('user', '4'))
      expect(await heardFrom(2)).toEqual([{ kind: '*', id: '' }])
      expect(await heardFrom(3)).toEqual([{ kind: 'user', id: '4' }])
      await client.close()
    }))

  test('a database that was set back by a restore is loaded again from nothing', () =>
    withNodes(1, async ([node]) => {
      const heard: Change[] = []
      for (const id of ['1', '2', '3']) await change(node!, async (tx) => tx.changed('user', id))
      node!.onCommitted(async (changes) => void heard.push(...changes))
      await change(node!, (tx) => tx.update(tx.tables.installation).set({ revision: 0 }).returning()).catch(() => {})
      expect(await until(() => heard.length > 0, 2_000)).toBeLessThan(1_000)
      expect(heard).toEqual([{ kind: '*', id: '' }])
    }))
})

describe.skipIf(!isThere)('what goes wrong with PostgreSQL', () => {
  test('of two changes in a deadlock one runs again, and both happen', () =>
    withNodes(1, async ([db]) => {
      const { organisations } = db!.read.tables
      await change(db!, (tx) =>
        tx
          .insert(organisations)
          .values(['a', 'b'].map((id) => ({ id, name: '', createdAt: 0 })))
          .returning(),
      )
      let runs = 0
      const bothHoldOne = Promise.withResolvers<void>()
      const appendTo = (first: string, second: string) =>
        change(db!, async (tx) => {
          const append = (id: string) =>
            tx
              .update(organisations)
              .set({ name: sql`${organisations.name} || ${first}` })
              .where(eq(organisations.id, id))
              .returning()
          await append(first)
          if (++runs === 2) bothHoldOne.resolve()
          await bothHoldOne.promise
          await append(second)
        })
      await Promise.all([appendTo('a', 'b'), appendTo('b', 'a')])
      expect(runs).toBeGreaterThan(2)
      const names = (await db!.read.select().from(organisations)).map(({ name }) => [...name].sort().join(''))
      expect(names).toEqual(['ab', 'ab'])
    }))

  test('a serialisation failure that does not end runs six times and no more', () =>
    withNodes(1, async ([db]) => {
      let runs = 0
      const error = await failure(
        change(db!, async () => {
          runs++
          throw Object.assign(new Error('serialise'), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '40001' })
        }),
      )
      expect([runs, String(error)]).toEqual([6, 'Error: serialise'])
    }))

  test('without the server changes answer storage_unavailable and staleness grows; both end when it is back', () =>
    withNodes(1, async ([db], url) => {
      const admin = new SQL(url.replace(/[^/]+$/, 'postgres'), { max: 1 })
      const name = new URL(url).pathname.slice(1)
      await admin.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
      await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
      expect(await failure(db!.probe())).toMatchObject({ code: 'storage_unavailable', retryAfterSeconds: 5 })
      await until(() => db!.staleMs() > 300, 2_000)
      expect(db!.staleMs()).toBeGreaterThan(300)
      await admin.unsafe(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
      await admin.close()
      await until(() => db!.staleMs() < 200, 3_000)
      expect(db!.staleMs()).toBeLessThan(200)
      await db!.probe()
    }))

  test('a connection that breaks inside a change leaves nothing of it', () =>
    withNodes(1, async ([db]) => {
      const { organisations } = db!.read.tables
      const error = await failure(
        change(db!, async (tx) => {
          await tx.insert(organisations).values({ id: 'broken', name: '', createdAt: 0 })
          await tx.select({ gone: sql`pg_terminate_backend(pg_backend_pid())` }).from(organisations)
        }),
      )
      expect(error).toMatchObject({ code: 'storage_unavailable' })
      expect(await db!.read.select().from(organisations)).toEqual([])
    }))

  test('text that PostgreSQL cannot hold is the caller’s mistake, and no error quotes what was sent', () =>
    withNodes(1, async ([db]) => {
      const { organisations } = db!.read.tables
      const add = (id: string, name: string) =>
        failure(change(db!, (tx) => tx.insert(organisations).values({ id, name, createdAt: 0 }).returning()))
      expect(await add('a', 'x\0y')).toMatchObject({ code: 'invalid' })
      await add('twice', 'a secret')
      const error = await add('twice', 'a secret')
      expect(error).toMatchObject({ errno: '23505' })
      expect(Bun.inspect(error)).not.toContain('a secret')
    }))

  test('a database with tables of something else is refused and left alone', async () => {
    const url = (await freshPostgresUrl())!
    const client = new SQL(url, { max: 1 })
    await client.unsafe('CREATE TABLE theirs (id int)')
    expect(await failure(open(url))).toMatchObject({ code: 'NOT_OUR_DATABASE', exitCode: 65 })
    const tables = await client`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`
    expect([...tables]).toEqual([{ tablename: 'theirs' }])
    await client.close()
  })

  test.each([
    ['nobody answers', (url: string) => url.replace(/:\d+\//, ':1/')],
    ['the password is wrong', (url: string) => url.replace(':secret@', ':hunter2@')],
    ['there is no password, whatever PGPASSWORD says', (url: string) => url.replace(':secret@', '@')],
    ['the database does not exist', (url: string) => url.replace(/[^/]+$/, 'nowhere')],
    ['the server has no TLS and sslmode asks for it', (url: string) => `${url}?sslmode=require`],
  ])('%s: DATABASE_UNREACHABLE, without the URL', async (_, change) => {
    process.env['PGPASSWORD'] = 'secret'
    const url = change((await freshPostgresUrl())!)
    const error = await failure(open(url))
    delete process.env['PGPASSWORD']
    expect(error).toMatchObject({ code: 'DATABASE_UNREACHABLE', exitCode: 69 })
    expect(String(error)).not.toMatch(/127\.0\.0\.1|hunter2|secret|gatehouse/)
  })
})
