import type { Config } from '../../schema/config.ts'
import { type Address, contains, kindOf, parseAddress, unwrapped } from './address.ts'
import { bare, type Endpoint, type Entry, parseEndpoint, parseEntry, written } from './endpoint.ts'
import { isOwnListener, type Listener } from './own-listeners.ts'
import type { Reach } from './transport.ts'

/** `[outbound]`, parsed; entries that are none were refused when the configuration was read. */
export interface Rules {
  /** those of `allow`, and those of `allow_http`: what may be spoken to in clear may be spoken to with TLS as well */
  allow: readonly Entry[]
  allowHttp: readonly Entry[]
  /** by "host:port" of the URL */
  connect: ReadonlyMap<string, Endpoint>
  ownListeners: readonly Listener[]
}

export function parseRules(settings: Config['outbound']): Omit<Rules, 'ownListeners'> {
  const entries = (list: readonly string[]) => list.map(parseEntry).filter((entry) => entry !== undefined)
  const allowHttp = entries(settings.allow_http)
  const connect = Object.entries(settings.connect).flatMap(([from, to]) => {
    const [key, target] = [parseEndpoint(from), parseEndpoint(to)]
    return key === undefined || target === undefined ? [] : [[written(key), target] as const]
  })
  return { allow: [...entries(settings.allow), ...allowHttp], allowHttp, connect: new Map(connect) }
}

/** A URL's host and port as written everywhere here. */
export const endpointOf = (url: URL): Endpoint => ({
  host: bare(url.hostname),
  port: url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port),
})

/** What a granted machine identity speaks to: Amazon's and Azure's metadata, ECS, EKS (decision 11). */
const MACHINE_IDENTITY = ['169.254.169.254', '169.254.170.2', '169.254.170.23']

const OPEN_PORTS = [443, 8200]

/**
 * Whether a request may be sent (decision 11), as a text for the operator where it may not: it says what is wrong, and
 * the very entry that would allow it, where one would.
 *
 * Asked twice for a name: before it is looked up, and with all that the look-up gave, of which a single bad one refuses
 * the whole. What `connect` sends elsewhere is the operator's word, and only the URL itself is judged.
 *
 * @param url       as it will be sent; WHATWG spells hosts in many ways (`0x7f.1`), so what counts is what it parses to
 * @param addresses what the host's name stands for; none: only the proxy knows; undefined: not looked up yet
 */
export function refusalOf(url: string, reach: Reach, rules: Rules, addresses?: readonly string[]): string | undefined {
  const parsed = SHAPE.test(url) ? URL.parse(url) : null
  if (parsed === null)
    return 'the URL is no plain one: https, host, port, path and query, without user, fragment or blanks'
  const endpoint = endpointOf(parsed)
  if (reach === 'machine_identity')
    return isMachineIdentity(parsed) ? undefined : 'the URL is no endpoint of a machine identity'
  if (parsed.hostname.endsWith('.')) return `${named(endpoint)} ends in a dot: write the host without it`
  const literal = parseAddress(endpoint.host)
  const isHttp = parsed.protocol === 'http:'
  if (rules.connect.has(written(endpoint))) return refusedThoughMapped(endpoint, literal, isHttp, rules)
  const found = literal === undefined ? (addresses ?? []).map(parseAddress) : [literal]
  if (found.length === 0) return refusedByName(endpoint, isHttp, rules, addresses === undefined)
  return found.map((address) => refusedAt(address, endpoint, isHttp, reach, rules)).find((text) => text !== undefined)
}

/** WHATWG drops tabs, turns backslashes and takes any number of slashes; no adapter writes such URLs. */
const SHAPE = /^https?:\/\/[^/?#@\\\s\x00-\x1f\x7f]+(?:[/?][^#\\\s\x00-\x1f\x7f]*)?$/i

const isMachineIdentity = ({ protocol, host }: URL): boolean => protocol === 'http:' && MACHINE_IDENTITY.includes(host)

/** `connect` names host and port, so both are allowed; neither plain http nor what is never reached becomes so. */
function refusedThoughMapped(endpoint: Endpoint, literal: Address | undefined, isHttp: boolean, rules: Rules) {
  const kind = literal === undefined ? undefined : kindOf(literal)
  if (kind?.kind === 'never') return isNever(endpoint, kind.why)
  const allowed = !isHttp || rules.allowHttp.some((entry) => matches(entry, endpoint, literal))
  return allowed ? undefined : inClear(endpoint)
}

/** What no address could make right is refused before anybody is asked for the address. */
function refusedByName(endpoint: Endpoint, isHttp: boolean, rules: Rules, mayBeInBlock: boolean): string | undefined {
  const isNamed = (list: readonly Entry[]) =>
    list.some(
      (entry) =>
        matches(entry, endpoint, undefined) || (mayBeInBlock && 'block' in entry && entry.port === endpoint.port),
    )
  if (isHttp) return isNamed(rules.allowHttp) ? undefined : inClear(endpoint)
  return OPEN_PORTS.includes(endpoint.port) || isNamed(rules.allow) ? undefined : otherPort(endpoint)
}

function refusedAt(
  address: Address | undefined,
  endpoint: Endpoint,
  isHttp: boolean,
  reach: Reach,
  rules: Rules,
): string | undefined {
  if (address === undefined) return isNever(endpoint, 'no IP address')
  const { kind, why } = kindOf(address)
  if (kind === 'never') return isNever(endpoint, why)
  if (isOwnListener(address, endpoint.port, rules.ownListeners)) return isNever(endpoint, 'Gatehouse itself')
  const isIn = (list: readonly Entry[]) => list.some((entry) => matches(entry, endpoint, address))
  if (isHttp) return isIn(rules.allowHttp) ? undefined : inClear(endpoint)
  if (isIn(rules.allow)) return undefined
  if (kind === 'loopback' || (kind === 'private' && reach !== 'private')) {
    return `${named(endpoint)} is ${why}: ${toAdd(endpoint, 'allow')}`
  }
  return OPEN_PORTS.includes(endpoint.port) ? undefined : otherPort(endpoint)
}

function matches(entry: Entry, endpoint: Endpoint, address: Address | undefined): boolean {
  if (entry.port !== endpoint.port) return false
  if ('host' in entry) return entry.host === endpoint.host
  return address !== undefined && (contains(entry.block, address) || contains(entry.block, unwrapped(address)))
}

const isNever = (endpoint: Endpoint, why: string) => `${named(endpoint)} is ${why}, which is never reached`

const otherPort = (endpoint: Endpoint) =>
  `${named(endpoint)} is at another port than 443 and 8200: ${toAdd(endpoint, 'allow')}`

const inClear = (endpoint: Endpoint) =>
  `${named(endpoint)} is without TLS: use https, or ${toAdd(endpoint, 'allow_http')}`

const toAdd = (endpoint: Endpoint, list: string) => `add [outbound] ${list} = ["${named(endpoint)}"]`

/** Clients take the digits 404 anywhere in an error for "gone" (decision 3). */
export function named(endpoint: Endpoint): string {
  const text = written(endpoint)
  return text.includes('404') ? '<host:port of the URL>' : text
}
