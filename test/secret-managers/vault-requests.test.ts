import { describe, expect, test } from 'bun:test'
import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { APPROLE, type CannedAnswer, mount, ok, refused, secret, TOKEN, vaultDouble } from './vault-double.ts'

// What is sent to Vault, and what never is (decision 48, P18, SM-10).

const LOGIN = 'POST auth/approle/login'
const LOOK_UP = 'GET auth/token/lookup-self'
const MOUNT = 'GET sys/internal/ui/mounts/secret/app'
const SECRET = 'GET secret/data/app'

describe('what is sent', () => {
  const withNamespace = { ...APPROLE, vault_namespace: 'team/a' }

  test('the namespace goes with every request, the login token with those after the login', async () => {
    const double = vaultDouble(withNamespace)
    await double.fetch()
    expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET])
    expect(double.requests.map(({ headers, reach }): object => ({ reach, ...headers }))).toEqual([
      { reach: 'listed', 'X-Vault-Request': 'true', 'X-Vault-Namespace': 'team/a', 'Content-Type': 'application/json' },
      {
        reach: 'listed',
        'X-Vault-Request': 'true',
        'X-Vault-Namespace': 'team/a',
        'X-Vault-Token': 'hvs.of-the-login',
      },
      {
        reach: 'listed',
        'X-Vault-Request': 'true',
        'X-Vault-Namespace': 'team/a',
        'X-Vault-Token': 'hvs.of-the-login',
      },
    ])
    expect(double.requests.map(({ body }) => body)).toEqual([
      JSON.stringify({ role_id: 'role-of-the-config', secret_id: 'secret-of-the-config' }),
      undefined,
      undefined,
    ])
    expect(double.steps).toEqual(['login', 'read', 'parse'])
  })

  test("nothing of this machine's environment", async () => {
    const ambient = {
      VAULT_ADDR: 'https://other.example.com',
      VAULT_TOKEN: 't',
      VAULT_NAMESPACE: 'n',
      VAULT_PREFIX: '/p',
    }
    Object.assign(process.env, ambient)
    try {
      const double = vaultDouble(APPROLE)
      await double.fetch()
      expect(double.asked()).toEqual([LOGIN, MOUNT, SECRET])
      expect(Object.keys(double.requests[0]!.headers).sort()).toEqual(['Content-Type', 'X-Vault-Request'])
      expect(double.requests[1]!.headers['X-Vault-Namespace']).toBeUndefined()
    } finally {
      for (const name of Object.keys(ambient)) delete process.env[name]
    }
  })

  test('a slash after the address changes nothing', async () => {
    const double = vaultDouble({ ...TOKEN, vault_addr: `${TOKEN.vault_addr}/` })
    await double.failure()
    expect(double.requests[0]!.url).toBe(`${TOKEN.vault_addr}/v1/auth/token/lookup-self`)
  })

  test.each([
    ['kv/../sys/seal-status'],
    ['secret/data/../../sys/seal-status'],
    ['secret/./app'],
    ['secret//app'],
    ['/secret/app'],
    ['secret/app/'],
    ['secret/app?list=true'],
    ['secret/app#fragment'],
    ['secret/%2e%2e/sys/seal-status'],
    ['secret\\app'],
    ['secret/a\npp'],
    ['secret/a\0pp'],
    ['secret'],
    [''],
    ['..'],
  ])('nothing at all for the path %j', async (path) => {
    const double = vaultDouble(APPROLE)
    const error = await double.failure(path)
    expect([error.failure, error.step]).toEqual(['manager_config', 'read'])
    expect(error.message).toStartWith('secret_path: ')
    expect(double.requests).toEqual([])
  })

  test.each([
    ['secret/my app', 'secret/data/my%20app'],
    ['secret/ärger', 'secret/data/%C3%A4rger'],
    ['secret/a+b&c=d;e', 'secret/data/a%2Bb%26c%3Dd%3Be'],
    ['secret/&amp;x2F;', 'secret/data/%26amp%3Bx2F%3B'],
    ['secret/...', 'secret/data/...'],
  ])('the path %j, letter by letter', async (path, sent) => {
    const asked = `GET sys/internal/ui/mounts/${sent.replace('/data', '')}`
    const double = vaultDouble(TOKEN, { [asked]: mount('secret/'), [`GET ${sent}`]: secret({ key: 'value' }) })
    expect((await double.fetch(path)).content).toEqual({ key: 'value' })
  })

  test.each([['..'], ['a/../b'], ['a//b'], ['/a'], ['a b'], ['a?b'], ['']])(
    'nothing at all for the auth mount %j',
    async (vault_auth_mount) => {
      const double = vaultDouble({ ...APPROLE, vault_auth_mount } as VaultAuthConfig)
      const error = await double.failure()
      expect([error.failure, error.step]).toEqual(['manager_config', 'login'])
      expect(double.requests).toEqual([])
    },
  )

  test('no token that cannot stand in a header', async () => {
    const double = vaultDouble({ ...TOKEN, vault_token: 'hvs.pasted\n' } as VaultAuthConfig)
    const error = await double.failure()
    expect([error.failure, error.step]).toEqual(['manager_config', 'login'])
    expect(error.message).toContain('auth_config.vault_token')
    expect(double.requests).toEqual([])
  })
})

describe('which path is read', () => {
  test.each<[path: string, mount: CannedAnswer, read: string]>([
    ['secret/app', mount('secret/'), 'secret/data/app'],
    ['secret/data/app', mount('secret/'), 'secret/data/app'],
    ['secret/data/data/app', mount('secret/'), 'secret/data/data/app'],
    ['secret/data', mount('secret/'), 'secret/data/data'],
    ['team/kv/a/b', mount('team/kv/'), 'team/kv/data/a/b'],
    ['team/data/kv/a', mount('team/data/kv/'), 'team/data/kv/data/a'],
    ['old/app', mount('old/', 'kv', null), 'old/app'],
    ['old/data/app', mount('old/', 'kv', { version: '1' }), 'old/data/app'],
    ['older/app', mount('older/', 'generic', null), 'older/app'],
  ])('%s', async (path, answer, read) => {
    const held = read.startsWith('old') ? ok({ data: { key: 'value' } }) : secret({ key: 'value' })
    const double = vaultDouble(TOKEN, { [`GET sys/internal/ui/mounts/${path}`]: answer, [`GET ${read}`]: held })
    expect((await double.fetch(path)).content).toEqual({ key: 'value' })
  })

  test.each([
    ['auth/token/lookup-self', 'token', 'token/'],
    ['auth/token/lookup-self', 'token', 'auth/token/'],
    ['sys/seal-status', 'system', 'sys/'],
    ['cubbyhole/app', 'cubbyhole', 'cubbyhole/'],
    ['identity/entity', 'identity', 'identity/'],
    ['database/creds/app', 'database', 'database/'],
  ])('%s is none: its mount is no kv', async (path, type, mountPath) => {
    const double = vaultDouble(APPROLE, { [`GET sys/internal/ui/mounts/${path}`]: mount(mountPath, type, null) })
    const error = await double.failure(path)
    expect([error.failure, error.step]).toEqual(['manager_config', 'read'])
    expect(double.asked()).toEqual([LOGIN, `GET sys/internal/ui/mounts/${path}`])
  })

  test('a mount alone holds no secret', async () => {
    const double = vaultDouble(TOKEN, { 'GET sys/internal/ui/mounts/team/kv': mount('team/kv/') })
    expect(await double.failure('team/kv')).toMatchObject({ failure: 'manager_config', step: 'read' })
  })

  test('is asked for once; again where nothing was there, so that a mount may be moved', async () => {
    const double = vaultDouble(TOKEN)
    await double.fetch()
    await double.fetch()
    expect(double.asked()).toEqual([LOOK_UP, MOUNT, SECRET, SECRET])
    double.answers[SECRET] = refused(404)
    await double.failure()
    double.answers[MOUNT] = mount('secret/', 'kv', null)
    double.answers['GET secret/app'] = ok({ data: { key: 'unversioned' } })
    expect(await double.fetch()).toEqual({ content: { key: 'unversioned' }, version: null })
  })

  test('of a mount that was given versions meanwhile, the corrected path is told', async () => {
    const warning = "Invalid path for a versioned K/V secrets engine. See the API docs for … use 'vault kv get'"
    const double = vaultDouble(TOKEN, {
      [MOUNT]: mount('secret/', 'kv', null),
      'GET secret/app': { status: 404, body: { warnings: [warning] } },
    })
    const error = await double.failure()
    expect([error.failure, error.step]).toEqual(['manager_config', 'read'])
    expect(error.message).toBe('secret_path: its mount keeps versions: write secret/data/app')
    double.answers[MOUNT] = mount('secret/')
    expect((await double.fetch()).version).toBe('3')
  })

  test('big integers keep their digits', async () => {
    const body = '{"data":{"data":{"id":9223372036854775807},"metadata":{"version":1}}}'
    const { content } = await vaultDouble(TOKEN, { [SECRET]: { status: 200, body } }).fetch()
    expect(JSON.stringify(content)).toBe('{"id":9223372036854775807}')
  })
})
