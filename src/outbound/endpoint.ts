import { type Block, parseBlock } from './address.ts'

export interface Endpoint {
  /** a name in lower case, or an IP address without brackets, as `URL` spells them */
  host: string
  port: number
}

/** An entry of `[outbound] allow`: a name, or a block of addresses (one address is the smallest block). */
export type Entry = { port: number } & ({ host: string } | { block: Block })

/** `vault.int:8200`, `10.0.0.4:443`, `[fd00::1]:8200`; undefined for anything else, other spellings of an address included. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const [, host = '', port = ''] = /^(\[[^\]/]*\]|[^[\]:/]+):([1-9]\d{0,4})$/.exec(text.toLowerCase()) ?? []
  return isHost(host) && Number(port) <= 65_535 ? { host: bare(host), port: Number(port) } : undefined
}

/** An endpoint, or a block with a port: `10.2.0.0/16:8200`, `[fd00::/8]:8200`. */
export function parseEntry(text: string): Entry | undefined {
  const [, v6, v4, port = ''] = /^(?:\[([^\]]*)\]|([\d.]+(?:\/\d+)?)):([1-9]\d{0,4})$/.exec(text) ?? []
  const block = parseBlock(v6 ?? v4 ?? '')
  if (block !== undefined && (block.size === 128) === (v6 !== undefined) && Number(port) <= 65_535) {
    return { block, port: Number(port) }
  }
  return parseEndpoint(text)
}

/** As the host stands in a URL and in the settings. */
export const written = ({ host, port }: Endpoint): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

/** Without the brackets of IPv6, as sockets take it. */
export const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, '')

/** Names end without a dot: `vault.int.` is another name for TLS, and the same one for DNS. */
const isHost = (host: string): boolean =>
  /^(?:\[.*\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)$/.test(host) && URL.parse(`https://${host}`)?.hostname === host
