import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { loadConfig } from '../src/config/load.ts'
import type { Database } from '../src/db/database.ts'
import { openDatabase } from '../src/db/open.ts'
import { databaseOptions } from '../src/gatehouse.ts'
import type { Bootstrapped } from '../src/organisation/bootstrap.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import type { Answer } from './support/gatehouse.ts'
import { createSite, type Server, type Site, send, startServerOf } from './support/servers.ts'
import { startTcpProxy } from './support/tcp-proxy.ts'
import { promptVersion } from './support/writers.ts'

// Servers in processes of their own, on one PostgreSQL, with the settings that users get.

/** What one node does, the others do after so long at most (decision 13). */
const BOUND_MS = 1_000

const hasPostgres = DIALECTS.includes('postgres')
let site: Site
let made: Bootstrapped
let urlA: string
let urlB: string
/** what is stored, without a server in between */
let stored: Database
const servers: Server[] = []

async function start(name: string, env: Record<string, string> = {}): Promise<string> {
  const server = startServerOf(site, { GATEHOUSE_DATA_DIR: `${site.paths.data}-${name}`, ...env })
  servers.push(server)
  return server.url
}

const call = (url: string, method: string, path: string, body?: unknown, key = made.admin_key, headers = {}) =>
  send(url, { method, path, key, headers, ...(body !== undefined && { body }) })

async function ok(answer: Promise<Answer>): Promise<Answer['body']> {
  const { status, text, body } = await answer
  expect(status, text).toBe(200)
  return body
}

/** Milliseconds until it holds, at most four bounds. */
async function timeUntil(holds: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now()
  while (!(await holds()) && performance.now() - startedAt < 4 * BOUND_MS) await Bun.sleep(10)
  return performance.now() - startedAt
}

const newName = (): string => crypto.randomUUID()
const newLabel = (url: string, name = newName(), key?: string, headers?: Record<string, string>) =>
  call(url, 'POST', '/v1/labels', { name }, key, headers)
const newKey = (url: string, scopes = ['prompts.list', 'prompts.create'], workspace = made.workspace_id) =>
  ok(call(url, 'POST', '/v1/api-keys/workspace/service', { name: 'k', scopes, workspace_id: workspace }))
const mayList = async (url: string, key: string) => (await call(url, 'GET', '/v1/prompts', undefined, key)).status

beforeAll(async () => {
  if (!hasPostgres) return
  site = await createSite('postgres')
})
afterAll(async () => {
  await Promise.all(servers.map((server) => server.end('SIGTERM')))
  await stored?.close()
  site?.remove()
})

describe.skipIf(!hasPostgres)('two servers on one PostgreSQL', () => {
  test('that start on an empty database serve as soon as one bootstrap is done', async () => {
    const found = await Promise.all([start('a'), start('b')])
    urlA = found[0]!
    urlB = found[1]!
    for (const url of found)
      expect((await send(url, { method: 'GET', path: '/v1/prompts', key: 'x' })).status).toBe(503)
    made = await site.bootstrap()
    const both = async () => {
      const statuses = await Promise.all(found.map((url) => mayList(url, made.admin_key)))
      return statuses.every((status) => status === 200)
    }
    expect(await timeUntil(both)).toBeLessThan(BOUND_MS)
    stored = await openDatabase(databaseOptions(loadConfig({ path: site.paths.config, env: site.env })))
  })

  test('a new version that is published on one is what the other renders, within the bound', async () => {
    const place = { name: newName(), collection_id: made.collection_id }
    const { id } = await ok(call(urlA, 'POST', '/v1/prompts', { ...place, ...promptVersion('first') }))
    const { key } = await newKey(urlA, ['prompts.render'])
    const renders = (text: string) => async () => {
      const { body } = await call(urlB, 'POST', `/v1/prompts/${id}/render`, { variables: {} }, key)
      return body?.data?.messages?.[0]?.content === text
    }
    expect(await timeUntil(renders('first'))).toBeLessThan(BOUND_MS)
    await ok(call(urlA, 'PUT', `/v1/prompts/${id}`, promptVersion('second')))
    await ok(call(urlA, 'PUT', `/v1/prompts/${id}/makeDefault`, { version: 2 }))
    expect(await timeUntil(renders('second'))).toBeLessThan(BOUND_MS)
  })

  test('a key that is revoked on one is refused there at once and on the other within the bound', async () => {
    for (const [here, there] of [
      [urlA, urlB],
      [urlB, urlA],
    ] as const) {
      const { id, key } = await newKey(here)
      expect(await timeUntil(async () => (await mayList(there, key)) === 200)).toBeLessThan(BOUND_MS)
      await ok(call(here, 'DELETE', `/v1/api-keys/${id}`))
      expect(await mayList(here, key)).toBe(401)
      expect(await timeUntil(async () => (await mayList(there, key)) === 401)).toBeLessThan(BOUND_MS)
    }
  })

  test('the same Idempotency-Key at both at once makes one object, and both get its answer', async () => {
    for (let round = 0; round < 10; round++) {
      const name = newName()
      const headers = { 'idempotency-key': newName() }
      const [one, other] = await Promise.all([urlA, urlB].map((url) => newLabel(url, name, made.admin_key, headers)))
      expect(await ok(Promise.resolve(one!))).toEqual(other!.body)
      expect([one, other].map((answer) => answer!.headers.get('idempotent-replayed')).sort()).toEqual([null, 'true'])
      const rows = (await auditTrail(stored.read)).filter(({ resource_name }) => resource_name === name)
      expect(rows.map(doneBy)).toEqual(['labels.replay', 'labels.create'])
    }
  })

  test('of the same new name at both at once one is made, and the other is told', async () => {
    for (let round = 0; round < 10; round++) {
      const name = newName()
      const answers = await Promise.all([urlA, urlB].map((url) => newLabel(url, name)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    }
  })

  test('both write one trail: no gap, a row for each change, and it verifies while both write', async () => {
    const before = (await auditTrail(stored.read)).length
    const names = Array.from({ length: 80 }, newName)
    const written = Promise.all(names.map((name, i) => ok(newLabel(i % 2 === 0 ? urlA : urlB, name))))
    expect(await site.command('audit', 'verify')).toMatchObject({ exitCode: 0, err: '' })
    await written
    expect(await site.command('audit', 'verify')).toMatchObject({ exitCode: 0, err: '' })
    const rows = await auditTrail(stored.read)
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => rows.length - i))
    const told = rows.slice(0, -before).map(({ resource_name }) => String(resource_name))
    expect(told.toSorted()).toEqual(names.toSorted())
  })
})

/** Who could make things on a node until something was taken away on another. */
interface Loss {
  name: string
  /** on `deaf`, which then knows the key; `lose` is done elsewhere */
  set(
    deaf: string,
  ): Promise<{ key: string; make(name: string): [path: string, body: object]; lose(): Promise<unknown> }>
}

const label = (name: string): [string, object] => ['/v1/labels', { name }]

const LOSSES: Loss[] = [
  {
    name: 'a key that was deleted',
    async set(deaf) {
      const { id, key } = await newKey(deaf)
      return { key, make: label, lose: () => ok(call(urlA, 'DELETE', `/v1/api-keys/${id}`)) }
    },
  },
  {
    name: 'a key that lost its scope',
    async set(deaf) {
      const { id, key } = await newKey(deaf)
      const lose = () => ok(call(urlA, 'PUT', `/v1/api-keys/${id}`, { scopes: ['prompts.list'] }))
      return { key, make: label, lose }
    },
  },
  {
    name: 'the secret of a key that was rotated, for what its end allows no more',
    async set(deaf) {
      const { id, key } = await newKey(deaf, ['prompts.list', 'workspace_service_api_keys.create'])
      const make = (name: string): [string, object] => [
        '/v1/api-keys/workspace/service',
        { name, scopes: ['prompts.list'] },
      ]
      return { key, make, lose: () => ok(call(urlA, 'POST', `/v1/api-keys/${id}/rotate`, {})) }
    },
  },
  {
    name: 'the key of a manager who became a member',
    async set(deaf) {
      const { id, key } = await person(deaf, 'manager', ['prompts.list', 'workspace_service_api_keys.create'])
      const make = (name: string): [string, object] => [
        '/v1/api-keys/workspace/service',
        { name, scopes: ['prompts.list'] },
      ]
      const path = `/v1/admin/workspaces/${made.workspace_id}/users/${id}`
      return { key, make, lose: () => ok(call(urlA, 'PUT', path, { role: 'member' })) }
    },
  },
  {
    name: 'the key of a member who was removed from the workspace',
    async set(deaf) {
      const { id, key } = await person(deaf, 'member', ['prompts.list', 'prompts.create'])
      const path = `/v1/admin/workspaces/${made.workspace_id}/users/${id}`
      return { key, make: label, lose: () => ok(call(urlA, 'DELETE', path)) }
    },
  },
  {
    name: 'the key of a person who was removed from the organisation',
    async set(deaf) {
      const { id, key } = await person(deaf, 'member', ['prompts.list', 'prompts.create'])
      return { key, make: label, lose: () => ok(call(urlA, 'DELETE', `/v1/admin/users/${id}`)) }
    },
  },
  {
    name: 'the key of a workspace that was archived',
    async set(deaf) {
      const { id } = await ok(call(deaf, 'POST', '/v1/admin/workspaces', { name: newName() }))
      const { key } = await newKey(deaf, undefined, id)
      const lose = () => ok(call(urlA, 'DELETE', `/v1/admin/workspaces/${id}`, { force_delete: true }))
      return { key, make: label, lose }
    },
  },
]

/** Somebody new in the workspace, with a key of his own. */
async function person(url: string, role: string, scopes: string[]): Promise<{ id: string; key: string }> {
  const invite = await ok(
    call(url, 'POST', '/v1/admin/users/invites', {
      email: `${newName()}@example.com`,
      role: 'member',
      workspaces: [{ id: made.workspace_id, role }],
      workspace_api_key_details: { scopes },
    }),
  )
  const token = String(invite.invite_link).split('#')[1]
  const user = await ok(call(url, 'POST', '/v1/admin/users/invites/accept', { token }))
  return { id: user.id, key: user.api_keys[0].key }
}

describe.skipIf(!hasPostgres)('on a node that has not heard of it yet', () => {
  let deaf: string
  beforeAll(async () => {
    deaf = await start('deaf', { GATEHOUSE_DATABASE_POLL_MS: '10000' })
  })

  test.each(LOSSES)('$name changes nothing', async ({ set }) => {
    const { key, make, lose } = await set(deaf)
    await lose()
    expect(await mayList(deaf, key), 'the node has heard of it: nothing is proved').toBe(200)
    const name = newName()
    const [path, body] = make(name)
    const { status } = await call(deaf, 'POST', path, body, key)
    expect([401, 403, 503]).toContain(status)
    const { labels, apiKeys } = stored.read.tables
    const names = [...(await stored.read.select().from(labels)), ...(await stored.read.select().from(apiKeys))]
    expect(names.filter((row) => row.name === name)).toEqual([])
    expect((await auditTrail(stored.read)).filter(({ resource_name }) => resource_name === name)).toEqual([])
  })
})

describe.skipIf(!hasPostgres)('a node that cannot look for changes', () => {
  /** Another node, its way to the database, and what a render there is answered: 404 as long as it serves. */
  async function startCuttable(name: string) {
    const database = new URL(site.env['GATEHOUSE_DATABASE_URL']!)
    const proxy = await startTcpProxy(Number(database.port))
    database.port = `${proxy.port}`
    const url = await start(name, {
      GATEHOUSE_DATABASE_URL: database.href,
      GATEHOUSE_DATABASE_POLL_MS: '100',
      GATEHOUSE_CACHE_MAX_STALENESS_SECONDS: '1',
      GATEHOUSE_SERVER_DRAIN_SECONDS: '0',
    })
    const { key } = await newKey(url, ['prompts.render'])
    const render = async () => (await call(url, 'POST', '/v1/prompts/none/render', { variables: {} }, key)).status
    expect(await render()).toBe(404)
    return { proxy, url, render }
  }

  test.each(['closed', 'silent'] as const)(
    'serves from memory, then answers 503 to all but health (its way to the database is %s)',
    async (how) => {
      const { proxy, url, render } = await startCuttable(how)
      proxy.cut(how)
      expect(await render()).toBe(404)
      expect(await timeUntil(async () => (await render()) === 503)).toBeLessThan(1_000 + BOUND_MS)
      for (const answer of [await newLabel(url), await call(url, 'GET', '/v1/labels')])
        expect(answer).toMatchObject({ status: 503, body: { errorCode: 'AB04' } })
      for (const path of ['/livez', '/metrics']) expect((await fetch(url + path)).status).toBe(200)
      proxy.stop()
    },
  )

  test('is not ready, and serves again by itself when the database is back', async () => {
    const { proxy, url, render } = await startCuttable('back')
    proxy.cut('closed')
    expect(await timeUntil(async () => (await render()) === 503)).toBeLessThan(1_000 + BOUND_MS)
    const ready = await fetch(`${url}/readyz`)
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'not ready', reasons: ['storage_unavailable'] }])
    proxy.mend()
    expect(await timeUntil(async () => (await render()) === 404)).toBeLessThan(3 * BOUND_MS)
    await ok(newLabel(url))
    proxy.stop()
  }, 30_000)
})
