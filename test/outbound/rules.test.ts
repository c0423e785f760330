import { describe, expect, test } from 'bun:test'
import type { Config } from '../../schema/config.ts'
import { kindOf, parseAddress } from '../../src/outbound/address.ts'
import { parseEndpoint, parseEntry } from '../../src/outbound/endpoint.ts'
import { isOwnListener, type Listener } from '../../src/outbound/own-listeners.ts'
import { parseRules, refusalOf } from '../../src/outbound/rules.ts'
import type { Reach } from '../../src/outbound/transport.ts'
import { settings } from './support.ts'

interface Case {
  allow?: Partial<Config['outbound']>
  reach?: Reach
  own?: Listener[]
  /** what its name stands for */
  is?: string[] | undefined
}

const refusal = (url: string, { allow = {}, reach = 'listed', own = [], is }: Case = {}): string | undefined =>
  refusalOf(url, reach, { ...parseRules(settings(allow)), ownListeners: own }, is)

const PUBLIC = '93.184.216.34'

/** SM-12: what a caller who may write a reference would try; nothing is looked up for any of them. */
const HOSTILE: [url: string, why: string][] = [
  // this machine, in every spelling
  ['https://127.0.0.1/', 'loopback'],
  ['https://127.0.0.1:8200/v1/secret', 'loopback'],
  ['https://127.1/', 'loopback'],
  ['https://127.0.1/', 'loopback'],
  ['https://127.255.255.254/', 'loopback'],
  ['https://2130706433/', 'loopback'],
  ['https://0x7f000001/', 'loopback'],
  ['https://0x7f.1/', 'loopback'],
  ['https://0X7F.0.0.0x1/', 'loopback'],
  ['https://017700000001/', 'loopback'],
  ['https://0177.0.0.1/', 'loopback'],
  ['https://0177.0.0.01:8200/', 'loopback'],
  ['https://127.0.0.1./', 'loopback'],
  ['https://①②⑦.⓪.⓪.①/', 'loopback'],
  ['https://１２７.０.０.１/', 'loopback'],
  ['https://127。0。0。1/', 'loopback'],
  ['https://%31%32%37.0.0.1/', 'loopback'],
  ['https://[::1]/', 'loopback'],
  ['https://[0:0:0:0:0:0:0:1]:8200/', 'loopback'],
  ['https://[::ffff:127.0.0.1]/', 'loopback'],
  ['https://[::ffff:7f00:1]/', 'loopback'],
  ['https://[0:0:0:0:0:ffff:127.0.0.1]/', 'loopback'],
  ['https://[::127.0.0.1]/', 'loopback'],
  ['https://[64:ff9b::127.0.0.1]/', 'loopback'],
  ['https://[2002:7f00:1::]/', 'loopback'],
  ['https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/', 'loopback'],
  ['https://localhost./', 'ends in a dot'],
  ['https://vault.int./', 'ends in a dot'],
  // nowhere
  ['https://0/', 'unspecified'],
  ['https://0.0.0.0:8200/', 'unspecified'],
  ['https://0.1.2.3/', 'unspecified'],
  ['https://[::]/', 'unspecified'],
  ['https://[::ffff:0.0.0.0]/', 'unspecified'],
  // metadata services and their neighbours
  ['https://169.254.169.254/latest/meta-data/', 'metadata'],
  ['http://169.254.169.254/latest/meta-data/', 'metadata'],
  ['https://2852039166/', 'metadata'],
  ['https://0xa9.0xfe.0xa9.0xfe/', 'metadata'],
  ['https://0251.0376.0251.0376/', 'metadata'],
  ['https://[::ffff:169.254.169.254]/', 'metadata'],
  ['https://[::ffff:a9fe:a9fe]/', 'metadata'],
  ['https://[64:ff9b::a9fe:a9fe]/', 'metadata'],
  ['https://[2002:a9fe:a9fe::1]/', 'metadata'],
  ['https://[2001:0:4136:e378:8000:63bf:5601:5601]/', 'metadata'],
  ['https://[fd00:ec2::254]/', 'metadata'],
  ['https://[fd00:0ec2:0:0::0254]/', 'metadata'],
  ['https://[fd00:ec2::23]/', 'metadata'],
  ['https://[fd20:ce::254]/', 'metadata'],
  ['https://169.254.170.2/', 'metadata'],
  ['https://169.254.170.23/', 'metadata'],
  ['https://100.100.100.200/', 'metadata'],
  ['https://168.63.129.16/', 'metadata'],
  ['https://169.254.1.1/', 'link-local'],
  ['https://[fe80::1]/', 'link-local'],
  ['https://[febf::1]/', 'link-local'],
  ['https://[fe80::1%25eth0]/', 'no plain one'],
  ['https://[fe80::1%eth0]/', 'no plain one'],
  // private networks
  ['https://10.0.0.1/', 'private'],
  ['https://172.16.0.1:8200/', 'private'],
  ['https://172.31.255.255/', 'private'],
  ['https://192.168.1.1/', 'private'],
  ['https://100.64.0.1/', 'private'],
  ['https://198.18.0.1/', 'private'],
  ['https://[fc00::1]/', 'private'],
  ['https://[fdff::1]/', 'private'],
  ['https://[::ffff:10.0.0.1]/', 'private'],
  ['https://[64:ff9b::10.0.0.1]/', 'private'],
  ['https://[2002:0a00:1::]/', 'private'],
  // all or none
  ['https://224.0.0.1/', 'multicast'],
  ['https://239.255.255.255/', 'multicast'],
  ['https://[ff02::1]/', 'multicast'],
  ['https://255.255.255.255/', 'reserved'],
  ['https://240.0.0.1/', 'reserved'],
  ['https://192.0.0.192/', 'reserved'],
  ['https://[fec0::1]/', 'reserved'],
  ['https://[64:ff9b:1::7f00:1]/', 'reserved'],
  ['https://[::ffff:0:127.0.0.1]/', 'reserved'],
  ['https://[100::1]/', 'reserved'],
  ['https://[4000::1]/', 'reserved'],
  // who is the host?
  ['https://user@vault.example/', 'no plain one'],
  ['https://user:password@vault.example/', 'no plain one'],
  ['https://vault.example@127.0.0.1/', 'no plain one'],
  ['https://@vault.example/', 'no plain one'],
  ['https://:@vault.example/', 'no plain one'],
  ['https://vault.example\\@127.0.0.1/', 'no plain one'],
  ['https:\\\\127.0.0.1\\', 'no plain one'],
  ['https://vault.example#@127.0.0.1/', 'no plain one'],
  ['https://vault.example/#x', 'no plain one'],
  ['https:///127.0.0.1/', 'no plain one'],
  ['https:127.0.0.1', 'no plain one'],
  ['https:/127.0.0.1', 'no plain one'],
  ['//127.0.0.1/', 'no plain one'],
  [' https://vault.example/', 'no plain one'],
  ['https://vault.exa\tmple/', 'no plain one'],
  ['https://vault.example/a\r\nHost: x', 'no plain one'],
  ['https://vault.example/a b', 'no plain one'],
  ['https://vault.example\u0000.int/', 'no plain one'],
  ['https://vault.example%00.int/', 'no plain one'],
  ['https://vault.example:99999/', 'no plain one'],
  ['https://1.2.3.4.5/', 'no plain one'],
  ['https://256.1.1.1/', 'no plain one'],
  ['https://[::1/', 'no plain one'],
  ['https://xn--/', 'no plain one'],
  ['https://', 'no plain one'],
  ['', 'no plain one'],
  // other protocols, other ports
  ['http://vault.example/', 'without TLS'],
  ['http://vault.example:8200/', 'without TLS'],
  ['http://vault.example:443/', 'without TLS'],
  ['file:///etc/passwd', 'no plain one'],
  ['ftp://vault.example/', 'no plain one'],
  ['gopher://vault.example:8200/_x', 'no plain one'],
  ['ws://vault.example/', 'no plain one'],
  ['data:text/plain,x', 'no plain one'],
  ['javascript:alert(1)', 'no plain one'],
  ['unix:/run/docker.sock', 'no plain one'],
  ['https://vault.example:22/', 'another port'],
  ['https://vault.example:6379/', 'another port'],
  ['https://vault.example:0/', 'another port'],
  ['https://vault.example:08443/', 'another port'],
  [`https://${PUBLIC}:25/`, 'another port'],
]

describe('a hostile URL', () => {
  test.each(HOSTILE)('%j is refused', (url, why) => {
    expect(refusal(url)).toContain(why)
    expect(refusal(url, { reach: 'machine_identity' }) === undefined).toBe(url.startsWith('http://169.254.169.254'))
  })

  test('that is never reached stays so, whatever is allowed', () => {
    const allow = { allow: ['0.0.0.0/0:443', '[::/0]:443', 'bad.example:443'], allow_http: ['0.0.0.0/0:80'] }
    const never = HOSTILE.filter(([, why]) => /metadata|link-local|multicast|unspecified|reserved/.test(why))
    expect(never.length).toBeGreaterThan(35)
    for (const [url] of never) {
      expect(refusal(url.replace(':8200', ''), { allow }), url).toContain('never reached')
      for (const reach of ['listed', 'private'] as const) {
        expect(refusal(url.replace(':8200', ''), { allow, reach }), url).not.toContain('add [outbound]')
      }
    }
  })

  test('that only a redirection of the operator makes harmless still is none in clear, or of a metadata service', () => {
    const allow = { connect: { '169.254.169.254:80': '127.0.0.1:9', 'vault.example:80': '127.0.0.1:9' } }
    expect(refusal('http://169.254.169.254/', { allow })).toContain('metadata')
    expect(refusal('https://169.254.169.254:80/', { allow })).toContain('metadata')
    expect(refusal('http://vault.example/', { allow })).toContain('without TLS')
    expect(refusal('https://vault.example:80/', { allow })).toBeUndefined()
  })
})

/** What a name stands for decides, and each of its addresses has to be right. */
describe('a name', () => {
  const NAMED: [name: string, url: string, given: Case, refused: string | undefined][] = [
    ['of a public address', 'https://vault.example/v1/a?version=2', { is: [PUBLIC] }, undefined],
    ['at port 8200', 'https://vault.example:8200/', { is: [PUBLIC] }, undefined],
    ['of IPv6', 'https://vault.example/', { is: ['2606:4700::1'] }, undefined],
    ['over NAT64', 'https://vault.example/', { is: ['64:ff9b::5db8:d822'] }, undefined],
    ['not yet looked up', 'https://vault.example/', {}, undefined],
    ['of this machine', 'https://localhost/', { is: ['127.0.0.1', '::1'] }, 'loopback'],
    ['that hides an address', 'https://127.0.0.1.nip.io/', { is: ['127.0.0.1'] }, 'loopback'],
    ['of a metadata service', 'https://metadata.google.internal/', { is: ['169.254.169.254'] }, 'metadata'],
    ['in punycode', 'https://xn--fa-hia.example/', { is: ['10.0.0.1'] }, 'private'],
    ['with one bad address, last', 'https://x.example/', { is: [PUBLIC, '10.0.0.1'] }, 'private'],
    ['with one bad address, first', 'https://x.example/', { is: ['127.0.0.1', PUBLIC] }, 'loopback'],
    ['with a mapped one', 'https://x.example/', { is: [PUBLIC, '::ffff:169.254.169.254'] }, 'metadata'],
    ['of a zone', 'https://x.example/', { is: ['fe80::1%eth0'] }, 'link-local'],
    ['of nonsense', 'https://x.example/', { is: ['nonsense'] }, 'no IP address'],
    ['allowed by name', 'https://v.int/', { is: ['10.0.0.1'], allow: { allow: ['v.int:443'] } }, undefined],
    ['allowed in capitals', 'https://V.int:8200/', { is: ['10.0.0.1'], allow: { allow: ['V.INT:8200'] } }, undefined],
    ['allowed at another port', 'https://v.int/', { is: ['10.0.0.1'], allow: { allow: ['v.int:8200'] } }, 'private'],
    ['allowed under another name', 'https://v.int/', { is: ['10.0.0.1'], allow: { allow: ['w.int:443'] } }, 'private'],
    ['below an allowed one', 'https://a.v.int/', { is: ['10.0.0.1'], allow: { allow: ['v.int:443'] } }, 'private'],
    [
      'allowed by block',
      'https://v.int:8200/',
      { is: ['10.2.3.4'], allow: { allow: ['10.2.0.0/16:8200'] } },
      undefined,
    ],
    [
      'beside the block',
      'https://v.int:8200/',
      { is: ['10.3.0.1'], allow: { allow: ['10.2.0.0/16:8200'] } },
      'private',
    ],
    [
      'half in the block',
      'https://v.int:8200/',
      { is: ['10.2.3.4', '10.3.0.1'], allow: { allow: ['10.2.0.0/16:8200'] } },
      'private',
    ],
    ['in a block of IPv6', 'https://v.int/', { is: ['fd12::9'], allow: { allow: ['[fd12::/16]:443'] } }, undefined],
    [
      'at an allowed port',
      'https://v.example:9443/',
      { is: [PUBLIC], allow: { allow: ['v.example:9443'] } },
      undefined,
    ],
    [
      'at a port of a block',
      'https://v.int:9443/',
      { is: ['10.1.1.1'], allow: { allow: ['10.0.0.0/8:9443'] } },
      undefined,
    ],
    [
      'at a port of another block',
      'https://v.int:9443/',
      { is: [PUBLIC], allow: { allow: ['10.0.0.0/8:9443'] } },
      'port',
    ],
    [
      'allowed on loopback',
      'https://localhost:8200/',
      { is: ['::1'], allow: { allow: ['localhost:8200'] } },
      undefined,
    ],
    [
      'allowed, turned to metadata',
      'https://v.int/',
      { is: ['169.254.169.254'], allow: { allow: ['v.int:443'] } },
      'never',
    ],
    ['in clear, allowed', 'http://v.int:8200/', { is: ['10.0.0.1'], allow: { allow_http: ['v.int:8200'] } }, undefined],
    ['in clear, allowed with TLS', 'http://v.int:8200/', { is: ['10.0.0.1'], allow: { allow: ['v.int:8200'] } }, 'TLS'],
    [
      'with TLS, allowed in clear',
      'https://v.int:8200/',
      { is: ['10.0.0.1'], allow: { allow_http: ['v.int:8200'] } },
      undefined,
    ],
    ['that we built', 'https://sts.eu-west-1.amazonaws.com/', { is: ['10.0.0.1'], reach: 'private' }, undefined],
    [
      'that we built, on loopback',
      'https://sts.eu-west-1.amazonaws.com/',
      { is: ['127.0.0.1'], reach: 'private' },
      'loopback',
    ],
    [
      'that we built, of metadata',
      'https://sts.eu-west-1.amazonaws.com/',
      { is: ['169.254.1.1'], reach: 'private' },
      'never',
    ],
    ['that only the proxy knows', 'https://v.example/', { is: [] }, undefined],
    [
      'that only the proxy knows, in clear',
      'http://v.int:80/',
      { is: [], allow: { allow_http: ['10.0.0.0/8:80'] } },
      'TLS',
    ],
    [
      'that connect sends elsewhere',
      'https://v.int:9/',
      { allow: { connect: { 'v.int:9': '127.0.0.1:9' } } },
      undefined,
    ],
  ]
  test.each(NAMED)('%s', (_name, url, given, refused) => {
    if (refused === undefined) expect(refusal(url, given)).toBeUndefined()
    else expect(refusal(url, given)).toContain(refused)
  })

  test('is refused with the very line that allows it', () => {
    expect(refusal('https://Vault.INT/v1/x?a=b', { is: ['10.0.0.1'] })).toBe(
      'vault.int:443 is a private address: add [outbound] allow = ["vault.int:443"]',
    )
    for (const [url, is] of [
      ['https://vault.int:8200/', ['10.0.0.1']],
      ['https://[::1]:8200/', []],
      ['https://10.0.0.1:9000/', []],
      ['http://vault.int:8200/', ['127.0.0.1']],
    ] as const) {
      const [, list = '', entry = ''] =
        /\[outbound\] (\w+) = \["(.*)"\]$/.exec(refusal(url, { is: [...is] }) ?? '') ?? []
      expect(refusal(url, { is: [...is], allow: { [list]: [entry] } }), url).toBeUndefined()
    }
  })

  test('never puts the digits 404 into an error: clients read them as gone', () => {
    for (const url of ['https://10.0.0.1:40404/', 'http://v404.int/', 'https://v404.int:1/', 'https://v404.int./']) {
      expect(refusal(url)).toBeString()
      expect(refusal(url)).not.toContain('404')
    }
  })
})

describe("a machine's own identity", () => {
  test.each([
    'http://169.254.169.254/latest/api/token',
    'http://169.254.170.2/v2/credentials/x?y=z',
    'http://169.254.170.23/v1/credentials',
    'http://169.254.169.254:80/',
  ])('reaches %s', (url) => expect(refusal(url, { reach: 'machine_identity' })).toBeUndefined())

  test.each([
    'https://169.254.169.254/',
    'http://169.254.169.254:8080/',
    'http://169.254.169.253/',
    'http://169.254.169.254.nip.io/',
    'http://[::ffff:169.254.169.254]/',
    'http://metadata.google.internal/',
    'http://a@169.254.169.254/',
    'https://vault.example/',
    'http://127.0.0.1/',
  ])('does not reach %s, whatever is allowed', (url) => {
    const allow = { allow: ['0.0.0.0/0:80', 'vault.example:443'], allow_http: ['0.0.0.0/0:80', '127.0.0.1:80'] }
    expect(refusal(url, { reach: 'machine_identity', allow })).toBeString()
  })
})

describe('our own listeners', () => {
  const all = { allow: ['0.0.0.0/0:8200', '[::/0]:8200', 'localhost:8200', 'me.int:8200'] }
  const spellings = ['127.0.0.1', '127.1', '0x7f.1', '2130706433', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '①②⑦.1']

  test.each(['127.0.0.1', '0.0.0.0', '::', 'localhost', '::ffff:127.0.0.1', 'gatehouse.int'])(
    'at %s are never reached, in no spelling, whatever is allowed',
    (host) => {
      const own = [{ host, port: 8200 }]
      for (const each of spellings) {
        expect(refusal(`https://${each}:8200/`, { allow: all, own }), each).toContain('Gatehouse itself')
        expect(refusal(`https://${each}:8200/`, { allow: all, own: [{ host, port: 8201 }] }), each).toBeUndefined()
      }
      expect(refusal('https://me.int:8200/', { allow: all, own, is: [PUBLIC, '127.0.0.1'] })).toContain('itself')
    },
  )

  test('on all addresses are at each address of this machine', () => {
    const own = [{ host: '::', port: 443 }]
    expect(isOwnListener(parseAddress('127.9.9.9')!, 443, own)).toBe(true)
    expect(isOwnListener(parseAddress('::1')!, 443, own)).toBe(true)
    expect(isOwnListener(parseAddress(PUBLIC)!, 443, own)).toBe(false)
  })

  test('at one address leave the others alone', () => {
    const own = [{ host: '127.0.0.1', port: 8200 }]
    expect(refusal('https://127.0.0.2:8200/', { allow: all, own })).toBeUndefined()
    expect(refusal('https://[::1]:8200/', { allow: all, own })).toBeUndefined()
  })
})

describe('an address', () => {
  test.each([
    ['0.0.0.0', 'never'],
    ['0.255.255.255', 'never'],
    ['1.0.0.0', 'public'],
    ['9.255.255.255', 'public'],
    ['10.0.0.0', 'private'],
    ['10.255.255.255', 'private'],
    ['11.0.0.0', 'public'],
    ['100.63.255.255', 'public'],
    ['100.64.0.0', 'private'],
    ['100.127.255.255', 'private'],
    ['100.128.0.0', 'public'],
    ['126.255.255.255', 'public'],
    ['127.0.0.0', 'loopback'],
    ['128.0.0.0', 'public'],
    ['169.253.255.255', 'public'],
    ['169.254.0.0', 'never'],
    ['169.255.0.0', 'public'],
    ['172.15.255.255', 'public'],
    ['172.16.0.0', 'private'],
    ['172.32.0.0', 'public'],
    ['192.167.255.255', 'public'],
    ['192.168.0.0', 'private'],
    ['192.169.0.0', 'public'],
    ['223.255.255.255', 'public'],
    ['224.0.0.0', 'never'],
    ['255.255.255.255', 'never'],
    ['::', 'never'],
    ['::1', 'loopback'],
    ['::2', 'never'],
    ['1fff::', 'never'],
    ['2000::', 'public'],
    ['2001:db8::1', 'public'],
    ['3fff:ffff::', 'public'],
    ['4000::', 'never'],
    ['fbff::', 'never'],
    ['fc00::', 'private'],
    ['fdff:ffff::', 'private'],
    ['fe00::', 'never'],
    ['fe80::', 'never'],
    ['ff00::', 'never'],
    ['::ffff:8.8.8.8', 'public'],
    ['2002:808:808::1', 'public'],
    ['2002:c0a8:101::1', 'private'],
  ])('%s is %s, to the edge of its block', (address, kind) => {
    expect(kindOf(parseAddress(address)!).kind).toBe(kind as 'public')
  })

  test.each(['', 'a', '127.1', '0x7f.0.0.1', '1.2.3.4.5', '::1::', ':::', '[::1]', '1.2.3.4/8', '1:2:3:4:5:6:7:8:9'])(
    '%j is none',
    (text) => expect(parseAddress(text)).toBeUndefined(),
  )
})

describe('an entry of [outbound]', () => {
  test.each(['vault.int:8200', 'a_b.c-d:1', '10.0.0.1:65535', '10.2.0.0/16:8200', '[fd00::1]:443', '[fd00::/8]:443'])(
    '%s',
    (text) => expect(parseEntry(text)).toBeDefined(),
  )

  test.each([
    ...['', 'vault.int', ':443', 'vault.int:', 'vault.int:0', 'vault.int:65536', 'vault.int:0443', 'vault.int:443/x'],
    ...['https://vault.int:443', 'user@vault.int:443', 'vault.int.:443', '.int:443', '*.int:443', 'väult.int:443'],
    ...[
      '127.1:443',
      '0x7f.1:443',
      '127.0.0.01:443',
      '1.2.3.4.5:443',
      '10.0.0.0/33:443',
      'vault.int/8:443',
      '10.0.0.0/:443',
    ],
    ...[
      'fd00::1:443',
      '[fd00::1]',
      '[fd00::/129]:443',
      '[10.0.0.1]:443',
      '[fe80::1%eth0]:443',
      ' vault.int:443',
      '10.0.0.0:443/8',
    ],
  ])('%j is none', (text) => expect(parseEntry(text)).toBeUndefined())

  test.each([
    ['Vault.INT:8200', { host: 'vault.int', port: 8200 }],
    ['[FD00::0:1]:443', undefined],
    ['[fd00::1]:443', { host: 'fd00::1', port: 443 }],
    ['10.2.0.0/16:8200', undefined],
  ])('%s as an endpoint', (text, endpoint) => {
    if (endpoint === undefined) expect(parseEndpoint(text)).toBeUndefined()
    else expect(parseEndpoint(text)).toEqual(endpoint)
  })
})
