import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Listening, startServer } from '../../src/http/server.ts'
import { useWorld } from '../support/scenario.ts'

// What no client library sends, over a plain socket to a server that really listens (HT-7, HT-8).

const world = useWorld('sqlite', undefined, '[server]\nport = 0\nhosts = ["localhost", "gate.example:8787"]\n')
let server: Listening
beforeAll(async () => {
  server = await startServer(world().gatehouse)
})
afterAll(() => server.stop())

const HOST = 'Host: localhost\r\n'
const get = (headers: string, path = '/livez') => `GET ${path} HTTP/1.1\r\n${headers}\r\n`
const post = (headers: string, body: string) =>
  `POST /v1/prompts HTTP/1.1\r\n${HOST}x-service-api-key: ${world().made.admin_key}\r\ncontent-type: application/json\r\n${headers}\r\n${body}`

/** Refused by us, in the envelope. */
const REFUSED: [name: string, status: number, text: () => string][] = [
  ['two Host headers', 400, () => get(`${HOST}Host: other\r\n`)],
  ['the same Host twice', 400, () => get(HOST + HOST)],
  ['HTTP/1.0 without Host', 400, () => 'GET /livez HTTP/1.0\r\n\r\n'],
  ['an empty Host', 400, () => get('Host:\r\n')],
  ['a Host that is not ours', 400, () => get('Host: evil.example\r\n')],
  ['our Host with another port', 400, () => get('Host: gate.example:1\r\n')],
  ['a Host with a path', 400, () => get('Host: localhost/x\r\n')],
  ['a Host with a user', 400, () => get('Host: localhost@evil.example\r\n')],
  ['a Host with a space', 400, () => get('Host: local host\r\n')],
  ['TRACE', 405, () => `TRACE /livez HTTP/1.1\r\n${HOST}\r\n`],
  ['CONNECT to a path', 405, () => `CONNECT /livez HTTP/1.1\r\n${HOST}\r\n`],
  ['CONNECT to a host', 405, () => `CONNECT localhost:443 HTTP/1.1\r\n${HOST}\r\n`],
  ['one key header twice', 400, () => get(`${HOST}x-service-api-key: a\r\nx-service-api-key: b\r\n`, '/v1/prompts')],
  ['a body above the limit, announced', 413, () => post('Content-Length: 2097153\r\n', '{')],
  ['a body far above it', 413, () => post('Content-Length: 9000000\r\n', '{')],
  [
    'a body above the limit, in chunks',
    413,
    () => post('Transfer-Encoding: chunked\r\n', chunked(' '.repeat(2_100_000))),
  ],
]

/** Refused before us: no bytes of it may reach a handler. */
const BROKEN: [name: string, text: () => string][] = [
  ['HTTP/1.1 without Host', () => get('')],
  ['length and chunks', () => post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', chunked('{}'))],
  ['chunks and length', () => post('Transfer-Encoding: chunked\r\nContent-Length: 3\r\n', chunked('{}'))],
  ['two lengths', () => post('Content-Length: 2\r\nContent-Length: 3\r\n', '{} ')],
  ['a list of lengths', () => post('Content-Length: 2, 2\r\n', '{}')],
  ['a signed length', () => post('Content-Length: +2\r\n', '{}')],
  ['a negative length', () => post('Content-Length: -2\r\n', '{}')],
  ['a length in hex', () => post('Content-Length: 0x2\r\n', '{}')],
  ['an unknown encoding', () => post('Transfer-Encoding: xchunked\r\n', chunked('{}'))],
  ['two encodings', () => post('Transfer-Encoding: gzip, chunked\r\n', chunked('{}'))],
  ['chunks and identity', () => post('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', chunked('{}'))],
  ['a chunk size that is no number', () => post('Transfer-Encoding: chunked\r\n', 'zz\r\n{}\r\n0\r\n\r\n')],
  ['a negative chunk', () => post('Transfer-Encoding: chunked\r\n', '-2\r\n{}\r\n0\r\n\r\n')],
  ['a folded header', () => get(`${HOST}x-a: b\r\n c\r\n`)],
  ['a space before the colon', () => get(`${HOST}x-a : b\r\n`)],
  ['bare line feeds', () => 'GET /livez HTTP/1.1\nHost: localhost\n\n'],
  ['a bare carriage return', () => get(`${HOST}x-a: b\rc\r\n`)],
  ['NUL in a header', () => get(`${HOST}x-a: b\0c\r\n`)],
  ['NUL in the path', () => get(HOST, '/li\0vez')],
  ['a path without a slash', () => get(HOST, 'livez')],
  ['OPTIONS *', () => `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`],
  ['HTTP/2 without TLS', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/3.0', () => `GET /livez HTTP/3.0\r\n${HOST}\r\n`],
  ['HTTP/0.9', () => 'GET /livez\r\n\r\n'],
  ['TLS to a plain port', () => '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n'],
  ['a header of 100 kB', () => get(`${HOST}x-a: ${'b'.repeat(100_000)}\r\n`)],
  ['500 headers', () => get(HOST + Array.from({ length: 500 }, (_, i) => `x-${i}: a\r\n`).join(''))],
  ['a path of 20 kB', () => get(HOST, `/${'a'.repeat(20_000)}`)],
]

const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`

describe('a server that listens', () => {
  test.each(REFUSED)('refuses %s with %i', async (_, status, text) => {
    const { head, body } = await send(text())
    expect(head.split('\r\n')[0]).toContain(` ${status} `)
    expect(head).toMatch(/x-request-id: [a-z]{20}/i)
    expect(head).toMatch(/x-content-type-options: nosniff/i)
    expect(JSON.parse(body)).toMatchObject({ success: false, status_code: status })
  })

  test.each(BROKEN)('refuses %s', async (_, text) => {
    const { head } = await send(text())
    expect(head.split('\r\n')[0]).toMatch(/^HTTP\/1\.1 (?:400|431|505) /)
  })

  test('refuses a method that nobody knows without serving it', async () => {
    expect((await send(`FOO /livez HTTP/1.1\r\n${HOST}\r\n`)).head).not.toContain(' 200 ')
    expect((await send(`get /livez HTTP/1.1\r\n${HOST}\r\n`)).head).not.toContain(' 200 ')
  })

  test('answers under each of its names, and HTTP/1.0', async () => {
    for (const text of [get(HOST), get('Host: gate.example:8787\r\n'), `GET /livez HTTP/1.0\r\n${HOST}\r\n`])
      expect((await send(text)).head).toContain(' 200 ')
  })

  test('takes its paths from the request line alone, whatever host that names', async () => {
    expect((await send(get(HOST, 'http://evil.example/livez'))).body).toContain('alive')
  })

  test('reads a body in chunks', async () => {
    const body = JSON.stringify({ name: 'chunks', string: 'x', parameters: {} })
    const { head } = await send(post('Transfer-Encoding: chunked\r\n', [...body].map(chunkOf).join('') + chunkOf('')))
    expect(head).toContain(' 200 ')
  })

  test('does not upgrade', async () => {
    const { head } = await send(
      get(
        `${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n`,
      ),
    )
    expect(head).toContain(' 200 ')
  })

  test('says nothing of what it is built with', async () => {
    const { head } = await send(get(HOST))
    expect(head).not.toMatch(/^(?:server|x-powered-by|via):/im)
  })

  test('takes none of it for a failure of its own, and is still there', async () => {
    expect(world().log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    expect((await fetch(`${server.url}/livez`, { headers: { host: 'localhost' } })).status).toBe(200)
  })
})

const chunkOf = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`

/** The first answer to some bytes; empty where the connection is closed without one. */
function send(text: string): Promise<{ head: string; body: string }> {
  return new Promise((resolve) => {
    let got = ''
    const socket = connect(server.port, '127.0.0.1')
    const finish = () => {
      socket.destroy()
      const [head = '', body = ''] = got.split(/\r\n\r\n(.*)/s)
      resolve({ head, body })
    }
    socket.setEncoding('latin1')
    socket.on('data', (data) => {
      got += data
      if (isWhole(got)) finish()
    })
    socket.on('close', finish)
    socket.on('error', finish)
    socket.setTimeout(2000, finish)
    socket.write(text, 'latin1')
  })
}

function isWhole(text: string): boolean {
  const length = /^content-length: (\d+)/im.exec(text)?.[1]
  return length !== undefined && text.length >= text.indexOf('\r\n\r\n') + 4 + Number(length)
}
