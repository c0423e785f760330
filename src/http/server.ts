import { readFileSync } from 'node:fs'
import { createApp, createHotEndpoints } from '../app.ts'
import { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { describeError } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'
import { ownerOnly, removeStaleSocket } from '../unix-socket.ts'
import { unmapped } from './client-ip.ts'
import { createHead } from './head.ts'
import { problemBody, problemHead } from './problems.ts'
import { noteRefusal } from './refused.ts'
import { newRequestId } from './request-id.ts'

export interface Listening {
  /** `http://127.0.0.1:8787`, without a trailing slash */
  url: string
  port: number
  /** finishes the requests in flight */
  stop(): Promise<void>
}

/** For what is done beside a call to a secret manager; and the server's timer is no exact one. */
const MARGIN_SECONDS = 10

/** Up to this many times the largest limit our own answer says what the limit is; beyond, Bun's 413 has no body. */
const MOST_TIMES_LIMIT = 8

/**
 * Starts listening, at `server.unix_socket` too where that is set.
 *
 * @throws StartError 69 ADDRESS_IN_USE, 78 SOCKET_UNUSABLE, 78 TLS_INVALID
 */
export async function startServer(gatehouse: Gatehouse, options = { checkAnswers: false }): Promise<Listening> {
  const { server: config, limits } = gatehouse.config
  const app = createApp(gatehouse, options)
  const hosts = new Set(config.hosts)
  const refuse = createRefusal(gatehouse)
  const tls = readTls(config)
  const longSeconds = gatehouse.config.secret_managers.timeout_seconds + MARGIN_SECONDS
  const answerHot = createHotEndpoints(gatehouse)
  const answer = (request: Request): Response | Promise<Response> => {
    if (isHostStrange(request, hosts)) return refuse(strangeHost(), request)
    return answerHot(request) ?? app.fetch(request)
  }
  const common = {
    maxRequestBodySize:
      MOST_TIMES_LIMIT * Math.max(limits.admin_body_bytes, limits.prompt_body_bytes, limits.render_body_bytes),
    // Otherwise Bun answers an unhandled error with a page that holds source code.
    development: false,
    error(error: Error) {
      gatehouse.log.error('request_failed', { cause: describeError(error) })
      return refuse(new GatehouseError('internal', 'internal error'))
    },
  }
  const overSocket = new WeakSet<Request>()
  gatehouse.cameOverSocket = (request) => overSocket.has(request)
  const answerOverSocket = (request: Request) => {
    overSocket.add(request)
    return answer(request)
  }
  await using opened = new AsyncDisposableStack()
  const socket = await listenAtSocket(config.unix_socket, (unix) =>
    Bun.serve({
      ...common,
      unix,
      // Bun minds it at a unix socket too, which its types do not know; there it has no timeouts of single requests.
      ...({ idleTimeout: Math.max(config.idle_timeout_seconds, longSeconds) } as object),
      fetch: answerOverSocket,
    }),
  )
  opened.defer(() => socket?.stop(true))
  const server = listen(config, () =>
    Bun.serve({
      ...common,
      hostname: config.host,
      port: config.port,
      idleTimeout: config.idle_timeout_seconds,
      // With `development: false` Bun shares a port with anybody unless told not to; nodes of one database may
      // (decision 14).
      reusePort: gatehouse.dialect === 'postgres',
      ...(tls && { tls }),
      fetch: answer,
    }),
  )
  opened.move()
  gatehouse.peerIp = (request) => {
    const address = server.requestIP(request)?.address
    return address === undefined ? null : unmapped(address)
  }
  gatehouse.ownListeners = () => [{ host: config.host, port: server.port ?? config.port }]
  gatehouse.mayTakeLong = (request) => {
    if (longSeconds > config.idle_timeout_seconds && !overSocket.has(request)) server.timeout(request, longSeconds)
  }
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  const url = `${tls ? 'https' : 'http'}://${host}:${server.port}`
  if (config.public_url === '') gatehouse.publicUrl = () => url
  return {
    url,
    port: server.port ?? 0,
    async stop() {
      gatehouse.drain()
      await Promise.all([server.stop(), socket?.stop()])
    },
  }
}

/**
 * HT-7: one Host header, and one of `server.hosts` where those are set. Without Host, Bun hands over a bare path that
 * nothing can be routed by; two of them arrive joined by a comma.
 */
function isHostStrange(request: Request, hosts: ReadonlySet<string>): boolean {
  const host = request.headers.get('host')
  return host === null || host.includes(',') || request.url.charCodeAt(0) === 47 || (hosts.size > 0 && !hosts.has(host))
}

const strangeHost = (): GatehouseError => new GatehouseError('invalid', 'the Host header must name this server, once')

/** Answers what never gets to the app. */
function createRefusal(gatehouse: Gatehouse): (error: GatehouseError, request?: Request) => Response {
  const head = createHead(gatehouse.config)
  return (error, request) => {
    const requestId = newRequestId()
    if (request !== undefined) noteRefusal(gatehouse, { request, call: undefined }, error, requestId)
    const { status, headers } = problemHead(error)
    return new Response(problemBody(error, requestId), { status, headers: { ...head(requestId), ...headers } })
  }
}

function readTls({ tls_cert_file: cert, tls_key_file: key }: Gatehouse['config']['server']) {
  if (cert === '') return undefined
  try {
    return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw tlsInvalid(`the certificate or its key cannot be read (${code})`)
  }
}

const tlsInvalid = (message: string): StartError =>
  new StartError(
    'TLS_INVALID',
    EXIT.config,
    message,
    'check server.tls_cert_file and server.tls_key_file: PEM files that belong together',
  )

/** For its owner alone, and without TLS: nobody else can listen in there. */
async function listenAtSocket<T>(path: string, serve: (path: string) => T): Promise<T | undefined> {
  if (path === '') return undefined
  if (await removeStaleSocket(path))
    throw new StartError(
      'ADDRESS_IN_USE',
      EXIT.unavailable,
      `${path} is in use, or no socket of ours`,
      'stop the other program, or set server.unix_socket',
    )
  try {
    return ownerOnly(() => serve(path))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StartError(
      'SOCKET_UNUSABLE',
      EXIT.config,
      `no socket can be made at ${path} (${code})`,
      'set server.unix_socket to at most 107 bytes, in a folder that the service user may write',
    )
  }
}

function listen<T>(config: Gatehouse['config']['server'], serve: () => T): T {
  try {
    return serve()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE')
      throw new StartError(
        'ADDRESS_IN_USE',
        EXIT.unavailable,
        `port ${config.port} of ${config.host} is in use`,
        'stop the other program, or set server.port',
      )
    if (config.tls_cert_file !== '')
      throw tlsInvalid('the certificate and its key do not belong together, or one of them is no PEM file')
    throw error
  }
}
