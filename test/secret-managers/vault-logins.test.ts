import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { freshFolder } from '../support/database.ts'
import {
  type Answers,
  APPROLE,
  type CannedAnswer,
  granted,
  KUBERNETES,
  ok,
  refused,
  secret,
  TOKEN,
  vaultDouble,
} from './vault-double.ts'

// Logins at Vault: kept, renewed, made again (SM-11).

const LOGIN = 'POST auth/approle/login'
const LOOK_UP = 'GET auth/token/lookup-self'
const MOUNT = 'GET sys/internal/ui/mounts/secret/app'
const SECRET = 'GET secret/data/app'
const RENEW = 'POST auth/token/renew-self'
const INVALID_TOKEN = refused(403, '2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n')

describe('a login', () => {
  const MINUTE = 60_000
  afterEach(() => void setSystemTime())
  const pass = (ms: number) => setSystemTime(Date.now() + ms)
  const numbered = (lease: number, renewable = false) => {
    let n = 0
    return () => granted(`hvs.${++n}`, lease, renewable)
  }
  const tokensOf = (double: ReturnType<typeof vaultDouble>) =>
    double.requests.map(({ headers }) => headers['X-Vault-Token'])

  test('is kept for 80 % of its lease, then made again', async () => {
    const double = vaultDouble(APPROLE, { [LOGIN]: numbered(100) })
    setSystemTime(1_000_000)
    expect(double.client.loginExpiresAt()).toBeNull()
    await double.fetch()
    expect(double.client.loginExpiresAt()).toBe(1_100_000)
    pass(79_000)
    await double.fetch()
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET, SECRET])
    pass(2_000)
    await double.fetch()
    expect(double.asked().slice(4)).toEqual([LOGIN, SECRET])
    expect(tokensOf(double)).toEqual([undefined, 'hvs.1', 'hvs.1', 'hvs.1', undefined, 'hvs.2'])
    expect(double.steps).toEqual(['login', 'read', 'parse', 'login', 'read', 'parse', 'login', 'read', 'parse'])
  })

  test('without an end is kept', async () => {
    const double = vaultDouble(APPROLE, { [LOGIN]: numbered(0) })
    await double.fetch()
    pass(9_999 * MINUTE)
    await double.fetch()
    expect(double.client.loginExpiresAt()).toBeNull()
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET, SECRET])
  })

  test('is renewed where it can be, which spends no secret id', async () => {
    const double = vaultDouble(APPROLE, { [LOGIN]: numbered(100, true), [RENEW]: granted('hvs.1', 100, true) })
    for (const _ of [1, 2, 3]) {
      await double.fetch()
      pass(81_000)
    }
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET, RENEW, SECRET, RENEW, SECRET])
    expect(new Set(tokensOf(double).slice(1))).toEqual(new Set(['hvs.1']))
  })

  test.each<[why: string, answer: CannedAnswer]>([
    ['has come to its greatest age', granted('hvs.1', 19, true)],
    ['may not be renewed', refused(403, 'permission denied')],
    ['has been revoked', INVALID_TOKEN],
  ])('is made again when it %s', async (_, answer) => {
    const double = vaultDouble(APPROLE, { [LOGIN]: numbered(100, true), [RENEW]: answer })
    await double.fetch()
    pass(81_000)
    await double.fetch()
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET, RENEW, LOGIN, SECRET])
  })

  test('that ended long ago is not renewed', async () => {
    const double = vaultDouble(APPROLE, { [LOGIN]: numbered(100, true) })
    await double.fetch()
    pass(101_000)
    await double.fetch()
    expect(double.asked().slice(3)).toEqual([LOGIN, SECRET])
  })

  test('that Vault refuses half-way is made again, once', async () => {
    let refusals = 1
    const answers: Answers = {
      [LOGIN]: numbered(100),
      [SECRET]: () => (refusals-- > 0 ? INVALID_TOKEN : secret({ key: 'value' })),
    }
    const double = vaultDouble(APPROLE, answers)
    expect((await double.fetch()).content).toEqual({ key: 'value' })
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET, LOGIN, SECRET])
    refusals = 2
    const error = await double.failure()
    expect([error.failure, error.step]).toEqual(['manager_auth_expired', 'login'])
    expect(double.asked().slice(5)).toEqual([SECRET, LOGIN, SECRET])
    expect((await double.fetch()).content).toEqual({ key: 'value' })
  })

  test('that may not do this is not made again', async () => {
    const double = vaultDouble(APPROLE, { [SECRET]: refused(403, 'permission denied') })
    await double.failure()
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET])
  })

  test('is made once for all who come meanwhile; its failure is theirs as well', async () => {
    const { promise: answered, resolve } = Promise.withResolvers<CannedAnswer>()
    const double = vaultDouble(APPROLE, { [LOGIN]: () => answered })
    const fetches = Array.from({ length: 50 }, () => double.failure())
    await Bun.sleep(1)
    resolve(refused(400, 'invalid role or secret ID'))
    expect(new Set((await Promise.all(fetches)).map(({ failure }) => failure))).toEqual(
      new Set(['manager_auth_failed']),
    )
    expect(double.asked()).toEqual([LOGIN])
  })

  test('whose caller has given up is made again for those who wait, and its late result is dropped', async () => {
    const { promise: late, resolve } = Promise.withResolvers<CannedAnswer>()
    let logins = 0
    const double = vaultDouble(APPROLE, { [LOGIN]: () => (++logins === 1 ? late : granted('hvs.second')) })
    const [first, second] = [new AbortController(), new AbortController()]
    const failed = double.failure('secret/app', first.signal)
    const fetched = double.fetch('secret/app', second.signal)
    await Bun.sleep(1)
    first.abort()
    expect(await failed).toMatchObject({ failure: 'manager_timeout', step: 'login' })
    expect((await fetched).content).toEqual({ key: 'value' })
    resolve(granted('hvs.late'))
    await Bun.sleep(1)
    await double.fetch()
    expect(tokensOf(double)).toEqual([undefined, undefined, 'hvs.second', 'hvs.second', 'hvs.second'])
  })

  test('holds up nobody longer than their own deadline', async () => {
    const double = vaultDouble(APPROLE, { [LOGIN]: () => new Promise(() => {}) })
    const impatient = new AbortController()
    const first = double.failure('secret/app', new AbortController().signal)
    const second = double.failure('secret/app', impatient.signal)
    impatient.abort()
    expect(await second).toMatchObject({ failure: 'manager_timeout', step: 'login' })
    expect(await Promise.race([first, Bun.sleep(1)])).toBeUndefined()
  })

  test('is forgotten when the client is closed, even one that comes only then', async () => {
    const double = vaultDouble(APPROLE)
    await double.fetch()
    double.client.close()
    expect(double.client.loginExpiresAt()).toBeNull()
    const { promise: late, resolve } = Promise.withResolvers<CannedAnswer>()
    const waiting = vaultDouble(APPROLE, { [LOGIN]: () => late })
    const fetched = waiting.fetch()
    waiting.client.close()
    resolve(granted('hvs.late'))
    await fetched
    expect(waiting.client.loginExpiresAt()).toBeNull()
  })
})

describe('a token', () => {
  afterEach(() => void setSystemTime())
  const looked = (ttl: number, renewable: boolean) => ok({ data: { ttl, renewable } })

  test('that may not look itself up still reads', async () => {
    const double = vaultDouble(TOKEN, { [LOOK_UP]: refused(403, 'permission denied') })
    await double.fetch()
    await double.fetch()
    expect(double.asked()).toEqual([LOOK_UP, MOUNT, SECRET, SECRET])
    expect(double.client.loginExpiresAt()).toBeNull()
  })

  test.each([INVALID_TOKEN, refused(403, 'bad token')])('that is none fails as a login does: %j', async (answer) => {
    const double = vaultDouble(TOKEN, { [LOOK_UP]: answer })
    const error = await double.failure()
    expect([error.failure, error.step]).toEqual(['manager_auth_failed', 'login'])
    expect(double.asked()).toEqual([LOOK_UP])
  })

  test('that ends half-way is none to log in anew with', async () => {
    const double = vaultDouble(TOKEN, { [SECRET]: INVALID_TOKEN })
    const error = await double.failure()
    expect([error.failure, error.step]).toEqual(['manager_auth_expired', 'login'])
    expect(double.asked()).toEqual([LOOK_UP, MOUNT, SECRET])
  })

  test('is renewed at 80 % of its life', async () => {
    const double = vaultDouble(TOKEN, {
      [LOOK_UP]: looked(100, true),
      [RENEW]: granted('hvs.of-the-config', 100, true),
    })
    setSystemTime(1_000_000)
    await double.fetch()
    setSystemTime(1_081_000)
    await double.fetch()
    expect(double.asked()).toEqual([LOOK_UP, MOUNT, SECRET, RENEW, SECRET])
    expect(double.client.loginExpiresAt()).toBe(1_181_000)
  })

  test.each<[why: string, lookedUp: CannedAnswer, renewals: number]>([
    ['cannot be renewed', looked(100, false), 0],
    ['is not renewed', looked(100, true), 1],
  ])('that %s is used to its end, without asking each time', async (_, lookedUp, renewals) => {
    const double = vaultDouble(TOKEN, { [LOOK_UP]: lookedUp, [RENEW]: refused(403, 'permission denied') })
    setSystemTime(1_000_000)
    await double.fetch()
    for (const at of [1_081_000, 1_090_000, 1_110_000]) {
      setSystemTime(at)
      await double.fetch()
    }
    expect(double.asked().filter((asked) => asked === RENEW)).toHaveLength(renewals)
    expect(double.client.loginExpiresAt()).toBe(1_100_000)
  })
})

describe('a secret id that is wrapped', () => {
  test.each([['hvs.CAESIJ0123456789abcdefghijklmnop'], ['s.0123456789abcdefghijklmn']])(
    '%s',
    async (vault_secret_id) => {
      const answers = { [LOGIN]: refused(400, 'invalid role or secret ID') }
      const error = await vaultDouble({ ...APPROLE, vault_secret_id } as VaultAuthConfig, answers).failure()
      expect([error.failure, error.step]).toEqual(['manager_config', 'login'])
      expect(error.message).toContain('unwrap it first')
    },
  )

  test('is told from one that somebody chose to look alike', async () => {
    const lookalike = { ...APPROLE, vault_secret_id: 'hvs.CAESIJ0123456789abcdefghijklmnop' } as VaultAuthConfig
    expect((await vaultDouble(lookalike).fetch()).content).toEqual({ key: 'value' })
  })
})

describe('a service account', () => {
  test('whose token was replaced logs in with the new one', async () => {
    const { settings, write } = jwtFile('first\n')
    const double = vaultDouble(KUBERNETES, { 'POST auth/kubernetes/login': granted('hvs.login', 1) }, settings)
    await double.fetch()
    write('second\n')
    setSystemTime(Date.now() + 2_000)
    await double.fetch()
    setSystemTime()
    const jwts = double.requests.filter(({ body }) => body !== undefined).map(({ body }) => JSON.parse(String(body)))
    expect(jwts).toEqual([
      { role: 'kubernetes-role', jwt: 'first' },
      { role: 'kubernetes-role', jwt: 'second' },
    ])
  })

  test('whose token Vault repeats is not told of it', async () => {
    const { settings } = jwtFile('jwt-of-the-machine')
    const answers = { 'POST auth/kubernetes/login': refused(403, 'bad jwt: jwt-of-the-machine') }
    expect((await vaultDouble(KUBERNETES, answers, settings).failure()).managerMessage).toBeUndefined()
  })

  test.each([['/nowhere/token'], [jwtFile('').settings.vault_jwt_file]])(
    'without a token: %s',
    async (vault_jwt_file) => {
      const double = vaultDouble(KUBERNETES, {}, { vault_jwt_file })
      const error = await double.failure()
      expect([error.failure, error.step]).toEqual(['manager_config', 'login'])
      expect(error.message).toContain('[secret_managers] vault_jwt_file')
      expect(double.requests).toEqual([])
    },
  )
})

function jwtFile(text: string) {
  const vault_jwt_file = join(freshFolder(), 'token')
  const write = (replacement: string) => writeFileSync(vault_jwt_file, replacement)
  write(text)
  return { settings: { vault_jwt_file }, write }
}
