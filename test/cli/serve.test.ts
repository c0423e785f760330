import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FAILURE_LINE, gatehouse } from './support.ts'

const main = join(import.meta.dir, '../../src/main.ts')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-serve-'))
const config = join(folder, 'config.toml')
beforeAll(async () => {
  await gatehouse(['init', '--dir', folder])
  await gatehouse([
    'bootstrap',
    '--org',
    'Acme',
    '--email',
    'a@a.example',
    '--config',
    config,
    '--output',
    join(folder, 'key.json'),
  ])
})
afterAll(() => rmSync(folder, { recursive: true }))

const start = (args: string[], env: Record<string, string> = {}) =>
  Bun.spawn([process.execPath, main, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })

/** A server that listens, and the lines that it has logged so far. */
async function serve(env: Record<string, string> = {}) {
  const child = start(['serve', '--config', config], { GATEHOUSE_SERVER_PORT: '0', ...env })
  const events: Record<string, unknown>[] = []
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  const until = async (event: string) => {
    while (!events.some((each) => each['event'] === event)) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`no ${event}: ${await child.stderr.text()}`)
      for (const line of value.split('\n').filter(Boolean)) events.push(JSON.parse(line))
    }
    return events.find((each) => each['event'] === event)!
  }
  const { url } = await until('listening')
  return { child, url: String(url), until }
}

/** A request that stays in flight: its body never ends. With a key, for without one it is refused before its body. */
async function hang(url: string) {
  const { hostname, port, host } = new URL(url)
  const { admin_key: key } = await Bun.file(join(folder, 'key.json')).json()
  const socket = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } })
  const head = [
    'POST /v1/prompts HTTP/1.1',
    `Host: ${host}`,
    `x-service-api-key: ${key}`,
    'Content-Type: application/json',
    'Content-Length: 100',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n{`)
  await Bun.sleep(50)
  return socket
}

describe('serve', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    'answers at the logged url, and ends with 0 at %s, leaving no socket',
    async (signal) => {
      const { child, url } = await serve()
      expect((await fetch(`${url}/v1/prompts`)).status).toBe(401)
      expect(existsSync(join(folder, 'data/admin.sock'))).toBe(true)
      child.kill(signal)
      expect(await child.exited).toBe(0)
      expect(existsSync(join(folder, 'data/admin.sock'))).toBe(false)
    },
  )

  test('keeps a second server out of its folder with 69, and goes on', async () => {
    const { child, url } = await serve()
    const second = start(['serve', '--config', config], { GATEHOUSE_SERVER_PORT: '0' })
    expect(await second.exited).toBe(69)
    expect(await second.stderr.text()).toMatch(FAILURE_LINE)
    expect((await fetch(`${url}/v1/prompts`)).status).toBe(401)
    child.kill()
    await child.exited
  })

  test('a request that does not end holds it for drain_seconds, then it gives up with 75', async () => {
    const { child, url } = await serve({ GATEHOUSE_SERVER_DRAIN_SECONDS: '1' })
    const socket = await hang(url)
    const since = performance.now()
    child.kill()
    expect(await child.exited).toBe(75)
    expect(performance.now() - since).toBeGreaterThan(900)
    socket.end()
  })

  test('a second signal ends it at once with 75', async () => {
    const { child, url, until } = await serve()
    const socket = await hang(url)
    const since = performance.now()
    child.kill()
    await until('stopping')
    child.kill()
    expect(await child.exited).toBe(75)
    expect(performance.now() - since).toBeLessThan(5000)
    socket.end()
  })

  test('that cannot listen lets go of the folder again', async () => {
    const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const ran = await gatehouse(['serve', '--config', config], { env: { GATEHOUSE_SERVER_PORT: String(other.port) } })
    expect(ran).toMatchObject({ exitCode: 69, err: expect.stringMatching(FAILURE_LINE) })
    expect((await gatehouse(['keys', 'list', '--config', config])).exitCode).toBe(0)
    await other.stop()
  })
})

test('try renders its sample over HTTP and leaves nothing behind', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-t-'))
  const child = start(['try', '--once', '--json'], { TMPDIR: temporary })
  const [out, exitCode] = await Promise.all([child.stdout.text(), child.exited])
  expect(exitCode).toBe(0)
  expect(JSON.parse(out).answer.data.messages).toEqual([
    { role: 'system', content: 'You work for Example Ltd. Answer in one friendly sentence.' },
    { role: 'user', content: 'I am Ada. Order A-17 is on its way. When does it come?' },
  ])
  expect(readdirSync(temporary)).toEqual([])
  rmSync(temporary, { recursive: true })
})

test('openapi prints the whole description through a pipe', async () => {
  const child = start(['openapi'])
  const document = JSON.parse(await child.stdout.text())
  expect(document.openapi).toStartWith('3.')
  expect(await child.exited).toBe(0)
})
