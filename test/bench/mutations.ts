import { Database as Connection } from 'bun:sqlite'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from '../../src/db/database.ts'
import { createSite, startServerOf } from '../support/servers.ts'
import type { Bench, Figure } from './measurements.ts'

const CLIENTS = 16

/** New labels over HTTP, each with its audit row, beside the bare rate of one-row commits on the same disk. */
export async function mutations(bench: Bench): Promise<Figure[]> {
  const pairs: { ours: number; bare: number }[] = []
  await withLabels(bench, 'sqlite', async (measure) => {
    for (let round = 0; round < bench.rounds; round++) {
      const before = bareRate(bench)
      const ours = await measure()
      const bare = (before + bareRate(bench)) / 2
      bench.tell(`SQLite: ${rate(ours)} changes, ${rate(bare)} bare commits: ${(ours / bare).toFixed(2)}`)
      pairs.push({ ours, bare })
    }
  })
  const shares = pairs.map(({ ours, bare }) => ours / bare).sort((a, b) => a - b)
  const share = median(shares)
  const spread = `${shares[0]!.toFixed(2)} to ${shares.at(-1)!.toFixed(2)}; ${rate(median(pairs.map(({ ours }) => ours)))}`
  return [
    {
      name: 'audited changes over HTTP, of bare commits',
      target: '≥ 0.5',
      seen: `${share.toFixed(2)} (${spread})`,
      reached: share >= 0.5,
    },
    ...(await onPostgres(bench)),
  ]
}

/** No promise: the rate is reported. */
async function onPostgres(bench: Bench): Promise<Figure[]> {
  // Not below the folder of the bench, which is closed to PostgreSQL's own user.
  const url = startDurablePostgres(join(tmpdir(), `gatehouse-bench-postgres-${process.pid}`))
  if (url === undefined) {
    bench.tell('PostgreSQL is not here: left out')
    return []
  }
  process.env['GATEHOUSE_TEST_POSTGRES_URL'] = url
  const rates: number[] = []
  await withLabels(bench, 'postgres', async (measure) => {
    for (let round = 0; round < bench.rounds; round++) rates.push(await measure())
  })
  bench.tell(`PostgreSQL: ${rates.map(rate).join(', ')}`)
  const name = 'audited changes on PostgreSQL (no promise)'
  return [{ name, target: '', seen: rate(median(rates)), reached: true }]
}

/** That of the tests, which do without fsync, started again with it. */
function startDurablePostgres(folder: string): string | undefined {
  const root = join(import.meta.dir, '../servers/postgres.sh')
  const started = Bun.spawnSync([root, 'start', folder, String(process.pid)], { stdin: 'ignore', stderr: 'ignore' })
  if (!started.success) return undefined
  const url = started.stdout.toString().trim()
  const options = `-p ${new URL(url).port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=on`
  const binaries = [...new Bun.Glob('/usr/lib/postgresql/*/bin/pg_ctl').scanSync('/')].sort()
  const asItself = process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []
  const restart = [...asItself, binaries.at(-1) ?? 'pg_ctl', '-D', join(folder, 'data'), '-w', '-o', options, 'restart']
  const { success } = Bun.spawnSync(restart, { cwd: '/', stdio: ['ignore', 'ignore', 'inherit'] })
  if (!success) throw new Error('PostgreSQL could not be started again with fsync')
  return url
}

/** Runs `work` on a warm server of a fresh installation; `measure` gives labels made a second. */
async function withLabels(
  { dir, seconds }: Bench,
  dialect: Database['dialect'],
  work: (measure: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const site = await createSite(dialect)
  try {
    const { admin_key } = await site.bootstrap()
    const server = startServerOf(site, {}, [join(dir, 'gatehouse')])
    const url = await server.url
    await makeLabels(dir, url, admin_key, 3)
    await work(() => makeLabels(dir, url, admin_key, seconds))
    await server.end('SIGTERM')
  } finally {
    site.remove()
  }
}

/** Labels a second, made by clients that send the next as soon as they have the answer. */
async function makeLabels(dir: string, url: string, key: string, seconds: number): Promise<number> {
  const script = join(mkdtempSync(join(dir, 'wrk-')), 'labels.lua')
  writeFileSync(script, scriptOf(key))
  const wrk = Bun.spawn(['wrk', '-t1', `-c${CLIENTS}`, `-d${seconds}s`, '-s', script, url], { stderr: 'pipe' })
  const said = await new Response(wrk.stdout).text()
  const found = /^RESULT (\d+) (\d+) (\d+)$/m.exec(said)
  if (found === null) throw new Error(`wrk said: ${said}${await new Response(wrk.stderr).text()}`)
  const [requests = 0, micros = 0, errors = 0] = found.slice(1).map(Number)
  if (errors > 0) throw new Error(`${errors} of ${requests} labels were refused`)
  return requests / (micros / 1e6)
}

const scriptOf = (key: string): string => `
local made = 0

function request()
  made = made + 1
  local headers = { ['content-type'] = 'application/json', ['x-service-api-key'] = '${key}' }
  return wrk.format('POST', '/v1/labels', headers, '{"name":"${crypto.randomUUID()}-' .. made .. '"}')
end

function done(summary)
  local e = summary.errors
  print(string.format('RESULT %d %d %d', summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout))
end
`

/** Single rows committed one after the other by bun:sqlite, each synced: what the disk gives. */
function bareRate({ dir, seconds }: Bench): number {
  const connection = new Connection(join(dir, `bare-${crypto.randomUUID()}.db`), { create: true })
  connection.run('PRAGMA journal_mode = WAL')
  connection.run('PRAGMA synchronous = FULL')
  connection.run('CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)')
  const insert = connection.query('INSERT INTO t (text) VALUES (?)')
  const startedAt = performance.now()
  let commits = 0
  for (; performance.now() - startedAt < seconds * 500; commits++) insert.run('x'.repeat(100))
  const ms = performance.now() - startedAt
  connection.close()
  return commits / (ms / 1000)
}

const rate = (perSecond: number): string => `${Math.round(perSecond)}/s`

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
