import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import type { ManagerFailure, Step } from '../../src/secret-managers/manager.ts'
import {
  entraError,
  expiredSecret,
  forbidden,
  keyVaultAnswer,
  keyVaultError,
  metadataError,
  noSecret,
  wrongSecret,
} from '../support/azure-answers.ts'
import { type AzureEndpoint, startAzureDouble } from '../support/azure-double.ts'
import { CLIENT_ID, CLIENT_SECRET, entra, MANAGED, openAzure } from './azure-open.ts'

// What Azure, or something in its place, may answer, and what we make of it (SM-4, SM-5, decision 47).

const azure = await startAzureDouble()
afterAll(() => azure.stop())

const TOKEN = 'token-that-was-given-out'
const CHINA = entra(azure, { azure_vault_url: 'https://t1.vault.azure.cn' })

beforeEach(() => {
  azure.applications = { [CLIENT_ID]: { secrets: [{ value: CLIENT_SECRET }] } }
  azure.identities = ['identity']
  azure.secrets = { openai: [{ version: 'a'.repeat(32), value: 'value' }] }
  azure.instead = {}
  azure.asked = []
})

const html = (status: number) =>
  new Response('<html>sign in</html>', { status, headers: { 'content-type': 'text/html' } })
const cutOff = (text: string) => new Response(text, { headers: { 'content-type': 'application/json' } })
const empty = (status: number, headers: Record<string, string> = {}) => new Response(null, { status, headers })
const moved = (status: number, location: string) => empty(status, { location })
const token = (changes: object) =>
  Response.json({ token_type: 'Bearer', expires_in: 3_599, access_token: TOKEN, ...changes })
const identity = (changes: object) => token({ expires_in: '86399', resource: 'https://vault.azure.net', ...changes })
const secret = (changes: object) =>
  keyVaultAnswer(200, { value: 'value', id: 'https://t1.vault.azure.net/secrets/openai/1', attributes: {}, ...changes })
const refused = (number: number) => entraError(400, 'invalid_request', number, 'in words of its own')

type Fault = [what: string, answer: () => Response, failure: ManagerFailure, step: Step, mentions: string]

const LOGIN: Fault[] = [
  ['a wrong client secret', () => wrongSecret(CLIENT_ID), 'manager_auth_failed', 'login', 'its value, not its id'],
  ['an expired client secret', () => expiredSecret(CLIENT_ID), 'manager_auth_failed', 'login', 'has expired'],
  ['no such directory', () => refused(90002), 'manager_auth_failed', 'login', 'azure_entra_tenant_id'],
  ['no directory at all', () => refused(900023), 'manager_auth_failed', 'login', 'azure_entra_tenant_id'],
  ['no such application', () => refused(700016), 'manager_auth_failed', 'login', 'azure_entra_client_id'],
  ['a disabled application', () => refused(7000112), 'manager_auth_failed', 'login', 'disabled'],
  ['a directory without vaults', () => refused(500011), 'manager_auth_failed', 'login', 'no Azure Key Vault'],
  ['a policy of the directory', () => refused(53003), 'manager_auth_failed', 'login', 'Conditional Access'],
  ['a subject that nobody trusts', () => refused(70021), 'manager_auth_failed', 'login', 'federated credential'],
  ['an issuer that nobody trusts', () => refused(700211), 'manager_auth_failed', 'login', 'federated credential'],
  ['an audience that nobody trusts', () => refused(700212), 'manager_auth_failed', 'login', 'federated credential'],
  ['an assertion that nobody trusts', () => refused(700213), 'manager_auth_failed', 'login', 'federated credential'],
  ['an assertion of yesterday', () => refused(700024), 'manager_auth_failed', 'login', 'expired'],
  ['a number of tomorrow', () => refused(7999999), 'manager_auth_failed', 'login', 'azure_entra_client_secret'],
  ['no number', () => Response.json({ error: 'access_denied' }, { status: 403 }), 'manager_auth_failed', 'login', ''],
  ['too many logins', () => empty(429), 'manager_throttled', 'login', 'rate'],
  ['something broken', () => entraError(500, 'server_error', 50000, ''), 'manager_unreachable', 'login', 'Entra'],
  ['a gateway that waits in vain', () => html(504), 'manager_unreachable', 'login', 'proxy'],
  [
    'a redirect on the host',
    () => moved(307, 'https://login.microsoftonline.com/elsewhere/oauth2/v2.0/token'),
    'manager_bad_response',
    'login',
    'not followed',
  ],
  [
    'a redirect elsewhere',
    () => moved(302, 'https://elsewhere.example/'),
    'manager_bad_response',
    'login',
    'not followed',
  ],
  ['a page', () => html(200), 'manager_bad_response', 'login', 'Entra does not answer as Azure does'],
  ['a page that refuses', () => html(403), 'manager_bad_response', 'login', 'Entra does not answer as Azure does'],
  ['half an answer', () => cutOff('{"access_token":"eyJ'), 'manager_bad_response', 'login', 'not to the end'],
  ['no token', () => token({ access_token: undefined }), 'manager_bad_response', 'login', ''],
  ['a token that is none', () => token({ access_token: 7 }), 'manager_bad_response', 'login', ''],
  [
    'a token that would end the header',
    () => token({ access_token: 'a\r\nx-other: b' }),
    'manager_bad_response',
    'login',
    '',
  ],
]

const IDENTITY: Fault[] = [
  ['none', () => metadataError('Identity not found'), 'manager_auth_failed', 'login', 'it has none'],
  [
    'several',
    () => metadataError('Multiple user assigned identities exist, please specify the clientId'),
    'manager_auth_failed',
    'login',
    'azure_managed_client_id',
  ],
  ['something new', () => metadataError('Something new'), 'manager_auth_failed', 'login', 'identities of this machine'],
  ['of a machine elsewhere', () => empty(404), 'manager_unreachable', 'login', 'not one of Azure'],
  ['while it is updated', () => empty(410), 'manager_unreachable', 'login', 'being updated'],
  ['too often', () => metadataError('Too many requests', 429), 'manager_throttled', 'login', 'rate'],
  ['of a broken service', () => empty(500), 'manager_unreachable', 'login', 'metadata service'],
  ['as a page', () => html(200), 'manager_bad_response', 'login', 'does not answer as Azure does'],
  ['as a page that refuses', () => html(403), 'manager_bad_response', 'login', 'does not answer as Azure does'],
  ['elsewhere', () => moved(302, 'http://169.254.169.254/other'), 'manager_bad_response', 'login', 'not followed'],
  ['without a token', () => identity({ access_token: '' }), 'manager_bad_response', 'login', ''],
  ['without an end', () => identity({ expires_in: undefined }), 'manager_bad_response', 'login', ''],
]

const READ: Fault[] = [
  ['no secret', () => noSecret('openai'), 'manager_secret_missing', 'read', 'secret_path'],
  ['a disabled secret', () => forbidden('SecretDisabled'), 'manager_secret_disabled', 'read', 'disabled'],
  ['no access policy', () => forbidden('ForbiddenByPolicy'), 'manager_denied', 'read', 'access policy'],
  ['no access policy, as it was said', () => forbidden('AccessDenied'), 'manager_denied', 'read', 'access policy'],
  ['no role', () => forbidden('ForbiddenByRbac'), 'manager_denied', 'read', 'Key Vault Secrets User'],
  ['a firewall', () => forbidden('ForbiddenByFirewall'), 'manager_denied', 'read', 'firewall'],
  ['a closed network', () => forbidden('ForbiddenByConnection'), 'manager_denied', 'read', 'private endpoints'],
  ['some other ban', () => keyVaultError(403, 'Forbidden', 'for some reason'), 'manager_denied', 'read', 'permission'],
  ['a name that is none', () => keyVaultError(400, 'BadParameter', ''), 'manager_config', 'read', 'secret_path'],
  ['something new', () => keyVaultError(409, 'Conflict', ''), 'manager_bad_response', 'read', 'no name here'],
  [
    'another directory',
    () => keyVaultError(401, 'Unauthorized', 'AKV10032: Invalid issuer. Expected one of https://sts.windows.net/'),
    'manager_auth_failed',
    'login',
    'another directory',
  ],
  ['too many reads', () => empty(429), 'manager_throttled', 'read', 'rate'],
  ['something broken', () => keyVaultError(500, 'InternalServerError', ''), 'manager_unreachable', 'read', 'Key Vault'],
  ['a page of a proxy', () => html(503), 'manager_unreachable', 'read', 'proxy'],
  [
    'a redirect on the host',
    () => moved(307, 'https://t1.vault.azure.net/secrets/other'),
    'manager_bad_response',
    'read',
    'not followed',
  ],
  ['a redirect elsewhere', () => moved(307, 'https://elsewhere.example/'), 'manager_bad_response', 'read', ''],
  ['a page', () => html(200), 'manager_bad_response', 'parse', 'azure_vault_url'],
  ['a page that refuses', () => html(403), 'manager_bad_response', 'read', 'azure_vault_url'],
  ['a page that has nothing', () => html(404), 'manager_bad_response', 'read', 'azure_vault_url'],
  ['half an answer', () => cutOff('{"value":"val'), 'manager_bad_response', 'parse', 'not to the end'],
  ['nothing', () => empty(200), 'manager_bad_response', 'parse', ''],
  ['nothing as JSON', () => cutOff('null'), 'manager_bad_response', 'parse', ''],
  ['no value', () => secret({ value: undefined }), 'manager_bad_response', 'parse', ''],
  ['a value that is no text', () => secret({ value: { a: 1 } }), 'manager_bad_response', 'parse', ''],
  ['a secret without a name', () => secret({ id: undefined }), 'manager_bad_response', 'parse', ''],
]

/** Before anybody has logged in, with what that needs. */
const UNASKED: Fault[] = [
  ['no vault', () => html(404), 'manager_bad_response', 'read', 'azure_vault_url'],
  ['a firewall', () => forbidden('ForbiddenByFirewall'), 'manager_denied', 'read', 'firewall'],
  ['something broken', () => empty(503), 'manager_unreachable', 'read', 'Key Vault'],
  ['a redirect', () => moved(301, 'https://elsewhere.example/'), 'manager_bad_response', 'read', 'not followed'],
  ['a page', () => html(200), 'manager_bad_response', 'parse', 'azure_vault_url'],
]

const DISCOVERY: Fault[] = [
  ['no such directory', () => refused(90002), 'manager_auth_failed', 'login', 'azure_entra_tenant_id'],
  ['something broken', () => empty(503), 'manager_unreachable', 'login', 'Entra'],
  ['a page', () => html(200), 'manager_bad_response', 'login', 'Entra'],
]

const PLACES: [endpoint: AzureEndpoint, authConfig: AzureAuthConfig, faults: Fault[]][] = [
  ['token', entra(azure), LOGIN],
  ['metadata', MANAGED, IDENTITY],
  ['secret', entra(azure), READ],
  ['challenge', entra(azure), UNASKED],
  ['discovery', CHINA, DISCOVERY],
]

describe.each(PLACES)('instead of %s,', (endpoint, authConfig, faults) => {
  test.each(faults)('%s', async (_what, answer, failure, step, mentions) => {
    azure.instead[endpoint] = answer
    const error = await openAzure(azure, authConfig).failure()
    expect({ failure: error.failure, step: error.step, message: error.message }).toEqual({
      failure,
      step,
      message: expect.stringContaining(mentions),
    })
    // clients take these words for an answer of our own
    expect(error.message).not.toMatch(/404|not found/i)
    // SDKs keep requests and tokens in their errors, and repeat what fails
    expect(error.cause).toBeUndefined()
    for (const secret of [CLIENT_SECRET, CLIENT_ID, TOKEN, 'eyJ'])
      expect(Bun.inspect(Object.entries(error)) + error.message).not.toContain(secret)
    expect(azure.asked.filter((each) => each.startsWith(endpoint))).toHaveLength(1)
  })
})

test.each<[AzureEndpoint, AzureAuthConfig]>([
  ['token', entra(azure)],
  ['metadata', MANAGED],
  ['secret', entra(azure)],
])('how long %s wants to be left alone is told', async (endpoint, authConfig) => {
  azure.instead[endpoint] = () => empty(429, { 'retry-after': '7' })
  expect((await openAzure(azure, authConfig).failure()).retryAfterSeconds).toBe(7)
  azure.instead[endpoint] = () => empty(429, { 'retry-after': 'Sat, 21 Nov 2026 01:44:06 GMT' })
  expect((await openAzure(azure, authConfig).failure()).retryAfterSeconds).toBeUndefined()
})

describe('the words of Azure itself are for a test alone:', () => {
  const words = async () => (await openAzure(azure, entra(azure)).failure()).managerMessage

  test('one line, of at most 200 characters', async () => {
    azure.instead.secret = () => keyVaultError(403, 'Forbidden', `Caller is not authorized\r\n${'x'.repeat(300)}`)
    expect(await words()).toBe(`Caller is not authorized ${'x'.repeat(175)}`)
  })

  test('without what the reference holds, or the login', async () => {
    azure.instead.secret = () => forbidden('ForbiddenByRbac', CLIENT_ID)
    expect(await words()).toBeUndefined()
    azure.instead.secret = ({ headers }) => keyVaultError(403, 'Forbidden', `sent: ${headers.get('authorization')}`)
    expect(await words()).toBeUndefined()
    azure.instead.token = ({ form }) => entraError(400, 'invalid_request', 1, `sent: ${form}`)
    expect(await words()).toBeUndefined()
  })
})

describe('a connection', () => {
  const { connect } = azure
  const nowhere = '127.0.0.1:1'
  type Broken = [what: string, at: Parameters<typeof openAzure>[0], failure: ManagerFailure, step: Step]
  test.each<Broken>([
    [
      'to a vault that does not listen',
      { ...azure, connect: { ...connect, 't1.vault.azure.net:443': nowhere } },
      'manager_unreachable',
      'connect',
    ],
    [
      'to a login that does not listen',
      { ...azure, connect: { ...connect, 'login.microsoftonline.com:443': nowhere } },
      'manager_unreachable',
      'connect',
    ],
    ['to whom nobody trusts', { connect }, 'manager_tls', 'tls'],
  ])('%s', async (_what, at, failure, step) => {
    const error = await openAzure(at, entra(azure)).failure()
    expect({ failure: error.failure, step: error.step }).toEqual({ failure, step })
  })

  test('to a private address is not made', async () => {
    const { failure, step } = await openAzure(azure, { ...MANAGED, azure_vault_url: 'https://10.0.0.1' }).failure()
    expect({ failure, step }).toEqual({ failure: 'manager_address_refused', step: 'address' })
  })

  test('to the metadata service that nobody answers says whose identity was asked for', async () => {
    const at = { ...azure, connect: { ...connect, '169.254.169.254:80': nowhere } }
    const { failure, message } = await openAzure(at, MANAGED).failure()
    expect(failure).toBe('manager_unreachable')
    expect(message).toStartWith('managed identity of this machine: ')
  })

  test.each<[AzureEndpoint, AzureAuthConfig, Step]>([
    ['challenge', entra(azure), 'read'],
    ['token', entra(azure), 'login'],
    ['metadata', MANAGED, 'login'],
    ['secret', entra(azure), 'read'],
  ])('that hangs at %s ends with the deadline', async (endpoint, authConfig, step) => {
    const { promise, resolve } = Promise.withResolvers<undefined>()
    azure.instead[endpoint] = () => promise
    const startedAt = performance.now()
    const error = await openAzure(azure, authConfig).failure('openai', AbortSignal.timeout(150))
    expect(performance.now() - startedAt).toBeLessThan(1_000)
    expect({ failure: error.failure, step: error.step }).toEqual({ failure: 'manager_timeout', step })
    resolve(undefined)
  })

  test('that brings more than a secret can be is cut', async () => {
    azure.instead.secret = () => secret({ value: 'x'.repeat(1_100_000) })
    const { failure, step } = await openAzure(azure, entra(azure)).failure()
    expect({ failure, step }).toEqual({ failure: 'manager_bad_response', step: 'read' })
  })
})
