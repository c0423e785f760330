import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { loadConfig } from '../src/config/load.ts'
import { openDatabase } from '../src/db/open.ts'
import { databaseOptions } from '../src/gatehouse.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS, freshFolder } from './support/database.ts'
import { buildExecutable } from './support/executable.ts'
import { createSite, type Server, type Site, send, startServerOf } from './support/servers.ts'
import { createWriters, type Ledger, promptVersion, type Writers } from './support/writers.ts'

// Servers as users run them are killed under load, again and again. `GATEHOUSE_CRASH_KILLS=200` for a long night; more on
// the build server than here, where somebody waits.

const KILLS = Number(process.env['GATEHOUSE_CRASH_KILLS'] ?? (process.env['CI'] === undefined ? 8 : 50))
const CLIENTS_A_SERVER = 6
/** From the moment that all servers listen; the kill before that is its own case. */
const LONGEST_LIFE_MS = 250
/** One kill in so many hits a server that is still starting. */
const KILLED_AT_START = 8
const VERIFY_EVERY = 10

const folder = freshFolder()
let program: string[]
beforeAll(() => {
  program = [buildExecutable(folder).path]
}, 60_000)
afterAll(() => rmSync(folder, { recursive: true }))

const WORLDS = { sqlite: 'one server on SQLite', postgres: 'two servers on one PostgreSQL' }

describe.each(DIALECTS.map((dialect) => [WORLDS[dialect], dialect] as const))('%s', (_, dialect) => {
  test.concurrent(`${KILLS} times SIGKILL: what was acknowledged is there with its row, no row is without its change, the trail verifies`, async () => {
    const site = await createSite(dialect)
    try {
      const made = await site.bootstrap()
      const servers = new Map<number, Server>()
      await startAll(site, servers, dialect)
      const [url] = await urlsOf(servers)
      const prompt = await send(url!, {
        method: 'POST',
        path: '/v1/prompts',
        body: { name: 'p', collection_id: made.collection_id, ...promptVersion('first') },
        key: made.admin_key,
      })
      const writers = createWriters(made, prompt.body.id)
      for (let kill = 1; kill <= KILLS; kill++) {
        await killOne(servers, writers)
        await startAll(site, servers, dialect)
        const [restarted] = await urlsOf(servers)
        await writers.settle(restarted!)
        await assertInForce(restarted!, writers.ledger, made.admin_key)
        if (kill % VERIFY_EVERY === 0) await assertVerified(site)
      }
      await Promise.all([...servers.values()].map((server) => server.end('SIGKILL')))
      await assertVerified(site)
      await assertWhole(site, writers.ledger)
    } finally {
      site.remove()
    }
  }, 600_000)
})

/** Starts what does not run, each with a data folder of its own; some starts are cut short first. */
async function startAll(site: Site, servers: Map<number, Server>, dialect: keyof typeof WORLDS): Promise<void> {
  for (const node of dialect === 'sqlite' ? [0] : [0, 1]) {
    if (servers.has(node)) continue
    const env = dialect === 'sqlite' ? {} : { GATEHOUSE_DATA_DIR: `${site.paths.data}-${node}` }
    if (Math.random() * KILLED_AT_START < 1) {
      const stillborn = startServerOf(site, env, program)
      await Bun.sleep(Math.random() * 120)
      await stillborn.end('SIGKILL')
    }
    servers.set(node, startServerOf(site, env, program))
  }
}

/** The server that was started last comes first. */
const urlsOf = (servers: Map<number, Server>): Promise<string[]> =>
  Promise.all([...servers.values()].reverse().map(({ url }) => url))

/** Puts all servers under load and kills one of them at a moment of chance. */
async function killOne(servers: Map<number, Server>, { write }: Writers): Promise<void> {
  let isOver = false
  const urls = await urlsOf(servers)
  const clients = urls.flatMap((url) => Array.from({ length: CLIENTS_A_SERVER }, () => write(url, () => isOver)))
  const written = Promise.all(clients)
  const [node, victim] = [...servers][Math.floor(Math.random() * servers.size)]!
  await Promise.race([Bun.sleep(Math.random() * LONGEST_LIFE_MS), written])
  await victim.end('SIGKILL')
  servers.delete(node)
  isOver = true
  await written
}

/** A server that has just started: the newest changes that were acknowledged count there. */
async function assertInForce(url: string, { labels, keys, revoked }: Ledger, admin: string): Promise<void> {
  const live = [...keys.keys()].filter((id) => !revoked.includes(id))
  const calls = [
    ...labels.slice(-3).map((id) => ({ path: `/v1/labels/${id}`, key: admin, status: 200 })),
    ...revoked.slice(-3).map((id) => ({ path: '/v1/prompts', key: keys.get(id)!, status: 401 })),
    ...live.slice(-3).map((id) => ({ path: '/v1/prompts', key: keys.get(id)!, status: 200 })),
  ]
  const answers = await Promise.all(calls.map(({ path, key }) => send(url, { method: 'GET', path, key })))
  expect(answers.map(({ status }) => status)).toEqual(calls.map(({ status }) => status))
}

async function assertVerified(site: Site): Promise<void> {
  expect(await site.command('audit', 'verify')).toMatchObject({ exitCode: 0, err: '' })
}

/** Every change that was acknowledged is stored, and what is stored is just what the rows of the trail tell of. */
async function assertWhole({ paths, env }: Site, ledger: Ledger): Promise<void> {
  const db = await openDatabase(databaseOptions(loadConfig({ path: paths.config, env })))
  const { labels, promptVersions, apiKeys } = db.read.tables
  const rows = (await auditTrail(db.read)).filter((row) => row.response_status_code === 200 && row.uri !== null)
  const told = (action: string, what = (row: (typeof rows)[number]): unknown => row.resource_id) =>
    rows.filter((row) => doneBy(row) === action).map(what)
  const storedLabels = (await db.read.select().from(labels)).filter(({ isUniversal }) => !isUniversal)
  const versions = await db.read.select().from(promptVersions)
  const keys = (await db.read.select().from(apiKeys)).filter(({ type }) => type === 'workspace-service')
  await db.close()

  const deleted = keys.filter(({ deletedAt }) => deletedAt !== null)
  expectAmong(ledger.labels, idsOf(storedLabels))
  expectAmong(ledger.versions, idsOf(versions))
  expectAmong([...ledger.keys.keys()], idsOf(keys))
  expectAmong(ledger.revoked, idsOf(deleted))
  expectSame(told('labels.create'), idsOf(storedLabels))
  const numberOf = ({ details }: (typeof rows)[number]) => details['version']
  expectSame(
    [...told('prompts.create', numberOf), ...told('prompts.update', numberOf)],
    versions.map(({ number }) => number),
  )
  expectSame(told('workspace_service_api_keys.create'), idsOf(keys))
  expectSame(told('workspace_service_api_keys.delete'), idsOf(deleted))
  for (const many of [ledger.labels, ledger.versions, [...ledger.keys], ledger.revoked])
    expect(many.length).toBeGreaterThan(KILLS / 2)
}

const idsOf = (rows: { id: string }[]): string[] => rows.map(({ id }) => id)

function expectAmong(acknowledged: string[], stored: string[]): void {
  const known = new Set(stored)
  expect(acknowledged.filter((id) => !known.has(id))).toEqual([])
}

/** Each once, in any order. */
function expectSame(told: unknown[], stored: unknown[]): void {
  expect(told.toSorted()).toEqual(stored.toSorted())
}
