import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { AuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import { missingGrant } from '../../src/secret-managers/grants.ts'
import type { Reference } from '../../src/secret-managers/values.ts'

type Grant = Config['secret_managers']['machine_identity'][number]

const PROD = { id: '11111111-1111-4111-8111-111111111111', slug: 'prod' }
const DEV = { id: '22222222-2222-4222-8222-222222222222', slug: 'dev' }
const ROLE = 'arn:aws:iam::123456789012:role/gateway'
const ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/openai-AbCdEf'

const serviceRole: AuthConfig = { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' }
const assumedRole: AuthConfig = { aws_auth_type: 'assumedRole', aws_role_arn: ROLE, aws_region: 'eu-west-1' }
const managed: AuthConfig = { azure_auth_mode: 'managed', azure_vault_url: 'https://t1.vault.azure.net' }
const managedAs: AuthConfig = { ...managed, azure_managed_client_id: 'client-1' }
const azureDefault: AuthConfig = { azure_auth_mode: 'default', azure_vault_url: 'https://t1.vault.azure.net/' }
const kubernetes: AuthConfig = {
  vault_auth_type: 'kubernetes',
  vault_addr: 'https://vault.int:8200',
  vault_role: 'gateway',
}

const used = (secretPath = 'prod/openai', workspaces: Reference['workspaces'] = [PROD]) => ({ secretPath, workspaces })
const forProd = { workspaces: ['prod'], paths: ['prod/openai'] }

/** For each shape, a grant that covers it with nothing to spare. */
const GRANTS: [AuthConfig, Grant][] = [
  [serviceRole, { kind: 'aws_service_role', ...forProd }],
  [assumedRole, { kind: 'aws_assumed_role', ...forProd, role_arns: [ROLE] }],
  [managed, { kind: 'azure_managed', ...forProd, vault_addr: ['https://t1.vault.azure.net'], client_ids: ['*'] }],
  [
    managedAs,
    { kind: 'azure_managed', ...forProd, vault_addr: ['https://t1.vault.azure.net'], client_ids: ['client-1'] },
  ],
  [azureDefault, { kind: 'azure_default', ...forProd, vault_addr: ['https://t1.vault.azure.net'] }],
  [
    kubernetes,
    { kind: 'vault_kubernetes', ...forProd, vault_addr: ['https://vault.int:8200'], vault_roles: ['gateway'] },
  ],
]
const EXACT = GRANTS.map(([shape, grant]) => [grant.kind, shape, grant] as const)

describe('each shape that uses the machine’s own identity', () => {
  test.each(EXACT)('%s is refused without a grant', (_kind, shape) => {
    expect(missingGrant(shape, used(), [])).toBeString()
  })

  test.each(EXACT)('%s is covered by a grant that names all of it', (_kind, shape, grant) => {
    expect(missingGrant(shape, used(), [grant])).toBeUndefined()
  })

  test.each(EXACT)('%s is covered by no grant that leaves one of its lists out, or empty', (_kind, shape, grant) => {
    for (const list of Object.keys(grant).filter((name) => name !== 'kind')) {
      expect(missingGrant(shape, used(), [{ ...grant, [list]: [] }]), `${list} = []`).toBeString()
      const { [list as 'paths']: _left, ...rest } = grant
      expect(missingGrant(shape, used(), [rest]), `no ${list}`).toBeString()
      expect(missingGrant(shape, used(), [{ ...grant, [list]: ['other'] }]), `other ${list}`).toBeString()
    }
  })

  test.each(EXACT)('%s is not covered by the grant of another shape', (_kind, shape, grant) => {
    const others = EXACT.map(([kind]) => kind).filter((kind) => kind !== grant.kind)
    for (const kind of others) expect(missingGrant(shape, used(), [{ ...everything, kind }]), kind).toBeString()
  })

  test.each(EXACT)('%s is covered by the lines that its refusal tells to add', (_kind, shape) => {
    for (const reach of [[PROD], [PROD, DEV], 'all', []] as const) {
      const lines = missingGrant(shape, used('prod/"odd" \\path', reach), []) ?? ''
      const [grant] = (Bun.TOML.parse(lines) as { secret_managers: { machine_identity: Grant[] } }).secret_managers
        .machine_identity
      // a role ARN is masked wherever the reference is shown, so its reader has to fill it in
      if (grant?.role_arns !== undefined) grant.role_arns = [ROLE]
      expect(missingGrant(shape, used('prod/"odd" \\path', reach), grant === undefined ? [] : [grant])).toBeUndefined()
    }
  })

  test('the lines hold no role ARN', () => {
    expect(missingGrant(assumedRole, used(), [])).not.toContain('123456789012')
  })
})

const everything = {
  workspaces: ['*'],
  paths: ['*'],
  role_arns: ['*'],
  client_ids: ['*'],
  vault_addr: ['*'],
  vault_roles: ['*'],
}

test.each<AuthConfig>([
  { aws_auth_type: 'accessKey', aws_access_key_id: 'a', aws_secret_access_key: 'b', aws_region: 'eu-west-1' },
  {
    azure_auth_mode: 'entra',
    azure_entra_tenant_id: 't',
    azure_entra_client_id: 'c',
    azure_entra_client_secret: 's',
    azure_vault_url: 'https://t1.vault.azure.net',
  },
  { vault_auth_type: 'token', vault_addr: 'https://vault.int', vault_token: 't' },
  { vault_auth_type: 'approle', vault_addr: 'https://vault.int', vault_role_id: 'r', vault_secret_id: 's' },
])('a shape with credentials of its own needs no grant: %j', (shape) => {
  expect(missingGrant(shape, used(), [])).toBeUndefined()
})

describe('workspaces', () => {
  const granted = (workspaces: string[], reach: Reference['workspaces']) =>
    missingGrant(serviceRole, used('p', reach), [{ kind: 'aws_service_role', workspaces, paths: ['*'] }]) === undefined

  test.each<[string, boolean, string[], Reference['workspaces']]>([
    ['by slug', true, ['prod'], [PROD]],
    ['by id', true, [PROD.id], [PROD]],
    ['all of them', true, ['prod', DEV.id], [DEV, PROD]],
    ['one that may use the reference is not named', false, ['prod'], [PROD, DEV]],
    ['another workspace', false, ['dev'], [PROD]],
    ['a slug is not a prefix', false, ['pro*', 'p'], [PROD]],
    ['a star behind a slug is no star', false, ['prod*'], [PROD]],
    ['open to all needs *', false, ['prod', 'dev'], 'all'],
    ['open to all with *', true, ['*'], 'all'],
    ['open to nobody is left to the organisation, which needs *', false, ['prod'], []],
    ['open to nobody with *', true, ['*'], []],
    ['a slug that is the id of a granted one', false, [PROD.id], [{ id: DEV.id, slug: PROD.id }]],
  ])('%s: %p', (_name, expected, workspaces, reach) => {
    expect(granted(workspaces, reach)).toBe(expected)
  })

  test('two grants do not add up to one', () => {
    const halves = ['prod', 'dev'].map(
      (slug): Grant => ({ kind: 'aws_service_role', workspaces: [slug], paths: ['*'] }),
    )
    expect(missingGrant(serviceRole, used('p', [PROD, DEV]), halves)).toBeString()
  })

  test('a further workspace never makes a reference granted', () => {
    const names = fc.subarray(['prod', 'dev', PROD.id, DEV.id, '*'])
    fc.assert(
      fc.property(names, fc.subarray([PROD, DEV], { minLength: 1 }), (named, reach) => {
        if (granted(named, [PROD, DEV])) expect(granted(named, reach)).toBe(true)
        if (granted(named, 'all')) expect(granted(named, reach)).toBe(true)
      }),
    )
  })
})

describe('paths and names', () => {
  test.each<[boolean, string, string]>([
    [true, 'prod/openai', 'prod/openai'],
    [true, 'prod/*', 'prod/openai'],
    [true, 'prod/*', 'prod/'],
    [true, '*', ARN],
    [false, 'prod/*', 'prod'],
    [false, 'prod/*', 'dev/prod/openai'],
    [false, 'prod/openai', 'prod/openai2'],
    [false, '*/openai', 'prod/openai'],
    [false, 'prod/*/key', 'prod/openai/key'],
    [false, 'PROD/*', 'prod/openai'],
    [false, 'prod/*', ARN],
    [true, ARN, ARN],
    [true, 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/*', ARN],
    [true, 'arn:aws:secretsmanager:eu-west-1:123456789012:*', ARN],
    // a star must not stand for the rest of an account or of a region
    [false, 'arn:aws:secretsmanager:eu-west-1:123456789012*', ARN],
    [false, 'arn:aws:secretsmanager:eu-west-1:1*', ARN],
    [false, 'arn:aws:secretsmanager:eu*', ARN],
    [false, 'arn:*', ARN],
    [false, 'a*', ARN],
    [false, 'arn:aws:secretsmanager:*:123456789012:secret:prod/openai-AbCdEf', ARN],
    [false, '', 'prod/openai'],
  ])('%p: the pattern %p, the path %p', (expected, pattern, path) => {
    const grant: Grant = { kind: 'aws_service_role', workspaces: ['*'], paths: [pattern] }
    expect(missingGrant(serviceRole, used(path), [grant]) === undefined).toBe(expected)
  })

  test.each<[boolean, string]>([
    [true, ROLE],
    [true, 'arn:aws:iam::123456789012:role/*'],
    [true, '*'],
    [false, 'arn:aws:iam::12*'],
    [false, 'arn:aws:iam::123456789013:role/*'],
    [false, `${ROLE}2`],
  ])('%p: the role %p', (expected, role) => {
    const grant: Grant = { kind: 'aws_assumed_role', ...forProd, role_arns: [role] }
    expect(missingGrant(assumedRole, used(), [grant]) === undefined).toBe(expected)
  })

  test.each<[boolean, string]>([
    [true, 'https://vault.int:8200'],
    [true, 'https://vault.int:8200/'],
    [true, '*'],
    // our service account's token would go to whoever registers the rest of the name
    [false, 'https://vault.int*'],
    [false, 'https://vault.int:8200*'],
    [false, 'https://vault.int'],
    [false, 'http://vault.int:8200'],
    [false, 'vault.int:8200'],
  ])('%p: the address %p', (expected, address) => {
    const grant: Grant = { kind: 'vault_kubernetes', ...forProd, vault_roles: ['*'], vault_addr: [address] }
    expect(missingGrant(kubernetes, used(), [grant]) === undefined).toBe(expected)
  })

  test('a managed identity without client id is covered by * alone', () => {
    const grant: Grant = { kind: 'azure_managed', ...forProd, vault_addr: ['*'], client_ids: ['client-1', 'c*'] }
    expect(missingGrant(managed, used(), [grant])).toBeString()
    expect(missingGrant(managedAs, used(), [grant])).toBeUndefined()
  })
})
