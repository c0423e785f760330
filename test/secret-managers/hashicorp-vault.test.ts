import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import type { OutboundRequest } from '../../src/outbound/transport.ts'
import { freshFolder } from '../support/database.ts'
import { startVault } from '../support/managers.ts'
import { serviceAccountToken, startTokenReviews } from '../support/token-review.ts'
import { type OpenVault, openVault } from './vault-double.ts'
import { transportTo } from './vault-transport.ts'

// The adapter against a Vault that nobody here wrote.

const vault = await startVault()
afterAll(() => vault?.stop())

const ask = async (method: string, path: string, body?: unknown) => {
  const answer = await vault!.request(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

interface Opened extends OpenVault {
  /** `GET secret/data/app 200`, in order */
  asked: string[]
  /** the token of the last request */
  token(): string
}

function open(authConfig: VaultAuthConfig, settings = {}): Opened {
  const asked: string[] = []
  const requests: OutboundRequest[] = []
  const transport = transportTo(vault!.address)
  const watched: typeof transport = {
    ...transport,
    async send(request) {
      requests.push(request)
      const answer = await transport.send(request)
      asked.push(`${request.method} ${request.url.replace(`${vault!.address}/v1/`, '')} ${answer.status}`)
      return answer
    },
  }
  const token = () => requests.at(-1)!.headers['X-Vault-Token']!
  return Object.assign(openVault(authConfig, watched, settings), { asked, token })
}

const address = () => ({ vault_addr: vault!.address })
const withToken = (vault_token = 'root') => open({ vault_auth_type: 'token', ...address(), vault_token })

async function expectFailure(opened: OpenVault, path: string, failure: string, step: string, mentions: string) {
  const error = await opened.failure(path)
  expect({ failure: error.failure, step: error.step, message: error.message }).toEqual({
    failure: failure as typeof error.failure,
    step: step as typeof error.step,
    message: expect.stringContaining(mentions),
  })
  expect(error.message).not.toMatch(/404|not found/i)
  return error
}

describe.skipIf(vault === undefined)('Vault', () => {
  const POLICY = `
    path "secret/data/app" { capabilities = ["read"] }
    path "old/app" { capabilities = ["read"] }
    path "team/kv/data/*" { capabilities = ["read"] }
    path "transit/keys/*" { capabilities = ["read"] }
    path "auth/token/lookup-self" { capabilities = ["read"] }
    path "sys/*" { capabilities = ["read"] }`

  beforeAll(async () => {
    await ask('POST', 'sys/mounts/old', { type: 'kv', options: { version: '1' } })
    await ask('POST', 'sys/mounts/team/kv', { type: 'kv', options: { version: '2' } })
    await ask('POST', 'sys/mounts/transit', { type: 'transit' })
    await ask('POST', 'secret/data/app', { data: { key: 'first' } })
    await ask('POST', 'secret/data/app', { data: { key: 'line\nline', nested: { a: [1] } } })
    await ask('POST', 'old/app', { key: 'unversioned' })
    await ask('POST', 'team/kv/data/a/b', { data: { key: 'deep' } })
    await ask('POST', 'secret/data/deleted', { data: { key: 'value' } })
    await ask('DELETE', 'secret/data/deleted')
    await ask('POST', 'secret/data/destroyed', { data: { key: 'value' } })
    await ask('PUT', 'secret/destroy/destroyed', { versions: [1] })
    await ask('PUT', 'sys/policies/acl/reader', { policy: POLICY })
  })

  describe('holds secrets', () => {
    test.each([
      ['secret/app', { content: { key: 'line\nline', nested: { a: [1] } }, version: '2' }],
      ['secret/data/app', { content: { key: 'line\nline', nested: { a: [1] } }, version: '2' }],
      ['old/app', { content: { key: 'unversioned' }, version: null }],
      ['team/kv/a/b', { content: { key: 'deep' }, version: '1' }],
      ['team/kv/data/a/b', { content: { key: 'deep' }, version: '1' }],
    ])('at %s', async (path, fetched) => {
      const opened = withToken()
      expect(await opened.fetch(path)).toEqual(fetched)
      expect(opened.steps).toEqual(['login', 'read', 'parse'])
    })

    test.each([
      ['with spaces'],
      ['ärger'],
      ['a+b&c=d;e:f@g,h'],
      ['...'],
      ['quote"s'],
      ['<tag>'],
      ['{{brace}}'],
      ["it's"],
    ])('with the name %j', async (name) => {
      await ask('POST', `secret/data/${encodeURIComponent(name)}`, { data: { name } })
      expect((await withToken().fetch(`secret/${name}`)).content).toEqual({ name })
    })

    // version 2 stores it as a double itself
    test('whose integers have more digits than a double', async () => {
      const body = '{"id":9223372036854775807}'
      await fetch(`${vault!.address}/v1/old/big`, { method: 'POST', body, headers: { 'x-vault-token': 'root' } })
      expect(JSON.stringify((await withToken().fetch('old/big')).content)).toBe(body)
    })

    test.each([
      ['secret/never', 'manager_secret_missing', 'nothing at this secret_path'],
      ['old/never', 'manager_secret_missing', 'nothing at this secret_path'],
      ['secret/deleted', 'manager_secret_missing', 'deleted'],
      ['secret/destroyed', 'manager_secret_missing', 'destroyed'],
      ['nowhere/app', 'manager_denied', 'no such mount'],
      ['transit/keys/app', 'manager_config', 'kv'],
      ['auth/token/lookup-self', 'manager_config', 'kv'],
      ['sys/seal-status', 'manager_config', 'kv'],
      ['sys/internal/ui/mounts', 'manager_config', 'kv'],
      ['cubbyhole/app', 'manager_config', 'kv'],
      ['identity/entity', 'manager_config', 'kv'],
      ['team/kv', 'manager_config', 'below the mount'],
      ['secret/data/../../sys/seal-status', 'manager_config', 'secret_path'],
    ])('and not at %s', async (path, failure, mentions) => {
      await expectFailure(withToken(), path, failure, 'read', mentions)
    })

    test('in a mount that is given versions meanwhile', async () => {
      await ask('POST', 'sys/mounts/upgraded', { type: 'kv', options: { version: '1' } })
      await ask('POST', 'upgraded/app', { key: 'value' })
      const opened = withToken()
      await opened.fetch('upgraded/app')
      await ask('POST', 'sys/mounts/upgraded/tune', { options: { version: '2' } })
      await expectFailure(opened, 'upgraded/app', 'manager_config', 'read', 'write upgraded/data/app')
      expect(await opened.fetch('upgraded/app')).toEqual({ content: { key: 'value' }, version: '1' })
    })
  })

  describe('a token', () => {
    const newToken = async (body: object): Promise<string> =>
      (await ask('POST', 'auth/token/create', { policies: ['reader'], ...body })).auth.client_token
    afterEach(() => void setSystemTime())

    test('reads what its policy names and nothing else', async () => {
      const token = await newToken({ ttl: '1h' })
      expect((await withToken(token).fetch('secret/app')).version).toBe('2')
      await expectFailure(withToken(token), 'secret/other', 'manager_denied', 'read', 'no permission')
      await expectFailure(withToken(token), 'nowhere/app', 'manager_denied', 'read', 'Vault does not say which')
      await expectFailure(withToken(token), 'transit/keys/app', 'manager_config', 'read', 'kv')
      await expectFailure(withToken(token), 'auth/token/lookup-self', 'manager_config', 'read', 'kv')
    })

    test('tells when it ends; that of the root does not', async () => {
      const opened = withToken(await newToken({ ttl: '1h' }))
      await opened.fetch('secret/app')
      const inSeconds = (opened.client.loginExpiresAt()! - Date.now()) / 1_000
      expect(inSeconds).toBeGreaterThan(3_590)
      expect(inSeconds).toBeLessThanOrEqual(3_600)
      const root = withToken()
      await root.fetch('secret/app')
      expect(root.client.loginExpiresAt()).toBeNull()
    })

    test('that may not look itself up still reads', async () => {
      await ask('PUT', 'sys/policies/acl/narrow', { policy: 'path "secret/data/app" { capabilities = ["read"] }' })
      const opened = withToken(await newToken({ policies: ['narrow'], no_default_policy: true }))
      expect((await opened.fetch('secret/app')).version).toBe('2')
      expect(opened.asked[0]).toBe('GET auth/token/lookup-self 403')
    })

    test.each([['garbage'], ['hvs.CAESIJ0123456789abcdefghijklmnop'], ['root2']])('%s is none', async (token) => {
      const error = await expectFailure(
        withToken(token),
        'secret/app',
        'manager_auth_failed',
        'login',
        'refuses the login',
      )
      expect(error.managerMessage).toContain('permission denied')
    })

    test('of a batch reads', async () => {
      const token = await newToken({ type: 'batch', ttl: '1h' })
      expect((await withToken(token).fetch('secret/app')).version).toBe('2')
    })

    test('that is revoked half-way has ended', async () => {
      const token = await newToken({ ttl: '1h' })
      const opened = withToken(token)
      await opened.fetch('secret/app')
      await ask('POST', 'auth/token/revoke', { token })
      await expectFailure(opened, 'secret/app', 'manager_auth_expired', 'login', 'has ended or was revoked')
    })

    test('is renewed when it is due', async () => {
      const opened = withToken(await newToken({ ttl: '100s', renewable: true }))
      await opened.fetch('secret/app')
      setSystemTime(Date.now() + 81_000)
      await opened.fetch('secret/app')
      expect(opened.asked.slice(3)).toEqual(['POST auth/token/renew-self 200', 'GET secret/data/app 200'])
    })
  })

  describe('an AppRole', () => {
    const roles = { approle: 'approle', custom: 'team/approle-2' }
    afterEach(() => void setSystemTime())

    beforeAll(async () => {
      for (const mount of Object.values(roles)) await ask('POST', `sys/auth/${mount}`, { type: 'approle' })
    })

    async function newRole(mount: string, role: object = {}, secretId: object = {}): Promise<VaultAuthConfig> {
      const path = `auth/${mount}/role/${Bun.randomUUIDv7()}`
      await ask('POST', path, { token_policies: 'reader', token_ttl: '1h', ...role })
      const vault_role_id = (await ask('GET', `${path}/role-id`)).data.role_id
      const vault_secret_id = (await ask('POST', `${path}/secret-id`, secretId)).data.secret_id
      return { vault_auth_type: 'approle', ...address(), vault_role_id, vault_secret_id, vault_auth_mount: mount }
    }

    test.each(Object.entries(roles))('logs in once for many reads: %s', async (_, mount) => {
      const opened = open(await newRole(mount))
      expect((await opened.fetch('secret/app')).version).toBe('2')
      await opened.fetch('secret/app')
      expect(opened.asked.map((each) => each.split(' ')[1])).toEqual([
        `auth/${mount}/login`,
        'sys/internal/ui/mounts/secret/app',
        'secret/data/app',
        'secret/data/app',
      ])
      await expectFailure(opened, 'secret/other', 'manager_denied', 'read', 'no permission')
    })

    test('is found at its usual mount when none is named', async () => {
      const { vault_auth_mount: _, ...authConfig } = (await newRole('approle')) as Record<string, string>
      expect((await open(authConfig as VaultAuthConfig).fetch('secret/app')).version).toBe('2')
    })

    test.each([
      ['a wrong secret id', { vault_secret_id: '00000000-0000-0000-0000-000000000000' }],
      ['a wrong role id', { vault_role_id: '00000000-0000-0000-0000-000000000000' }],
      ['the mount of another', { vault_auth_mount: roles.custom }],
      ['no such mount', { vault_auth_mount: 'nowhere' }],
    ])('fails at the login with %s', async (_, wrong) => {
      const opened = open({ ...(await newRole('approle')), ...wrong } as VaultAuthConfig)
      await expectFailure(opened, 'secret/app', 'manager_auth_failed', 'login', 'vault_auth_mount')
      expect(opened.asked).toHaveLength(1)
    })

    test('whose secret id is still wrapped is told so', async () => {
      const response = await fetch(`${vault!.address}/v1/sys/wrapping/wrap`, {
        method: 'POST',
        headers: { 'x-vault-token': 'root', 'x-vault-wrap-ttl': '60s' },
        body: '{"secret_id":"x"}',
      })
      const { wrap_info } = (await response.json()) as { wrap_info: { token: string } }
      const opened = open({ ...(await newRole('approle')), vault_secret_id: wrap_info.token } as VaultAuthConfig)
      await expectFailure(opened, 'secret/app', 'manager_config', 'login', 'unwrap it first')
    })

    test('whose token ended logs in again', async () => {
      const opened = open(await newRole('approle', { token_ttl: '1s', token_max_ttl: '1s' }))
      await opened.fetch('secret/app')
      await Bun.sleep(1_100)
      await opened.fetch('secret/app')
      expect(opened.asked.filter((each) => each === 'POST auth/approle/login 200')).toHaveLength(2)
    })

    test('whose token was revoked half-way logs in again, unless its secret id is spent', async () => {
      const lasting = open(await newRole('approle'))
      const spent = open(await newRole('approle', {}, { num_uses: 1 }))
      for (const opened of [lasting, spent]) {
        await opened.fetch('secret/app')
        await ask('POST', 'auth/token/revoke', { token: opened.token() })
      }
      expect((await lasting.fetch('secret/app')).version).toBe('2')
      expect(lasting.asked.slice(3)).toEqual([
        'GET secret/data/app 403',
        'POST auth/approle/login 200',
        'GET secret/data/app 200',
      ])
      await expectFailure(spent, 'secret/app', 'manager_auth_failed', 'login', 'credentials')
    })

    test('renews its token when that is due, and logs in when its greatest age has come', async () => {
      const opened = open(await newRole('approle', { token_ttl: '100s', token_max_ttl: '102s' }))
      await opened.fetch('secret/app')
      setSystemTime(Date.now() + 81_000)
      await opened.fetch('secret/app')
      setSystemTime(Date.now() + 82_000)
      await opened.fetch('secret/app')
      expect(opened.asked.filter((each) => each.startsWith('POST'))).toEqual([
        'POST auth/approle/login 200',
        'POST auth/token/renew-self 200',
        'POST auth/token/renew-self 200',
      ])
    })

    test('whose calls are limited is told so', async () => {
      await ask('POST', 'sys/quotas/rate-limit/team', { rate: 1, interval: '60s', path: 'team/kv/' })
      const opened = open(await newRole('approle'))
      await opened.fetch('team/kv/a/b')
      await expectFailure(opened, 'team/kv/a/b', 'manager_throttled', 'read', 'rate')
      await ask('DELETE', 'sys/quotas/rate-limit/team')
    })
  })

  describe('a service account of Kubernetes', () => {
    const account = { namespace: 'prod', name: 'gatehouse' }
    const jwt = serviceAccountToken(account)
    const clusters = {
      kubernetes: startTokenReviews((token) => token === jwt),
      'clusters/second': startTokenReviews((token) => token === jwt),
    }
    const vault_jwt_file = join(freshFolder(), 'token')

    beforeAll(async () => {
      writeFileSync(vault_jwt_file, `${jwt}\n`)
      for (const [mount, reviews] of Object.entries(clusters)) {
        await ask('POST', `sys/auth/${mount}`, { type: 'kubernetes' })
        await ask('POST', `auth/${mount}/config`, {
          kubernetes_host: reviews.url,
          kubernetes_ca_cert: reviews.authority,
          token_reviewer_jwt: serviceAccountToken({ namespace: 'vault', name: 'vault' }),
          disable_local_ca_jwt: true,
        })
        await ask('POST', `auth/${mount}/role/app`, {
          bound_service_account_names: ['gatehouse'],
          bound_service_account_namespaces: ['prod'],
          token_policies: ['reader'],
        })
      }
    })
    afterAll(() => {
      for (const reviews of Object.values(clusters)) reviews.stop()
    })

    const inCluster = (vault_auth_mount?: string, vault_role = 'app', file = vault_jwt_file) =>
      open(
        { vault_auth_type: 'kubernetes', ...address(), vault_role, ...(vault_auth_mount && { vault_auth_mount }) },
        { vault_jwt_file: file },
      )

    test.each<[mount: string | undefined, reviews: { asked: string[] }]>([
      [undefined, clusters.kubernetes],
      ['kubernetes', clusters.kubernetes],
      ['clusters/second', clusters['clusters/second']],
    ])('logs in at the mount %s, whose cluster vouches for it', async (mount, reviews) => {
      const before = reviews.asked.length
      expect((await inCluster(mount).fetch('secret/app')).version).toBe('2')
      expect(reviews.asked.slice(before)).toEqual([jwt])
    })

    test('fails at the login in a role that does not name it, at no mount, or unvouched for', async () => {
      const unknown = join(freshFolder(), 'token')
      writeFileSync(unknown, serviceAccountToken({ namespace: 'prod', name: 'stranger' }))
      for (const opened of [
        inCluster('kubernetes', 'other'),
        inCluster('nowhere'),
        inCluster('kubernetes', 'app', unknown),
      ]) {
        const error = await expectFailure(opened, 'secret/app', 'manager_auth_failed', 'login', 'refuses the login')
        expect(`${error.message} ${error.managerMessage}`).not.toContain(readFileSync(unknown, 'utf8'))
      }
    })
  })

  test('is asked for nothing once the deadline has passed, logged in or not', async () => {
    const opened = withToken()
    const passed = AbortSignal.abort()
    expect(await opened.failure('secret/app', passed)).toMatchObject({ failure: 'manager_timeout', step: 'login' })
    expect(opened.asked).toEqual([])
    await opened.fetch('secret/app')
    expect((await opened.failure('secret/app', passed)).failure).toBe('manager_timeout')
    expect(opened.asked).toHaveLength(3)
  })

  // The last one: nothing else can be asked of it afterwards.
  test('that is sealed says so, to those who are logged in and to others', async () => {
    const opened = withToken()
    await opened.fetch('secret/app')
    await ask('POST', 'sys/seal')
    await expectFailure(opened, 'secret/app', 'manager_sealed', 'read', 'sealed')
    await expectFailure(withToken(), 'secret/app', 'manager_sealed', 'login', 'sealed')
  })
})
