import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'
import type { Config } from '../../schema/config.ts'
import { createOutbound, type OutboundOptions } from '../../src/outbound/outbound.ts'
import { OutboundError, type OutboundRequest, type Transport } from '../../src/outbound/transport.ts'
import type { Certificate } from '../support/certificates.ts'

type Settings = Partial<Config['outbound']>

export const settings = (given: Settings = {}): Config['outbound'] => ({
  allow: [],
  allow_http: [],
  connect: {},
  proxy: '',
  ...given,
})

export const outboundWith = (given: Settings, options: Partial<OutboundOptions> = {}) =>
  createOutbound({ config: settings(given), ownListeners: () => [], ...options })

/** A request with what a case does not care for. */
export const get = (
  transport: Transport,
  url: string,
  more: Partial<OutboundRequest> = {},
): ReturnType<Transport['send']> =>
  transport.send({ method: 'GET', headers: {}, signal: AbortSignal.timeout(10_000), reach: 'listed', ...more, url })

/** How a request fails; an answer is a failure of the test. */
export async function failureOf(sending: Promise<unknown>): Promise<OutboundError> {
  try {
    await sending
  } catch (error) {
    if (error instanceof OutboundError) return error
    throw error
  }
  throw new Error('it was answered')
}

export interface TestServer {
  port: number
  stop(): void
}

/** With TLS where a certificate is given. */
export async function startServer(answer: RequestListener, certificate?: Certificate): Promise<TestServer> {
  return listening(certificate === undefined ? createHttpServer(answer) : createHttpsServer(certificate, answer))
}

/** Bytes, as they come. */
export const startTcp = (accept: (socket: Socket) => void): Promise<TestServer> => listening(createTcpServer(accept))

async function listening(server: ReturnType<typeof createTcpServer>): Promise<TestServer> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  return {
    port: (server.address() as AddressInfo).port,
    stop() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** Answers every connection with the same text, whatever is asked, and keeps it open. */
export const startCanned = (text: string, isEnded = false): Promise<TestServer> =>
  startTcp((socket) => {
    socket.once('data', () => (isEnded ? socket.end(text) : socket.write(text)))
  })
