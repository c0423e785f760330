import type { Config } from '../../schema/config.ts'
import { addressList } from '../address-list.ts'

/** Headers that a proxy adds: what comes with one of them does not come from the peer itself. */
const FORWARDING_HEADERS = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-envoy-external-address',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
]

/**
 * Whether a request may act with a system key (decision 16): from a peer of `system.allow`, by its socket, and never
 * through a proxy. A system key sees secrets in clear, so it must not work from the internet even when it leaks.
 *
 * @param address the socket's own peer, null when it is unknown
 */
export function createSystemPeerCheck(config: Config): (address: string | null, headers: Headers) => boolean {
  const isAllowed = addressList(config.system.allow)
  return (address, headers) =>
    address !== null &&
    !config.server.behind_proxy &&
    !FORWARDING_HEADERS.some((name) => headers.has(name)) &&
    isAllowed(address)
}
