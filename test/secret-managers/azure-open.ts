import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import type { Transport } from '../../src/outbound/transport.ts'
import { azureKv } from '../../src/secret-managers/azure-kv.ts'
import { type FetchedSecret, type ManagerClient, ManagerError } from '../../src/secret-managers/manager.ts'
import type { AzureDouble } from '../support/azure-double.ts'

export interface OpenAzure {
  client: ManagerClient
  transport: Transport
  /** `login`, `read`, … as they were told */
  steps: string[]
  fetch(secretPath?: string, signal?: AbortSignal): Promise<FetchedSecret>
  /** the error of a fetch that must fail */
  failure(secretPath?: string, signal?: AbortSignal): Promise<ManagerError>
}

export const CLIENT_ID = '5a1e0000-0000-4000-8000-000000000001'
export const CLIENT_SECRET = 'client-secret-of-the-config'
export const vaultUrl = 'https://t1.vault.azure.net'

export const MANAGED = { azure_auth_mode: 'managed', azure_vault_url: vaultUrl } as const satisfies AzureAuthConfig
export const DEFAULT = { azure_auth_mode: 'default', azure_vault_url: vaultUrl } as const satisfies AzureAuthConfig

type Entra = Extract<AzureAuthConfig, { azure_auth_mode: 'entra' }>

export const entra = ({ directory }: AzureDouble, changes: Partial<Entra> = {}): Entra => ({
  azure_auth_mode: 'entra',
  azure_entra_tenant_id: directory.id,
  azure_entra_client_id: CLIENT_ID,
  azure_entra_client_secret: CLIENT_SECRET,
  azure_vault_url: vaultUrl,
  ...changes,
})

type Settings = Partial<Config['secret_managers']>

/** The adapter over our one transport. */
export function openAzure(
  { connect, ca }: Pick<AzureDouble, 'connect'> & { ca?: string },
  authConfig: AzureAuthConfig,
  settings: Settings = {},
): OpenAzure {
  const config = { allow: [], allow_http: [], connect, proxy: '' }
  const transport = createOutbound({ config, ownListeners: () => [] }).open({ ca })
  const steps: string[] = []
  const client = azureKv.open(authConfig, {
    transport,
    settings: { azure_workload_token_file: '', ...settings } as Config['secret_managers'],
    referenceId: '5f0c7f1e-0000-7000-8000-000000000001',
  })
  const fetch: OpenAzure['fetch'] = (secretPath = 'openai', signal = AbortSignal.timeout(10_000)) =>
    client.fetchSecret(secretPath, { signal, passed: (step) => void steps.push(step) })
  return {
    client,
    transport,
    steps,
    fetch,
    async failure(secretPath, signal) {
      const outcome = await fetch(secretPath, signal).catch((error: unknown) => error)
      if (outcome instanceof ManagerError) return outcome
      throw new Error(`expected a ManagerError, got ${Bun.inspect(outcome)}`)
    },
  }
}
