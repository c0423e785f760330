import { Agent, type ClientRequest, type IncomingMessage, type RequestOptions, request } from 'node:http'
import type { Socket } from 'node:net'
import type { Endpoint } from './endpoint.ts'
import { badResponse, failureOf } from './failure.ts'
import { PER_HOST } from './limits.ts'
import type { OutboundRequest, OutboundResponse, OutboundStep } from './transport.ts'

/** The largest secret of the three managers has 64 KiB (SM-4). */
const BODY_LIMIT_BYTES = 1_048_576

/** Each takes memory of its own: a body of 1 MiB in single bytes took 80 MB. A slow network makes a thousand of it. */
const MOST_PARTS = 4_096

/** `100 Continue` and the like, which nobody here asks for; a flood of them keeps the one thread busy. */
const MOST_INTERIM = 8

/** Login and read come at once; later ones are answered from the cache. Servers keep idle connections longer than this. */
const IDLE_MS = 4_000

/** One request under way. */
export interface Exchange {
  url: URL
  endpoint: Endpoint
  /** connections of another kind are not shared with it */
  pool: string
  /** a proxy that is asked for the whole URL, as for plain http */
  isAbsolute: boolean
  signal: AbortSignal
  /** the one under way, for the failure that may come of it */
  step: OutboundStep
  dial(): Promise<Socket>
}

/** Keeps a few connections of one transport; makes them with the `dial` of the exchange that needs one. */
export function createAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: PER_HOST, maxFreeSockets: 2, timeout: IDLE_MS })
  agent.getName = (options) => (options as ExchangeOptions).exchange.pool
  agent.createConnection = (options, callback) => {
    const { exchange } = options as ExchangeOptions
    exchange.dial().then(
      (socket) => callback?.(null, socket),
      (error) => callback?.(error, undefined as never),
    )
    return undefined
  }
  return agent
}

type ExchangeOptions = RequestOptions & { exchange: Exchange }

/**
 * Sends one request and reads the whole answer, of whatever status. A kept connection that its server closes just as the
 * request goes out is no failure: the request is sent once more, over a new one (RFC 9112 section 9.3.1).
 *
 * @throws OutboundError
 */
export function exchanged(
  agent: Agent,
  exchange: Exchange,
  sent: OutboundRequest,
  isRepeated = false,
): Promise<OutboundResponse> {
  const { endpoint, signal } = exchange
  const { promise, resolve, reject } = Promise.withResolvers<OutboundResponse>()
  let asked: ClientRequest | undefined
  let isUntouched = () => false
  let isOver = false
  let interim = 0
  const fail = (error: unknown) => {
    if (isOver) return
    isOver = true
    const failure = failureOf(error, exchange.step, endpoint, signal)
    const isRepeatable = !isRepeated && !signal.aborted && isUntouched()
    asked?.destroy(failure)
    if (isRepeatable) resolve(exchangedAnew(agent, exchange, sent))
    else reject(failure)
  }
  const abort = () => fail(signal.reason)
  try {
    asked = request(optionsOf(agent, exchange, sent))
    asked.on('error', fail)
    asked.once('socket', (socket) => {
      exchange.step = 'read'
      if (asked?.reusedSocket) isUntouched = watched(socket, sent.method)
    })
    asked.on('information', () => {
      if (++interim > MOST_INTERIM) fail(badResponse(endpoint, 'sends one interim answer after the other'))
    })
    asked.once('upgrade', () => fail(badResponse(endpoint, 'changed to another protocol')))
    asked.once('response', (response) => readWhole(response, endpoint, resolve, fail))
    signal.addEventListener('abort', abort)
    asked.end(sent.body)
  } catch (error) {
    fail(error)
  }
  return promise.finally(() => signal.removeEventListener('abort', abort))
}

/** What else is kept of this pool goes too: its server has most likely closed that as well. */
function exchangedAnew(agent: Agent, exchange: Exchange, sent: OutboundRequest): Promise<OutboundResponse> {
  for (const socket of [...(agent.freeSockets[exchange.pool] ?? [])]) socket.destroy()
  exchange.step = 'connect'
  return exchanged(agent, exchange, sent, true)
}

/** @returns whether nothing came back since, and the server can have done nothing that a second request would do again */
function watched(socket: Socket, method: string): () => boolean {
  const { bytesRead, bytesWritten } = socket
  const isSafe = method === 'GET' || method === 'HEAD'
  return () => socket.bytesRead === bytesRead && (isSafe || socket.bytesWritten === bytesWritten)
}

function optionsOf(agent: Agent, exchange: Exchange, { method, headers, body }: OutboundRequest): ExchangeOptions {
  const { url, isAbsolute } = exchange
  const kept = Object.entries(headers).filter(([name]) => !OURS.has(name.toLowerCase()))
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body?.byteLength
  return {
    agent,
    exchange,
    method,
    path: isAbsolute ? url.href : url.pathname + url.search,
    headers: { ...Object.fromEntries(kept), host: url.host, ...(length !== undefined && { 'content-length': length }) },
  }
}

/** What belongs to the connection, not to the caller. Encodings are not asked for: a small answer could grow without bound. */
const OURS = new Set([
  'host',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'accept-encoding',
  'expect',
  'te',
  'trailer',
  'upgrade',
  'proxy-authorization',
  'proxy-connection',
])

function readWhole(
  response: IncomingMessage,
  endpoint: Endpoint,
  resolve: (whole: OutboundResponse) => void,
  fail: (error: unknown) => void,
): void {
  const { statusCode: status = 0, headers } = response
  const cut = () => fail(badResponse(endpoint, 'ended its answer before it was whole'))
  const tooLong = () => fail(badResponse(endpoint, 'answered with more than 1 MiB'))
  if ((headers['content-encoding'] ?? 'identity') !== 'identity' || !isPlain(headers['transfer-encoding'])) {
    return void fail(badResponse(endpoint, 'answered in an encoding that was not asked for'))
  }
  if (Number(headers['content-length']) > BODY_LIMIT_BYTES) return void tooLong()
  const parts: Buffer[] = []
  let size = 0
  response.on('data', (part: Buffer) => {
    size += part.length
    if (size > BODY_LIMIT_BYTES) tooLong()
    else if (parts.push(part) > MOST_PARTS) fail(badResponse(endpoint, 'answers in too many small pieces'))
  })
  response.once('error', cut)
  response.once('end', () => {
    if (!response.complete || (size > 0 && hasNoEnd(response))) cut()
    else resolve({ status, headers: joined(response.rawHeaders), body: Buffer.concat(parts) })
  })
}

/** In chunks, and nothing else: any other body may end with its connection, or is packed. */
const isPlain = (transferEncoding = 'chunked'): boolean => transferEncoding.trim().toLowerCase() === 'chunked'

/** Of a body that ends with its connection nobody can say whether it is whole. */
const hasNoEnd = ({ headers }: IncomingMessage): boolean =>
  headers['content-length'] === undefined && headers['transfer-encoding'] === undefined

function joined(raw: readonly string[]): Record<string, string> {
  const found = new Map<string, string>()
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]!.toLowerCase()
    const before = found.get(name)
    found.set(name, before === undefined ? raw[i + 1]! : `${before}, ${raw[i + 1]}`)
  }
  return Object.fromEntries(found)
}
