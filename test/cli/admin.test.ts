import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isWellFormedKey } from '../../src/api-keys/key.ts'
import { startAdminSocket } from '../../src/cli/admin-socket.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { auditTrail, doneBy } from '../support/audit.ts'
import { FAILURE_LINE, gatehouse } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-admin-'))
const config = join(folder, 'config.toml')
const socket = join(folder, 'data/admin.sock')
afterAll(() => rmSync(folder, { recursive: true }))

let count = 0
const newFile = () => join(folder, `out-${count++}.json`)
const run = (...argv: string[]) => gatehouse([...argv, '--config', config])
const keys = async () =>
  JSON.parse((await run('keys', 'list', '--json')).out) as {
    id: string
    name: string
    type: string
    key: string
    expiresAt: string | null
  }[]

/** Makes a key and gives what its file holds. */
async function createKey(...flags: string[]): Promise<{ id: string; key: string }> {
  const output = newFile()
  const { exitCode, err } = await run('keys', 'create', ...flags, '--output', output)
  if (exitCode !== 0) throw new Error(err)
  return JSON.parse(readFileSync(output, 'utf8'))
}

/** Audit rows, oldest first, read in a window without a server. */
async function auditRows(opened?: Gatehouse) {
  const { read, close } = opened ?? (await open())
  const trail = await auditTrail(read)
  const rows = trail.reverse().map((row) => ({ action: doneBy(row), actor: row.user_id, details: row.details }))
  if (opened === undefined) await close()
  return rows
}

const load = () => loadConfig({ path: config, env: {} })
const open = () => openGatehouse(load(), createLog({ level: 'error', write: () => {} }))

beforeAll(async () => {
  await gatehouse(['init', '--dir', folder])
})

/** The same guarantees with and without a running server. */
function administration(where: string) {
  describe(where, () => {
    test('a key is made for its type, shown in its file only, and listed masked', async () => {
      const { id, key } = await createKey(
        '--admin',
        '--name',
        `admin ${where}`,
        '--scopes',
        'prompts.read,prompts.render',
        '--expires',
        '2999-01-31',
      )
      expect(isWellFormedKey(key)).toBe(true)
      expect(key).toStartWith('gth_a_')
      const listed = (await keys()).find((each) => each.id === id)
      expect(listed).toMatchObject({ type: 'organisation-service', expiresAt: '2999-01-31T00:00:00.000Z' })
      expect(listed?.key).toBe(`${key.slice(6, 8)}*****${key.slice(-3)}`)
    })

    test('a workspace is named by id or slug', async () => {
      const { workspace_id: id, workspace_slug: slug } = JSON.parse(
        readFileSync(join(folder, 'bootstrap.json'), 'utf8'),
      )
      for (const workspace of [id, slug]) {
        const { key } = await createKey('--workspace', workspace, '--service', '--name', 'w', '--scopes', 'all')
        expect(key).toStartWith('gth_w_')
      }
    })

    test('a system key has its fixed scopes and is listed here', async () => {
      const { id, key } = await createKey('--system', '--name', 'data plane')
      expect(key).toStartWith('gth_s_')
      expect((await keys()).find((each) => each.id === id)?.type).toBe('system')
    })

    test('a revoked key is gone, and cannot be revoked twice', async () => {
      const { id } = await createKey('--admin', '--name', 'short-lived', '--scopes', 'all')
      expect(await run('keys', 'revoke', id)).toMatchObject({ exitCode: 0, out: 'revoked\n' })
      expect((await keys()).some((each) => each.id === id)).toBe(false)
      expect(await run('keys', 'revoke', id)).toMatchObject({ exitCode: 65, err: expect.stringMatching(FAILURE_LINE) })
    })

    test('a refused key leaves neither a file nor a row', async () => {
      const before = await keys()
      const output = newFile()
      for (const [flags, exitCode] of [
        [['--admin', '--scopes', 'prompt.render'], 64],
        [['--workspace', 'nowhere', '--service', '--scopes', 'all'], 65],
      ] as const) {
        const ran = await run('keys', 'create', '--name', 'x', ...flags, '--output', output)
        expect(ran).toMatchObject({ exitCode, out: '', err: expect.stringMatching(FAILURE_LINE) })
        expect(existsSync(output)).toBe(false)
      }
      expect(await keys()).toEqual(before)
    })

    test('a second bootstrap is refused with 65', async () => {
      const { exitCode, err } = await run(
        'bootstrap',
        '--org',
        'Again',
        '--email',
        'b@b.example',
        '--output',
        newFile(),
      )
      expect(exitCode).toBe(65)
      expect(err).toStartWith('code=ALREADY_INITIALISED ')
    })
  })
}

describe('before bootstrap', () => {
  test('there is no organisation to make keys for', async () => {
    const { exitCode, err } = await run(
      'keys',
      'create',
      '--admin',
      '--name',
      'x',
      '--scopes',
      'all',
      '--output',
      newFile(),
    )
    expect(exitCode).toBe(65)
    expect(err).toStartWith('code=NOT_INITIALISED ')
  })

  test('bootstrap shows its key on a terminal or in a file, or makes none', async () => {
    expect((await run('bootstrap', '--org', 'Acme', '--email', 'a@a.example')).exitCode).toBe(64)
    const output = join(folder, 'bootstrap.json')
    const { exitCode, out } = await run('bootstrap', '--org', 'Acme', '--email', 'a@a.example', '--output', output)
    expect({ exitCode, out }).toEqual({ exitCode: 0, out: '' })
    expect(statSync(output).mode & 0o777).toBe(0o600)
    const made = JSON.parse(readFileSync(output, 'utf8'))
    expect(Object.keys(made).sort()).toEqual([
      'admin_key',
      'collection_id',
      'organisation_id',
      'user_id',
      'workspace_id',
      'workspace_slug',
    ])
    expect(isWellFormedKey(made.admin_key)).toBe(true)
  })
})

administration('without a server')

describe('beside a running server', () => {
  let server: Gatehouse
  let admin: { stop(): Promise<void> }
  beforeAll(async () => {
    server = await open()
    admin = await startAdminSocket(server)
  })
  afterAll(async () => {
    await admin.stop()
    await server.close()
  })

  test('only our own user may connect', () => expect(statSync(socket).mode & 0o777).toBe(0o600))

  administration('with a server')

  test('each change is an audit row of the command line, with user and command', async () => {
    const { id } = await createKey('--system', '--name', 'audited')
    await run('keys', 'revoke', id)
    const rows = (await auditRows(server)).slice(-2)
    const actor = `cli:${process.getuid?.()}`
    expect(rows).toMatchObject([
      { action: 'system_api_keys.create', actor, details: { command: 'keys create' } },
      { action: 'system_api_keys.delete', actor, details: { command: 'keys revoke' } },
    ])
  })

  test('a command or an input that this version does not know is refused', async () => {
    const send = async (body: string) =>
      (await fetch('http://localhost/', { unix: socket, method: 'POST', body })).json()
    expect(await send('{"command":"constructor"}')).toMatchObject({
      failure: { code: 'UNKNOWN_COMMAND', exitCode: 64 },
    })
    expect(await send('{"command":"keys.revoke","input":{"id":1}}')).toMatchObject({
      failure: { code: 'INVALID', exitCode: 64 },
    })
    expect(await send('{"command":"keys.list","input":{"all":true}}')).toMatchObject({ failure: { code: 'INVALID' } })
    expect(await send('not json')).toMatchObject({ failure: { exitCode: expect.any(Number) } })
  })

  test('a second server does not take the socket away', async () => {
    await expect(startAdminSocket(server)).rejects.toMatchObject({ code: 'ADMIN_SOCKET_IN_USE', exitCode: 69 })
    expect((await run('keys', 'list')).exitCode).toBe(0)
  })
})

test('a socket that a killed server left is replaced, and in the way of no command', async () => {
  const script = `Bun.serve({ unix: ${JSON.stringify(socket)}, fetch: () => new Response() }); process.kill(process.pid, 'SIGKILL')`
  await Bun.spawn([process.execPath, '-e', script]).exited
  expect(existsSync(socket)).toBe(true)
  expect((await run('keys', 'list')).exitCode).toBe(0)
  const server = await open()
  const admin = await startAdminSocket(server)
  expect((await run('keys', 'list')).exitCode).toBe(0)
  await admin.stop()
  await server.close()
})
