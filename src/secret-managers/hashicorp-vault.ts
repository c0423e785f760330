import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { OutboundError, type Transport } from '../outbound/transport.ts'
import {
  type ManagerCall,
  type ManagerClient,
  ManagerError,
  type ManagerSurroundings,
  type SecretManager,
} from './manager.ts'
import { fromOutbound } from './outbound-failure.ts'
import { secretPathComplaint } from './secret-path.ts'
import { timed } from './timed.ts'
import { type VaultAnswer, vaultAnswer } from './vault-answer.ts'
import type { VaultRequest, VaultSession } from './vault-login.ts'
import { createVaultLogins } from './vault-logins.ts'
import { createVaultReader } from './vault-secret.ts'

/** HashiCorp Vault: secrets of its engines of type kv, in both versions (decision 48). */
export const hashicorpVault: SecretManager<VaultAuthConfig> = { open: openVault }

function openVault(authConfig: VaultAuthConfig, { transport, settings }: ManagerSurroundings): ManagerClient {
  const logins = createVaultLogins({
    authConfig,
    jwtFile: settings.vault_jwt_file,
    openSession: (token) => openSession(authConfig, transport, token),
  })
  const reader = createVaultReader(authConfig)
  const logIn = (call: ManagerCall) => timed(call, 'login', () => logins.current(call))

  return {
    async fetchSecret(secretPath, call) {
      const complaint = secretPathComplaint('hashicorp_vault', secretPath)
      if (complaint !== undefined) throw new ManagerError('read', 'manager_config', `secret_path: ${complaint}`)
      const login = await logIn(call)
      try {
        return await reader.read(secretPath, login.session, call)
      } catch (error) {
        const hasEnded = error instanceof ManagerError && error.failure === 'manager_auth_expired'
        if (!hasEnded || !logins.drop(login)) throw error
        const another = await logIn(call)
        return reader.read(secretPath, another.session, call)
      }
    },
    loginExpiresAt: () => logins.endsAt(),
    close() {
      logins.close()
      transport.close()
    },
  }
}

/** What node-vault hands to its transport. */
interface NodeVaultRequest extends VaultRequest {
  method: string
  uri: string
  headers: Record<string, string>
  json?: object
}

/** A node-vault client of its own for each token, and for nobody: the empty token. */
async function openSession(authConfig: VaultAuthConfig, transport: Transport, token: string): Promise<VaultSession> {
  const { default: nodeVault } = await import('node-vault')
  const client = nodeVault({
    endpoint: authConfig.vault_addr,
    // its own prints requests where DEBUG is set
    debug: () => {},
    'request-promise': { defaults: () => (request: NodeVaultRequest) => send(transport, request) },
  })
  // What is empty among the options above comes from the environment (P18): a login would be sent with VAULT_TOKEN.
  return Object.assign(client, { token, namespace: authConfig.vault_namespace ?? '', pathPrefix: '' })
}

/** Each answer goes back as a success: node-vault's errors lack the headers, and they are not ours to hand on. */
async function send(transport: Transport, request: NodeVaultRequest): Promise<{ statusCode: 200; body: VaultAnswer }> {
  const { method, uri, json, signal, step } = request
  // Vault agents may insist on the first: no browser is led to send it
  const headers = { ...request.headers, 'X-Vault-Request': 'true', ...(json && { 'Content-Type': 'application/json' }) }
  const body = json && { body: JSON.stringify(json) }
  try {
    const response = await transport.send({ method, url: uri, headers, ...body, signal, reach: 'listed' })
    return { statusCode: 200, body: vaultAnswer(response) }
  } catch (error) {
    if (error instanceof OutboundError) throw fromOutbound(error, step)
    throw new ManagerError(step, 'manager_config', 'no request could be made of this auth_config: look at vault_addr')
  }
}
