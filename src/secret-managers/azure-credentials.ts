import { readFile } from 'node:fs/promises'
import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import { OutboundError, type OutboundResponse, type Transport } from '../outbound/transport.ts'
import { type ApplicationFields, entraRefusal, identityRefusal, objectIn, unexpectedLogin } from './azure-answer.ts'
import { type AzureSettings, askAzure } from './azure-transport.ts'
import { endingAt, type Login } from './kept-login.ts'
import { type ManagerCall, ManagerError } from './manager.ts'
import { fromOutbound } from './outbound-failure.ts'

export interface AzureLogin extends Login {
  token: string
}

/** A login, as the challenge of a vault asks for it. */
export interface AzureCall extends ManagerCall {
  /** `https://vault.azure.net/.default`; the SDK has checked that the vault may ask for it */
  scope: string
  /** the vault's directory, where it names one */
  tenantId: string | undefined
}

export interface AzureDoor {
  authConfig: AzureAuthConfig
  transport: Transport
  settings: Config['secret_managers']
}

/**
 * Logs in as the shape says: with the client secret of an application, or as this machine. `default` is the workload
 * identity where the settings name its token file, and else the managed identity; never the SDK's own chain, which
 * starts programs and asks whatever the environment names (decision 45).
 *
 * @throws ManagerError, at the step `login` once there is a connection
 */
export function logInAtAzure(door: AzureDoor, call: AzureCall): Promise<AzureLogin> {
  const { authConfig, settings } = door
  if (authConfig.azure_auth_mode === 'entra') return fromClientSecret(door, authConfig, call)
  if (authConfig.azure_auth_mode === 'managed') return fromMetadata(door, authConfig.azure_managed_client_id, call)
  return settings.azure_workload_token_file === '' ? fromMetadata(door, undefined, call) : fromTokenFile(door, call)
}

type Entra = Extract<AzureAuthConfig, { azure_auth_mode: 'entra' }>

const ENTRA_FIELDS: ApplicationFields = {
  tenant: 'auth_config.azure_entra_tenant_id',
  client: 'auth_config.azure_entra_client_id',
  credential: 'auth_config.azure_entra_client_secret',
}

function fromClientSecret(door: AzureDoor, authConfig: Entra, call: AzureCall): Promise<AzureLogin> {
  const { azure_entra_tenant_id: tenantId, azure_entra_client_id: clientId } = authConfig
  const credential = authConfig.azure_entra_client_secret
  const application = { tenantId, clientId, credential, fields: ENTRA_FIELDS }
  return asApplication(door, application, call, ({ ClientSecretCredential }, options) =>
    new ClientSecretCredential(tenantId, clientId, credential, options).getToken(call.scope),
  )
}

const WORKLOAD_FIELDS: ApplicationFields = {
  tenant: '[secret_managers] azure_workload_tenant_id',
  client: '[secret_managers] azure_workload_client_id',
  credential: '[secret_managers] azure_workload_token_file',
}

async function fromTokenFile(door: AzureDoor, call: AzureCall): Promise<AzureLogin> {
  const { azure_workload_tenant_id: tenantId, azure_workload_client_id: clientId } = door.settings
  if (tenantId === '') throw unfit(`${WORKLOAD_FIELDS.tenant} is not set`)
  if (clientId === '') throw unfit(`${WORKLOAD_FIELDS.client} is not set`)
  const credential = await readToken(door.settings.azure_workload_token_file)
  const application = { tenantId, clientId, credential, fields: WORKLOAD_FIELDS }
  return asApplication(door, application, call, ({ ClientAssertionCredential }, options) =>
    new ClientAssertionCredential(tenantId, clientId, async () => credential, options).getToken(call.scope),
  )
}

/** Kubernetes replaces the file while it is in use, so it is read at each login. */
async function readToken(file: string): Promise<string> {
  const token = (await readFile(file, 'utf8').catch(() => '')).trim()
  if (isHeaderText(token)) return token
  throw unfit(`the file that ${WORKLOAD_FIELDS.credential} names cannot be read, or holds no token`)
}

type Identity = typeof import('@azure/identity')
interface ApplicationOptions extends AzureSettings {
  authorityHost: string
  disableInstanceDiscovery: boolean
}

interface Application {
  tenantId: string
  clientId: string
  /** client secret or token */
  credential: string
  fields: ApplicationFields
}

async function asApplication(
  { authConfig, transport }: AzureDoor,
  application: Application,
  call: AzureCall,
  getToken: (identity: Identity, options: ApplicationOptions) => Promise<{ token: string; expiresOnTimestamp: number }>,
): Promise<AzureLogin> {
  const { tenantId, fields } = application
  if (isAnother(tenantId, call.tenantId))
    throw new ManagerError(
      'login',
      'manager_auth_failed',
      `the vault belongs to another directory than ${fields.tenant}`,
    )
  const refusal = (answer: OutboundResponse) => entraRefusal(answer, fields, { ...authConfig, ...application })
  const given = await askAzure(transport, call, { step: 'login', refusal }, async (settings) =>
    getToken(await import('@azure/identity'), {
      ...settings,
      authorityHost: authorityOf(authConfig.azure_vault_url),
      // It would ask the public cloud about the host above, which is one of ours and needs no proof.
      disableInstanceDiscovery: true,
    }),
  )
  return loginOf(given.token, given.expiresOnTimestamp)
}

const DIRECTORY_ID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** A directory may be named by one of its domains as well, of which only Entra knows whose they are. */
const isAnother = (tenantId: string, ofVault: string | undefined): boolean =>
  ofVault !== undefined && DIRECTORY_ID.test(tenantId) && tenantId.toLowerCase() !== ofVault.toLowerCase()

/** Clouds apart have a login of their own (decision 49). */
function authorityOf(vaultUrl: string): string {
  const { hostname } = new URL(vaultUrl)
  if (hostname.endsWith('.vault.azure.cn')) return 'https://login.chinacloudapi.cn'
  if (hostname.endsWith('.vault.usgovcloudapi.net')) return 'https://login.microsoftonline.us'
  return 'https://login.microsoftonline.com'
}

const METADATA = 'http://169.254.169.254/metadata/identity/oauth2/token'

/**
 * The managed identity of this machine, asked for at its instance metadata service. The SDK's own credential takes the
 * endpoint from the environment and from files of other products, keeps tokens for the whole process (decision 46),
 * and repeats what fails for minutes, whatever signal it has (P17).
 */
async function fromMetadata(door: AzureDoor, clientId: string | undefined, call: AzureCall): Promise<AzureLogin> {
  const resource = call.scope.replace(/\/\.default$/, '')
  const query = new URLSearchParams({
    'api-version': '2018-02-01',
    resource,
    ...(clientId !== undefined && { client_id: clientId }),
  })
  const answer = await askMetadata(door.transport, `${METADATA}?${query}`, call)
  if (answer.status !== 200) throw identityRefusal(answer, door.authConfig)
  const { access_token: token, expires_in: seconds } = objectIn(answer)
  // of some services a number, of others its digits
  return loginOf(token, Date.now() + Number.parseInt(String(seconds), 10) * 1_000)
}

async function askMetadata(transport: Transport, url: string, { signal }: ManagerCall): Promise<OutboundResponse> {
  try {
    return await transport.send({
      method: 'GET',
      url,
      headers: { metadata: 'true' },
      signal,
      reach: 'machine_identity',
    })
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    const { step, failure, message } = fromOutbound(error, 'login')
    throw new ManagerError(step, failure, `managed identity of this machine: ${message}`)
  }
}

function loginOf(token: unknown, endsAt: number): AzureLogin {
  if (typeof token !== 'string' || !isHeaderText(token) || !Number.isFinite(endsAt)) throw unexpectedLogin()
  return { token, ...endingAt(endsAt) }
}

const isHeaderText = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

const unfit = (message: string): ManagerError => new ManagerError('login', 'manager_config', message)
