import { isIP } from 'node:net'
import { addressList } from '../address-list.ts'

/**
 * Whose address a request comes from (HT-10): the socket's peer, or, where that is one of our own proxies, the last
 * address in `X-Forwarded-For` that is none. What stands further left was written by the client itself.
 *
 * @param trustedProxies addresses and CIDR blocks; empty: the header is never read
 */
export function createClientIp(trustedProxies: readonly string[]) {
  const isTrusted = addressList(trustedProxies)
  return (peer: string | null, headers: Headers): string | null => {
    if (peer === null || trustedProxies.length === 0) return peer
    const hops = headers.get('x-forwarded-for')?.split(',') ?? []
    let client = peer
    while (isTrusted(client)) {
      const hop = addressOf(hops.pop())
      if (hop === undefined) break
      client = hop
    }
    return client
  }
}

/** Some proxies write a port behind the address; what is no address ends the walk. */
function addressOf(hop: string | undefined): string | undefined {
  const text = unmapped((hop ?? '').trim())
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text
  return isIP(bare) === 0 ? undefined : bare
}

/** An IPv4 address that came over an IPv6 socket, as IPv4. */
export const unmapped = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')
