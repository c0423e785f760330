import { isIPv4, isIPv6 } from 'node:net'

/** An IP address as a number, so that each of its spellings is one value. */
export interface Address {
  size: 32 | 128
  value: bigint
}

export interface Block extends Address {
  /** length of the prefix */
  bits: number
}

/**
 * `never`: nobody is sent there, whatever the settings say (decision 11). `why` completes "… is", for people.
 */
export interface Kind {
  kind: 'public' | 'private' | 'loopback' | 'never'
  why: string
}

/** Undefined for what is no IP address in its plain spelling: `127.1` and `0x7f.1` are names here. */
export function parseAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { size: 32, value: text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n) }
  // A zone names an interface of this machine; only link-local addresses have one.
  const [bare = ''] = text.split('%')
  if (!isIPv6(bare)) return undefined
  const [head = '', tail] = new URL(`http://[${bare}]`).hostname.slice(1, -1).split('::')
  const [left, right] = [groups(head), groups(tail ?? '')]
  const all = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right]
  return { size: 128, value: all.reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n) }
}

const groups = (text: string): string[] => (text === '' ? [] : text.split(':'))

/** `10.2.0.0/16`, `fd00::/8` or one address; bits behind the prefix are ignored. */
export function parseBlock(text: string): Block | undefined {
  const [start = '', length, ...rest] = text.split('/')
  const address = start.includes('%') ? undefined : parseAddress(start)
  if (address === undefined || rest.length > 0) return undefined
  if (length === undefined) return { ...address, bits: address.size }
  return /^\d{1,3}$/.test(length) && Number(length) <= address.size ? { ...address, bits: Number(length) } : undefined
}

export function contains({ size, value, bits }: Block, address: Address): boolean {
  const rest = BigInt(size - bits)
  return size === address.size && value >> rest === address.value >> rest
}

/**
 * The IPv4 address inside an IPv6 one that stands for it: IPv4-mapped, IPv4-compatible, NAT64 (64:ff9b::/96), 6to4 and
 * Teredo. Any other address is its own.
 */
export function unwrapped(address: Address): Address {
  const form = FORMS.find(({ block }) => contains(block, address))
  return form === undefined || address.value <= 1n ? address : { size: 32, value: form.inner(address.value) }
}

const block = (text: string): Block => parseBlock(text)!

const low = (value: bigint): bigint => value & 0xffff_ffffn

const FORMS = [
  { block: block('::ffff:0:0/96'), inner: low },
  { block: block('::/96'), inner: low },
  { block: block('64:ff9b::/96'), inner: low },
  { block: block('2002::/16'), inner: (value: bigint) => low(value >> 80n) },
  { block: block('2001::/32'), inner: (value: bigint) => low(value) ^ 0xffff_ffffn },
]

/** What kind of place an address is; an address that stands for an IPv4 one is of that one's kind. */
export function kindOf(address: Address): Kind {
  const inner = unwrapped(address)
  const found = KINDS.find(({ blocks }) => blocks.some((each) => contains(each, inner)))
  return found ?? RESERVED
}

const RESERVED: Kind = { kind: 'never', why: 'a reserved address' }

/** The first row that fits counts. What IPv6 has not given out yet (all outside 2000::/3) is in none. */
const KINDS: (Kind & { blocks: Block[] })[] = [
  {
    kind: 'never',
    why: 'a metadata service',
    blocks: [
      '169.254.169.254', // nearly every cloud
      '169.254.170.2', // Amazon: containers
      '169.254.170.23', // Amazon: EKS Pod Identity
      'fd00:ec2::/32', // Amazon: metadata, DNS, time, EKS Pod Identity
      'fd20:ce::254', // Google
      'fd00:c1::a9fe:a9fe', // Oracle
      '100.100.100.200', // Alibaba
      '168.63.129.16', // Azure: what agents on its machines speak to
    ].map(block),
  },
  { kind: 'never', why: 'a link-local address', blocks: ['169.254.0.0/16', 'fe80::/10'].map(block) },
  { kind: 'never', why: 'a multicast address', blocks: ['224.0.0.0/4', 'ff00::/8'].map(block) },
  { kind: 'never', why: 'an unspecified address', blocks: ['0.0.0.0/8', '::'].map(block) },
  { kind: 'never', why: RESERVED.why, blocks: ['192.0.0.0/24', '240.0.0.0/4'].map(block) },
  { kind: 'loopback', why: 'a loopback address', blocks: ['127.0.0.0/8', '::1'].map(block) },
  {
    kind: 'private',
    why: 'a private address',
    blocks: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '198.18.0.0/15', 'fc00::/7'].map(block),
  },
  { kind: 'public', why: 'a public address', blocks: ['0.0.0.0/0', '2000::/3'].map(block) },
]
