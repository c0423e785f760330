import type { KeyVaultSecret } from '@azure/keyvault-secrets'
import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import type { OutboundResponse, Transport } from '../outbound/transport.ts'
import { readRefusal, unexpectedSecret } from './azure-answer.ts'
import { type AzureCall, type AzureLogin, logInAtAzure } from './azure-credentials.ts'
import { askAzure } from './azure-transport.ts'
import { keepLogin } from './kept-login.ts'
import {
  type FetchedSecret,
  type ManagerCall,
  type ManagerClient,
  ManagerError,
  type ManagerSurroundings,
  type SecretManager,
} from './manager.ts'
import { secretPathComplaint } from './secret-path.ts'
import { timed } from './timed.ts'

/** Azure Key Vault: a secret in its latest version, or in the one that the path names. */
export const azureKv: SecretManager<AzureAuthConfig> = { open: openAzure }

/** Every cloud has it; what is newer reaches some of them late, and changes nothing about reading. */
const SERVICE_VERSION = '7.4'

function openAzure(authConfig: AzureAuthConfig, { transport, settings }: ManagerSurroundings): ManagerClient {
  const door = { authConfig, transport, settings }
  const vault = withChallengeKept(transport)
  const logins = keepLogin(
    (call: AzureCall) => logInAtAzure(door, call),
    () => new ManagerError('login', 'manager_timeout', 'the login at Azure did not end in time'),
  )

  async function read(secretPath: string, call: ManagerCall): Promise<FetchedSecret> {
    const [name = '', version] = secretPath.split('/')
    const startedAt = performance.now()
    let login: AzureLogin | undefined
    let loginMs = 0
    /** The vault says which login it wants, so the SDK asks for one while it reads. */
    async function getToken(scopes: string | string[], { tenantId }: { tenantId?: string } = {}) {
      const begunAt = performance.now()
      login = await logins.current({ ...call, scope: [scopes].flat()[0] ?? '', tenantId })
      const ms = performance.now() - begunAt
      loginMs += ms
      call.passed('login', ms)
      return { token: login.token, expiresOnTimestamp: login.endsAt }
    }
    function refusal(answer: OutboundResponse, wasAuthorized: boolean): ManagerError {
      const error = readRefusal(answer, wasAuthorized, { ...authConfig, token: login?.token })
      if (error.step === 'login') logins.drop(login)
      return error
    }
    const secret = await askAzure(vault, call, { step: 'read', refusal }, async (client) => {
      const { SecretClient } = await import('@azure/keyvault-secrets')
      const options = { ...client, serviceVersion: SERVICE_VERSION } as const
      return new SecretClient(authConfig.azure_vault_url, { getToken }, options).getSecret(
        name,
        version === undefined ? {} : { version },
      )
    })
    call.passed('read', performance.now() - startedAt - loginMs)
    return timed(call, 'parse', () => secretIn(secret))
  }

  return {
    async fetchSecret(secretPath, call) {
      const complaint = secretPathComplaint('azure_kv', secretPath)
      if (complaint !== undefined) throw new ManagerError('read', 'manager_config', `secret_path: ${complaint}`)
      try {
        return await read(secretPath, call)
      } catch (error) {
        vault.forget()
        if (!(error instanceof ManagerError) || error.failure !== 'manager_auth_expired') throw error
        return read(secretPath, call)
      }
    },
    loginExpiresAt: () => logins.endsAt(),
    close() {
      logins.close()
      transport.close()
    },
  }
}

/** A vault is asked without a token first, to say which it wants. It says the same each time. */
function withChallengeKept(transport: Transport): Transport & { forget(): void } {
  let challenge: OutboundResponse | undefined
  return {
    ...transport,
    async send(request) {
      if ('authorization' in request.headers) return transport.send(request)
      const answer = challenge ?? (await transport.send(request))
      if (answer.status === 401) challenge = answer
      return answer
    },
    forget() {
      challenge = undefined
    },
  }
}

/** A vault gives out what is not valid yet, or no longer, to be tried and to be rescued: not to be used. */
function secretIn({ value, properties }: KeyVaultSecret): FetchedSecret {
  if (typeof value !== 'string') throw unexpectedSecret()
  const { enabled, notBefore, expiresOn, version } = properties
  const now = Date.now()
  if (enabled === false) throw disabled('is disabled')
  if (expiresOn !== undefined && expiresOn.getTime() <= now) throw disabled('has expired')
  if (notBefore !== undefined && notBefore.getTime() > now) throw disabled('is not valid yet')
  return { content: value, version: version ?? null }
}

const disabled = (words: string): ManagerError =>
  new ManagerError(
    'read',
    'manager_secret_disabled',
    `this version of the secret ${words}: see its attributes in Azure`,
  )
