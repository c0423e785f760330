import { Database as Connection } from 'bun:sqlite'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { auditKeys } from '../../src/audit/keys.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { fillTrail } from './audit-rows.ts'
import { createLoadedInstallation, type Installation } from './installation.ts'
import { load } from './load.ts'
import type { Bench, Figure } from './measurements.ts'
import { type Running, withServer } from './processes.ts'

const ROWS = 5_000_000
const PAGES = 100

/** The trail at its full size: pages with one filter each, renders meanwhile, and the whole check. */
export async function audit(bench: Bench): Promise<Figure[]> {
  const dir = join(bench.dir, 'trail')
  mkdirSync(dir)
  const installation = await createLoadedInstallation(dir, { prompts: 100, keys: 10 })
  bench.tell(`writing ${ROWS} rows`)
  const filters = await replaceTrail(dir, installation)
  const command = () => [join(bench.dir, 'gatehouse'), 'serve', '--config', installation.configPath]
  const figures = await withServer(command, installation, async (server) => [
    ...(await pages(bench, server, installation, filters)),
    ...(await renders(bench, server, installation, filters)),
  ])
  return [...figures, await verify(bench, installation)]
}

/** Puts the long trail in the place of the installation's own, signed with its own keys; answers one of every filter. */
async function replaceTrail(dir: string, { configPath }: Installation): Promise<Record<string, string>> {
  const log = createLog({ level: 'warn', write: (line) => void process.stderr.write(line) })
  const gatehouse = await openGatehouse(loadConfig({ path: configPath, env: {} }), log)
  const keys = auditKeys(gatehouse.keyring())
  const { workspaces } = gatehouse.read.tables
  const columns = { organisationId: workspaces.organisationId, workspaceId: workspaces.id }
  const [own] = await gatehouse.read.select(columns).from(workspaces).limit(1)
  if (own === undefined) throw new Error('the installation has no workspace')
  await gatehouse.close()
  const dataDir = join(dir, 'data')
  const connection = new Connection(join(dataDir, 'gatehouse.db'))
  connection.run('PRAGMA synchronous = OFF')
  connection.run('PRAGMA cache_size = -1000000')
  for (const table of ['audit_events', 'audit_keys', 'audit_head']) connection.run(`DELETE FROM ${table}`)
  fillTrail(connection, keys, own, ROWS)
  const filters = { ...filtersOf(connection), workspace_id: `workspace_id=${own.workspaceId}` }
  connection.close()
  rmSync(join(dataDir, 'AUDIT_ANCHOR'), { force: true })
  return filters
}

/** One of every filter, with a value that many rows have and, where there is one, with a value that few have. */
function filtersOf(connection: Connection): Record<string, string> {
  const row = connection.query('SELECT * FROM audit_events WHERE seq = ?').get(ROWS - 7) as Record<string, string>
  const column = (name: string) => encodeURIComponent(`${row[name]}`)
  const equal = ['method', 'request_id', 'user_id', 'resource_type', 'resource_id', 'action', 'client_ip']
  const createdAt = Number(row['created_at'])
  const iso = (time: number) => new Date(time).toISOString()
  return {
    ...Object.fromEntries(equal.map((name) => [name, `${name}=${column(name)}`])),
    'user_type of most': 'user_type=api_key',
    'user_type of few': 'user_type=cli',
    status: 'response_status_code=200',
    'a day': `start_time=${iso(createdAt - 86_400_000)}&end_time=${iso(createdAt)}`,
    'uri, whole': `uri=${column('uri')}`,
    'uri, beginning of a fifth': `uri=${encodeURIComponent(`${row['uri']}`.slice(0, -34))}`,
    'uri, beginning of all': 'uri=/v1',
    'no filter': '',
  }
}

/** Milliseconds from request to answer, and how many rows there are in all. */
async function page({ url }: Running, { adminKey }: Installation, query: string, index: number) {
  const headers = { 'x-service-api-key': adminKey }
  const startedAt = performance.now()
  const answer = await fetch(`${url}/v1/audit-logs?${query}&current_page=${index}`, { headers })
  const { total } = (await answer.json()) as { total: number }
  if (!answer.ok) throw new Error(`a page was answered ${answer.status}`)
  return { ms: performance.now() - startedAt, total }
}

async function pages(
  { tell }: Bench,
  server: Running,
  installation: Installation,
  filters: Record<string, string>,
): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const [name, query] of Object.entries(filters)) {
    const first = await page(server, installation, query, 0)
    const times: number[] = []
    for (let i = 0; i < PAGES; i++) times.push((await page(server, installation, query, i % 3)).ms)
    const worst = p99(times)
    const targetMs = first.total <= 100_000 ? 50 : 300
    const seen = `${worst.toFixed(1)} ms of ${first.total} rows (the very first: ${first.ms.toFixed(0)} ms)`
    tell(`${name}: ${seen}`)
    figures.push({ name: `page by ${name}, p99`, target: `≤ ${targetMs} ms`, seen, reached: worst <= targetMs })
  }
  return figures
}

/** Renders alone, then while pages of the trail are read one after another. */
async function renders(
  { seconds, rounds, tell }: Bench,
  server: Running,
  installation: Installation,
  filters: Record<string, string>,
): Promise<Figure[]> {
  // Ten connections leave the processor time that the reading thread needs: a full queue would measure that alone.
  const run = () => load(server, installation, { connections: 10, seconds })
  await run()
  const shares: number[] = []
  for (let i = 0; i < rounds; i++) {
    const quiet = await run()
    let isReading = true
    const reading = (async () => {
      let count = 0
      const queries = Object.values(filters)
      for (; isReading; count++) await page(server, installation, queries[count % queries.length] ?? '', 0)
      return count
    })()
    const busy = await run()
    isReading = false
    tell(`p99 ${quiet.p99Ms.toFixed(2)} ms, ${busy.p99Ms.toFixed(2)} ms while ${await reading} pages were read`)
    shares.push(busy.p99Ms / quiet.p99Ms)
  }
  const seen = shares.toSorted((a, b) => a - b)[Math.floor(shares.length / 2)] ?? Number.NaN
  const name = 'p99 of renders while the trail is read, times the quiet one'
  return [{ name, target: '≤ 2', seen: seen.toFixed(2), reached: seen <= 2 }]
}

/** The command that an operator runs, its start included. */
async function verify({ dir, tell }: Bench, { configPath }: Installation): Promise<Figure> {
  const command = [join(dir, 'gatehouse'), 'audit', 'verify', '--config', configPath]
  const startedAt = performance.now()
  const child = Bun.spawn(command, { stdio: ['ignore', 'pipe', 'inherit'] })
  const said = await new Response(child.stdout).text()
  const perSecond = ROWS / ((performance.now() - startedAt) / 1000)
  tell(said.trim())
  const reached = perSecond >= 200_000 && (await child.exited) === 0
  return { name: 'rows verified a second', target: '≥ 200000', seen: `${Math.round(perSecond)}`, reached }
}

const p99 = (times: number[]): number =>
  times.toSorted((a, b) => a - b)[Math.ceil(times.length * 0.99) - 1] ?? Number.NaN
