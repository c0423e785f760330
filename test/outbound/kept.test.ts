import { afterAll, describe, expect, test } from 'bun:test'
import type { ServerResponse } from 'node:http'
import { createAuthority } from '../support/certificates.ts'
import { failureOf, get, outboundWith, startServer, type TestServer } from './support.ts'

const authority = createAuthority()
const certificate = authority.issue(['127.0.0.1'])
const servers: TestServer[] = []
afterAll(() => {
  for (const server of servers) server.stop()
  authority.remove()
})

/** Where a request came in: the number of its connection, and its own number there, both from 1. */
type Place = `${number}.${number}`

/** Answers `ok`, but does what `doing` says to a request for which it names something. */
async function startManager(scheme: string, doing: (at: Place, response: ServerResponse) => (() => void) | undefined) {
  const seen: Place[] = []
  const connections = new Map<unknown, { number: number; requests: number }>()
  const server = await startServer(
    (request, response) => {
      const connection = connections.get(request.socket) ?? { number: connections.size + 1, requests: 0 }
      connections.set(request.socket, connection)
      const at: Place = `${connection.number}.${++connection.requests}`
      seen.push(at)
      const act = doing(at, response) ?? (() => void response.end(request.method === 'HEAD' ? '' : 'ok'))
      // Answers of two requests at once wait for both, so that they take two connections.
      setTimeout(act, 5)
    },
    scheme === 'https' ? certificate : undefined,
  )
  servers.push(server)
  const host = `127.0.0.1:${server.port}`
  const transport = outboundWith(scheme === 'https' ? { allow: [host] } : { allow_http: [host] }).open(
    scheme === 'https' ? { ca: authority.ca } : {},
  )
  return { transport, url: `${scheme}://${host}/`, seen }
}

const closes = (response: ServerResponse) => () => void response.socket?.destroy()

describe.each(['http', 'https'])('a kept connection of %s that is closed as the next request goes out', (scheme) => {
  test.each(['GET', 'HEAD'])('costs a %s one more request, and no failure', async (method) => {
    const { transport, url, seen } = await startManager(scheme, (at, response) =>
      at === '1.2' ? closes(response) : undefined,
    )
    await get(transport, url)
    expect((await get(transport, url, { method })).status).toBe(200)
    expect(seen).toEqual(['1.1', '1.2', '2.1'])
  })

  test('is not followed by another kept one, which is most likely closed too', async () => {
    const { transport, url, seen } = await startManager(scheme, (at, response) =>
      at.endsWith('.2') ? closes(response) : undefined,
    )
    await Promise.all([get(transport, url), get(transport, url)])
    expect((await get(transport, url)).status).toBe(200)
    expect(seen).toHaveLength(4)
    expect(seen.at(-1)).toBe('3.1')
  })

  test.each(['POST', 'PUT', 'DELETE'])('fails a %s: what it does is not done twice', async (method) => {
    const { transport, url, seen } = await startManager(scheme, (at, response) =>
      at === '1.2' ? closes(response) : undefined,
    )
    await get(transport, url)
    const failure = await failureOf(get(transport, url, { method, body: 'a' }))
    expect(failure).toMatchObject({ step: 'read', failure: 'unreachable' })
    await Bun.sleep(30)
    expect(seen).toEqual(['1.1', '1.2'])
  })

  test.each([
    ['an answer that had begun', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['an interim answer', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['half an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nhalf'],
  ])('fails after %s', async (_name, begun) => {
    const { transport, url, seen } = await startManager(scheme, (at, response) =>
      at === '1.2' ? () => void response.socket?.end(begun) : undefined,
    )
    await get(transport, url)
    await failureOf(get(transport, url))
    await Bun.sleep(30)
    expect(seen).toEqual(['1.1', '1.2'])
  })

  test('fails when the new one is closed too: it is tried once', async () => {
    const { transport, url, seen } = await startManager(scheme, (at, response) =>
      at === '1.1' ? undefined : closes(response),
    )
    await get(transport, url)
    expect(await failureOf(get(transport, url))).toMatchObject({ step: 'read', failure: 'unreachable' })
    await Bun.sleep(30)
    expect(seen).toEqual(['1.1', '1.2', '2.1'])
  })

  test('gives no more time than there was', async () => {
    const { transport, url, seen } = await startManager(scheme, (at, response) => {
      if (at === '1.2') return closes(response)
      return at === '2.1' ? () => {} : undefined
    })
    await get(transport, url)
    const since = performance.now()
    const failure = await failureOf(get(transport, url, { signal: AbortSignal.timeout(150) }))
    expect(failure).toMatchObject({ step: 'read', failure: 'timeout' })
    expect(performance.now() - since).toBeLessThan(400)
    expect(seen).toEqual(['1.1', '1.2', '2.1'])
  })
})

test('a new connection that is closed without an answer is not tried again', async () => {
  const { transport, url, seen } = await startManager('http', (_at, response) => closes(response))
  expect(await failureOf(get(transport, url))).toMatchObject({ step: 'read', failure: 'unreachable' })
  await Bun.sleep(30)
  expect(seen).toEqual(['1.1'])
})
