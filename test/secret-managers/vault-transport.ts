import type { Config } from '../../schema/config.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import type { Transport } from '../../src/outbound/transport.ts'

/**
 * Our one transport, to a server of this machine, which it has to be allowed to reach.
 *
 * @param ca PEM text of the authority to trust
 */
export function transportTo(address: string, ca?: string): Transport {
  const { host, protocol } = new URL(address)
  const config: Config['outbound'] = {
    allow: [host],
    allow_http: protocol === 'http:' ? [host] : [],
    connect: {},
    proxy: '',
  }
  return createOutbound({ config, ownListeners: () => [] }).open({ ca })
}
