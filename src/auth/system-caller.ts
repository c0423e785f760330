import type { Config } from '../../schema/config.ts'
import { addressList } from '../address-list.ts'

/** Header fields that proxies add: what comes with one of them does not come from the peer itself. */
const FORWARDING_HEADER =
  /forwarded|^(?:via|cdn-loop|max-forwards|x-real-ip|x-remote-.*|x-original-.*|x-proxy.*|x-envoy-.*|x-azure-.*|x-appengine-.*|x-scheme|x-host|cf-.*)$|client-?ip$/

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
    ![...headers.keys()].some((name) => FORWARDING_HEADER.test(name)) &&
    isAllowed(address)
}
