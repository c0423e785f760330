import { describe, expect, test } from 'bun:test'
import { createClientIp } from '../../src/http/client-ip.ts'

const PROXIES = ['10.0.0.0/8', '192.0.2.9', 'fd00::/8']

describe('the address that a request is recorded with (HT-10)', () => {
  const rows: [name: string, peer: string | null, forwarded: string | undefined, client: string | null][] = [
    ['a stranger who says to be somebody else is himself', '198.51.100.1', '203.0.113.7', '198.51.100.1'],
    ['behind a proxy it is what the proxy saw', '10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['what the client wrote before it does not count', '10.0.0.1', '1.1.1.1, 127.0.0.1, 203.0.113.7', '203.0.113.7'],
    ['behind two proxies it is what the outer one saw', '10.0.0.1', '1.1.1.1, 203.0.113.7, 192.0.2.9', '203.0.113.7'],
    ['a proxy that says nothing is the client', '10.0.0.1', undefined, '10.0.0.1'],
    ['a proxy behind a proxy may be the client', '10.0.0.1', '10.0.0.2', '10.0.0.2'],
    ['what is no address ends the walk', '10.0.0.1', '203.0.113.7, unknown', '10.0.0.1'],
    ['an empty hop ends the walk', '10.0.0.1', '203.0.113.7,', '10.0.0.1'],
    ['a port behind the address is left away', '10.0.0.1', '203.0.113.7:1234', '203.0.113.7'],
    ['IPv6 comes in brackets, with a port or without', 'fd00::1', '[2001:db8::7]:1234', '2001:db8::7'],
    ['IPv4 over IPv6 is IPv4', '10.0.0.1', '::ffff:203.0.113.7', '203.0.113.7'],
    ['nobody knows whose a unix socket is', null, '203.0.113.7', null],
  ]
  test.each(rows)('%s', (_name, peer, forwarded, client) => {
    const headers = new Headers(forwarded === undefined ? {} : { 'x-forwarded-for': forwarded })
    expect(createClientIp(PROXIES)(peer, headers)).toBe(client)
    expect(createClientIp([])(peer, headers)).toBe(peer)
  })
})
