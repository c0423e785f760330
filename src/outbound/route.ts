import { isIP } from 'node:net'
import { parseAddress } from './address.ts'
import { type Endpoint, written } from './endpoint.ts'
import { failed } from './failure.ts'
import { isOwnListener } from './own-listeners.ts'
import { endpointOf, type Rules, refusalOf } from './rules.ts'
import { OutboundError, type Reach } from './transport.ts'

/** A way whose every address was looked at, so that a connection can be made without asking DNS again. */
export interface Route {
  /** host and port of the URL: what the certificate must be for, and what messages name */
  endpoint: Endpoint
  /** where the connection goes: the endpoint itself, what `connect` names instead, or the proxy */
  target: Endpoint
  /** of the target */
  addresses: readonly string[]
  isProxied: boolean
}

export interface Ways {
  /** as of now */
  rules(): Rules
  /** all addresses of a name */
  lookup(host: string): Promise<readonly string[]>
  proxy: Endpoint | undefined
}

/**
 * Looks up where a request goes, and checks every address that comes of it.
 *
 * @throws OutboundError address_refused, or unreachable for a name without an address; the signal's reason
 */
export async function findRoute(url: string, reach: Reach, ways: Ways, signal: AbortSignal): Promise<Route> {
  const rules = ways.rules()
  refuse(refusalOf(url, reach, rules))
  const endpoint = endpointOf(new URL(url))
  const mapped = rules.connect.get(written(endpoint))
  const isProxied = goesThroughProxy(endpoint, reach, ways)
  const addressesOf = (of: Endpoint) => lookedUp(of, ways, signal)
  if (mapped !== undefined) {
    const addresses = await addressesOf(mapped)
    refuse(refusedTarget(endpoint, mapped, addresses, rules))
    return { endpoint, target: mapped, addresses, isProxied }
  }
  // A closed network may leave all names to its proxy; what this machine knows of one is checked nevertheless.
  const addresses = isProxied ? await addressesOf(endpoint).catch(() => []) : await addressesOf(endpoint)
  signal.throwIfAborted()
  refuse(refusalOf(url, reach, rules, addresses))
  if (!isProxied) return { endpoint, target: endpoint, addresses, isProxied }
  return { endpoint, target: ways.proxy!, addresses: await addressesOf(ways.proxy!), isProxied }
}

/** What `connect` names is reached directly, and a machine's identity is no business of a proxy. */
export const goesThroughProxy = (endpoint: Endpoint, reach: Reach, { proxy, rules }: Ways): boolean =>
  proxy !== undefined && reach !== 'machine_identity' && !rules().connect.has(written(endpoint))

function refuse(refusal: string | undefined): void {
  if (refusal !== undefined) throw new OutboundError('address', 'address_refused', refusal)
}

/** The operator's word goes for the rest. */
function refusedTarget(endpoint: Endpoint, target: Endpoint, addresses: readonly string[], { ownListeners }: Rules) {
  const isOwn = addresses
    .map(parseAddress)
    .some((each) => each === undefined || isOwnListener(each, target.port, ownListeners))
  return isOwn ? `[outbound] connect sends ${written(endpoint)} to Gatehouse itself, which is never reached` : undefined
}

async function lookedUp(of: Endpoint, { lookup }: Ways, signal: AbortSignal): Promise<readonly string[]> {
  if (isIP(of.host) !== 0) return [of.host]
  const addresses = await unlessAborted(
    lookup(of.host).catch(() => []),
    signal,
  )
  if (addresses.length === 0) throw failed('address', 'unreachable', of, 'has no address: DNS does not know the name')
  return addresses
}

/** A look-up cannot be called off; nobody waits for it any longer. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', abort))
}
