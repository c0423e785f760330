import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import type { Shape } from './support/canaries.ts'
import { buildExecutable } from './support/executable.ts'
import { MANNERS, type Manner, type Stage } from './support/hostile-manager.ts'
import { addMasterKeys, type LeakHunt, startLeakHunt } from './support/leak-hunt.ts'
import { TELLINGS } from './support/tellings.ts'

// The leak hunt (SE-6, SE-7, OB-3): canaries as every field of the nine shapes, as what managers keep and lend, and as
// this machine's own tokens; used through the executable, with managers that tell on whatever they know. Requests that
// are refused: leaks-refused.test.ts.

const BASE = '/v1/secret-references'
let folder: string
let hunt: LeakHunt

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-leaks-'))
  hunt = await startLeakHunt(buildExecutable(folder).path)
}, 60_000)
afterAll(() => {
  hunt?.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** Those since the last look. */
const expectNoLeaks = () => expect(hunt.search.leaks.splice(0)).toEqual([])

const ids = new Map<Shape, string>()
async function create(shape: Shape, changes: object = {}): Promise<string> {
  const { body } = await hunt.call('POST', BASE, {
    name: `${shape} reference`,
    ...hunt.canaries.shapes[shape],
    ...changes,
  })
  return body.id
}
const resolve = (id: string, body: object = {}) =>
  hunt.call(
    'POST',
    `${BASE}/${id}/resolve`,
    { workspace_id: null, ...body },
    { key: hunt.systemKey, without: 'value', except: ['host'] },
  )

/** A manager's own words are looked at for themselves: a secret that only the manager knows cannot be told in them. */
async function tested(path: string, body: object) {
  const answer = await hunt.call('POST', path, body, { without: 'steps' })
  for (const { manager_message, ...step } of answer.body.steps) {
    hunt.search.look('steps of a test', JSON.stringify(step), ['host'])
    hunt.search.look('manager_message', manager_message ?? '', ['value'])
  }
  return answer.body
}

const tellNothing = (): void => {
  hunt.manager.plan = { how: 'refuses', piece: 0, form: (text) => text }
}

const STAGES: Record<Shape, Stage[]> = {
  accessKey: ['read'],
  assumedRole: ['identity', 'login', 'read'],
  serviceRole: ['identity', 'read'],
  entra: ['challenge', 'login', 'read'],
  managed: ['challenge', 'identity', 'read'],
  default: ['challenge', 'login', 'read'],
  token: ['login', 'mount', 'read'],
  approle: ['login', 'mount', 'read'],
  kubernetes: ['login', 'mount', 'read'],
}
const SHAPES = Object.keys(STAGES) as Shape[]

test('the nine shapes work: created, read, resolved, tested, updated', async () => {
  const { canaries, call, systemKey } = hunt
  const fields = JSON.parse(canaries.value)
  for (const shape of SHAPES) {
    const { auth_config, manager_type } = canaries.shapes[shape]
    const id = await create(shape)
    ids.set(shape, id)
    expect((await call('GET', `${BASE}/${id}`, undefined, { except: ['plain', 'host'] })).status).toBe(200)
    const clear = await call('GET', `${BASE}/${id}`, undefined, { key: systemKey, without: 'auth_config' })
    expect(clear.body.auth_config).toEqual(auth_config)
    const whole = await resolve(id)
    expect([shape, JSON.parse(whole.body.value ?? null)]).toEqual([shape, fields])
    expect((await resolve(id, { secret_key: 'api_key', refresh: true })).body.value).toBe(fields.api_key)
    expect(await tested(`${BASE}/${id}/test`, { fresh: true })).toMatchObject({ ok: true })
    expect(await tested(`${BASE}/test`, { name: 'unsaved', ...canaries.shapes[shape] })).toMatchObject({ ok: true })
    expect((await resolve(id, { secret_key: 'nowhere' })).body.error.type).toBe('manager_field_missing')
    await call('GET', `${BASE}/${id}/health`)
    expect((await call('PUT', `${BASE}/${id}`, { description: manager_type, auth_config })).status).toBe(200)
  }
  expect(new Set(hunt.manager.asked)).toEqual(new Set(['identity', 'login', 'challenge', 'mount', 'read']))
  expectNoLeaks()
})

describe('a manager that fails, and tells all it knows', () => {
  const names = Object.keys(TELLINGS)
  let turn = 0

  async function failing(shape: Shape, at: Stage, how: Manner, id: string, piece: number) {
    const form = names[turn++ % names.length]!
    hunt.manager.plan = { at, how, piece, form: TELLINGS[form]! }
    const report = await tested(`${BASE}/${id}/test`, { fresh: true })
    // A token that may not ask about itself is tried all the same; and something else may look like a secret.
    const isTaken =
      how === 'answers something else' || (shape === 'token' && at === 'login' && /^(?:forbids|names)/.test(how))
    if (!isTaken) expect([shape, at, how, report.ok]).toEqual([shape, at, how, false])
  }

  test.each(SHAPES)('%s', async (shape) => {
    for (const at of STAGES[shape]) {
      for (const [piece, how] of MANNERS.entries()) {
        const id = await create(shape)
        await failing(shape, at, how, id, piece)
        await resolve(id)
        await hunt.call('GET', `${BASE}/${id}/health`)
      }
      hunt.manager.pieces = 1
      let id = ''
      for (let piece = 0; piece < 2 * hunt.manager.pieces; piece++) {
        if (piece % 9 === 0) id = await create(shape)
        await failing(shape, at, 'forbids', id, piece)
      }
    }
    tellNothing()
    expectNoLeaks()
  })
})

test('asked with an Idempotency-Key, whose answers are kept', async () => {
  const { call, systemKey, adminKey, canaries } = hunt
  const path = `${BASE}/${await create('token')}`
  const asked: [method: string, path: string, body: object | undefined, key: string, without: string][] = [
    ['POST', `${path}/resolve`, { workspace_id: null, refresh: true }, systemKey, 'value'],
    ['GET', path, undefined, systemKey, 'auth_config'],
    ['POST', `${path}/test`, {}, adminKey, ''],
    ['POST', `${BASE}/test`, { name: 'unsaved', ...canaries.shapes.approle }, adminKey, ''],
    ['POST', BASE, { name: 'again', ...canaries.shapes.entra }, adminKey, ''],
  ]
  for (const [i, [method, path, body, key, without]] of asked.entries())
    for (const _ of ['first', 'again']) {
      const headers = { 'idempotency-key': `key-${i}` }
      expect((await call(method, path, body, { key, headers, without })).status).toBe(200)
    }
  hunt.lookAtMachine()
  expectNoLeaks()
})

test('a value that is kept and used although its manager fails; and one that changes', async () => {
  const id = await create('token', { cache_seconds: 1 })
  await resolve(id)
  hunt.manager.plan = { at: 'read', how: 'is sealed', piece: 0, form: (text) => text }
  for (const refresh of [false, true]) await resolve(id, { refresh })
  tellNothing()
  await hunt.call('GET', `${BASE}/${id}/health`)
  expect((await hunt.call('DELETE', `${BASE}/${id}`)).status).toBe(200)
  expectNoLeaks()
})

describe('on the command line', () => {
  const testFile = (text: string, ...flags: string[]) =>
    hunt.run(['secret-references', 'test', hunt.file(text), ...flags], { except: ['host'] })
  const bodyOf = (shape: Shape, changes: object = {}) =>
    JSON.stringify({ name: shape, ...hunt.canaries.shapes[shape], ...changes })

  test('a test of a file, and of what is stored', async () => {
    for (const shape of ['accessKey', 'entra', 'approle'] as const)
      expect((await testFile(bodyOf(shape))).exitCode).toBe(0)
    hunt.manager.plan = { at: 'login', how: 'refuses', piece: 1, form: (text) => text }
    expect((await testFile(bodyOf('approle'), '--json')).exitCode).toBe(1)
    expect((await hunt.run(['secret-references', 'test', ids.get('approle')!, '--fresh'])).exitCode).toBe(1)
    tellNothing()
    expectNoLeaks()
  })

  test('a file that is none, and a secret in the place of a file', async () => {
    const secret = hunt.canaries.secret('of the file')
    const { token } = hunt.canaries.shapes
    const files = [
      bodyOf('token').slice(0, -40),
      `${secret}\n`,
      JSON.stringify([secret]),
      `{"${hunt.canaries.marks.secret}":1,"${hunt.canaries.marks.secret}":2}`,
      bodyOf('token', { [secret]: secret }),
      bodyOf('token', { manager_type: secret, slug: secret }),
      bodyOf('token', { auth_config: { ...token.auth_config, vault_auth_type: secret } }),
      bodyOf('token', { auth_config: secret }),
      bodyOf('token', { description: secret.repeat(2000) }),
    ]
    const ran = [
      ...(await Promise.all(files.map((text) => testFile(text)))),
      await hunt.run(['secret-references', 'test', secret]),
      await hunt.run(['secret-references', 'test', hunt.canaries.marks.secret]),
      await hunt.run(['secret-references', 'test', 'x', `--${secret}`]),
      await hunt.run(['secret-references', 'test', 'x', secret]),
      await hunt.run([secret]),
    ]
    expect(ran.map(({ exitCode }) => exitCode).filter((exitCode) => exitCode === 0)).toEqual([])
    expectNoLeaks()
  })

  test('settings, shown and refused', async () => {
    const secret = encodeURIComponent(hunt.canaries.secret('setting'))
    const wrong = {
      GATEHOUSE_DATABASE_PASSWORD: secret,
      GATEHOUSE_DATABASE_URL: `postgres://gatehouse:${secret}@db.example.com/gatehouse`,
      GATEHOUSE_SMTP_URL: `smtps://gatehouse:${secret}@mail.example.com`,
      GATEHOUSE_OUTBOUND_PROXY: `http://gatehouse:${secret}@proxy.example.com`,
      GATEHOUSE_OUTBOUND_CONNECT: `{ "${secret}" = 1 }`,
      GATEHOUSE_MASTER_KEY_SOURCE: secret,
      GATEHOUSE_SECRET_MANAGERS_VAULT_TOKEN: secret,
      GATEHOUSE_LOG_LEVEL: secret,
    }
    for (const [name, value] of Object.entries(wrong))
      for (const command of ['check', 'show'])
        await hunt.run(['config', command, '--json'], { env: { [name]: value }, except: ['plain', 'host'] })
    const env = { GATEHOUSE_DATABASE_PASSWORD: 'env:A_PASSWORD', A_PASSWORD: secret, VAULT_TOKEN: secret }
    for (const flags of [[], ['--json']])
      expect((await hunt.run(['config', 'show', ...flags], { env, except: ['plain', 'host'] })).exitCode).toBe(0)
    const broken = hunt.file(`[outbound]\nproxy = "${secret}\n[master_key]\nsource = ${secret}`)
    expect((await hunt.run(['config', 'check'], { config: broken })).exitCode).toBe(78)
    expectNoLeaks()
  })

  test('references that no grant covers any more', async () => {
    expect((await hunt.run(['secret-references', 'check'])).exitCode).toBe(0)
    const env = { GATEHOUSE_SECRET_MANAGERS_MACHINE_IDENTITY: '[]' }
    // The lines to add name addresses, roles and client ids, as every reader of the references sees them.
    const { exitCode, out } = await hunt.run(['secret-references', 'check'], { env, except: ['plain', 'host'] })
    expect(exitCode).toBe(1)
    expect(out).toContain('kind = "aws_assumed_role"')
    expectNoLeaks()
  })

  test('keys of all kinds are rotated, with references under them', async () => {
    const { run, search, masterKeyFile } = hunt
    for (const argv of [['rotate-data-key'], ['rotate-master-key', '--drop-old'], ['audit', 'rotate-key']]) {
      expect((await run(argv)).exitCode).toBe(0)
      addMasterKeys(search, masterKeyFile)
    }
    const fields = JSON.parse(hunt.canaries.value)
    for (const id of ids.values()) expect(JSON.parse((await resolve(id, { refresh: true })).body.value)).toEqual(fields)
    const output = hunt.file()
    expect(
      (await run(['keys', 'create', '--admin', '--scopes', 'all', '--name', 'k', '--output', output])).exitCode,
    ).toBe(0)
    const made = JSON.parse(readFileSync(output, 'utf8'))
    search.add('a key made on the command line', made.key)
    for (const argv of [
      ['keys', 'list'],
      ['keys', 'list', '--json'],
      ['keys', 'revoke', made.id],
    ])
      await run(argv)
    expectNoLeaks()
  })

  test('the audit trail, checked and exported', async () => {
    for (const format of ['ndjson', 'csv']) {
      const output = hunt.file()
      expect((await hunt.run(['audit', 'export', '--format', format, '--output', output])).exitCode).toBe(0)
      hunt.search.look('audit export', readFileSync(output))
    }
    expect((await hunt.run(['audit', 'verify'])).exitCode).toBe(0)
    expectNoLeaks()
  })
})

test('over HTTP, in what is told of all of them', async () => {
  const { call, search } = hunt
  const scopes = ['secret_references.test']
  const create = () =>
    call(
      'POST',
      '/v1/api-keys/organisation/service',
      { name: 'k', scopes },
      { without: 'key', headers: { 'idempotency-key': 'of-the-key' } },
    )
  const made = await create()
  search.add('a key made over HTTP', made.body.key)
  expect((await create()).body.key).toBe(made.body.key)
  let rows = 0
  for (let page = 0, isMore = true; isMore; page++) {
    const { body } = await call('GET', `/v1/audit-logs?page_size=100&current_page=${page}`)
    isMore = body.records.length === 100
    rows += body.records.length
  }
  expect(rows).toBeGreaterThan(500)
  const paths = [BASE, '/v1/api-keys', '/metrics', '/readyz', '/livez', '/nowhere', `${BASE}/${made.body.key}`]
  for (const path of paths) await call('GET', path)
  await call('POST', BASE, { name: 'x'.repeat(40_000_000) + hunt.canaries.marks.secret })
  expectNoLeaks()
})

test('on the machine: files, the write-ahead log, what the system tells of the process, no core', async () => {
  const { search, lookAtMachine, pid } = hunt
  lookAtMachine()
  expect(readFileSync(`/proc/${pid}/limits`, 'utf8')).toMatch(/^Max core file size +0 +0 /m)
  // Where a program takes core dumps, the limit does not count; this keeps its memory out of them.
  expect(readFileSync(`/proc/${pid}/coredump_filter`, 'utf8').trim()).toBe('00000000')
  await hunt.stop()
  lookAtMachine()
  expectNoLeaks()
  const seen = ['data/gatehouse.db', 'data/gatehouse.db-wal', 'sink/audit.ndjson', '/proc/environ', '/proc/cmdline']
  for (const where of [...seen, 'standard output', 'GET /metrics', 'audit export', 'manager_message'])
    expect([where, search.seen(where) > 20]).toEqual([where, true])
})

test("other ways to this machine's own identity, on the command line without a server", async () => {
  for (const identity of ['container', 'web_identity'])
    for (const at of [undefined, 'identity', 'login', 'read'] as const) {
      hunt.manager.plan = { at, how: 'forbids', piece: 1, form: (text) => text }
      const file = hunt.file(JSON.stringify({ name: identity, ...hunt.canaries.shapes.serviceRole }))
      const env = { GATEHOUSE_SECRET_MANAGERS_AWS_IDENTITY: identity, GATEHOUSE_LOG_LEVEL: 'debug' }
      const { exitCode } = await hunt.run(['secret-references', 'test', file], { env, except: ['host'] })
      const isReached = at === undefined || at === (identity === 'container' ? 'login' : 'identity')
      expect([identity, at, exitCode]).toEqual([identity, at, isReached ? 0 : 1])
    }
  hunt.lookAtMachine()
  expectNoLeaks()
})

test('the hunt can fail: a leak that is planted in any of these places is found', () => {
  const { search, folders, canaries } = hunt
  const planted = canaries.secret('planted')
  const places = Object.entries(folders).map(([name, folder]) => {
    const path = join(folder, 'deep', 'planted')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, btoa(`${name} ${planted}`))
    return relative(dirname(folder), path)
  })
  const database = new Database(join(folders.data, 'gatehouse.db'))
  database.run('CREATE TABLE planted (text TEXT)')
  database.run('INSERT INTO planted VALUES (?)', [JSON.stringify(planted)])
  database.close()
  hunt.lookAtMachine()
  const found = new Set(search.leaks.splice(0).map(({ where }) => where))
  for (const place of [...places, 'data/gatehouse.db']) expect(found).toContain(place)
})
