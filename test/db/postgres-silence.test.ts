import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { sql } from 'drizzle-orm'
import { createTrail } from '../../src/audit/audited.ts'
import { verifyTrail } from '../../src/audit/verify.ts'
import { followChanges } from '../../src/db/changes.ts'
import type { Change, Database, Tx } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { toGatehouseError } from '../../src/http/problems.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'
import { freshPostgresUrl } from '../support/postgres.ts'
import { createSite, type Server, type Site, startServerOf } from '../support/servers.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'

// PostgreSQL that goes silent: connections stay open, and nothing comes through them.

const isThere = (await freshPostgresUrl()) !== undefined

const DEADLINE_MS = 500
/** What a change may take on a busy machine beyond its deadline. */
const SLACK_MS = 1_500
const POOL_SIZE = 6

describe.skipIf(!isThere)('PostgreSQL that goes silent', () => {
  let proxy: TcpProxy
  /** behind the proxy */
  let db: Database
  /** straight to the server */
  let direct: SQL

  beforeEach(async () => {
    const url = new URL((await freshPostgresUrl())!)
    direct = new SQL(url.href, { max: 1 })
    proxy = await startTcpProxy(Number(url.port))
    url.port = `${proxy.port}`
    const options = { poolSize: POOL_SIZE, pollMs: 50, deadlineMs: DEADLINE_MS }
    db = await openDatabase({ dialect: 'postgres', url: url.href, ...options })
  })
  afterEach(async () => {
    await db.close()
    proxy.stop()
    await direct.close()
  })

  const change = <T>(work: (tx: Tx) => Promise<T>) => db.transaction({ action: 'test' }, work)
  const add = (tx: Tx, id: string) => tx.insert(tx.tables.organisations).values({ id, name: '', createdAt: 0 })
  const stored = async (): Promise<string[]> =>
    (await direct`SELECT id FROM organisations ORDER BY id`).map(({ id }: { id: string }) => id)
  /** connections of ours that the server has, in a state or in any */
  const connections = async (state = '%'): Promise<number> => {
    const [row] = await direct`SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'gatehouse' AND state LIKE ${state}`
    return row.count
  }

  /** What a promise fails with, and that it does so in time. */
  async function failureInTime(promise: Promise<unknown>): Promise<unknown> {
    const startedAt = performance.now()
    const error = await promise.then(
      () => 'it was fulfilled',
      (reason: unknown) => reason,
    )
    expect(performance.now() - startedAt).toBeLessThan(DEADLINE_MS + SLACK_MS)
    return error
  }

  async function until(holds: () => Promise<boolean>): Promise<void> {
    const startedAt = performance.now()
    while (!(await holds()) && performance.now() - startedAt < 10_000) await Bun.sleep(10)
    expect(await holds()).toBe(true)
  }

  /** Silence at a moment of a change, and what its caller is told. */
  const MOMENTS = [
    { moment: 'before it begins', code: 'storage_unavailable', cut: () => proxy.cut('silent') },
    {
      moment: 'between its statements',
      code: 'storage_unavailable',
      async during(tx: Tx) {
        proxy.cut('silent')
        await add(tx, 'second')
      },
    },
    {
      moment: 'between its statements, which it makes nothing of',
      code: 'storage_unavailable',
      async during(tx: Tx) {
        proxy.cut('silent')
        await add(tx, 'second').then(undefined, () => {})
      },
    },
    {
      moment: 'at its commit',
      code: 'outcome_unknown',
      async during(tx: Tx) {
        // The last statement before the commit, so that nothing else is sent.
        await tx.revise()
        proxy.cut('silent')
      },
    },
  ]
  const AFTERWARDS = [
    { afterwards: 'what was sent is lost', end: () => proxy.mend() },
    { afterwards: 'what was sent arrives late', end: () => proxy.resume() },
  ]

  test.each(MOMENTS.flatMap((moment) => AFTERWARDS.map((end) => ({ ...moment, ...end }))))(
    '$moment, and $afterwards: $code is told in time, and is true',
    async ({ code, cut, during, afterwards, end }) => {
      cut?.()
      const changed = change(async (tx) => {
        await add(tx, 'first')
        await during?.(tx)
      })
      expect(await failureInTime(changed)).toMatchObject({ code })
      end()
      await until(async () => (await connections('%in transaction%')) === 0)
      const wasSent = code === 'outcome_unknown' && afterwards === 'what was sent arrives late'
      expect(await stored()).toEqual(wasSent ? ['first'] : [])
    },
  )

  test('a closure that the server ended for its idleness is told storage_unavailable', async () => {
    const changed = change(async (tx) => {
      await tx
        .select({ set: sql`set_config('idle_in_transaction_session_timeout', '50', true)` })
        .from(sql`(SELECT 1) AS one`)
      await add(tx, 'idle')
      await Bun.sleep(200)
      await add(tx, 'too late')
    })
    expect(await failureInTime(changed)).toMatchObject({ code: 'storage_unavailable' })
    expect(await stored()).toEqual([])
  })

  test('of many changes around an outage the acknowledged are stored, the refused are not, and the trail verifies', async () => {
    const { audited } = createTrail(db, { keys: () => TEST_AUDIT_KEYS })
    const actor = { kind: 'cli', uid: 1, organisationId: Bun.randomUUIDv7(), command: 'test' } as const
    const told = new Map<string, string>()
    let isOver = false
    async function write(): Promise<void> {
      while (!isOver) {
        const id = Bun.randomUUIDv7()
        const startedAt = performance.now()
        await audited(actor, { action: 'organisations.create', resourceId: id }, (tx) => add(tx, id)).then(
          () => told.set(id, 'ok'),
          (error) => told.set(id, error.code),
        )
        expect(performance.now() - startedAt).toBeLessThan(DEADLINE_MS + SLACK_MS)
      }
    }
    const writers = Array.from({ length: 8 }, write)
    for (const end of [proxy.mend, proxy.resume]) {
      await Bun.sleep(200)
      proxy.cut('silent')
      await Bun.sleep(2 * DEADLINE_MS)
      end()
      const before = [...told.values()].filter((code) => code === 'ok').length
      await until(async () => [...told.values()].filter((code) => code === 'ok').length > before + 50)
    }
    isOver = true
    await Promise.all(writers)

    const kept = new Set(await stored())
    for (const [id, code] of told) {
      expect(['ok', 'storage_unavailable', 'outcome_unknown']).toContain(code)
      if (code !== 'outcome_unknown') expect(kept.has(id), code).toBe(code === 'ok')
    }
    expect([...told.values()]).toContain('storage_unavailable')
    expect(await verifyTrail({ read: db.read })).toMatchObject({ rows: kept.size, fault: undefined })
  })

  test('reads end in time, and changes of other nodes are heard of again', async () => {
    const { organisations } = db.read.tables
    const heard: Change[] = []
    db.onCommitted(async (changes) => void heard.push(...changes))
    proxy.cut('silent')
    const reads = Array.from({ length: 2 * POOL_SIZE }, async () => db.read.select().from(organisations))
    for (const read of reads)
      expect(toGatehouseError(await failureInTime(read))).toMatchObject({ code: 'storage_unavailable' })
    await direct`UPDATE installation SET revision = revision + 1`
    await direct`INSERT INTO changes (revision, at, kind, id) SELECT revision, 0, 'user', 'u' FROM installation`
    proxy.mend()
    await until(async () => heard.length > 0)
    expect(heard).toEqual([{ kind: 'user', id: 'u' }])
    await until(async () => db.staleMs() < 200)
    expect(await db.read.select().from(organisations)).toEqual([])
  })

  test('a change that waits for a connection or for another change waits no longer than others', async () => {
    await direct.begin(async (holder) => {
      await holder`SELECT revision FROM installation FOR UPDATE`
      const changes = Array.from({ length: 4 * POOL_SIZE }, () => failureInTime(change(async () => {})))
      for (const error of await Promise.all(changes)) expect(error).toMatchObject({ code: 'storage_unavailable' })
    })
    await change(async () => {})
  })

  test('a look for changes that began before a change and fails is not the failure of that change', async () => {
    const feed = followChanges(direct, 60_000, 0)
    const looking = Promise.withResolvers<void>()
    let looks = 0
    feed.onCommitted(async () => {
      if (++looks === 1) await looking.promise
    })
    await change(async (tx) => tx.changed('user', 'u'))
    const first = feed.reach(1)
    await until(async () => looks === 1)
    const second = feed.reach(1)
    looking.reject(new Error('silent'))
    expect(String(await failureInTime(first))).toBe('Error: silent')
    await second
    await feed.stop()
  })

  test('connections that nobody used meanwhile are not handed out afterwards', async () => {
    const changes = () => Promise.all(Array.from({ length: POOL_SIZE }, () => change(async () => {})))
    await changes()
    proxy.cut('silent')
    await Bun.sleep(2 * DEADLINE_MS)
    proxy.mend()
    await until(async () => db.staleMs() < 200)
    await changes()
  })

  test('no connection is left behind, however often it happens', async () => {
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: POOL_SIZE }, () => change(async () => {})))
      proxy.cut('silent')
      const attempts = Array.from({ length: 2 * POOL_SIZE }, () => failureInTime(change(async () => {})))
      for (const error of await Promise.all(attempts)) expect(error).toMatchObject({ code: 'storage_unavailable' })
      proxy.mend()
      await until(() =>
        change(async () => {}).then(
          () => true,
          () => false,
        ),
      )
    }
    await until(async () => (await connections()) <= POOL_SIZE)
  }, 30_000)

  test('closing ends as well', async () => {
    proxy.cut('silent')
    const underWay = failureInTime(change(async () => {}))
    const startedAt = performance.now()
    await db.close()
    expect(performance.now() - startedAt).toBeLessThan(4_000)
    expect(await underWay).toMatchObject({ code: 'storage_unavailable' })
  })
})

describe.skipIf(!isThere)('a server whose PostgreSQL goes silent', () => {
  let site: Site
  let server: Server
  let proxy: TcpProxy
  afterAll(async () => {
    await server?.end('SIGKILL')
    proxy?.stop()
    site?.remove()
  })

  test('says within two seconds that it is not ready, and is ready again without a restart', async () => {
    site = await createSite('postgres')
    await site.bootstrap()
    const database = new URL(site.env['GATEHOUSE_DATABASE_URL']!)
    proxy = await startTcpProxy(Number(database.port))
    database.port = `${proxy.port}`
    server = startServerOf(site, { GATEHOUSE_DATABASE_URL: database.href })
    const url = `${await server.url}/readyz`
    const look = async () => {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
      return [response.status, await response.json()]
    }
    const ready = [200, { status: 'ready' }]
    expect(await look()).toEqual(ready)
    proxy.cut('silent')
    // What is known of the storage counts for two seconds.
    await Bun.sleep(2_100)
    for (let looks = 0; looks < 3; looks++)
      expect(await look()).toEqual([503, { status: 'not ready', reasons: ['storage_unavailable'] }])
    proxy.mend()
    const startedAt = performance.now()
    while ((await look())[0] !== 200 && performance.now() - startedAt < 15_000) await Bun.sleep(100)
    expect(await look()).toEqual(ready)
  }, 40_000)
})
