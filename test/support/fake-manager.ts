import type { Config } from '../../schema/config.ts'
import {
  type FetchedSecret,
  type ManagerCall,
  ManagerError,
  type ManagerFailure,
  type SecretManager,
  type Step,
} from '../../src/secret-managers/manager.ts'
import { createSecretValues, type Reference, type SecretValuesOptions } from '../../src/secret-managers/values.ts'

type Answer = (call: ManagerCall, secretPath: string) => FetchedSecret | Promise<FetchedSecret>

/** A manager that answers as it is told, and counts; the port's second implementation. */
export interface FakeManager extends SecretManager {
  answer: Answer
  calls: number
  opened: number
  closed: number
  transportsClosed: number
  loginExpiresAt: number | null
  /** what the connections of the client opened last tell of */
  connected: (step: 'address' | 'connect' | 'tls', ms: number) => void
}

export function createFakeManager(answer: Answer = () => text('a secret')): FakeManager {
  const fake: FakeManager = {
    answer,
    calls: 0,
    opened: 0,
    closed: 0,
    transportsClosed: 0,
    loginExpiresAt: null,
    connected: () => {},
    open() {
      fake.opened++
      return {
        async fetchSecret(secretPath, call) {
          fake.calls++
          return fake.answer(call, secretPath)
        },
        loginExpiresAt: () => fake.loginExpiresAt,
        close: () => {
          fake.closed++
        },
      }
    },
  }
  return fake
}

/** It stands for every manager. */
export const everyManager = (fake: FakeManager) => ({ aws_sm: fake, azure_kv: fake, hashicorp_vault: fake })

export const text = (content: string, version: string | null = null): FetchedSecret => ({ content, version })

/** A manager that fails so, at the step where such a failure belongs. */
export const failing =
  (failure: ManagerFailure, details: { step?: Step; retryAfterSeconds?: number } = {}): Answer =>
  () => {
    throw new ManagerError(details.step ?? 'read', failure, `refused: ${failure}`, details)
  }

const SETTINGS: Config['secret_managers'] = {
  timeout_seconds: 10,
  cache_seconds: 300,
  cache_entries: 1000,
  serve_stale_seconds: 0,
  aws_ca_file: '',
  azure_ca_file: '',
  vault_ca_file: '',
  aws_identity: 'none',
  aws_web_identity_role_arn: '',
  aws_web_identity_token_file: '',
  aws_container_credentials_path: '',
  aws_container_token_file: '',
  azure_workload_tenant_id: '',
  azure_workload_client_id: '',
  azure_workload_token_file: '',
  vault_jwt_file: '',
  machine_identity: [],
}

/** Values over one fake manager, with a clock that is set by hand. */
export function openFakeValues(
  settings: Partial<Config['secret_managers']> = {},
  { answer, ...options }: Partial<SecretValuesOptions> & { answer?: Answer } = {},
) {
  const manager = createFakeManager(answer)
  const clock = { now: 1_800_000_000_000 }
  const values = createSecretValues({
    settings: { ...SETTINGS, ...settings },
    outbound: {
      open({ onStep = () => {} } = {}) {
        manager.connected = onStep
        return {
          send: () => Promise.reject(new Error('nothing is sent here')),
          close: () => {
            manager.transportsClosed++
          },
        }
      },
    },
    managers: everyManager(manager),
    now: () => clock.now,
    random: () => 0,
    ...options,
  })
  return { values, manager, clock }
}

export const reference = (changes: Partial<Reference> = {}): Reference => ({
  id: 'reference-1',
  organisationId: 'organisation-1',
  revision: 1,
  managerType: 'hashicorp_vault',
  authConfig: () => ({ vault_auth_type: 'token', vault_addr: 'https://vault.int:8200', vault_token: 'canary' }),
  secretPath: 'kv/openai',
  cacheSeconds: null,
  workspaces: 'all',
  ...changes,
})
