import { afterAll, describe, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import type { ConnectStep } from '../../src/outbound/dial.ts'
import { handing } from '../../src/outbound/dial.ts'
import { goesThroughProxy } from '../../src/outbound/route.ts'
import { parseRules, type Rules } from '../../src/outbound/rules.ts'
import { createAuthority } from '../support/certificates.ts'
import { startTlsFront } from '../support/tls-front.ts'
import {
  failureOf,
  get,
  outboundWith,
  settings,
  startCanned,
  startServer,
  startTcp,
  type TestServer,
} from './support.ts'

const authority = createAuthority()
const stranger = createAuthority('Another Authority')
const servers: { stop(): void }[] = []
afterAll(() => {
  for (const server of servers) server.stop()
  authority.remove()
  stranger.remove()
})
async function kept<T extends { stop(): void }>(starting: Promise<T>): Promise<T> {
  const server = await starting
  servers.push(server)
  return server
}

const VAULT = 'vault.example'
const vaultCertificate = authority.issue([VAULT, '127.0.0.1'])

/** A server that tells what it was asked under which name. */
async function startVault(certificate = vaultCertificate) {
  const seen: (string | undefined | false)[] = []
  const server = await kept(
    startServer((request, response) => {
      seen.push(request.headers.host, (request.socket as { servername?: string | false }).servername)
      response.end(`asked for ${request.url}`)
    }, certificate),
  )
  return { ...server, seen }
}

/** Sends what is for vault.example:443 to a port of this machine. */
const to = (port: number) => ({ connect: { [`${VAULT}:443`]: `127.0.0.1:${port}` } })

describe('connect', () => {
  test('changes where a connection goes, and neither Host nor TLS name', async () => {
    const vault = await startVault()
    const answer = await get(outboundWith(to(vault.port)).open({ ca: authority.ca }), `https://${VAULT}/v1/x?y=z`)
    expect(answer.body.toString()).toBe('asked for /v1/x?y=z')
    expect(vault.seen).toEqual([VAULT, VAULT])
  })

  test('takes a name as its target, whatever that stands for', async () => {
    const vault = await startVault()
    const given = { connect: { [`${VAULT}:443`]: `private.int:${vault.port}` } }
    const outbound = outboundWith(given, { lookup: async () => ['127.0.0.1'] })
    expect((await get(outbound.open({ ca: authority.ca }), `https://${VAULT}/`)).status).toBe(200)
  })

  test("redirects a machine's own identity, for a granted one alone", async () => {
    const metadata = await kept(startServer((request, response) => void response.end(request.headers.host)))
    const outbound = outboundWith({ connect: { '169.254.169.254:80': `127.0.0.1:${metadata.port}` } })
    const url = 'http://169.254.169.254/latest/api/token'
    const granted = await get(outbound.open(), url, { reach: 'machine_identity', method: 'PUT' })
    expect(granted.body.toString()).toBe('169.254.169.254')
    expect(await failureOf(get(outbound.open(), url))).toMatchObject({ failure: 'address_refused', step: 'address' })
  })

  test.each(['127.0.0.1', 'myself.int'])('to Gatehouse itself (%s) is refused', async (host) => {
    const own = await startVault()
    const outbound = outboundWith(
      { connect: { [`${VAULT}:443`]: `${host}:${own.port}` } },
      { ownListeners: () => [{ host: '0.0.0.0', port: own.port }], lookup: async () => ['127.0.0.1'] },
    )
    const failure = await failureOf(get(outbound.open({ ca: authority.ca }), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'address_refused' })
    expect(own.seen).toEqual([])
  })
})

describe('the name of a host', () => {
  const outboundTo = (port: number, answers: readonly (readonly string[])[], allow: string[] = []) => {
    const asked: string[] = []
    const lookup = async (host: string) => answers[Math.min(asked.push(host), answers.length) - 1] ?? []
    return { outbound: outboundWith({ allow: [`${VAULT}:${port}`, ...allow] }, { lookup }), asked }
  }

  test('is looked up once a connection: what was checked is what is connected to', async () => {
    const vault = await startVault()
    // An allowed name may be this machine; a second look would lead to an address where nothing answers.
    const { outbound, asked } = outboundTo(vault.port, [['127.0.0.1'], ['127.0.0.9', '169.254.169.254']])
    const answer = await get(outbound.open({ ca: authority.ca }), `https://${VAULT}:${vault.port}/`)
    expect(answer.status).toBe(200)
    expect(asked).toEqual([VAULT])
  })

  test('that turns to this machine after its first answer is refused at the next connection', async () => {
    const victim = await startVault()
    const answers = [['93.184.216.34'], ['127.0.0.1']]
    const { outbound } = outboundTo(1, answers)
    const url = `https://rebind.example:8200/`
    expect(await outbound.refusalOf(url, 'listed')).toBeUndefined()
    const failure = await failureOf(get(outbound.open(), url))
    expect(failure).toMatchObject({ failure: 'address_refused', step: 'address' })
    expect(victim.seen).toEqual([])
  })

  test.each([
    ['public and loopback', ['93.184.216.34', '127.0.0.1']],
    ['loopback and public', ['::1', '93.184.216.34']],
    ['public and metadata, mapped', ['93.184.216.34', '::ffff:169.254.169.254']],
  ])('with mixed answers (%s) is refused whole', async (_name, addresses) => {
    const { outbound } = outboundTo(1, [addresses])
    expect(await failureOf(get(outbound.open(), 'https://mixed.example/'))).toMatchObject({
      failure: 'address_refused',
    })
  })

  test('of several addresses is tried at each of them', async () => {
    const vault = await startVault()
    const { outbound } = outboundTo(vault.port, [['::1', '127.0.0.1']])
    expect((await get(outbound.open({ ca: authority.ca }), `https://${VAULT}:${vault.port}/`)).status).toBe(200)
  })

  test('that nobody knows is a manager that cannot be reached', async () => {
    const unknown = [async () => [], async () => Promise.reject(new Error('ENOTFOUND'))]
    for (const lookup of unknown) {
      const failure = await failureOf(get(outboundWith({}, { lookup }).open(), 'https://nowhere.example/'))
      expect(failure).toMatchObject({ failure: 'unreachable', step: 'address' })
      expect(failure.message).not.toMatch(/not ?found/i)
    }
  })

  test('is looked up by the system: hosts files count', async () => {
    const vault = await startVault(authority.issue(['localhost']))
    const outbound = outboundWith({ allow: [`localhost:${vault.port}`] })
    expect((await get(outbound.open({ ca: authority.ca }), `https://localhost:${vault.port}/`)).status).toBe(200)
  })

  test('is handed to sockets in both forms they ask for', () => {
    const lookup = handing(['::1', '127.0.0.1'])
    const given: unknown[] = []
    lookup('x', { all: true }, (...all) => void given.push(all))
    lookup('x', {}, (...one) => void given.push(one))
    const [six, four] = [
      { address: '::1', family: 6 },
      { address: '127.0.0.1', family: 4 },
    ]
    expect(given).toEqual([
      [null, [six, four]],
      [null, '::1', 6],
    ])
    handing([])('x', {}, (error) => expect(error?.code).toBe('ENODATA'))
  })
})

describe('TLS', () => {
  test.each([
    ['of an unknown authority', () => stranger.issue([VAULT]), authority.ca, 'authority that is not trusted'],
    ['of an authority that only a test trusts', () => vaultCertificate, undefined, 'authority that is not trusted'],
    ['of another name', () => authority.issue(['other.example']), authority.ca, 'certificate of another host'],
    ['for a sibling', () => authority.issue(['a.vault.example']), authority.ca, 'certificate of another host'],
    ['that has expired', () => authority.issue([VAULT], 'expired'), authority.ca, 'expired'],
    ['checked against a file without certificates', () => vaultCertificate, 'rubbish', 'holds no certificate'],
  ])('with a certificate %s is none', async (_name, issue, ca, words) => {
    const vault = await startVault(issue())
    const outbound = outboundWith(to(vault.port))
    const failure = await failureOf(
      get(outbound.open({ ca }), `https://${VAULT}/`, { headers: { 'x-vault-token': 't' } }),
    )
    expect(failure).toMatchObject({ failure: 'tls', step: 'tls' })
    expect(failure.message).toContain(words)
    expect(vault.seen).toEqual([])
  })

  test('checks an address against the certificate too', async () => {
    const [right, wrong] = [await startVault(), await startVault(authority.issue([VAULT]))]
    const outbound = outboundWith({ allow: [`127.0.0.1:${right.port}`, `127.0.0.1:${wrong.port}`] })
    const transport = outbound.open({ ca: authority.ca })
    expect((await get(transport, `https://127.0.0.1:${right.port}/`)).status).toBe(200)
    const failure = await failureOf(get(transport, `https://127.0.0.1:${wrong.port}/`))
    expect(failure).toMatchObject({ failure: 'tls', message: expect.stringContaining('another host') })
  })

  test('older than 1.2 is none', async () => {
    const old = await startVault({ ...vaultCertificate, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' } as never)
    const failure = await failureOf(get(outboundWith(to(old.port)).open({ ca: authority.ca }), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'tls', step: 'tls' })
  })

  test('is not spoken by a plain server', async () => {
    const plain = await kept(startCanned('HTTP/1.1 400 Bad Request\r\n\r\n', true))
    const failure = await failureOf(get(outboundWith(to(plain.port)).open({ ca: authority.ca }), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'tls', step: 'tls' })
  })

  test('behind the front that tests of managers use', async () => {
    const plain = await kept(startServer((request, response) => void response.end(request.headers.host)))
    const front = await kept(startTlsFront({ names: [VAULT], to: plain.port }))
    const answer = await get(outboundWith(to(front.port)).open({ ca: front.ca }), `https://${VAULT}/`)
    expect(answer.body.toString()).toBe(VAULT)
  })

  test('that never comes is given up after 3 s, long before the deadline', async () => {
    const silent = await kept(startTcp(() => {}))
    const since = performance.now()
    const failure = await failureOf(get(outboundWith(to(silent.port)).open(), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'timeout', step: 'tls' })
    expect(performance.now() - since).toBeWithin(2_900, 3_400)
  })

  test('that never comes ends with an earlier deadline, and leaves no connection behind', async () => {
    const ended = Promise.withResolvers<void>()
    const silent = await kept(startTcp((socket) => void socket.resume().on('close', () => ended.resolve())))
    const sending = get(outboundWith(to(silent.port)).open(), `https://${VAULT}/`, { signal: AbortSignal.timeout(50) })
    expect(await failureOf(sending)).toMatchObject({ failure: 'timeout', step: 'tls' })
    expect(await Promise.race([ended.promise.then(() => 'ended'), Bun.sleep(500)])).toBe('ended')
  })

  test('tells its steps, and a kept connection tells none', async () => {
    const vault = await startVault()
    const steps: [ConnectStep, number][] = []
    const outbound = outboundWith(to(vault.port))
    const transport = outbound.open({ ca: authority.ca, onStep: (step, ms) => void steps.push([step, ms]) })
    await get(transport, `https://${VAULT}/`)
    await get(transport, `https://${VAULT}/`)
    expect(steps.map(([step]) => step)).toEqual(['address', 'connect', 'tls'])
    for (const [, ms] of steps) expect(ms).toBeWithin(0, 3_000)
  })

  test('for a request that may go to private addresses is not lent to one that may not', async () => {
    const ports: number[] = []
    const server = await kept(
      startServer(
        (request, response) => void response.end(`${ports.push(request.socket.remotePort!)}`),
        vaultCertificate,
      ),
    )
    const transport = outboundWith(to(server.port)).open({ ca: authority.ca })
    for (const reach of ['private', 'private', 'listed', 'private'] as const) {
      await get(transport, `https://${VAULT}/`, { reach })
    }
    const [first, second, listed, last] = ports
    expect([second, last]).toEqual([first, first])
    expect(listed).not.toBe(first)
  })
})

describe('the proxy', () => {
  interface Proxy extends TestServer {
    /** what it was asked, whole */
    heads: string[]
  }

  /** Takes CONNECT and absolute URLs; leads everything to one port. */
  async function startProxy(toPort: number, answer = 'HTTP/1.1 200 OK\r\n\r\n'): Promise<Proxy> {
    const heads: string[] = []
    const accept = (socket: Socket) =>
      socket.once('data', (head: Buffer) => {
        heads.push(head.toString('latin1'))
        if (!head.toString().startsWith('CONNECT')) return forward(socket, head, toPort)
        socket.write(answer)
        if (answer.includes(' 200 ')) forward(socket, Buffer.alloc(0), toPort)
      })
    return { ...(await kept(startTcp(accept))), heads }
  }

  function forward(near: Socket, head: Buffer, port: number) {
    const far = connect(port, '127.0.0.1')
    far.on('error', () => {})
    far.write(head)
    near.pipe(far)
    far.pipe(near)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  }

  const lookup = async () => ['93.184.216.34']

  test('carries TLS to the manager, and learns host and port only', async () => {
    const vault = await startVault()
    const proxy = await startProxy(vault.port)
    const outbound = outboundWith({ proxy: `http://127.0.0.1:${proxy.port}` }, { lookup })
    const answer = await get(outbound.open({ ca: authority.ca }), `https://${VAULT}/v1/secret/data/x`, {
      headers: { 'x-vault-token': 'hvs.token' },
    })
    expect(answer.body.toString()).toBe('asked for /v1/secret/data/x')
    expect(vault.seen).toEqual([VAULT, VAULT])
    expect(proxy.heads).toHaveLength(1)
    expect(proxy.heads[0]).toStartWith(`CONNECT ${VAULT}:443 HTTP/1.1\r\n`)
    expect(proxy.heads[0]).not.toMatch(/hvs|token|secret/)
  })

  test('may itself be spoken to with TLS', async () => {
    const vault = await startVault()
    const proxy = await startProxy(vault.port)
    const front = await kept(startTlsFront({ names: ['127.0.0.1'], to: proxy.port }))
    const outbound = outboundWith({ proxy: `https://127.0.0.1:${front.port}` }, { lookup })
    const answer = await get(outbound.open({ ca: authority.ca + front.ca }), `https://${VAULT}/`)
    expect(answer.status).toBe(200)
    const failure = await failureOf(get(outbound.open({ ca: authority.ca }), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'tls' })
  })

  test('gets the whole URL of what may go in clear', async () => {
    const plain = await kept(startServer((request, response) => void response.end(request.url)))
    const proxy = await startProxy(plain.port)
    const outbound = outboundWith(
      { proxy: `http://127.0.0.1:${proxy.port}`, allow_http: [`${VAULT}:8200`] },
      { lookup },
    )
    await get(outbound.open(), `http://${VAULT}:8200/v1/x?y=z`)
    expect(proxy.heads[0]).toStartWith(`GET http://${VAULT}:8200/v1/x?y=z HTTP/1.1\r\n`)
  })

  test('opens no way to what is refused without it', async () => {
    const proxy = await startProxy(1)
    const given = { proxy: `http://127.0.0.1:${proxy.port}` }
    const cases: [url: string, addresses: string[]][] = [
      ['https://127.0.0.1/', []],
      ['https://169.254.169.254/', []],
      ['https://private.example/', ['10.0.0.1']],
      ['https://mixed.example/', ['93.184.216.34', '127.0.0.1']],
      ['http://unknown.example/', []],
    ]
    for (const [url, addresses] of cases) {
      const outbound = outboundWith(given, { lookup: async () => addresses })
      expect(await failureOf(get(outbound.open(), url)), url).toMatchObject({ failure: 'address_refused' })
    }
    expect(proxy.heads).toEqual([])
  })

  test('finds the names that this machine does not know', async () => {
    const vault = await startVault()
    const proxy = await startProxy(vault.port)
    const unknown = async () => Promise.reject(new Error('no such name'))
    const outbound = outboundWith({ proxy: `http://127.0.0.1:${proxy.port}` }, { lookup: unknown })
    expect((await get(outbound.open({ ca: authority.ca }), `https://${VAULT}/`)).status).toBe(200)
  })

  test("is no way for a machine's own identity", () => {
    const rules: Rules = { ...parseRules(settings()), ownListeners: [] }
    const ways = { rules: () => rules, lookup, proxy: { host: 'proxy.int', port: 3128 } }
    const metadata = { host: '169.254.169.254', port: 80 }
    expect(goesThroughProxy(metadata, 'machine_identity', ways)).toBe(false)
    expect(goesThroughProxy({ host: VAULT, port: 443 }, 'listed', ways)).toBe(true)
  })

  test('is passed by what connect names', async () => {
    const vault = await startVault()
    const proxy = await startProxy(1)
    const outbound = outboundWith({ proxy: `http://127.0.0.1:${proxy.port}`, ...to(vault.port) })
    expect((await get(outbound.open({ ca: authority.ca }), `https://${VAULT}/`)).status).toBe(200)
    expect(proxy.heads).toEqual([])
  })

  test.each([
    ['that wants a login', 'HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n', 'login'],
    ['that refuses', 'HTTP/1.1 403 Forbidden\r\ncontent-length: 3\r\n\r\nno!', 'did not connect'],
    ['that knows no such host', 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n', 'did not connect'],
    ['that speaks before the manager does', 'HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 'did not connect'],
  ])('%s is a manager that cannot be reached', async (_name, answer, words) => {
    const proxy = await startProxy(1, answer)
    const outbound = outboundWith({ proxy: `http://127.0.0.1:${proxy.port}` }, { lookup })
    const failure = await failureOf(get(outbound.open(), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'unreachable', step: 'connect' })
    expect(failure.message).toContain(words)
    expect(failure.message).not.toContain('404')
  })

  test('that falls silent is given up like a manager that does', async () => {
    const silent = await kept(startTcp(() => {}))
    const outbound = outboundWith({ proxy: `http://127.0.0.1:${silent.port}` }, { lookup, connectMs: 100 })
    const failure = await failureOf(get(outbound.open(), `https://${VAULT}/`))
    expect(failure).toMatchObject({ failure: 'timeout', step: 'connect' })
  })
})
