import { BlockList, isIPv6 } from 'node:net'
import type { Config } from '../../schema/config.ts'

/** Headers that a proxy adds: what comes with one of them does not come from the peer itself. */
const FORWARDING_HEADERS = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'via']

/**
 * Whether a request may act with a system key (decision 16): from a peer of `system.allow`, by its socket, and never
 * through a proxy. A system key sees secrets in clear, so it must not work from the internet even when it leaks.
 *
 * @param address the socket's own peer, null when it is unknown
 */
export function createSystemPeerCheck(config: Config): (address: string | null, headers: Headers) => boolean {
  const allowed = new BlockList()
  for (const block of config.system.allow) {
    const [address = '', bits] = block.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (bits === undefined) allowed.addAddress(address, family)
    else allowed.addSubnet(address, Number(bits), family)
  }
  return (address, headers) =>
    address !== null &&
    !config.server.behind_proxy &&
    !FORWARDING_HEADERS.some((name) => headers.has(name)) &&
    allowed.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}
