import { afterAll, afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import { challenge } from '../support/azure-answers.ts'
import { type AzureVersion, CLOUDS, startAzureDouble } from '../support/azure-double.ts'
import { freshFolder } from '../support/database.ts'
import { CLIENT_ID, CLIENT_SECRET, DEFAULT, entra, MANAGED, openAzure } from './azure-open.ts'

// What a reference to Azure Key Vault does at an Azure that answers as it should; azure-faults.test.ts has the rest.

const azure = await startAzureDouble()
afterAll(() => {
  azure.stop()
  rmSync(folder, { recursive: true })
})

const IDENTITY = '1de00000-0000-4000-8000-000000000001'
const [OLD, NEW] = ['0'.repeat(31) + '1', '0'.repeat(31) + '2']
const LATEST = { content: 'line\nline {"a":"ü"}\n', version: NEW }

const folder = freshFolder()
const tokenFile = join(folder, 'token')
const WORKLOAD = {
  azure_workload_tenant_id: azure.directory.id,
  azure_workload_client_id: CLIENT_ID,
  azure_workload_token_file: tokenFile,
}

beforeEach(() => {
  azure.applications = { [CLIENT_ID]: { secrets: [{ value: CLIENT_SECRET }], assertions: ['token-of-the-workload'] } }
  azure.identities = [IDENTITY]
  azure.readers = undefined
  azure.tokenSeconds = 3_599
  azure.secrets = {
    openai: [
      { version: OLD, value: 'old' },
      { version: NEW, value: LATEST.content },
    ],
  }
  azure.instead = {}
  azure.asked = []
  azure.requests = []
  writeFileSync(tokenFile, 'token-of-the-workload\n')
})
afterEach(() => void setSystemTime())

const open = (authConfig: AzureAuthConfig = entra(azure), settings = {}) => openAzure(azure, authConfig, settings)
const clientIdAsked = () => azure.requests.find(({ host }) => host === '169.254.169.254')?.query.get('client_id')

type Shape = [shape: string, authConfig: AzureAuthConfig, settings: object, login: 'token' | 'metadata']

const SHAPES: Shape[] = [
  ['entra', entra(azure), {}, 'token'],
  ['entra, by a domain of the directory', entra(azure, { azure_entra_tenant_id: 'contoso.example' }), {}, 'token'],
  [
    'entra, with the directory in upper case',
    entra(azure, { azure_entra_tenant_id: azure.directory.id.toUpperCase() }),
    {},
    'token',
  ],
  ['managed', MANAGED, {}, 'metadata'],
  ['managed, by its client id', { ...MANAGED, azure_managed_client_id: IDENTITY }, {}, 'metadata'],
  ['default, as a workload', DEFAULT, WORKLOAD, 'token'],
  ['default, as a machine', DEFAULT, {}, 'metadata'],
]

describe('a login as', () => {
  test.each(SHAPES)('%s reads, and is kept for what follows', async (_shape, authConfig, settings, login) => {
    const { fetch, steps, client } = open(authConfig, settings)
    expect(client.loginExpiresAt()).toBeNull()
    expect(await fetch()).toEqual(LATEST)
    expect(await fetch(`openai/${OLD}`)).toEqual({ content: 'old', version: OLD })
    expect(azure.asked).toEqual(['challenge 401', login, 'secret', 'secret'])
    expect(steps).toEqual(['login', 'read', 'parse', 'login', 'read', 'parse'])
    const lasts = client.loginExpiresAt()! - Date.now()
    expect(lasts).toBeWithin(3_500_000, 3_600_000)
    client.close()
    expect(client.loginExpiresAt()).toBeNull()
  })

  type Refused = [what: string, authConfig: AzureAuthConfig, settings: object, mentions: string]
  test.each<Refused>([
    ['entra, with a wrong secret', entra(azure, { azure_entra_client_secret: 'other' }), {}, 'not its id'],
    ['entra, of nobody', entra(azure, { azure_entra_client_id: IDENTITY }), {}, 'auth_config.azure_entra_client_id'],
    [
      'entra, of no directory',
      entra(azure, { azure_entra_tenant_id: 'nowhere.example' }),
      {},
      'auth_config.azure_entra_tenant_id',
    ],
    ['managed, where the machine has none', MANAGED, {}, 'it has none'],
    ['managed, where it has several', MANAGED, {}, 'set azure_managed_client_id'],
    ['managed, of another machine', { ...MANAGED, azure_managed_client_id: CLIENT_ID }, {}, 'azure_managed_client_id'],
    [
      'default, of a workload that nobody trusts',
      DEFAULT,
      { ...WORKLOAD, azure_workload_client_id: 'other' },
      '[secret_managers] azure_workload_client_id',
    ],
  ])('%s is refused at the step login', async (what, authConfig, settings, mentions) => {
    azure.identities = what.includes('none') ? [] : what.includes('several') ? [IDENTITY, 'another'] : [IDENTITY]
    const { failure, steps } = open(authConfig, settings)
    const { step, failure: code, message } = await failure()
    expect({ step, code, message }).toEqual({
      step: 'login',
      code: 'manager_auth_failed',
      message: expect.stringContaining(mentions),
    })
    expect(steps).toEqual([])
    expect(azure.asked).not.toContain('secret')
  })

  test('a managed identity names the one that is meant, and none where none is', async () => {
    await open({ ...MANAGED, azure_managed_client_id: IDENTITY }).fetch()
    expect(clientIdAsked()).toBe(IDENTITY)
    azure.requests = []
    await open(MANAGED).fetch()
    expect(clientIdAsked()).toBeNull()
  })

  test.each(['common', 'organizations', 'no/directory'])('%s, which is no directory, asks nobody', async (named) => {
    const { step, failure, message } = await open(entra(azure, { azure_entra_tenant_id: named })).failure()
    expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_config' })
    expect(message).toContain('directory')
    expect(azure.asked).toEqual(['challenge 401'])
  })

  test('a workload reads its token at each login: Kubernetes replaces it', async () => {
    azure.tokenSeconds = 0
    const { fetch } = open(DEFAULT, WORKLOAD)
    await fetch()
    azure.applications = { [CLIENT_ID]: { assertions: ['next-token'] } }
    writeFileSync(tokenFile, 'next-token')
    expect(await fetch()).toEqual(LATEST)
  })

  test.each([
    [{ ...WORKLOAD, azure_workload_tenant_id: '' }, 'azure_workload_tenant_id is not set'],
    [{ ...WORKLOAD, azure_workload_client_id: '' }, 'azure_workload_client_id is not set'],
    [{ ...WORKLOAD, azure_workload_token_file: '/nowhere/token' }, 'azure_workload_token_file'],
    [{ ...WORKLOAD, azure_workload_token_file: '/dev/null' }, 'holds no token'],
  ])('a workload that is half set up is told so, and does not pass for the machine: %#', async (settings, mentions) => {
    const { step, failure, message } = await open(DEFAULT, settings).failure()
    expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_config' })
    expect(message).toContain(mentions)
    expect(azure.asked).toEqual(['challenge 401'])
  })

  test('the environment names neither another endpoint nor another identity', async () => {
    const elsewhere = 'http://127.0.0.1:9/elsewhere'
    const ambient: Record<string, string> = {
      AZURE_AUTHORITY_HOST: 'https://login.elsewhere.example',
      AZURE_CLIENT_ID: 'ambient',
      AZURE_FEDERATED_TOKEN_FILE: '/dev/null',
      AZURE_IDENTITY_DISABLE_MULTITENANTAUTH: '1',
      AZURE_POD_IDENTITY_AUTHORITY_HOST: elsewhere,
      AZURE_TENANT_ID: 'ambient',
      IDENTITY_ENDPOINT: elsewhere,
      IDENTITY_HEADER: 'ambient',
      IMDS_ENDPOINT: elsewhere,
      MSI_ENDPOINT: elsewhere,
      MSI_SECRET: 'ambient',
    }
    Object.assign(process.env, ambient)
    try {
      for (const [, authConfig, settings] of SHAPES) expect(await open(authConfig, settings).fetch()).toEqual(LATEST)
    } finally {
      for (const name of Object.keys(ambient)) delete process.env[name]
    }
    expect(azure.requests.map(({ query }) => query.get('client_id'))).not.toContain('ambient')
  })
})

describe('each cloud', () => {
  test.each(CLOUDS)('%s logs in at %s, and nothing else is asked', async (vault, login) => {
    const { fetch } = open(entra(azure, { azure_vault_url: `https://${vault}/` }))
    expect(await fetch()).toEqual(LATEST)
    expect([...new Set(azure.requests.map(({ host }) => host))]).toEqual([vault, login])
    const scopes = azure.requests.map(({ form }) => form.get('scope')).filter((scope) => scope !== null)
    expect(scopes).toEqual([expect.stringContaining(`https://${vault.replace('t1.', '')}/.default`)])
  })

  test.each(CLOUDS)('%s is read with a managed identity, for that cloud', async (vault) => {
    expect(await open({ ...MANAGED, azure_vault_url: `https://${vault}` }).fetch()).toEqual(LATEST)
    expect(azure.requests[1]?.query.get('resource')).toBe(`https://${vault.replace('t1.', '')}`)
  })
})

test.each([
  ['not a URL', 'manager_config'],
  ['http://t1.vault.azure.net', 'manager_address_refused'],
])('a vault at %j is not asked', async (azure_vault_url, code) => {
  const { failure } = await open(entra(azure, { azure_vault_url })).failure()
  expect(failure as string).toBe(code)
  expect(azure.asked).toEqual([])
})

describe('a secret', () => {
  test.each<[what: string, secret: Partial<AzureVersion>, mentions: string]>([
    ['disabled', { enabled: false }, 'disabled'],
    ['expired', { exp: Math.floor(Date.now() / 1_000) - 1 }, 'expired'],
    ['not yet valid', { nbf: Math.floor(Date.now() / 1_000) + 60 }, 'not valid yet'],
  ])('that is %s is not handed out', async (_what, secret, mentions) => {
    azure.secrets['openai']!.push({ version: 'f'.repeat(32), value: 'hidden', ...secret })
    const { step, failure, message } = await open().failure()
    expect({ step, failure }).toEqual({ step: 'read', failure: 'manager_secret_disabled' })
    expect(message).toContain(mentions)
    expect(await open().fetch(`openai/${NEW}`)).toEqual(LATEST)
  })

  test('that is valid for a while is handed out meanwhile', async () => {
    const now = Math.floor(Date.now() / 1_000)
    azure.secrets['openai'] = [{ version: NEW, value: LATEST.content, nbf: now - 60, exp: now + 60 }]
    expect(await open().fetch()).toEqual(LATEST)
  })

  test.each(['', 'a/b/c', 'openai/latest', '../keys/openai', 'openai?x=1', 'openai/', 'open ai', 'a'.repeat(128)])(
    'of the path %j is none, and nobody is asked',
    async (secretPath) => {
      const { step, failure, message } = await open().failure(secretPath)
      expect({ step, failure }).toEqual({ step: 'read', failure: 'manager_config' })
      expect(message).toStartWith('secret_path: ')
      expect(azure.asked).toEqual([])
    },
  )
})

describe('a challenge', () => {
  const { id } = azure.directory
  const AUTHORITY = `https://login.microsoftonline.com/${id}`

  test.each<[what: string, answer: () => Response]>([
    ['of another service', () => challenge(AUTHORITY, 'https://graph.microsoft.com')],
    ['of a host that looks alike', () => challenge(AUTHORITY, 'https://t1.vault.azure.net.evil.example')],
    ['of a host that ends alike', () => challenge(AUTHORITY, 'https://1.vault.azure.net')],
    ['of a user at a host', () => challenge(AUTHORITY, 'https://evil.example@vault.azure.net')],
    ['of no URL', () => challenge(AUTHORITY, 'vault')],
    ['without a service', () => new Response('', { status: 401, headers: { 'www-authenticate': 'Bearer' } })],
    ['that is none', () => new Response('', { status: 401 })],
  ])('%s is refused: no login is made for it', async (_what, answer) => {
    azure.instead.challenge = answer
    for (const authConfig of [entra(azure), MANAGED]) {
      const { step, failure } = await open(authConfig).failure()
      expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_bad_response' })
    }
    expect(azure.asked).toEqual(['challenge 401', 'challenge 401'])
  })

  test('that names a login elsewhere is not followed there', async () => {
    azure.instead.challenge = () => challenge(`https://login.evil.example/${id}`, 'https://vault.azure.net')
    expect(await open().fetch()).toEqual(LATEST)
    expect(azure.requests[1]?.host).toBe('login.microsoftonline.com')
  })

  test('of another directory sends the client secret nowhere', async () => {
    azure.instead.challenge = () =>
      challenge(`https://login.microsoftonline.com/${crypto.randomUUID()}`, 'https://vault.azure.net')
    const { step, failure, message } = await open().failure()
    expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_auth_failed' })
    expect(message).toContain('belongs to another directory than auth_config.azure_entra_tenant_id')
    expect(azure.asked).toEqual(['challenge 401'])
  })

  test('that was refused once is asked for again', async () => {
    const { failure, fetch } = open()
    azure.instead.challenge = () => challenge(AUTHORITY, 'https://graph.microsoft.com')
    await failure()
    azure.instead = {}
    expect(await fetch()).toEqual(LATEST)
  })
})

describe('a login that is kept', () => {
  test('is one for all who come at once', async () => {
    const { fetch } = open()
    expect(await Promise.all(Array.from({ length: 20 }, () => fetch()))).toEqual(Array(20).fill(LATEST))
    expect(azure.asked.filter((each) => each === 'token')).toHaveLength(1)
  })

  test('is made again shortly before its end', async () => {
    const { fetch, client } = open()
    await fetch()
    const first = client.loginExpiresAt()!
    setSystemTime(first - 301_000)
    await fetch()
    expect(client.loginExpiresAt()).toBe(first)
    setSystemTime(first - 299_000)
    await fetch()
    expect(client.loginExpiresAt()).toBeGreaterThan(first)
    expect(azure.asked.filter((each) => each === 'token')).toHaveLength(2)
  })

  test('is made again once where the vault takes it no more', async () => {
    const { fetch, steps } = open()
    await fetch()
    azure.revokeTokens()
    azure.asked = []
    expect(await fetch()).toEqual(LATEST)
    expect(azure.asked).toEqual(['secret 401', 'challenge 401', 'token', 'secret'])
    expect(steps.slice(3)).toEqual(['login', 'login', 'read', 'parse'])
  })

  test('is not made a third time where the vault takes none', async () => {
    const { failure: failureOf, fetch } = open()
    await fetch()
    azure.asked = []
    azure.instead.token = () => Response.json({ token_type: 'Bearer', expires_in: 3_599, access_token: 'of-nobody' })
    azure.revokeTokens()
    const { step, failure } = await failureOf()
    expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_auth_expired' })
    expect(azure.asked).toEqual(['secret 401', 'challenge 401', 'token', 'secret 401'])
    azure.instead = {}
    expect(await fetch()).toEqual(LATEST)
  })

  test('is made again once where the vault wants more claims of it', async () => {
    const claims =
      'Bearer authorization="https://login.microsoftonline.com", error="insufficient_claims", claims="e30="'
    azure.instead.secret = () => new Response('', { status: 401, headers: { 'www-authenticate': claims } })
    const { step, failure } = await open().failure()
    expect({ step, failure }).toEqual({ step: 'login', failure: 'manager_auth_expired' })
    expect(azure.asked.filter((each) => each === 'token')).toHaveLength(2)
  })

  test('belongs to one reference', async () => {
    await open().fetch()
    await open().fetch()
    await open(MANAGED).fetch()
    await open(MANAGED).fetch()
    expect(azure.asked.filter((each) => each === 'token')).toHaveLength(2)
    expect(azure.asked.filter((each) => each === 'metadata')).toHaveLength(2)
  })
})
