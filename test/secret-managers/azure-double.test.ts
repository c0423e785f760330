import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Agent } from 'node:https'
import { connect } from 'node:tls'
import { ClientAssertionCredential, ClientSecretCredential } from '@azure/identity'
import { SecretClient } from '@azure/keyvault-secrets'
import { startAzureDouble } from '../support/azure-double.ts'
import { findAzurePython, runAzurePython } from '../support/azure-python.ts'

// Microsoft's own SDKs take the double of Azure for Azure: whatever the tests beside this one prove with it holds for
// what Microsoft speaks, and not for a reading of ours. Nothing of the product is used here.

const azure = await startAzureDouble()
const python = findAzurePython()
afterAll(() => azure.stop())

interface Credential {
  tenant_id?: string
  client_id?: string
  client_secret?: string
  assertion?: string
}

const tenant_id = azure.directory.id
const GOOD: Credential = { tenant_id, client_id: 'application', client_secret: 'good' }
const WORKLOAD: Credential = { tenant_id, client_id: 'application', assertion: 'trusted' }
const [OLD, NEW] = ['a'.repeat(32), 'b'.repeat(32)]

azure.applications = {
  application: { secrets: [{ value: 'good' }, { value: 'old', isExpired: true }], assertions: ['trusted'] },
  stranger: { secrets: [{ value: 'good' }] },
}
azure.identities = ['identity']
azure.readers = ['application', 'identity']
azure.secrets = {
  openai: [
    { version: OLD, value: 'old' },
    { version: NEW, value: 'line\nline "ü"', nbf: 1_700_000_000, exp: 4_000_000_000 },
  ],
  off: [{ version: NEW, value: 'hidden', enabled: false }],
}

type Failure = [inJavaScript: string, inPython: string, mentions: string]
type Case = [
  what: string,
  credential: Credential,
  name: string,
  version: string | null,
  expected: { value: string; version: string } | Failure,
]

const LATEST = { value: 'line\nline "ü"', version: NEW }
const CASES: Case[] = [
  ['the latest version', GOOD, 'openai', null, LATEST],
  ['the version that is named', GOOD, 'openai', OLD, { value: 'old', version: OLD }],
  ['a secret, for a workload', WORKLOAD, 'openai', null, LATEST],
  ['no secret of that name', GOOD, 'never', null, ['RestError', 'ResourceNotFoundError', 'SecretNotFound']],
  ['no version of that name', GOOD, 'openai', 'c'.repeat(32), ['RestError', 'ResourceNotFoundError', 'SecretNotFound']],
  ['a disabled secret', GOOD, 'off', null, ['RestError', 'HttpResponseError', 'SecretDisabled']],
  [
    'a secret of others',
    { ...GOOD, client_id: 'stranger' },
    'openai',
    null,
    ['RestError', 'HttpResponseError', 'ForbiddenByRbac'],
  ],
  [
    'a wrong client secret',
    { ...GOOD, client_secret: 'wrong' },
    'openai',
    null,
    ['AuthenticationRequiredError', 'ClientAuthenticationError', 'AADSTS7000215'],
  ],
  [
    'an expired client secret',
    { ...GOOD, client_secret: 'old' },
    'openai',
    null,
    ['AuthenticationRequiredError', 'ClientAuthenticationError', 'AADSTS7000222'],
  ],
  [
    'an unknown application',
    { ...GOOD, client_id: 'nobody' },
    'openai',
    null,
    ['AuthenticationRequiredError', 'ClientAuthenticationError', 'AADSTS700016'],
  ],
  [
    'a workload that nobody trusts',
    { ...WORKLOAD, assertion: 'other' },
    'openai',
    null,
    ['AuthenticationRequiredError', 'ClientAuthenticationError', 'AADSTS700213'],
  ],
  [
    'an application of another directory',
    { ...GOOD, tenant_id: crypto.randomUUID() },
    'openai',
    null,
    ['CredentialUnavailableError', 'ClientAuthenticationError', 'not configured to acquire tokens for tenant'],
  ],
]

const vault = 'https://t1.vault.azure.net'

describe("Microsoft's SDK for JavaScript sees", () => {
  /** Its own HTTP client, whose connections alone are led here. */
  const agent = new Agent()
  agent.createConnection = ({ host }) => {
    const [address, port] = (azure.connect[`${host}:443`] ?? '').split(':')
    return connect({ host: address, port: Number(port), servername: host ?? '', ca: azure.ca })
  }
  type Options = NonNullable<ConstructorParameters<typeof SecretClient>[2]>
  const additionalPolicies: NonNullable<Options['additionalPolicies']> = [
    {
      position: 'perRetry',
      policy: {
        name: 'to the double',
        sendRequest(request, next) {
          request.agent = agent
          return next(request)
        },
      },
    },
  ]
  const options = { additionalPolicies, retryOptions: { maxRetries: 0 } }
  afterAll(() => agent.destroy())

  function credentialOf({ tenant_id = '', client_id = '', client_secret = '', assertion }: Credential) {
    if (assertion === undefined) return new ClientSecretCredential(tenant_id, client_id, client_secret, options)
    return new ClientAssertionCredential(tenant_id, client_id, async () => assertion, options)
  }

  test.each(CASES)('%s', async (_what, credential, name, version, expected) => {
    const client = new SecretClient(vault, credentialOf(credential), options)
    const asked = client.getSecret(name, version === null ? {} : { version })
    if (Array.isArray(expected)) {
      const error = await asked.then(
        () => undefined,
        (error: Error) => error,
      )
      expect(error?.name).toBe(expected[0])
      expect(Bun.inspect(error)).toContain(expected[2])
    } else {
      const { value, properties } = await asked
      expect({ value, version: properties.version as string }).toEqual(expected)
    }
  })

  test('when a secret is valid', async () => {
    const { properties } = await new SecretClient(vault, credentialOf(GOOD), options).getSecret('openai')
    expect(properties.notBefore?.getTime()).toBe(1_700_000_000_000)
    expect(properties.expiresOn?.getTime()).toBe(4_000_000_000_000)
  })

  test('a directory that does not exist', async () => {
    const nowhere = credentialOf({ ...GOOD, tenant_id: 'nowhere.example' })
    await expect(nowhere.getToken('https://vault.azure.net/.default')).rejects.toThrow('AADSTS90002')
  })

  test('a challenge, then one login for all that follows', async () => {
    const client = new SecretClient(vault, credentialOf(GOOD), options)
    azure.asked = []
    for (let i = 0; i < 3; i++) await client.getSecret('openai')
    expect(azure.asked).toEqual(['challenge 401', 'token', 'secret', 'secret', 'secret'])
  })
})

describe.skipIf(python === undefined)("Microsoft's SDK for Python sees", () => {
  const IDENTITY: Case[] = [
    ['the only managed identity', {}, 'openai', null, LATEST],
    ['a managed identity by its client id', { client_id: 'identity' }, 'openai', null, LATEST],
    [
      'no such managed identity',
      { client_id: 'other' },
      'openai',
      null,
      ['', 'CredentialUnavailableError', 'Identity not found'],
    ],
  ]
  const cases = [...CASES, ...IDENTITY]
  let answers: unknown[]
  beforeAll(async () => {
    const asked = cases.map(([, credential, name, version]) => ({ credential, vault, name, version }))
    const argv = [JSON.stringify(azure.connect), azure.caFile, JSON.stringify(asked)]
    answers = (await runAzurePython(python!, ...argv)) as unknown[]
  })

  test.each(cases.map(([what, , , , expected], i) => [what, expected, i] as const))('%s', (_what, expected, i) => {
    if (!Array.isArray(expected)) expect(answers[i]).toEqual(expected)
    else expect(answers[i]).toEqual({ error: expected[1], message: expect.stringContaining(expected[2]) })
  })
})
