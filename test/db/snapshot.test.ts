import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { openDatabase } from '../../src/db/open.ts'
import { withSnapshot } from '../../src/db/snapshot.ts'
import { DIALECTS, freshFolder } from '../support/database.ts'
import { freshPostgresUrl } from '../support/postgres.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

/** A closing that waited for a reader would take SQLite's busy_timeout, five seconds. */
const AT_ONCE_MS = 1_000

async function open(dialect: (typeof DIALECTS)[number]) {
  const options =
    dialect === 'sqlite'
      ? { dialect, dataDir: freshFolder(), create: true }
      : { dialect, url: (await freshPostgresUrl())! }
  const db = await openDatabase(options)
  const add = (id: string) =>
    db.transaction({ action: 'test' }, async (tx) => {
      await tx.insert(tx.tables.organisations).values({ id, name: '', createdAt: 0 })
    })
  const close = async () => {
    const startedAt = performance.now()
    await db.close()
    expect(performance.now() - startedAt).toBeLessThan(AT_ONCE_MS)
  }
  return { options, add, close }
}

const ids = (options: Parameters<typeof withSnapshot>[0]) =>
  withSnapshot(options, async ({ read }) => (await read.select().from(read.tables.organisations)).map(({ id }) => id))

describe.each(DIALECTS)('a snapshot beside an open database: %s', (dialect) => {
  test('holds up neither changes nor the closing once it is done', async () => {
    const { options, add, close } = await open(dialect)
    await add('before')
    expect(await ids(options)).toEqual(['before'])
    await add('after')
    await close()
    if (options.dialect === 'postgres') return
    // What a reader still holds would be left in the log.
    const log = statSync(`${options.dataDir}/gatehouse.db-wal`, { throwIfNoEntry: false })
    expect(log?.size ?? 0).toBe(0)
  })

  test('that is still read does not hold up the closing, sees what it saw, and costs no change', async () => {
    const { options, add, close } = await open(dialect)
    await add('before')
    await withSnapshot(options, async ({ read }) => {
      const { organisations } = read.tables
      expect(await read.select().from(organisations)).toHaveLength(1)
      await add('after')
      await close()
      expect(await read.select().from(organisations)).toHaveLength(1)
    })
    expect(await ids(options)).toEqual(['before', 'after'])
  })
})

test.skipIf(!DIALECTS.includes('postgres'))('a snapshot of PostgreSQL that goes silent ends', async () => {
  const url = new URL((await freshPostgresUrl())!)
  const db = await openDatabase({ dialect: 'postgres', url: url.href })
  const proxy = await startTcpProxy(Number(url.port))
  url.port = `${proxy.port}`
  const options = { dialect: 'postgres', url: url.href, deadlineMs: 300 } as const
  let answers = 0
  const snapshot = withSnapshot(options, async ({ read }) => {
    // Each answer is a sign of life: altogether it may take longer.
    while (answers < 4) {
      await Bun.sleep(100)
      await read.select().from(read.tables.organisations)
      answers++
    }
    proxy.cut('silent')
    await read.select().from(read.tables.organisations)
  })
  await expect(snapshot).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
  expect(answers).toBe(4)
  proxy.stop()
  await db.close()
})
