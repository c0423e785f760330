import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { AUTH_SHAPES, type ManagerType } from '../schema/api/secret-references.ts'
import { authConfigComplaints, pickAuthConfig } from '../src/secret-references/auth-config.ts'
import { isMask, maskAuthConfig, maskedValue } from '../src/secret-references/mask.ts'

// The nine shapes of file 04, and what is said of everything else.

const ALLOW = ['vault.int:8200', 'kv.int:8443', '10.2.0.0/16:8200']

/** One good auth_config of each shape, whole. */
const SHAPES: Record<string, [ManagerType, Record<string, string>]> = {
  'aws accessKey': [
    'aws_sm',
    {
      aws_auth_type: 'accessKey',
      aws_access_key_id: 'AKIAIOSFODNN7EXAMPLE',
      aws_secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
      aws_region: 'eu-west-1',
    },
  ],
  'aws assumedRole': [
    'aws_sm',
    {
      aws_auth_type: 'assumedRole',
      aws_role_arn: 'arn:aws:iam::123456789012:role/team/secrets-reader',
      aws_external_id: 'gatehouse:prod/1',
      aws_region: 'us-gov-west-1',
    },
  ],
  'aws serviceRole': ['aws_sm', { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' }],
  'azure entra': [
    'azure_kv',
    {
      azure_auth_mode: 'entra',
      azure_entra_tenant_id: '72f988bf-86f1-41af-91ab-2d7cd011db47',
      azure_entra_client_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
      azure_entra_client_secret: 'abc8Q~client-secret-of-nobody-at-all',
      azure_vault_url: 'https://team-kv.vault.azure.net/',
    },
  ],
  'azure managed': [
    'azure_kv',
    {
      azure_auth_mode: 'managed',
      azure_vault_url: 'https://team-kv.vault.azure.cn',
      azure_managed_client_id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
    },
  ],
  'azure default': ['azure_kv', { azure_auth_mode: 'default', azure_vault_url: 'https://kv.int:8443' }],
  'vault token': [
    'hashicorp_vault',
    {
      vault_auth_type: 'token',
      vault_addr: 'https://vault.example.com:8200',
      vault_namespace: 'admin/team-a',
      vault_token: 'hvs.CAESIJ-a-token-of-nobody',
    },
  ],
  'vault approle': [
    'hashicorp_vault',
    {
      vault_auth_type: 'approle',
      vault_addr: 'http://127.0.0.1:8200/',
      vault_namespace: 'admin',
      vault_role_id: 'db02de05-fa39-4855-059b-67221c5c2f63',
      vault_secret_id: '6a174c20-f6de-a53c-74d2-6018fcceff64',
      vault_auth_mount: 'team/approle',
    },
  ],
  'vault kubernetes': [
    'hashicorp_vault',
    {
      vault_auth_type: 'kubernetes',
      vault_addr: 'https://[2001:db8::1]:8200',
      vault_namespace: 'admin',
      vault_role: 'gatehouse',
      vault_auth_mount: 'kubernetes-eu.1',
    },
  ],
}
const REQUIRED: Record<string, string[]> = {
  'aws accessKey': ['aws_access_key_id', 'aws_secret_access_key', 'aws_region'],
  'aws assumedRole': ['aws_role_arn', 'aws_region'],
  'aws serviceRole': [],
  'azure entra': ['azure_entra_tenant_id', 'azure_entra_client_id', 'azure_entra_client_secret', 'azure_vault_url'],
  'azure managed': ['azure_vault_url'],
  'azure default': ['azure_vault_url'],
  'vault token': ['vault_addr', 'vault_token'],
  'vault approle': ['vault_addr', 'vault_role_id', 'vault_secret_id'],
  'vault kubernetes': ['vault_addr', 'vault_role'],
}
const DISCRIMINATORS = ['aws_auth_type', 'azure_auth_mode', 'vault_auth_type']

const complaintsOf = (managerType: ManagerType, fields: Record<string, unknown>): string[] =>
  authConfigComplaints(managerType, fields, ALLOW).map(({ path, message }) => `${path}: ${message}`)

describe.each(Object.entries(SHAPES))('%s', (name, [managerType, whole]) => {
  const [discriminator = ''] = Object.keys(whole)

  test('is taken whole, and as the contract has it', () => {
    expect(complaintsOf(managerType, whole)).toEqual([])
    expect(pickAuthConfig(managerType, whole)).toEqual(whole as never)
    const fitting = Object.values(AUTH_SHAPES).flatMap((shapes) => shapes.filter((shape) => Value.Check(shape, whole)))
    expect(fitting).toHaveLength(1)
  })

  test('is taken with its required fields alone', () => {
    const least = Object.fromEntries([discriminator, ...(REQUIRED[name] ?? [])].map((field) => [field, whole[field]]))
    expect(complaintsOf(managerType, least)).toEqual([])
    const withNull = Object.fromEntries(Object.keys(whole).map((field) => [field, least[field] ?? null]))
    expect(complaintsOf(managerType, withNull)).toEqual([])
    expect(pickAuthConfig(managerType, withNull)).toEqual(least as never)
  })

  test('names every required field that is missing, null or empty, all at once', () => {
    const required = REQUIRED[name] ?? []
    const choice = `${discriminator} = "${whole[discriminator]}"`
    const expected = required.map((field) => `auth_config.${field}: is required with ${choice}`)
    expect(complaintsOf(managerType, { [discriminator]: whole[discriminator] }).sort()).toEqual(expected.sort())
    const nulls = { ...whole, ...Object.fromEntries(required.map((field) => [field, null])) }
    expect(complaintsOf(managerType, nulls).sort()).toEqual(expected)
    const empty = { ...whole, ...Object.fromEntries(required.map((field) => [field, ''])) }
    expect(complaintsOf(managerType, empty)).toHaveLength(required.length)
  })

  test('takes texts alone, of a bounded length, on one line', () => {
    for (const field of Object.keys(whole).slice(1)) {
      for (const value of ['', 1, true, {}, ['x'], 'x'.repeat(4097)])
        expect(complaintsOf(managerType, { ...whole, [field]: value })).toEqual([
          `auth_config.${field}: must be a string of 1 to 4096 characters`,
        ])
      for (const value of [`${whole[field]}\n`, ` ${whole[field]}`, `${whole[field]}\u0000x`, `x\u2028`])
        expect(complaintsOf(managerType, { ...whole, [field]: value })).toEqual([
          `auth_config.${field}: must hold no line break or other control character, and no blank at either end`,
        ])
    }
  })

  test('belongs to one manager', () => {
    for (const other of ['aws_sm', 'azure_kv', 'hashicorp_vault'] as const) {
      if (other === managerType) continue
      const [only, ...rest] = complaintsOf(other, whole)
      expect(rest).toEqual([])
      expect(only).toStartWith(`auth_config.${discriminator}: manager_type "${other}" takes `)
    }
  })

  test('takes no field of another shape, nor one that nobody knows', () => {
    const foreign = Object.values(SHAPES).flatMap(([, fields]) => Object.entries(fields))
    for (const [field, value] of foreign) {
      if (Object.hasOwn(whole, field)) continue
      const [only, ...rest] = complaintsOf(managerType, { ...whole, [field]: value })
      expect(rest).toEqual([])
      expect(only).toMatch(DISCRIMINATORS.includes(field) ? / takes / : /: is (?:not )?for .*; leave it out$/)
    }
    const [first = ''] = Object.keys(whole).slice(1)
    expect(complaintsOf(managerType, { ...whole, [`${first}x`]: 'v' })).toEqual([
      `auth_config.${first}x: unknown field; did you mean "${first}"?`,
    ])
    expect(complaintsOf(managerType, { ...whole, constructor: 'v' })).toEqual([
      `auth_config.constructor: unknown field; known are ${knownOf(managerType, whole)}`,
    ])
  })

  test('shows what is no secret, and of secrets a mask', () => {
    const shown = maskAuthConfig(pickAuthConfig(managerType, whole))
    const text = JSON.stringify(shown)
    for (const [field, value] of Object.entries(whole)) {
      if (SECRETS.includes(field)) {
        expect(shown).not.toHaveProperty(field)
        expect(text).not.toContain(value)
        expect(shown[`masked_${field}`]).toBe(maskedValue(value))
      } else expect(shown[field]).toBe(value)
    }
    // What is read and created again would be stored as a secret.
    for (const field of Object.keys(whole).filter((each) => SECRETS.includes(each))) {
      const masked = { ...whole, [field]: maskedValue(whole[field] ?? '') }
      expect(complaintsOf(managerType, masked)).toEqual([
        `auth_config.${field}: is a masked value; send the secret itself`,
      ])
      expect(complaintsOf(managerType, { ...whole, [`masked_${field}`]: 'x' })).toEqual([
        `auth_config.masked_${field}: is a masked value; send the secret itself, without masked_`,
      ])
    }
  })
})

const SECRETS = [
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_role_arn',
  'aws_external_id',
  'azure_entra_client_secret',
  'vault_token',
  'vault_secret_id',
]

const knownOf = (managerType: ManagerType, whole: Record<string, string>): string => {
  const shape = AUTH_SHAPES[managerType].find((each) => Value.Check(each, whole))
  return Object.keys(shape?.properties ?? {}).join(', ')
}

describe('what is said to the letter', () => {
  const ROWS: [ManagerType, Record<string, unknown>, string[]][] = [
    [
      'hashicorp_vault',
      { vault_auth_type: 'token', vault_addr: 'https://v:8200' },
      ['auth_config.vault_token: is required with vault_auth_type = "token"'],
    ],
    [
      'azure_kv',
      { aws_auth_type: 'accessKey', aws_region: 'nowhere' },
      ['auth_config.aws_auth_type: manager_type "azure_kv" takes azure_auth_mode = entra, managed or default'],
    ],
    ['aws_sm', {}, ['auth_config.aws_auth_type: is required: accessKey, assumedRole or serviceRole']],
    ['azure_kv', {}, ['auth_config.azure_auth_mode: is required: entra, managed or default']],
    ['hashicorp_vault', {}, ['auth_config.vault_auth_type: is required: token, approle or kubernetes']],
    [
      'hashicorp_vault',
      { vault_auth_type: 'Token', vault_addr: 'x', vault_tokn: 'hvs.x' },
      [
        'auth_config.vault_auth_type: must be token, approle or kubernetes',
        'auth_config.vault_addr: must be a URL such as https://vault.example.com:8200, without user, path, query, fragment or a dot at the end of the host',
        'auth_config.vault_tokn: unknown field; did you mean "vault_token"?',
      ],
    ],
    [
      'hashicorp_vault',
      { vault_auth_type: 'approle', vault_token: 'hvs.x', aws_region: 'eu-west-1' },
      [
        'auth_config.vault_addr: is required with vault_auth_type = "approle"',
        'auth_config.vault_role_id: is required with vault_auth_type = "approle"',
        'auth_config.vault_secret_id: is required with vault_auth_type = "approle"',
        'auth_config.vault_token: is not for vault_auth_type = "approle"; leave it out',
        'auth_config.aws_region: is for manager_type "aws_sm"; leave it out',
      ],
    ],
    [
      'aws_sm',
      { aws_auth_type: 'serviceRole', 'a secret in the place of a name': 'x' },
      ['auth_config.*: unknown field; known are aws_auth_type, aws_region'],
    ],
  ]
  test.each(ROWS)('%s %j', (managerType, fields, expected) => {
    expect(complaintsOf(managerType, fields)).toEqual(expected)
  })
})

describe('values that lead elsewhere', () => {
  const BAD: Record<string, string[]> = {
    vault_addr: [
      'vault.example.com:8200',
      'ftp://vault.example.com',
      'file:///etc/passwd',
      'https:vault.example.com',
      'https:/vault.example.com',
      'https://',
      'https:///x',
      'https://user@vault.example.com',
      'https://user:pass@vault.example.com',
      'https://@vault.example.com',
      'https://vault.example.com/v1',
      'https://vault.example.com//',
      'https://vault.example.com?x',
      'https://vault.example.com/?',
      'https://vault.example.com#x',
      'https://vault.example.com\\@evil.example',
      'https://vault example.com',
      'https://[::1',
      'https://vault.example.com:99999',
      'https://vault.example.com:port',
      'https://vault.example.com.:8200',
      'https://.vault.example.com',
      'https://vault..example.com',
    ],
    azure_vault_url: [
      'http://team.vault.azure.net',
      'https://vault.azure.net',
      'https://team.vault.azure.net.evil.example',
      'https://team.vault.azure.net.',
      'https://evilvault.azure.net',
      'https://.vault.azure.net',
      'https://team.vault.azure.net/secrets/x',
      'https://team.vault.azure.net@evil.example',
      'https://team.managedhsm.azure.net',
      'https://kv.int',
      'https://kv.int:8200',
      'https://127.0.0.1:8443',
    ],
    vault_auth_mount: ['/x', 'x/', 'a//b', '.', '..', 'a/../b', '../sys', 'a?b', 'a%2e', 'a b', 'a\\b', 'ä'],
    vault_namespace: ['a b', 'ä'],
    vault_token: ['hvs.a b', 'hvs.ä'],
    aws_region: ['evil', 'eu-west-1.evil.example', 'eu-west-1/'],
    aws_role_arn: [
      'arn:aws:iam::123456789012:user/x',
      'arn:aws:iam::1234:role/x',
      'arn:aws:sts::123456789012:assumed-role/x/y',
      'role/x',
      'arn:aws:iam::123456789012:role/',
    ],
    aws_external_id: ['x', 'a b', 'x'.repeat(1225)],
    azure_entra_tenant_id: ['a/b', 'a?b', 'common tenant', '.', '..', 'tenant.example.'],
  }
  const said = new Map<string, Set<string>>()
  const rows = Object.entries(BAD).flatMap(([field, values]) => values.map((value) => [field, value] as const))
  test.each(rows)('%s %j', (field, value) => {
    const [managerType, whole] = Object.values(SHAPES).find(([, fields]) => Object.hasOwn(fields, field)) ?? [
      'aws_sm' as const,
      {},
    ]
    const [only, ...rest] = complaintsOf(managerType, { ...whole, [field]: value })
    expect(rest).toEqual([])
    expect(only).toStartWith(`auth_config.${field}: must `)
    said.set(field, (said.get(field) ?? new Set()).add(only ?? ''))
  })

  test('are answered alike: what was sent may be a secret in the wrong field', () => {
    const counts = [...said].map(([field, messages]) => [field, messages.size] as const)
    // Of a vault's URL it is told apart whether it is none, or one of a host that is not allowed.
    expect(Object.fromEntries(counts)).toEqual({
      ...Object.fromEntries(Object.keys(BAD).map((field) => [field, 1])),
      azure_vault_url: 2,
    })
  })

  test("a vault in the operator's own house is one that `outbound.allow` names", () => {
    const fields = { azure_auth_mode: 'default', azure_vault_url: 'https://kv.int:8443/' }
    expect(authConfigComplaints('azure_kv', fields, ALLOW)).toEqual([])
    expect(authConfigComplaints('azure_kv', fields, ['KV.int:8443'])).toEqual([])
    expect(authConfigComplaints('azure_kv', fields, [])).toHaveLength(1)
  })
})

describe('a mask', () => {
  test.each([
    ['', '*****'],
    ['x'.repeat(19), '*****'],
    ['abcdefghijklmnopqrst', 'ab*****rst'],
    [`ab${'-'.repeat(4000)}xyz`, 'ab*****xyz'],
    // No half of a character.
    ['🔑'.repeat(20), '🔑🔑*****🔑🔑🔑'],
    ['🔑'.repeat(19), '*****'],
  ])('of %j is %s', (secret, mask) => {
    expect(maskedValue(secret)).toBe(mask)
    expect(isMask(mask)).toBe(true)
  })

  test.each(['', '****', '******', 'a*****bcd', 'ab*****cd', 'ab****cde', 'hvs.x*****yyy'])('is not %j', (text) => {
    expect(isMask(text)).toBe(false)
  })
})
