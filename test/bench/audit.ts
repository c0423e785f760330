import { Database as Connection } from 'bun:sqlite'
import { join } from 'node:path'
import { createAuditReader } from '../../src/audit/reader.ts'
import type { AuditFilter } from '../../src/audit/store.ts'
import { verifyDatabase } from '../../src/audit/verify-database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { startServer } from '../../src/http/server.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'
import { openTestGatehouse } from '../support/gatehouse.ts'
import { fillTrail } from './audit-rows.ts'
import type { Bench, Figure } from './measurements.ts'

const ROWS = 5_000_000
const ORGANISATION = '01900000-0000-7000-8000-000000000001'
const PAGES = 50
const CLIENTS = 16

/** The audit trail at its full size: pages with one filter each, the whole check, and what a change costs with its row. */
export async function audit(bench: Bench): Promise<Figure[]> {
  return [...(await mutations(bench)), ...(await longTrail(bench))]
}

async function longTrail({ dir, tell }: Bench): Promise<Figure[]> {
  const dataDir = join(dir, 'trail')
  await (await openDatabase({ dialect: 'sqlite', dataDir, create: true })).close()
  const connection = new Connection(join(dataDir, 'gatehouse.db'))
  connection.run('PRAGMA synchronous = OFF')
  connection.run('PRAGMA cache_size = -1000000')
  tell(`writing ${ROWS} rows`)
  fillTrail(connection, TEST_AUDIT_KEYS, ORGANISATION, ROWS)
  const filters = filtersOf(connection)
  connection.close()
  const startedAt = performance.now()
  const { rows, fault } = await verifyDatabase({ dialect: 'sqlite', dataDir, create: false })
  const perSecond = rows / ((performance.now() - startedAt) / 1000)
  return [
    {
      name: 'rows verified a second',
      target: '≥ 200000',
      seen: `${Math.round(perSecond)}`,
      reached: perSecond >= 200_000 && fault === undefined,
    },
    ...(await pages(dataDir, filters)),
  ]
}

/** One of every filter, with a value that many rows have and, where there is one, with a value that few have. */
function filtersOf(connection: Connection): Record<string, Partial<AuditFilter>> {
  const row = connection.query('SELECT * FROM audit_events WHERE seq = ?').get(ROWS - 7) as Record<
    string,
    string | number
  >
  const equal = {
    method: row['method'],
    requestId: row['request_id'],
    userId: row['user_id'],
    userType: 'api_key',
    workspaceId: row['workspace_id'],
    status: 200,
    resourceType: row['resource_type'],
    resourceId: row['resource_id'],
    action: row['action'],
    clientIp: row['client_ip'],
  }
  const byColumn = Object.entries(equal).map(([name, value]) => [name, { equal: { [name]: value } }] as const)
  const createdAt = Number(row['created_at'])
  return {
    ...Object.fromEntries(byColumn),
    'user type of few': { equal: { userType: 'cli' } },
    'a day': { from: createdAt - 86_400_000, to: createdAt },
    'uri, whole': { uri: String(row['uri']) },
    'uri, beginning': { uri: String(row['uri']).slice(0, -34) },
    'no filter': {},
  }
}

async function pages(dataDir: string, filters: Record<string, Partial<AuditFilter>>): Promise<Figure[]> {
  const database = await openDatabase({ dialect: 'sqlite', dataDir, create: false })
  const reader = createAuditReader(database, dataDir)
  const figures: Figure[] = []
  for (const [name, part] of Object.entries(filters)) {
    const filter = { organisationId: ORGANISATION, from: 0, to: Number.MAX_SAFE_INTEGER, equal: {}, ...part }
    const times: number[] = []
    const first = await reader.list(filter, { index: 0, size: 20 })
    for (let i = 0; i < PAGES; i++) {
      const startedAt = performance.now()
      await reader.list(filter, { index: i % 3, size: 20 })
      times.push(performance.now() - startedAt)
    }
    const worst = times.sort((a, b) => a - b)[Math.ceil(PAGES * 0.99) - 1] ?? Number.NaN
    const targetMs = first.total <= 100_000 ? 50 : 300
    const seen = `${worst.toFixed(1)} ms of ${first.total} rows`
    figures.push({ name: `page by ${name}, p99`, target: `≤ ${targetMs} ms`, seen, reached: worst <= targetMs })
  }
  reader.close()
  await database.close()
  return figures
}

/** New labels over HTTP, many at once, beside the bare rate of one-row commits on the same disk. */
async function mutations({ dir, seconds, tell }: Bench): Promise<Figure[]> {
  const world = await openTestGatehouse()
  world.gatehouse.config.server.port = 0
  const server = await startServer(world.gatehouse)
  const headers = { 'content-type': 'application/json', 'x-service-api-key': world.made.admin_key }
  let count = 0
  const end = performance.now() + seconds * 1000
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      const body = JSON.stringify({ name: `label-${count++}` })
      const answer = await fetch(`${server.url}/v1/labels`, { method: 'POST', headers, body })
      if (!answer.ok) throw new Error(await answer.text())
      await answer.text()
    }
  }
  const before = bareRate(join(dir, 'bare-1.db'), seconds)
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: CLIENTS }, client))
  const rate = count / ((performance.now() - startedAt) / 1000)
  const bare = (before + bareRate(join(dir, 'bare-2.db'), seconds)) / 2
  await server.stop()
  await world.close()
  tell(`${Math.round(rate)} changes/s, ${Math.round(bare)} bare commits/s`)
  const share = rate / bare
  return [
    { name: 'changes over HTTP, of bare commits', target: '≥ 0.5', seen: share.toFixed(2), reached: share >= 0.5 },
  ]
}

function bareRate(path: string, seconds: number): number {
  const connection = new Connection(path, { create: true })
  connection.run('PRAGMA journal_mode = WAL')
  connection.run('PRAGMA synchronous = FULL')
  connection.run('CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)')
  const insert = connection.query('INSERT INTO t (text) VALUES (?)')
  const startedAt = performance.now()
  let commits = 0
  for (; performance.now() - startedAt < seconds * 500; commits++) insert.run('x'.repeat(100))
  connection.close()
  return commits / ((performance.now() - startedAt) / 1000)
}
