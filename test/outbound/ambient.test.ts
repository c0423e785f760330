import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '../support/certificates.ts'
import { startServer, startTcp, type TestServer } from './support.ts'

// What the surroundings of a process say about proxies and trust (P15, SM-15), from source and compiled: runtimes read
// some of it before the first line of ours runs, so that scrubbing the environment comes too late.

const PROGRAM = join(import.meta.dir, 'ambient-program.ts')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-ambient-'))
const compiled = join(folder, 'program')
const authority = createAuthority()
let vault: TestServer
let proxy: TestServer
let proxied = 0

beforeAll(async () => {
  vault = await startServer((_request, response) => void response.end('ok'), authority.issue(['vault.example']))
  proxy = await startTcp((socket) => {
    proxied++
    socket.destroy()
  })
  const build = ['build', '--compile', '--minify', '--bytecode', `--outfile=${compiled}`, PROGRAM]
  const { success, stderr } = Bun.spawnSync([process.execPath, ...build], { cwd: folder })
  if (!success) throw new Error(`${stderr}`)
})
afterAll(() => {
  for (const each of [vault, proxy]) each.stop()
  authority.remove()
  rmSync(folder, { recursive: true })
})

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']

describe.each([
  ['from source', () => [process.execPath, PROGRAM]],
  ['compiled', () => [compiled]],
])('a process of its own, %s', (_name, program) => {
  async function run(env: Record<string, string>, ca?: string): Promise<string> {
    const child = Bun.spawn([...program(), `${vault.port}`, ...(ca === undefined ? [] : [ca])], {
      env,
      stderr: 'ignore',
    })
    return await new Response(child.stdout).text()
  }

  test('trusts the authority it was given, and is led through no proxy', async () => {
    const env = Object.fromEntries(PROXIES.map((name) => [name, `http://127.0.0.1:${proxy.port}`]))
    expect(await run({ ...env, NODE_USE_ENV_PROXY: '1' }, authority.ca)).toBe('200')
    expect(proxied).toBe(0)
  })

  test.each([
    ['NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: authority.caFile }],
    ['SSL_CERT_FILE', { SSL_CERT_FILE: authority.caFile, NODE_USE_SYSTEM_CA: '1' }],
    ['NODE_TLS_REJECT_UNAUTHORIZED', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
  ])('trusts nobody because of %s', async (_variable, env: Record<string, string>) => {
    expect(await run(env)).toBe('tls')
  })
})
