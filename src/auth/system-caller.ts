import { addressList } from '../address-list.ts'
import type { Gatehouse } from '../gatehouse.ts'

/** Header fields that proxies add: what comes with one of them does not come from the peer itself. */
const FORWARDING_HEADER =
  /forwarded|^(?:via|cdn-loop|max-forwards|x-real-ip|x-remote-.*|x-original-.*|x-proxy.*|x-envoy-.*|x-azure-.*|x-appengine-.*|x-scheme|x-host|cf-.*)$|client-?ip$/

/**
 * Whether a request may act with a system key (decision 16): from a peer of `system.allow` or over `server.unix_socket`,
 * behind a proxy over that socket alone, and never through a proxy. A system key sees secrets in clear, so it must not
 * work from the internet even when it leaks.
 */
export function createSystemPeerCheck(
  gatehouse: Pick<Gatehouse, 'config' | 'peerIp' | 'cameOverSocket'>,
): (request: Request) => boolean {
  const { system, server } = gatehouse.config
  const isAllowed = addressList(system.allow)
  return (request) => {
    if ([...request.headers.keys()].some((name) => FORWARDING_HEADER.test(name))) return false
    if (gatehouse.cameOverSocket(request)) return true
    // A peer that has hung up has no address any more.
    const address = gatehouse.peerIp(request)
    return address !== null && !server.behind_proxy && isAllowed(address)
  }
}
