import { describe, expect, test } from 'bun:test'
import { OutboundError, type OutboundFailure, type OutboundStep } from '../../src/outbound/transport.ts'
import type { ManagerFailure, Step } from '../../src/secret-managers/manager.ts'
import { APPROLE, type CannedAnswer, granted, mount, ok, refused, secret, vaultDouble } from './vault-double.ts'

// What Vault, or something in its place, may answer, and what we make of it (SM-4, SM-5, decision 47).

const LOGIN = 'POST auth/approle/login'
const MOUNT = 'GET sys/internal/ui/mounts/secret/app'
const SECRET = 'GET secret/data/app'
const HTML: CannedAnswer = { status: 200, body: '<html>sign in</html>', headers: { 'content-type': 'text/html' } }
const CUT_OFF: CannedAnswer = { status: 200, body: '{"data":{"data":{"key":"val' }

type Expected = [failure: ManagerFailure, step: Step, mentions: string]

describe('an answer of Vault means the same whenever it comes', () => {
  test.each<[what: string, at: string, answer: CannedAnswer, expected: Expected]>([
    [
      'a wrong secret id',
      LOGIN,
      refused(400, 'invalid role or secret ID'),
      ['manager_auth_failed', 'login', 'auth_config'],
    ],
    [
      'a login that is forbidden',
      LOGIN,
      refused(403, 'permission denied'),
      ['manager_auth_failed', 'login', 'credentials'],
    ],
    [
      'no auth method there',
      LOGIN,
      refused(404, 'no handler for route'),
      ['manager_auth_failed', 'login', 'vault_auth_mount'],
    ],
    ['too many logins', LOGIN, refused(429, 'quota'), ['manager_throttled', 'login', 'rate']],
    ['sealed at the login', LOGIN, refused(503, 'Vault is sealed'), ['manager_sealed', 'login', 'sealed']],
    ['something broken inside', LOGIN, refused(500, 'internal error'), ['manager_bad_response', 'login', 'log']],
    ['a page in place of a login', LOGIN, HTML, ['manager_bad_response', 'login', 'vault_addr']],
    ['half a login', LOGIN, CUT_OFF, ['manager_bad_response', 'login', 'not to the end']],
    ['a login without a token', LOGIN, ok({ auth: null }), ['manager_bad_response', 'login', 'vault_addr']],
    [
      'a token that would end the header',
      LOGIN,
      granted('hvs.a\r\nX-Other: b'),
      ['manager_bad_response', 'login', 'vault_addr'],
    ],
    [
      'a lease that is no number',
      LOGIN,
      ok({ auth: { client_token: 'a', lease_duration: '1h' } }),
      ['manager_bad_response', 'login', 'vault_addr'],
    ],
    [
      'no mount, or none for us',
      MOUNT,
      refused(403, 'preflight capability check returned 403'),
      ['manager_denied', 'read', 'no permission, or no such mount: Vault does not say which'],
    ],
    ['an address that has no Vault', MOUNT, refused(404, 'no handler'), ['manager_config', 'read', 'vault_namespace']],
    ['a page in place of a mount', MOUNT, HTML, ['manager_bad_response', 'read', 'vault_addr']],
    ['a mount of somewhere else', MOUNT, mount('other/'), ['manager_bad_response', 'read', 'vault_addr']],
    ['another engine', MOUNT, mount('secret/', 'transit'), ['manager_config', 'read', 'kv']],
    [
      'no permission',
      SECRET,
      refused(403, '1 error occurred:\n\t* permission denied\n\n'),
      ['manager_denied', 'read', 'policies'],
    ],
    ['no secret', SECRET, refused(404), ['manager_secret_missing', 'read', 'secret_path']],
    [
      'a deleted version',
      SECRET,
      gone({ deletion_time: '2026-01-01T00:00:00Z', destroyed: false }),
      ['manager_secret_missing', 'read', 'deleted'],
    ],
    [
      'a destroyed version',
      SECRET,
      gone({ deletion_time: '', destroyed: true }),
      ['manager_secret_missing', 'read', 'destroyed'],
    ],
    [
      'a path that it cannot read',
      SECRET,
      refused(405, 'unsupported operation'),
      ['manager_config', 'read', 'secret_path'],
    ],
    [
      'a node that lags behind',
      SECRET,
      refused(412, 'required index state not present'),
      ['manager_standby', 'read', 'caught up'],
    ],
    ['too many reads', SECRET, refused(429, 'quota'), ['manager_throttled', 'read', 'rate']],
    [
      'a limit of a proxy',
      SECRET,
      { status: 429, body: 'slow down', headers: { 'content-type': 'text/plain' } },
      ['manager_throttled', 'read', 'rate'],
    ],
    ['no Vault yet', SECRET, refused(501, 'not initialized'), ['manager_sealed', 'read', 'initialised']],
    ['sealed', SECRET, refused(503, 'Vault is sealed'), ['manager_sealed', 'read', 'sealed']],
    ['a proxy without a Vault', SECRET, { ...HTML, status: 503 }, ['manager_unreachable', 'read', 'proxy']],
    ['a gateway that waits in vain', SECRET, { status: 504 }, ['manager_unreachable', 'read', 'proxy']],
    [
      'a standby',
      SECRET,
      to(307, 'https://vault-2.example.com:8200/v1/secret/data/app'),
      ['manager_standby', 'read', 'vault-2.example.com:8200'],
    ],
    ['a standby that does not say', SECRET, { status: 307 }, ['manager_standby', 'read', 'standby']],
    [
      'a node before an election',
      SECRET,
      refused(500, 'local node not active but active cluster node not found'),
      ['manager_standby', 'read', 'no active one'],
    ],
    ['a redirect', SECRET, to(301, 'https://elsewhere.example.com/'), ['manager_bad_response', 'read', 'not followed']],
    ['a page', SECRET, HTML, ['manager_bad_response', 'parse', 'vault_addr']],
    ['half an answer', SECRET, CUT_OFF, ['manager_bad_response', 'parse', 'not to the end']],
    ['JSON that is no object', SECRET, ok(['value']), ['manager_bad_response', 'parse', 'vault_addr']],
    [
      'JSON as text',
      SECRET,
      { ...secret({ key: 'value' }), headers: { 'content-type': 'text/plain' } },
      ['manager_bad_response', 'parse', 'vault_addr'],
    ],
    [
      'a secret without versions',
      SECRET,
      ok({ data: { key: 'value' } }),
      ['manager_bad_response', 'parse', 'vault_addr'],
    ],
    [
      'a secret that is text',
      SECRET,
      ok({ data: { data: 'value', metadata: { version: 1 } } }),
      ['manager_bad_response', 'parse', 'vault_addr'],
    ],
    ['nothing at all', SECRET, { status: 204 }, ['manager_bad_response', 'read', 'vault_addr']],
  ])('%s', async (_, at, answer, [failure, step, mentions]) => {
    const error = await vaultDouble(APPROLE, { [at]: answer }).failure()
    expect({ failure: error.failure, step: error.step }).toEqual({ failure, step })
    expect(error.message).toContain(mentions)
    expect(error.message).not.toMatch(/404|not found/i)
    expect(error.cause).toBeUndefined()
  })
})

function gone(metadata: object): CannedAnswer {
  return { status: 404, body: { data: { data: null, metadata: { version: 2, ...metadata } } } }
}

function to(status: number, location: string): CannedAnswer {
  return { status, headers: { location } }
}

test('a message holds nothing that clients take for our own 404, whatever Vault is called', async () => {
  const double = vaultDouble(APPROLE, { [SECRET]: to(307, 'https://vault-404.example.com/v1/secret/data/app') })
  expect((await double.failure()).message).toBe('this node of Vault is a standby')
})

describe('what Vault says itself', () => {
  test.each<[what: string, errors: unknown[], told: string | undefined]>([
    ['is told on one line', ['1 error occurred:\n\t* permission denied\n\n'], '1 error occurred: * permission denied'],
    ['is cut', ['x'.repeat(300)], 'x'.repeat(200)],
    ['is dropped with a secret in it', ['no secret-of-the-config here'], undefined],
    ['is dropped with a role in it', ['role "role-of-the-config" is unknown'], undefined],
    ['is dropped when it is no text', [{ secret: 'x' }, 7], undefined],
  ])('%s', async (_, errors, told) => {
    const double = vaultDouble(APPROLE, { [LOGIN]: { status: 400, body: { errors } } })
    expect((await double.failure()).managerMessage).toBe(told)
  })

  test.each([
    ['30', 30],
    ['999999', 3_600],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
  ])('about when to come again: %s', async (header, seconds) => {
    const answer = { ...refused(429, 'quota'), headers: { 'retry-after': header } }
    expect((await vaultDouble(APPROLE, { [SECRET]: answer }).failure()).retryAfterSeconds).toBe(seconds)
  })
})

describe('no whole answer', () => {
  test.each<[how: OutboundFailure, at: OutboundStep, during: string, expected: [ManagerFailure, Step]]>([
    ['address_refused', 'address', LOGIN, ['manager_address_refused', 'address']],
    ['unreachable', 'connect', LOGIN, ['manager_unreachable', 'connect']],
    ['tls', 'tls', LOGIN, ['manager_tls', 'tls']],
    ['timeout', 'connect', LOGIN, ['manager_timeout', 'connect']],
    ['timeout', 'read', LOGIN, ['manager_timeout', 'login']],
    ['timeout', 'read', SECRET, ['manager_timeout', 'read']],
    ['bad_response', 'read', SECRET, ['manager_bad_response', 'read']],
  ])('%s at %s during %s', async (how, at, during, [failure, step]) => {
    const fail = () => {
      throw new OutboundError(at, how, 'host and remedy')
    }
    const error = await vaultDouble(APPROLE, { [during]: fail }).failure()
    expect(error).toMatchObject({ failure, step, message: 'host and remedy' })
    expect(error.cause).toBeUndefined()
  })

  test('what cannot be sent at all is told without what it was', async () => {
    const fail = () => {
      throw new TypeError('Invalid header: hvs.of-the-login')
    }
    const error = await vaultDouble(APPROLE, { [SECRET]: fail }).failure()
    expect(error).toMatchObject({ failure: 'manager_config', step: 'read' })
    expect(Bun.inspect(error)).not.toContain('hvs.of-the-login')
  })
})
