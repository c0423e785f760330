import { connect } from 'node:net'
import { createServer } from 'node:tls'
import { createAuthority } from './certificates.ts'

export interface TlsFront {
  /** on 127.0.0.1 */
  port: number
  /** the authority that made the certificate, for a `ca_file` setting */
  caFile: string
  /** the same as PEM text */
  ca: string
  /** ends its connections too, and removes the authority's files */
  stop(): void
}

/**
 * TLS before a plain server of this machine.
 *
 * @param names of hosts, as URLs have them; `*.vault.azure.net` too
 * @param to    port of the plain server
 */
export async function startTlsFront({ names, to }: { names: string[]; to: number }): Promise<TlsFront> {
  const authority = createAuthority()
  const ends = new Set<{ destroy(): void }>()
  const server = createServer(authority.issue(names), (near) => {
    const far = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      ends.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        ends.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  server.on('tlsClientError', () => {})
  const { promise: listening, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await listening
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    caFile: authority.caFile,
    ca: authority.ca,
    stop() {
      server.close()
      for (const end of ends) end.destroy()
      authority.remove()
    },
  }
}
