import { beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { openAuthConfig } from '../src/secret-references/sealed-auth-config.ts'
import { listAllowedWorkspaces } from '../src/secret-references/store.ts'
import { DIALECTS } from './support/database.ts'
import { type Scenario, scenarios, useWorld } from './support/scenario.ts'
import { addWorkspace } from './support/tenants.ts'

// File 04, the table of PUT; decision 44.

const TOKEN = 'hvs.CAESIJ-a-token-of-nobody-XYZ'
const MASK = 'hv*****XYZ'
const OTHER_TOKEN = 'hvs.CAESIJ-another-token-of-nobody'
const SECRET_ID = '6a174c20-f6de-a53c-74d2-6018fcceff64'
const CLIENT_SECRET = 'abc8Q~client-secret-of-nobody-at-all'
const BASE = '/v1/secret-references'

const TOKEN_AUTH = { vault_auth_type: 'token', vault_addr: 'https://vault.example.com:8200', vault_token: TOKEN }
const APPROLE_AUTH = {
  vault_auth_type: 'approle',
  vault_addr: 'https://vault.example.com:8200',
  vault_namespace: 'admin',
  vault_role_id: 'role',
  vault_secret_id: SECRET_ID,
  vault_auth_mount: 'approle-eu',
}
const ENTRA_AUTH = {
  azure_auth_mode: 'entra',
  azure_entra_tenant_id: 'tenant.example',
  azure_entra_client_id: 'client',
  azure_entra_client_secret: CLIENT_SECRET,
  azure_vault_url: 'https://team.vault.azure.net',
}
const ROLE_AUTH = {
  aws_auth_type: 'assumedRole',
  aws_role_arn: 'arn:aws:iam::123456789012:role/reader',
  aws_external_id: 'ext-1',
  aws_region: 'eu-west-1',
}

const STORED = {
  token: { name: 'token', manager_type: 'hashicorp_vault', secret_path: 'secret/a', auth_config: TOKEN_AUTH },
  approle: { name: 'approle', manager_type: 'hashicorp_vault', secret_path: 'secret/a', auth_config: APPROLE_AUTH },
  entra: { name: 'entra', manager_type: 'azure_kv', secret_path: 'a', auth_config: ENTRA_AUTH },
  role: { name: 'role', manager_type: 'aws_sm', secret_path: 'a', auth_config: ROLE_AUTH },
} as const
type Kind = keyof typeof STORED

describe.each(DIALECTS)('updates of secret references: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names }) => {
    const other = await addWorkspace(gatehouse, made.organisation_id)
    Object.assign(names, { other: other.workspaceId, other_slug: other.workspaceSlug })
  })

  const create = async (kind: Kind, name = 'id') => {
    const { body } = await world().call('POST', BASE, STORED[kind])
    world().names[name] = body.id
    return body.id as string
  }
  const rowOf = async (id: string) => {
    const { secretReferences: t } = world().gatehouse.read.tables
    const [row] = await world().gatehouse.read.select().from(t).where(eq(t.id, id))
    return row!
  }
  const storedAuth = async (id: string) => openAuthConfig(world().gatehouse.keyring(), await rowOf(id))
  const workspacesOf = (id: string) => listAllowedWorkspaces(world().gatehouse.read, id)

  describe('what is not secret', () => {
    beforeAll(() => create('token'))
    const reads = (name: string, answer: object): Scenario => ({ name, call: `GET ${BASE}/$id`, expect: 200, answer })
    scenarios(`PUT ${BASE}/$id`, world, [
      {
        name: 'every field that can be changed',
        body: {
          name: 'Renamed',
          description: 'd',
          secret_path: 'kv/b',
          secret_key: 'k',
          tags: { team: 'core' },
          cache_seconds: 60,
          organisation_id: '$organisation_id',
        },
        expect: 200,
        answer: {},
      },
      reads('is changed, and nothing else is', {
        name: 'Renamed',
        slug: 'token',
        description: 'd',
        secret_path: 'kv/b',
        secret_key: 'k',
        tags: { team: 'core' },
        cache_seconds: 60,
        allow_all_workspaces: true,
        auth_config: { vault_addr: TOKEN_AUTH.vault_addr, masked_vault_token: MASK },
      }),
      {
        name: 'the new tags are found',
        call: `GET ${BASE}?tags=%7B%22team%22:%22core%22%7D`,
        expect: 200,
        answer: { total: 1 },
      },
      {
        name: 'manager_type and slug mean nothing',
        body: { manager_type: 'aws_sm', slug: 'other', description: 'e' },
        expect: 200,
      },
      reads('and stay', { manager_type: 'hashicorp_vault', slug: 'token', description: 'e' }),
      {
        name: 'null clears what can be cleared',
        body: { description: null, secret_key: null, tags: null, cache_seconds: null },
        expect: 200,
      },
      { ...reads('is cleared', { description: null, secret_key: null, tags: null }), notMentions: 'cache_seconds' },
      {
        name: 'the old tags find nothing',
        call: `GET ${BASE}?tags=%7B%22team%22:%22core%22%7D`,
        expect: 200,
        answer: { total: 0 },
      },
      { name: 'by its slug', call: `PUT ${BASE}/token`, body: { description: 'by slug' }, expect: 200 },
      { name: 'its own id repeated is no change of it', body: { id: '$id', description: 'f' }, expect: 200 },
      {
        name: 'another one is refused',
        body: { id: '$other', description: 'f' },
        expect: 'invalid',
        mentions: '"param":"id"',
      },
      { name: 'a name cannot be cleared', body: { name: null }, expect: 'invalid', mentions: '"param":"name"' },
      { name: 'nor a path', body: { secret_path: null }, expect: 'invalid', mentions: '"param":"secret_path"' },
      { name: 'nor an auth_config', body: { auth_config: null }, expect: 'invalid', mentions: '"param":"auth_config"' },
      {
        name: 'a path of another manager is refused',
        body: { secret_path: 'secret' },
        expect: 'invalid',
        mentions: 'MOUNT/PATH',
      },
      {
        name: 'an unknown field is refused',
        body: { description: 'g', status: 'ACTIVE' },
        expect: 'invalid',
        mentions: '"param":"status"',
      },
      ...[
        {},
        { manager_type: 'hashicorp_vault', slug: 'token' },
        { auth_config: {} },
        { auth_config: { masked_vault_token: MASK } },
        { allow_all_workspaces: null, allowed_workspaces: null },
        { organisation_id: null },
      ].map(
        (body): Scenario => ({
          name: `nothing to change: ${JSON.stringify(body)}`,
          body,
          expect: 'invalid',
          mentions: 'nothing to update',
        }),
      ),
      { name: 'an unknown reference', call: `PUT ${BASE}/nowhere`, body: { name: 'x' }, expect: 'not_found' },
    ])
  })

  describe('who may use it', () => {
    beforeAll(() => create('token'))
    const access = async () => {
      const id = world().names['id'] ?? ''
      return [(await rowOf(id)).allowAllWorkspaces, (await workspacesOf(id)).map((each) => each.id).sort()] as const
    }
    const put = async (body: object): Promise<number> =>
      (await world().call('PUT', `${BASE}/${world().names['id']}`, body)).status

    test('a list closes it to all others; all opens it to all', async () => {
      const { made, names } = world()
      const [own, other] = [made.workspace_id, names['other'] ?? '']
      expect(await access()).toEqual([true, []])
      expect(await put({ allowed_workspaces: [names['other_slug'], own, other] })).toBe(200)
      expect(await access()).toEqual([false, [own, other].sort()])
      expect(await put({ allowed_workspaces: [other], allow_all_workspaces: false })).toBe(200)
      expect(await access()).toEqual([false, [other]])
      expect(await put({ allow_all_workspaces: false })).toBe(200)
      expect(await access()).toEqual([false, [other]])
      expect(await put({ allow_all_workspaces: true })).toBe(200)
      expect(await access()).toEqual([true, []])
      // What was there before is not there again.
      expect(await put({ allow_all_workspaces: false })).toBe(200)
      expect(await access()).toEqual([false, []])
    })

    test('a list that is refused changes nothing', async () => {
      const before = await access()
      const { names } = world()
      for (const body of [
        { allowed_workspaces: [], description: 'x' },
        { allowed_workspaces: [names['other'], 'nowhere'], description: 'x' },
        { allowed_workspaces: [names['other']], allow_all_workspaces: true, description: 'x' },
      ])
        expect(await put(body)).toBe(400)
      expect(await access()).toEqual(before)
      expect((await rowOf(names['id'] ?? '')).description).toBeNull()
    })
  })

  /** An update of a fresh reference's auth_config, and what is stored then; or what it is refused with. */
  interface Merge {
    name: string
    of: Kind
    sent: Record<string, unknown>
    stored?: Record<string, unknown>
    refused?: string[]
  }
  const MERGES: Merge[] = [
    {
      name: 'a new secret',
      of: 'token',
      sent: { vault_token: OTHER_TOKEN },
      stored: { ...TOKEN_AUTH, vault_token: OTHER_TOKEN },
    },
    {
      name: 'all but the secret',
      of: 'token',
      sent: { vault_auth_type: 'token', vault_addr: TOKEN_AUTH.vault_addr },
      stored: TOKEN_AUTH,
    },
    {
      name: 'what was read, sent back',
      of: 'token',
      sent: { ...TOKEN_AUTH, vault_token: undefined, masked_vault_token: MASK },
      stored: TOKEN_AUTH,
    },
    { name: 'the mask under the name of the secret', of: 'token', sent: { vault_token: MASK }, stored: TOKEN_AUTH },
    {
      name: 'a masked field of any name',
      of: 'token',
      sent: { masked_vault_token: OTHER_TOKEN, masked_x: 'y', vault_addr: TOKEN_AUTH.vault_addr },
      stored: TOKEN_AUTH,
    },
    {
      name: 'the mask of an older secret',
      of: 'token',
      sent: { vault_token: 'ab*****cde' },
      refused: ['auth_config.vault_token: is a masked value; send the secret itself'],
    },
    {
      name: 'the mask of a short secret',
      of: 'token',
      sent: { vault_token: '*****' },
      refused: ['auth_config.vault_token: is a masked value; send the secret itself'],
    },
    {
      name: 'a secret emptied',
      of: 'token',
      sent: { vault_token: '' },
      refused: ['auth_config.vault_token: must be a string of 1 to 4096 characters'],
    },
    {
      name: 'a secret taken away',
      of: 'token',
      sent: { vault_token: null },
      refused: ['auth_config.vault_token: is required with vault_auth_type = "token"'],
    },
    {
      name: 'an optional field taken away',
      of: 'role',
      sent: { aws_external_id: null },
      stored: { ...ROLE_AUTH, aws_external_id: undefined },
    },
    {
      name: 'no secret of another shape',
      of: 'token',
      sent: { vault_role_id: 'x' },
      refused: ['auth_config.vault_role_id: is not for vault_auth_type = "token"; leave it out'],
    },
    {
      name: 'no field of another manager',
      of: 'token',
      sent: { aws_auth_type: 'serviceRole' },
      refused: [
        'auth_config.aws_auth_type: manager_type "hashicorp_vault" takes vault_auth_type = token, approle or kubernetes',
      ],
    },
    {
      name: 'a misspelt field',
      of: 'token',
      sent: { vault_tokn: OTHER_TOKEN },
      refused: ['auth_config.vault_tokn: unknown field; did you mean "vault_token"?'],
    },
    {
      name: 'another region',
      of: 'role',
      sent: { aws_region: 'eu-west-2' },
      stored: { ...ROLE_AUTH, aws_region: 'eu-west-2' },
    },
    {
      name: 'another role',
      of: 'approle',
      sent: { vault_role_id: 'other' },
      stored: { ...APPROLE_AUTH, vault_role_id: 'other' },
    },

    {
      name: 'another shape with what it needs',
      of: 'token',
      sent: { vault_auth_type: 'approle', vault_role_id: 'r', vault_secret_id: SECRET_ID },
      stored: {
        vault_auth_type: 'approle',
        vault_addr: TOKEN_AUTH.vault_addr,
        vault_role_id: 'r',
        vault_secret_id: SECRET_ID,
      },
    },
    {
      name: 'another shape, the old secret taken away by name',
      of: 'token',
      sent: { vault_auth_type: 'kubernetes', vault_role: 'r', vault_token: null },
      stored: { vault_auth_type: 'kubernetes', vault_addr: TOKEN_AUTH.vault_addr, vault_role: 'r' },
    },
    {
      name: 'another shape without its secret',
      of: 'token',
      sent: { vault_auth_type: 'approle', vault_role_id: 'r' },
      refused: ['auth_config.vault_secret_id: is required with vault_auth_type = "approle"'],
    },
    {
      name: 'another shape with the old secret',
      of: 'token',
      sent: { vault_auth_type: 'kubernetes', vault_role: 'r', vault_token: OTHER_TOKEN },
      refused: ['auth_config.vault_token: is not for vault_auth_type = "kubernetes"; leave it out'],
    },
    {
      name: 'a shape that is none',
      of: 'token',
      sent: { vault_auth_type: 'ldap' },
      refused: ['auth_config.vault_auth_type: must be token, approle or kubernetes'],
    },
    {
      name: 'a shape without secrets',
      of: 'entra',
      sent: { azure_auth_mode: 'default' },
      stored: { azure_auth_mode: 'default', azure_vault_url: ENTRA_AUTH.azure_vault_url },
    },

    // Decision 44: a stored secret goes only where it went.
    {
      name: 'another address',
      of: 'token',
      sent: { vault_addr: 'https://evil.example' },
      refused: ['auth_config.vault_token: vault_addr changes, so send vault_token again'],
    },
    {
      name: 'another port',
      of: 'token',
      sent: { vault_addr: 'https://vault.example.com:8201' },
      refused: ['auth_config.vault_token: vault_addr changes, so send vault_token again'],
    },
    {
      name: 'another scheme',
      of: 'token',
      sent: { vault_addr: 'http://vault.example.com:8200' },
      refused: ['auth_config.vault_token: vault_addr changes, so send vault_token again'],
    },
    {
      name: 'another address with the mask of the secret',
      of: 'token',
      sent: { vault_addr: 'https://evil.example', vault_token: MASK },
      refused: ['auth_config.vault_token: vault_addr changes, so send vault_token again'],
    },
    {
      name: 'another address with the secret masked',
      of: 'token',
      sent: { vault_addr: 'https://evil.example', masked_vault_token: MASK },
      refused: ['auth_config.vault_token: vault_addr changes, so send vault_token again'],
    },
    {
      name: 'another address with some mask',
      of: 'token',
      sent: { vault_addr: 'https://evil.example', vault_token: '*****' },
      refused: ['auth_config.vault_token: is a masked value; send the secret itself'],
    },
    {
      name: 'another address with the secret',
      of: 'token',
      sent: { vault_addr: 'https://v2.example.com', vault_token: TOKEN },
      stored: { ...TOKEN_AUTH, vault_addr: 'https://v2.example.com' },
    },
    {
      name: 'the same address in another spelling',
      of: 'token',
      sent: { vault_addr: 'https://VAULT.example.com:8200/' },
      stored: { ...TOKEN_AUTH, vault_addr: 'https://VAULT.example.com:8200/' },
    },
    {
      name: 'a namespace where there was none',
      of: 'token',
      sent: { vault_namespace: 'evil' },
      refused: ['auth_config.vault_token: vault_namespace changes, so send vault_token again'],
    },
    {
      name: 'no namespace where there was one',
      of: 'approle',
      sent: { vault_namespace: null },
      refused: ['auth_config.vault_secret_id: vault_namespace changes, so send vault_secret_id again'],
    },
    {
      name: 'another mount of the login',
      of: 'approle',
      sent: { vault_auth_mount: 'evil' },
      refused: ['auth_config.vault_secret_id: vault_auth_mount changes, so send vault_secret_id again'],
    },
    {
      name: 'everything about the address',
      of: 'approle',
      sent: { vault_addr: 'https://evil.example', vault_namespace: 'e', vault_auth_mount: null },
      refused: [
        'auth_config.vault_secret_id: vault_addr and vault_namespace and vault_auth_mount change, so send vault_secret_id again',
      ],
    },
    {
      name: 'another vault',
      of: 'entra',
      sent: { azure_vault_url: 'https://evil.vault.azure.net' },
      refused: [
        'auth_config.azure_entra_client_secret: azure_vault_url changes, so send azure_entra_client_secret again',
      ],
    },
    {
      name: 'another directory',
      of: 'entra',
      sent: { azure_entra_tenant_id: 'evil.example' },
      refused: [
        'auth_config.azure_entra_client_secret: azure_entra_tenant_id changes, so send azure_entra_client_secret again',
      ],
    },
    {
      name: 'another address of a shape without secrets',
      of: 'token',
      sent: { vault_auth_type: 'kubernetes', vault_role: 'r', vault_addr: 'https://v2.example.com' },
      stored: { vault_auth_type: 'kubernetes', vault_addr: 'https://v2.example.com', vault_role: 'r' },
    },
    {
      name: 'two mistakes at once',
      of: 'token',
      sent: { vault_addr: 'https://evil.example/v1', vault_tokn: 'x' },
      refused: [
        'auth_config.vault_addr: must be a URL such as https://vault.example.com:8200, without user, path, query, fragment or a dot at the end of the host',
        'auth_config.vault_tokn: unknown field; did you mean "vault_token"?',
        'auth_config.vault_token: vault_addr changes, so send vault_token again',
      ],
    },
  ]

  test.each(MERGES)('auth_config: $name', async ({ of, sent, stored, refused }) => {
    const id = await create(of)
    const before = await rowOf(id)
    const answer = await world().call('PUT', `${BASE}/${id}`, { auth_config: sent })
    for (const secret of [TOKEN, OTHER_TOKEN, SECRET_ID, CLIENT_SECRET]) expect(answer.text).not.toContain(secret)
    if (refused === undefined) {
      expect(answer.body).toEqual({})
      expect(await storedAuth(id)).toEqual(JSON.parse(JSON.stringify(stored)))
      expect((await rowOf(id)).revision).toBe(2)
    } else {
      const complaints: { path: string; message: string }[] = answer.body.errors
      expect(complaints.map(({ path, message }) => `${path}: ${message}`)).toEqual(refused)
      expect(await rowOf(id)).toEqual(before)
    }
  })

  test('a region that the stored ARN contradicts is refused', async () => {
    const arn = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:a-AbCdEf'
    const { body } = await world().call('POST', BASE, { ...STORED.role, secret_path: arn })
    const put = (sent: object) => world().call('PUT', `${BASE}/${body.id}`, sent)
    expect((await put({ auth_config: { aws_region: 'eu-west-2' } })).body.message).toStartWith('secret_path: ')
    const moved = arn.replace('eu-west-1', 'eu-west-2')
    expect((await put({ auth_config: { aws_region: 'eu-west-2' }, secret_path: moved })).status).toBe(200)
  })

  test('updates at the same time lose nothing of each other', async () => {
    const id = await create('approle')
    const updates = [
      { auth_config: { vault_role_id: 'new role' } },
      { auth_config: { vault_secret_id: 'a new secret id of nobody' } },
      { description: 'd' },
      { tags: { a: 1 } },
      { cache_seconds: 5 },
      ...Array.from({ length: 10 }, (_, i) => ({ secret_key: `k${i}` })),
    ]
    const answers = await Promise.all(updates.map((body) => world().call('PUT', `${BASE}/${id}`, body)))
    expect(answers.map(({ status }) => status)).toEqual(updates.map(() => 200))
    expect(await storedAuth(id)).toMatchObject({
      vault_role_id: 'new role',
      vault_secret_id: 'a new secret id of nobody',
    })
    expect(await rowOf(id)).toMatchObject({
      description: 'd',
      cacheSeconds: 5,
      tags: '{"a":1}',
      revision: updates.length + 1,
    })
  })

  test('of an update and a deletion at the same time, what comes first wins', async () => {
    const id = await create('token')
    const [put, gone] = await Promise.all([
      world().call('PUT', `${BASE}/${id}`, { description: 'd', tags: { a: 1 } }),
      world().call('DELETE', `${BASE}/${id}`),
    ])
    expect(gone?.status).toBe(200)
    expect([200, 404]).toContain(put?.status ?? 0)
    expect(await rowOf(id)).toBeUndefined()
  })
})
