import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApiKey } from '../../src/api-keys/service.ts'
import { type Listening, startServer } from '../../src/http/server.ts'
import { auditTrail } from '../support/audit.ts'
import { freshFolder } from '../support/database.ts'
import { openTestGatehouse } from '../support/gatehouse.ts'
import { useWorld } from '../support/scenario.ts'

const folder = freshFolder()
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'api.sock')
const config = (more = '') => `[server]\nport = 0\nunix_socket = ${JSON.stringify(path)}\n${more}`

describe.each([
  ['behind a proxy', 'behind_proxy = true\ntrusted_proxies = ["127.0.0.1"]\n[system]\nallow = ["0.0.0.0/0"]\n', 401],
  ['behind none', '', 200],
])('a server with a unix socket, %s', (_name, more, overTcp) => {
  const world = useWorld('sqlite', undefined, config(more))
  let server: Listening
  let system: string
  beforeAll(async () => {
    const { gatehouse, made, call } = world()
    const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    const key = { type: 'system', name: 's', scopes: [], accountableUserId: made.user_id } as const
    system = (await createApiKey(gatehouse, cli, key)).key
    await call('POST', '/v1/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' })
    server = await startServer(gatehouse)
  })
  afterAll(() => server.stop())

  const send = async (unix: string | undefined, key: string, headers: Record<string, string> = {}) => {
    const url = unix === undefined ? server.url : 'http://localhost'
    const { body } = await world().call('GET', '/v1/prompts')
    return fetch(`${url}/v1/prompts/${body.data[0].id}/render`, {
      method: 'POST',
      body: '{"variables":{}}',
      headers: { 'x-service-api-key': key, 'content-type': 'application/json', ...headers },
      ...(unix !== undefined && { unix }),
    })
  }

  test('takes a system key there', async () => {
    const answer = await send(path, system)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ success: true, data: { prompt: 'x' } })
  })

  test(`and by its port answers it with ${overTcp}`, async () => {
    expect((await send(undefined, system)).status).toBe(overTcp)
  })

  test.each(['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'])('not through a proxy there: %s', async (name) => {
    expect((await send(path, system, { [name]: '127.0.0.1' })).status).toBe(401)
  })

  test('takes any other key there as by its port, and believes nobody who says where they come from', async () => {
    expect((await send(path, world().made.admin_key)).status).toBe(200)
    const headers = { 'x-service-api-key': world().made.admin_key, 'x-forwarded-for': '203.0.113.9' }
    const answer = await fetch('http://localhost/v1/labels/none', { unix: path, headers })
    expect(answer.status).toBe(404)
    await world().gatehouse.refusals.flush()
    const rows = await auditTrail(world().gatehouse.read)
    expect(rows.find(({ uri }) => uri === '/v1/labels/none')).toMatchObject({ client_ip: null })
  })

  test('lets nobody but its own user connect', () => {
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })
})

test('beside TLS the socket speaks plainly', async () => {
  const file = (name: string) => JSON.stringify(join(import.meta.dir, 'tls', name))
  const tls = `tls_cert_file = ${file('certificate.pem')}\ntls_key_file = ${file('key.pem')}\n`
  const it = await openTestGatehouse('sqlite', config(tls))
  const server = await startServer(it.gatehouse)
  const headers = { 'x-service-api-key': it.made.admin_key }
  expect((await fetch('http://localhost/v1/prompts', { unix: path, headers })).status).toBe(200)
  await server.stop()
  await it.close()
})

describe('the path of the socket', () => {
  /** What comes of a start there, and whether the socket answers. */
  async function startAt(unixSocket: string): Promise<{ code: string; exitCode: number } | 'answers'> {
    const it = await openTestGatehouse('sqlite', `[server]\nport = 0\nunix_socket = ${JSON.stringify(unixSocket)}\n`)
    try {
      const server = await startServer(it.gatehouse)
      expect((await fetch('http://localhost/livez', { unix: unixSocket })).status).toBe(200)
      await server.stop()
      expect(existsSync(unixSocket), 'nothing is left').toBe(false)
      return 'answers'
    } catch (error) {
      const { code, exitCode } = error as { code: string; exitCode: number }
      return { code, exitCode }
    } finally {
      await it.close()
    }
  }
  const at = (name: string) => join(folder, name)

  test('may hold a socket that a killed server left', async () => {
    const killed = Bun.spawn(
      [
        process.execPath,
        '-e',
        `Bun.serve({ unix: ${JSON.stringify(at('stale'))}, fetch: () => new Response() }); console.log('up')`,
      ],
      { stdout: 'pipe' },
    )
    await killed.stdout.getReader().read()
    killed.kill('SIGKILL')
    await killed.exited
    expect(existsSync(at('stale'))).toBe(true)
    expect(await startAt(at('stale'))).toBe('answers')
  })

  test('is not taken from a server that answers there', async () => {
    const other = Bun.serve({ unix: at('taken'), fetch: () => new Response('other') })
    expect(await startAt(at('taken'))).toEqual({ code: 'ADDRESS_IN_USE', exitCode: 69 })
    expect(await (await fetch('http://localhost/', { unix: at('taken') })).text()).toBe('other')
    await other.stop()
  })

  test('is not cleared of what is no socket', async () => {
    writeFileSync(at('file'), 'precious')
    symlinkSync(at('nowhere'), at('link'))
    for (const name of ['file', 'link'])
      expect(await startAt(at(name)), name).toEqual({ code: 'ADDRESS_IN_USE', exitCode: 69 })
    expect(readFileSync(at('file'), 'utf8')).toBe('precious')
  })

  test('must be one where a socket can be made', async () => {
    const unusable = { code: 'SOCKET_UNUSABLE', exitCode: 78 }
    expect(await startAt(at('no/such/folder'))).toEqual(unusable)
    expect(await startAt(at('x'.repeat(200)))).toEqual(unusable)
  })

  test('is left again when the port is taken', async () => {
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const it = await openTestGatehouse(
      'sqlite',
      `[server]\nport = ${other.port}\nunix_socket = ${JSON.stringify(at('left'))}\n`,
    )
    await expect(startServer(it.gatehouse)).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' })
    expect(existsSync(at('left'))).toBe(false)
    await it.close()
    await other.stop()
  })
})
