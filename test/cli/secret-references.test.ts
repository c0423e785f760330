import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { startAdminSocket } from '../../src/cli/admin-socket.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { auditTrail } from '../support/audit.ts'
import { freshFolder } from '../support/database.ts'
import { FAILURE_LINE, gatehouse } from './support.ts'

const VALUE = 'canary-of-the-manager'
const TOKEN = 'hvs.canary-of-the-config'
const folder = freshFolder()
const config = join(folder, 'config.toml')
const run = (...argv: string[]) => gatehouse([...argv, '--config', config])

/** As much of a Vault as a token needs: one secret, and everything else forbidden. */
const vault = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    const answers: Record<string, unknown> = {
      '/v1/auth/token/lookup-self': { data: { ttl: 3600, renewable: false } },
      '/v1/sys/internal/ui/mounts/secret/openai': { data: { path: 'secret/', type: 'kv', options: { version: '2' } } },
      '/v1/secret/data/openai': { data: { data: { api_key: VALUE }, metadata: { version: 3 } } },
    }
    const answer = answers[new URL(request.url).pathname]
    if (answer !== undefined && request.headers.get('x-vault-token') === TOKEN) return Response.json(answer)
    return Response.json({ errors: ['permission denied \u2028'] }, { status: 403 })
  },
})
const near = `127.0.0.1:${vault.port}`
const reference = (changes: object = {}) => ({
  name: 'openai',
  manager_type: 'hashicorp_vault',
  secret_path: 'secret/openai',
  secret_key: 'api_key',
  auth_config: { vault_auth_type: 'token', vault_addr: `http://${near}`, vault_token: TOKEN },
  ...changes,
})
const ofMachine = reference({
  name: 'of the machine',
  manager_type: 'aws_sm',
  secret_path: 'prod/openai',
  auth_config: { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' },
})
const MACHINE =
  '[[secret_managers.machine_identity]]\nkind = "aws_service_role"\nworkspaces = ["*"]\npaths = ["prod/*"]'

let count = 0
function fileWith(content: unknown): string {
  const path = join(folder, `reference-${count++}.json`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}
const configure = (...lines: string[]) =>
  writeFileSync(
    config,
    `[data]\ndir = "${join(folder, 'data')}"\n[master_key]\nsource = "file:${join(folder, 'master.key')}"\n${lines.join('\n')}\n`,
    { mode: 0o600 },
  )
const allowed = () => configure('[outbound]', `allow_http = ["${near}"]`, MACHINE)
const open = () => openGatehouse(loadConfig({ path: config, env: {} }), createLog({ level: 'error', write: () => {} }))

let stored: string
beforeAll(async () => {
  await gatehouse(['init', '--dir', folder])
  allowed()
  const output = join(folder, 'bootstrap.json')
  await run('bootstrap', '--org', 'Test', '--email', 'owner@example.com', '--output', output)
  const { admin_key } = JSON.parse(readFileSync(output, 'utf8'))
  const opened = await open()
  const app = createApp(opened, { checkAnswers: true })
  const create = async (body: object): Promise<string> => {
    const headers = { 'x-service-api-key': admin_key, 'content-type': 'application/json' }
    const sent = { method: 'POST', headers, body: JSON.stringify(body) }
    const answer = await app.fetch(new Request('http://localhost/v1/secret-references', sent))
    return JSON.parse(await answer.text()).id
  }
  stored = await create(reference())
  await create(ofMachine)
  await opened.close()
})
afterAll(() => {
  vault.stop(true)
  rmSync(folder, { recursive: true })
})

const BAD: [what: string, named: () => string, exitCode: number, said: string][] = [
  ['a file that is not there', () => join(folder, 'nowhere.json'), 65, 'cannot be read (ENOENT)'],
  ['a folder', () => folder, 65, 'cannot be read'],
  ['no JSON', () => fileWith(`{"vault_token":"${TOKEN}`), 65, 'not valid JSON'],
  ['a key that stands twice', () => fileWith('{"name":"a","name":"b"}'), 65, 'stands twice'],
  ['a list', () => fileWith([TOKEN]), 64, 'must be an object'],
  ['a misspelt field', () => fileWith(reference({ secret_pth: TOKEN })), 64, 'secret_path'],
  [
    'a login of another manager',
    () => fileWith(reference({ manager_type: 'azure_kv' })),
    64,
    'auth_config.vault_auth_type',
  ],
  ['an id that is none', () => 'nowhere', 65, './reference.json'],
]

function commands(where: string, trail: () => Promise<Awaited<ReturnType<typeof auditTrail>>>) {
  describe(`secret-references: ${where}`, () => {
    test('test FILE says every step, and neither login nor value', async () => {
      const { exitCode, out, err } = await run('secret-references', 'test', fileWith(reference()))
      expect(exitCode, err).toBe(0)
      expect(out).toMatch(
        /^grant {4}ok {2}\d+ ms\n(?:.+\n){6}field {4}ok {2}\d+ ms\nok: version 3, fingerprint \w{16}\n$/,
      )
      expect(out).toMatch(/^read {5}ok {2}\d+ ms$/m)
      for (const secret of [VALUE, TOKEN]) expect(out + err).not.toContain(secret)
    })

    test('test ID goes to a stored one, by id and by slug; its row names who asked', async () => {
      for (const named of [stored, 'openai']) expect((await run('secret-references', 'test', named)).exitCode).toBe(0)
      expect((await run('secret-references', 'test', stored, '--fresh')).exitCode).toBe(0)
      const [row] = await trail()
      expect(row).toMatchObject({
        user_type: 'cli',
        resource_type: 'secret_references',
        action: 'test',
        resource_id: stored,
        details: { ok: true, command: 'secret-references test' },
      })
    })

    test('a step that fails ends with 1, and says why in our words and the manager’s', async () => {
      const wrong = reference({ secret_path: 'secret/other' })
      const { exitCode, out, err } = await run('secret-references', 'test', fileWith(wrong))
      expect(exitCode, err).toBe(1)
      expect(out).toMatch(/^read {5}failed {2}manager_denied: .+\n +the manager says: permission denied\n/m)
      expect(out).toMatch(/^parse {4}not reached\n/m)
      expect(out).toEndWith('\nfailed\n')
      expect(err).toBe('')
    })

    test('--json prints the answer of the API', async () => {
      const good = await run('secret-references', 'test', fileWith(reference()), '--json')
      expect(good.exitCode).toBe(0)
      expect(JSON.parse(good.out)).toMatchObject({ object: 'secret-reference-test', ok: true, version: '3' })
      const bad = await run('secret-references', 'test', fileWith(reference({ secret_key: 'other' })), '--json')
      expect(bad.exitCode).toBe(1)
      expect(JSON.parse(bad.out)).toMatchObject({ ok: false, failed_step: 'field' })
    })

    test.each(BAD)('%s is refused, and nothing of it is repeated', async (_what, named, code, said) => {
      const { exitCode, out, err } = await run('secret-references', 'test', named())
      expect(exitCode, err).toBe(code)
      expect(out).toBe('')
      expect(err).toMatch(FAILURE_LINE)
      expect(err).toContain(said)
      expect(err).not.toContain(TOKEN)
    })

    test('check finds nothing while everything is covered', async () => {
      const { exitCode, out } = await run('secret-references', 'check')
      expect([exitCode, out]).toEqual([0, '0 of 2 secret references need another setting\n'])
    })

    test('check goes by the file as it is now: what it lets go of is listed with the lines to add', async () => {
      configure()
      try {
        const { exitCode, out } = await run('secret-references', 'check')
        expect(exitCode).toBe(1)
        expect(out).toContain(`${stored}  openai  address: `)
        expect(out).toContain(`add [outbound] allow_http = ["${near}"]`)
        expect(out).toContain('of-the-machine  grant: add:\n[[secret_managers.machine_identity]]\n')
        expect(out).toEndWith('2 of 2 secret references need another setting\n')
        expect(out).not.toContain(TOKEN)
        const json = await run('secret-references', 'check', '--json')
        expect(json.exitCode).toBe(1)
        expect(JSON.parse(json.out)).toMatchObject({ checked: 2, uncovered: [{ id: stored, problem: 'address' }, {}] })
      } finally {
        allowed()
      }
    })
  })
}

commands('without a server', async () => {
  const opened = await open()
  const rows = await auditTrail(opened.read)
  await opened.close()
  return rows
})

describe('beside a server', () => {
  let opened: Gatehouse
  let admin: Awaited<ReturnType<typeof startAdminSocket>>
  beforeAll(async () => {
    opened = await open()
    admin = await startAdminSocket(opened)
  })
  afterAll(async () => {
    await admin.stop()
    await opened.close()
  })
  commands('beside a server', () => auditTrail(opened.read))
})

test('no secret is taken from the command line', async () => {
  const { exitCode, err } = await run('secret-references', 'test', 'x', '--vault-token', TOKEN)
  expect(exitCode).toBe(64)
  expect(err).not.toContain(TOKEN)
})
