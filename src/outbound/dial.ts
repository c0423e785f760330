import { request } from 'node:http'
import { connect, isIP, isIPv6, type LookupFunction, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, rootCertificates, type SecureContext } from 'node:tls'
import { type Endpoint, written } from './endpoint.ts'
import { failed, failureOf, tooLate } from './failure.ts'
import type { Route } from './route.ts'
import { OutboundError, type OutboundStep } from './transport.ts'

/** The steps of making a connection. */
export type ConnectStep = Exclude<OutboundStep, 'read'>

/** TCP, the way through a proxy, and TLS together. */
export const CONNECT_MS = 3_000

/** A slow network still gets its answer, and three addresses fit into the time. */
const ATTEMPT_MS = 1_000

export interface Dialling {
  /** whom to trust for the endpoint; undefined: plain http */
  context: SecureContext | undefined
  /** whom to trust for the proxy; undefined: it is spoken to without TLS */
  proxyContext: SecureContext | undefined
  signal: AbortSignal
  connectMs: number
  /** told of each step as it begins */
  began(step: ConnectStep): void
}

/**
 * A connection that is ready for HTTP.
 *
 * @throws OutboundError unreachable, tls or timeout
 */
export async function dial(route: Route, dialling: Dialling): Promise<Socket> {
  const { endpoint, target, addresses, isProxied } = route
  const { context, proxyContext } = dialling
  const controller = new AbortController()
  let step: ConnectStep = 'connect'
  const begin = (next: ConnectStep) => {
    step = next
    dialling.began(next)
  }
  const stop = () => controller.abort(dialling.signal.reason)
  const timer = setTimeout(() => controller.abort(tooLate(step, endpoint)), dialling.connectMs)
  dialling.signal.addEventListener('abort', stop)
  try {
    begin('connect')
    const { signal } = controller
    let socket = await connected(target, addresses, signal)
    if (isProxied && proxyContext !== undefined) socket = await secured(socket, target, proxyContext, signal)
    if (context === undefined) return socket
    if (isProxied) socket = await tunnelled(socket, endpoint, signal)
    begin('tls')
    return await secured(socket, endpoint, context, signal)
  } catch (error) {
    throw failureOf(error, step, endpoint, controller.signal)
  } finally {
    clearTimeout(timer)
    dialling.signal.removeEventListener('abort', stop)
  }
}

/**
 * Whom a connection trusts. The roots are named even where they are the public ones: else the runtime adds what
 * NODE_EXTRA_CA_CERTS and SSL_CERT_FILE named when the process began (SM-15).
 *
 * @param ca PEM text; it takes the place of the public authorities
 */
export function trusting(ca: string | string[] = [...rootCertificates]): SecureContext {
  try {
    return createSecureContext({ ca, minVersion: 'TLSv1.2' })
  } catch {
    throw new OutboundError('tls', 'tls', 'the ca_file of this manager holds no certificate')
  }
}

function connected({ host, port }: Endpoint, addresses: readonly string[], signal: AbortSignal): Promise<Socket> {
  const lookup = handing(addresses)
  const family = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: ATTEMPT_MS }
  return ready(connect({ host, port, lookup, ...family }), 'connect', signal)
}

/** A look-up that hands out what was checked, in both forms that sockets ask for; DNS cannot change its mind meanwhile. */
export function handing(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }))
  return (_host, options, callback) => {
    if (options.all) return callback(null, found)
    const [first] = found
    if (first === undefined) return callback(Object.assign(new Error('no address'), { code: 'ENODATA' }), '')
    callback(null, first.address, first.family)
  }
}

function secured(socket: Socket, { host }: Endpoint, secureContext: SecureContext, signal: AbortSignal) {
  const secure = connectTls({
    socket,
    host,
    // An address is no server name (RFC 6066), and is compared with the certificate as `host`.
    servername: isIP(host) === 0 ? host : '',
    secureContext,
    minVersion: 'TLSv1.2',
    // Beats NODE_TLS_REJECT_UNAUTHORIZED=0.
    rejectUnauthorized: true,
    ALPNProtocols: ['http/1.1'],
  })
  secure.once('close', () => socket.destroy())
  return ready(secure, 'secureConnect', signal)
}

/** Through a proxy, which gets the name: proxies that filter do so by name. */
function tunnelled(socket: Socket, endpoint: Endpoint, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const path = written(endpoint)
  const asked = request({ createConnection: () => socket, method: 'CONNECT', path, headers: { host: path }, signal })
  const refused = (status: number | undefined) => {
    const words =
      status === 407
        ? 'was not reached: the proxy asks for a login'
        : 'was not reached: the proxy did not connect to it'
    asked.destroy()
    reject(failed('connect', 'unreachable', endpoint, words))
  }
  asked.once('connect', ({ statusCode }, _socket, head) => {
    if (statusCode === 200 && head.length === 0) resolve(socket)
    else refused(statusCode)
  })
  asked.once('response', ({ statusCode }) => refused(statusCode))
  asked.on('error', reject)
  asked.end()
  return promise
}

function ready<T extends Socket>(socket: T, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const fail = (error: unknown) => {
    socket.destroy()
    reject(error)
  }
  const abort = () => fail(signal.reason)
  // Stays: a socket may fail at any time, and the one below a TLS connection has no other listener.
  socket.on('error', fail)
  socket.once('close', () => fail(undefined))
  socket.once(event, () => resolve(socket))
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return promise.finally(() => signal.removeEventListener('abort', abort))
}
