import { afterAll, describe, expect, test } from 'bun:test'
import type { IncomingMessage } from 'node:http'
import type { Outbound } from '../../src/outbound/outbound.ts'
import type { Transport } from '../../src/outbound/transport.ts'
import { failureOf, get, outboundWith, startCanned, startServer, startTcp, type TestServer } from './support.ts'

const servers: TestServer[] = []
afterAll(() => servers.forEach((server) => void server.stop()))
async function kept(starting: Promise<TestServer>): Promise<TestServer> {
  const server = await starting
  servers.push(server)
  return server
}

/** All of this machine's ports, in clear: what an answer may do to us does not depend on TLS. */
const open = (port: number, options = {}): Transport => outboundIn(port, options).open()
const outboundIn = (port: number, options = {}): Outbound =>
  outboundWith({ allow_http: [`127.0.0.1:${port}`] }, options)

const text = (body: string, head = '') => `HTTP/1.1 200 OK\r\n${head}content-length: ${body.length}\r\n\r\n${body}`

describe('an answer', () => {
  test('comes back whole, whatever its status', async () => {
    const asked: IncomingMessage[] = []
    const server = await kept(
      startServer(async (request, response) => {
        asked.push(request)
        response.writeHead(403, { 'x-one': ['a', 'b'], 'set-cookie': ['c', 'd'] })
        response.end(await Array.fromAsync(request).then((parts) => Buffer.concat(parts)))
      }),
    )
    const answer = await get(open(server.port), `http://127.0.0.1:${server.port}/v1/a%2Fb?c=d%20e`, {
      method: 'POST',
      headers: { 'X-Vault-Token': 't', 'accept-encoding': 'gzip', host: 'elsewhere', connection: 'close' },
      body: 'grüße',
    })
    expect(answer).toMatchObject({ status: 403, headers: { 'x-one': 'a, b', 'set-cookie': 'c, d' } })
    expect(answer.body.toString()).toBe('grüße')
    expect(asked[0]).toMatchObject({ method: 'POST', url: '/v1/a%2Fb?c=d%20e' })
    expect(asked[0]?.headers).toEqual({
      host: `127.0.0.1:${server.port}`,
      'x-vault-token': 't',
      'content-length': '7',
      connection: 'keep-alive',
    })
  })

  test.each([301, 302, 303, 307, 308])(
    'that redirects (%i) is handed back: no token goes to another host',
    async (status) => {
      const visits: string[] = []
      const attacker = await kept(startServer((request, response) => void response.end(void visits.push(request.url!))))
      const server = await kept(
        startServer((_request, response) => {
          response.writeHead(status, { location: `http://127.0.0.1:${attacker.port}/stolen` }).end()
        }),
      )
      const outbound = outboundWith({ allow_http: [`127.0.0.1:${server.port}`, `127.0.0.1:${attacker.port}`] })
      const answer = await get(outbound.open(), `http://127.0.0.1:${server.port}/`, {
        headers: { 'x-vault-token': 't' },
      })
      expect(answer.status).toBe(status)
      expect(answer.headers['location']).toContain('/stolen')
      expect(visits).toEqual([])
    },
  )

  test.each([
    ['cut off', 'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"a":1', 'before it was whole'],
    [
      'cut off between chunks',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n',
      'before it was whole',
    ],
    ['that ends with its connection, so that nobody knows', 'HTTP/1.1 200 OK\r\n\r\n{"a":1}', 'before it was whole'],
    ['of two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!', 'not HTTP'],
    [
      'of a length and in chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
      'not HTTP',
    ],
    ['with a broken chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhi\r\n', 'not HTTP'],
    ['of another protocol', 'SSH-2.0-OpenSSH_9.9\r\n', 'not HTTP'],
    ['with a head of 100 KB', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}\r\n\r\n`, 'not HTTP'],
    [
      'that changes the protocol',
      'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'another protocol',
    ],
    ['that is packed', text('packed', 'content-encoding: gzip\r\n'), 'encoding'],
    [
      'that is packed for the way',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
      'encoding',
    ],
    ['in no chunks and of no length', 'HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n{"a":1}', 'encoding'],
    [
      'in single bytes, each of which takes memory',
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(5000)}0\r\n\r\n`,
      'small pieces',
    ],
    [
      'after a flood of interim ones, which would keep the one thread busy',
      'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(9) + text('hi'),
      'interim',
    ],
    ['that says it is too long', 'HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n', 'more than 1 MiB'],
  ])('%s is none', async (_name, answer, words) => {
    const server = await kept(startCanned(answer, true))
    const failure = await failureOf(get(open(server.port), `http://127.0.0.1:${server.port}/`))
    expect(failure).toMatchObject({ step: 'read', failure: 'bad_response' })
    expect(failure.message).toContain(words)
  })

  test('after an interim one is taken', async () => {
    const server = await kept(startCanned(`HTTP/1.1 100 Continue\r\n\r\n${text('hi')}`))
    const answer = await get(open(server.port), `http://127.0.0.1:${server.port}/`)
    expect([answer.status, answer.body.toString()]).toEqual([200, 'hi'])
  })

  test('of 1 MiB is taken, and one byte more is not', async () => {
    const server = await kept(
      startServer((request, response) => {
        response.write('x'.repeat(1_048_575))
        response.end(request.url === '/more' ? 'xx' : 'x')
      }),
    )
    const transport = open(server.port)
    const whole = await get(transport, `http://127.0.0.1:${server.port}/`)
    expect(whole.body.length).toBe(1_048_576)
    const failure = await failureOf(get(transport, `http://127.0.0.1:${server.port}/more`))
    expect(failure).toMatchObject({ failure: 'bad_response' })
  })

  test('of 100 MB is cut at 1 MiB: neither memory nor the network carries the rest', async () => {
    let written = 0
    const part = Buffer.alloc(65_536, 120)
    const server = await kept(
      startServer((_request, response) => {
        const more = () => {
          while (written < 100e6 && !response.destroyed) {
            written += part.length
            if (!response.write(part)) return void response.once('drain', more)
          }
          response.end()
        }
        more()
      }),
    )
    const before = process.memoryUsage.rss()
    const failure = await failureOf(get(open(server.port), `http://127.0.0.1:${server.port}/`))
    expect(failure).toMatchObject({ step: 'read', failure: 'bad_response' })
    await Bun.sleep(50)
    expect(written).toBeLessThan(20e6)
    expect(process.memoryUsage.rss() - before).toBeLessThan(64e6)
  })
})

describe('the deadline', () => {
  test.each([
    ['before anything is sent', '', 0],
    ['a server that never answers', '', 80],
    ['a head that drips', 'HTTP/1.1 200 OK\r\nx: y\r\n', 80],
    ['a body that drips', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n', 80],
    ['early hints without end', 'HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n', 80],
  ])('ends %s', async (_name, start, ms) => {
    const server = await kept(
      startTcp((socket) => {
        socket.once('data', () => {
          socket.write(start)
          const drip = setInterval(() => socket.write(start.includes('103') ? start : start === '' ? '' : 'x'), 10)
          socket.on('close', () => clearInterval(drip))
        })
      }),
    )
    const signal = ms === 0 ? AbortSignal.abort() : AbortSignal.timeout(ms)
    const since = performance.now()
    const failure = await failureOf(get(open(server.port), `http://127.0.0.1:${server.port}/`, { signal }))
    expect(failure.failure).toBe('timeout')
    if (ms > 0) expect(failure.step).toBe('read')
    expect(performance.now() - since).toBeLessThan(ms + 400)
  })

  test('ends a look-up that never does', async () => {
    const transport = outboundWith({}, { lookup: () => new Promise(() => {}) }).open()
    const failure = await failureOf(get(transport, 'https://slow.example/', { signal: AbortSignal.timeout(50) }))
    expect(failure).toMatchObject({ step: 'address', failure: 'timeout' })
  })
})

describe('a connection', () => {
  test('that is refused is a manager that cannot be reached', async () => {
    const gone = await startTcp(() => {})
    gone.stop()
    const failure = await failureOf(get(open(gone.port), `http://127.0.0.1:${gone.port}/`))
    expect(failure).toMatchObject({ step: 'connect', failure: 'unreachable' })
    expect(failure.message).toContain('refuses connections')
  })

  test('that is closed without an answer is a manager that cannot be reached', async () => {
    const server = await kept(startTcp((socket) => void socket.once('data', () => void socket.destroy())))
    const failure = await failureOf(get(open(server.port), `http://127.0.0.1:${server.port}/`))
    expect(failure).toMatchObject({ step: 'read', failure: 'unreachable' })
    expect(failure.message).toContain('closed the connection')
  })

  test('is kept for the next request of its transport, and shared with no other', async () => {
    const ports: number[] = []
    const server = await kept(
      startServer((request, response) => void response.end(`${ports.push(request.socket.remotePort!)}`)),
    )
    const outbound = outboundIn(server.port)
    const [one, other] = [outbound.open(), outbound.open()]
    const url = `http://127.0.0.1:${server.port}/`
    for (const transport of [one, one, other, one, other]) await get(transport, url)
    expect(new Set(ports).size).toBe(2)
    expect([ports[0], ports[1], ports[3]]).toEqual([ports[0], ports[0], ports[0]])
    expect([ports[2], ports[4]]).toEqual([ports[2], ports[2]])
  })

  test('that was kept is no way around the rules', async () => {
    const urls: (string | undefined)[] = []
    const server = await kept(startServer((request, response) => void response.end(void urls.push(request.url))))
    const transport = open(server.port)
    const host = `127.0.0.1:${server.port}`
    await get(transport, `http://${host}/`)
    for (const url of [`http://a@${host}/`, `http://${host}/#a`, `http://${host}/a b`, `http:\\\\${host}`, '', 'x']) {
      expect(await failureOf(get(transport, url)), url).toMatchObject({ failure: 'address_refused', step: 'address' })
    }
    expect(urls).toEqual(['/'])
  })

  test('that was kept and holds more than was asked for is not used again', async () => {
    const server = await kept(startCanned(`${text('first')}${text('poison')}`))
    const transport = open(server.port)
    for (let i = 0; i < 3; i++) {
      expect(`${(await get(transport, `http://127.0.0.1:${server.port}/`)).body}`).toBe('first')
      await Bun.sleep(5)
    }
  })

  test('that the server closed meanwhile is made anew', async () => {
    const ports = new Set<number>()
    const server = await kept(
      startServer((request, response) => {
        ports.add(request.socket.remotePort!)
        response.end('ok')
        setTimeout(() => request.socket.destroy(), 10)
      }),
    )
    const transport = open(server.port)
    for (let i = 0; i < 3; i++) {
      expect((await get(transport, `http://127.0.0.1:${server.port}/`)).status).toBe(200)
      await Bun.sleep(30)
    }
    expect(ports.size).toBe(3)
  })

  test('of a closed transport fails what is under way and takes nothing more', async () => {
    const server = await kept(startTcp(() => {}))
    const transport = open(server.port)
    const url = `http://127.0.0.1:${server.port}/`
    const underWay = [get(transport, url), get(transport, url)].map(failureOf)
    await Bun.sleep(30)
    transport.close()
    for (const failure of [...(await Promise.all(underWay)), await failureOf(get(transport, url))]) {
      expect(failure).toMatchObject({ failure: 'unreachable', message: expect.stringContaining('was changed') })
    }
  })

  test.each([
    ['a line break in a header', { headers: { 'x-vault-token': 'a\r\nx-evil: 1' } }],
    ['a character beyond Latin-1 in a header', { headers: { 'x-vault-token': '€' } }],
    ['a blank in the method', { method: 'GET /' }],
  ])('is not made for %s, and the value is not told', async (_name, request) => {
    const failure = await failureOf(get(open(1), 'http://127.0.0.1:1/', request))
    expect(failure).toMatchObject({ failure: 'address_refused' })
    expect(failure.message).not.toMatch(/evil|€|GET/)
  })
})

describe('requests at once', () => {
  async function startSlow() {
    let atOnce = 0
    let most = 0
    const waiting: (() => void)[] = []
    const server = await kept(
      startServer((_request, response) => {
        most = Math.max(most, ++atOnce)
        waiting.push(() => {
          atOnce--
          response.end('ok')
        })
      }),
    )
    const answerAll = () => waiting.splice(0).forEach((answer) => void answer())
    return { ...server, most: () => most, answerAll }
  }

  test('to one host are 16 over all transports; the others wait their turn and are answered', async () => {
    const server = await startSlow()
    const outbound = outboundIn(server.port)
    const sending = Array.from({ length: 40 }, () => get(outbound.open(), `http://127.0.0.1:${server.port}/`))
    const timer = setInterval(server.answerAll, 20)
    const answers = await Promise.all(sending)
    clearInterval(timer)
    expect(answers.map(({ status }) => status)).toEqual(Array(40).fill(200))
    expect(server.most()).toBe(16)
  })

  test('beyond that wait 2 s, or until their deadline; another host is not held up', async () => {
    const [server, other] = [await startSlow(), await startSlow()]
    const outbound = outboundWith(
      { allow_http: [`127.0.0.1:${server.port}`, `127.0.0.1:${other.port}`] },
      { waitMs: 100 },
    )
    const url = `http://127.0.0.1:${server.port}/`
    const held = Array.from({ length: 16 }, () => get(outbound.open(), url))
    const late = failureOf(get(outbound.open(), url))
    const over = failureOf(get(outbound.open(), url, { signal: AbortSignal.timeout(30) }))
    const elsewhere = get(outbound.open(), `http://127.0.0.1:${other.port}/`)
    expect(await over).toMatchObject({ failure: 'timeout' })
    expect(await late).toMatchObject({ failure: 'unreachable', message: expect.stringContaining('too many calls') })
    other.answerAll()
    expect((await elsewhere).status).toBe(200)
    server.answerAll()
    await Promise.all(held)
  })

  test('that failed leave their place to others', async () => {
    const server = await startSlow()
    const outbound = outboundIn(server.port, { waitMs: 1_000 })
    const url = `http://127.0.0.1:${server.port}/`
    for (let round = 0; round < 3; round++) {
      const signal = AbortSignal.timeout(40)
      await Promise.all(Array.from({ length: 16 }, () => failureOf(get(outbound.open(), url, { signal }))))
    }
    const answered = get(outbound.open(), url)
    await Bun.sleep(30)
    server.answerAll()
    expect((await answered).status).toBe(200)
  })

  test('are 64 to all hosts together', async () => {
    const slow = await Promise.all(Array.from({ length: 5 }, startSlow))
    const outbound = outboundWith({ allow_http: slow.map(({ port }) => `127.0.0.1:${port}`) }, { waitMs: 150 })
    const sending = slow.flatMap(({ port }) =>
      Array.from({ length: 14 }, () => get(outbound.open(), `http://127.0.0.1:${port}/`)),
    )
    const settled = Promise.allSettled(sending)
    await Bun.sleep(300)
    for (const server of slow) server.answerAll()
    const answered = (await settled).filter(({ status }) => status === 'fulfilled').length
    expect(answered).toBe(64)
  })
})
