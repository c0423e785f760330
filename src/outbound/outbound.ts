import { rootCertificates, type SecureContext } from 'node:tls'
import { dns } from 'bun'
import type { Config } from '../../schema/config.ts'
import { CONNECT_MS, type ConnectStep, dial, trusting } from './dial.ts'
import { createAgent, type Exchange, exchanged } from './exchange.ts'
import { failureOf } from './failure.ts'
import { createLimits, type Limits, WAIT_MS } from './limits.ts'
import type { Listener } from './own-listeners.ts'
import { findRoute, goesThroughProxy, type Ways } from './route.ts'
import { endpointOf, parseRules, refusalOf } from './rules.ts'
import { OutboundError, type OutboundRequest, type OutboundResponse, type Reach, type Transport } from './transport.ts'

export interface OutboundOptions {
  config: Config['outbound']
  /** where this process listens; asked at every request, since a port may be known only after the start */
  ownListeners(): readonly Listener[]
  /** all addresses of a name; the system's by default */
  lookup?: (host: string) => Promise<readonly string[]>
  connectMs?: number
  waitMs?: number
}

export interface TransportOptions {
  /** PEM text of the authorities to trust instead of the public ones */
  ca?: string | undefined
  /** told when a step of making a connection is done, with its milliseconds; a kept connection has none */
  onStep?: ((step: ConnectStep, ms: number) => void) | undefined
}

/** All that leaves this machine for secret managers (decisions 11 and 43); its limits hold over all transports. */
export interface Outbound {
  open(options?: TransportOptions): Transport
  /**
   * Why a request would be refused, without sending one; undefined where it would not, or where its name is unknown now.
   */
  refusalOf(url: string, reach: Reach): Promise<string | undefined>
}

export function createOutbound(options: OutboundOptions): Outbound {
  const { config, ownListeners, lookup = systemAddresses, connectMs = CONNECT_MS, waitMs = WAIT_MS } = options
  const parsed = parseRules(config)
  const proxyUrl = config.proxy === '' ? undefined : new URL(config.proxy)
  const surroundings: Surroundings = {
    rules: () => ({ ...parsed, ownListeners: ownListeners() }),
    lookup,
    proxy: proxyUrl === undefined ? undefined : endpointOf(proxyUrl),
    isProxySecure: proxyUrl?.protocol === 'https:',
    publicContext: lazily(() => trusting()),
    limits: createLimits(waitMs),
    connectMs,
  }
  return {
    open: (transportOptions = {}) => openTransport(surroundings, transportOptions),
    async refusalOf(url, reach) {
      try {
        await findRoute(url, reach, surroundings, AbortSignal.timeout(connectMs))
      } catch (error) {
        if (error instanceof OutboundError && error.failure === 'address_refused') return error.message
      }
      return undefined
    },
  }
}

interface Surroundings extends Ways {
  isProxySecure: boolean
  publicContext(): SecureContext
  limits: Limits
  connectMs: number
}

function openTransport(surroundings: Surroundings, { ca, onStep }: TransportOptions): Transport {
  const { rules, limits, connectMs, publicContext, isProxySecure } = surroundings
  const agent = createAgent()
  const underWay = new Set<AbortController>()
  const context = ca === undefined ? publicContext : lazily(() => trusting(ca))
  const proxyContext = ca === undefined ? publicContext : lazily(() => trusting([...rootCertificates, ca]))
  let isClosed = false

  function begin({ url: text, reach }: OutboundRequest, signal: AbortSignal): Exchange {
    const url = new URL(text)
    const endpoint = endpointOf(url)
    const isHttp = url.protocol === 'http:'
    const exchange: Exchange = {
      url,
      endpoint,
      signal,
      // A transport serves one reference, but a connection to a private address stays with those who may go there.
      pool: `${reach} ${url.origin}`,
      isAbsolute: isHttp && goesThroughProxy(endpoint, reach, surroundings),
      step: 'connect',
      async dial() {
        const timed = stopwatch(onStep)
        const began = (step: ConnectStep) => {
          exchange.step = step
          timed(step)
        }
        began('address')
        const route = await findRoute(text, reach, surroundings, signal)
        const socket = await dial(route, {
          context: isHttp ? undefined : context(),
          proxyContext: isProxySecure ? proxyContext() : undefined,
          signal,
          connectMs,
          began,
        })
        timed(undefined)
        return socket
      },
    }
    return exchange
  }

  async function sendWithin(request: OutboundRequest, signal: AbortSignal): Promise<OutboundResponse> {
    const refusal = refusalOf(request.url, request.reach, rules())
    if (refusal !== undefined) throw new OutboundError('address', 'address_refused', refusal)
    const exchange = begin(request, signal)
    let leave: (() => void) | undefined
    try {
      leave = await limits.enter(exchange.url.host, signal)
      return await exchanged(agent, exchange, request)
    } catch (error) {
      throw failureOf(error, exchange.step, exchange.endpoint, signal)
    } finally {
      leave?.()
    }
  }

  return {
    async send(request) {
      if (isClosed) throw closed()
      const controller = new AbortController()
      const abort = () => controller.abort(request.signal.reason)
      underWay.add(controller)
      request.signal.addEventListener('abort', abort)
      if (request.signal.aborted) abort()
      try {
        return await sendWithin(request, controller.signal)
      } finally {
        request.signal.removeEventListener('abort', abort)
        underWay.delete(controller)
      }
    },
    close() {
      isClosed = true
      for (const controller of underWay) controller.abort(closed())
      agent.destroy()
    },
  }
}

const closed = () =>
  new OutboundError('connect', 'unreachable', 'the connections of this reference were closed: it was changed')

/**
 * By c-ares, which reads the hosts file each time and /etc/resolv.conf at the start. The C library's own way holds a
 * thread until its name server answers, and there is one a core: two silent names stopped all file work for 10 s.
 */
const systemAddresses = async (host: string): Promise<string[]> =>
  (await dns.lookup(host, { backend: 'c-ares' })).map(({ address }) => address)

function lazily<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Tells of a step when the next one begins. */
function stopwatch(onStep: TransportOptions['onStep']): (next: ConnectStep | undefined) => void {
  let current: ConnectStep | undefined
  let since = 0
  return (next) => {
    const now = performance.now()
    if (current !== undefined) onStep?.(current, now - since)
    current = next
    since = now
  }
}
