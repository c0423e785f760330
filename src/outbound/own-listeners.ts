import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Address, kindOf, parseAddress, unwrapped } from './address.ts'

export interface Listener {
  /** an address, or a name (`localhost`) */
  host: string
  port: number
}

/** Whether a connection would come back to this process. A listener by name, or on all addresses, counts as on each of them. */
export function isOwnListener(address: Address, port: number, listeners: readonly Listener[]): boolean {
  const here = unwrapped(address)
  return listeners
    .filter((listener) => listener.port === port)
    .some(({ host }) => {
      const listening = isIP(host) === 0 ? undefined : parseAddress(host)
      return listening === undefined || listening.value === 0n
        ? isThisMachine(here)
        : isSame(unwrapped(listening), here)
    })
}

function isThisMachine(address: Address): boolean {
  if (kindOf(address).kind === 'loopback') return true
  return Object.values(networkInterfaces()).some((list) =>
    list?.some(({ address: text }) => {
      const own = parseAddress(text)
      return own !== undefined && isSame(own, address)
    }),
  )
}

const isSame = (one: Address, other: Address): boolean => one.size === other.size && one.value === other.value
