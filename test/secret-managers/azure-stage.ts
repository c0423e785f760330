import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AzureDouble, startAzureDouble } from '../support/azure-double.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { CLIENT_ID, CLIENT_SECRET, DEFAULT, entra, MANAGED } from './azure-open.ts'
import { meanwhile, type Shape, type Stage } from './conformance.ts'

const [DEAD, STRANGE] = ['dead.vault.azure.net', 'strange.vault.azure.net']
const IDENTITY = '1de00000-0000-4000-8000-000000000001'
const ASSERTION = 'token-of-the-workload'

/**
 * The double of Azure, behind the host names of the real one, and machines in it.
 *
 * @param folder for the token of the workload
 */
export async function openAzureStage(folder: string): Promise<Stage & { metadata: string }> {
  const azure = await startAzureDouble()
  const strange = await startTlsFront({ names: [STRANGE], to: 1 })
  const tokenFile = join(folder, 'workload-token')
  writeFileSync(tokenFile, ASSERTION)
  const application = { secrets: [{ value: CLIENT_SECRET }], assertions: [ASSERTION] }
  azure.applications = { [CLIENT_ID]: application }
  azure.identities = [IDENTITY]

  return {
    name: 'Azure Key Vault (double)',
    outbound: {
      allow: [],
      allow_http: [],
      connect: { ...azure.connect, [`${DEAD}:443`]: '127.0.0.1:1', [`${STRANGE}:443`]: `127.0.0.1:${strange.port}` },
      proxy: '',
    },
    caFile: azure.caFile,
    metadata: azure.connect['169.254.169.254:80'] ?? '',
    machines: {
      pod: {
        azure_workload_tenant_id: azure.directory.id,
        azure_workload_client_id: CLIENT_ID,
        azure_workload_token_file: tokenFile,
      },
    },
    shapes: shapesOf(azure),
    async store(name, fields) {
      const version = Bun.randomUUIDv7().replaceAll('-', '')
      azure.secrets[name] = [...(azure.secrets[name] ?? []), { version, value: JSON.stringify(fields) }]
      return name
    },
    missingPath: 'never',
    logins: () => azure.asked.map((asked) => asked.split(' ')[0] ?? '').filter((asked) => LOGINS.has(asked)),
    unreachable: {
      'nobody listens': entra(azure, { azure_vault_url: `https://${DEAD}` }),
      'another authority': entra(azure, { azure_vault_url: `https://${STRANGE}` }),
    },
    async stop() {
      azure.stop()
      strange.stop()
    },
  }
}

function shapesOf(azure: AzureDouble): Shape[] {
  const common = {
    managerType: 'azure_kv',
    revoke: async () => azure.revokeTokens(),
    denied: { what: 'nobody may read', during: meanwhile(azure, 'readers', []) },
  } as const
  const noIdentity = { what: 'the machine has no identity', during: meanwhile(azure, 'identities', []) }

  return [
    {
      name: 'azure entra',
      ...{ ...common, authConfig: entra(azure), machine: 'instance', login: ['token'] },
      refused: [
        {
          what: 'another client secret',
          authConfig: entra(azure, { azure_entra_client_secret: 'client-secret-of-nobody' }),
        },
        { what: 'an unknown client', authConfig: entra(azure, { azure_entra_client_id: IDENTITY }) },
      ],
    },
    {
      name: 'azure managed',
      ...{ ...common, authConfig: MANAGED, machine: 'instance', login: ['metadata'] },
      refused: [noIdentity],
    },
    {
      name: 'azure managed, with a client id',
      authConfig: { ...MANAGED, azure_managed_client_id: IDENTITY },
      ...{ ...common, machine: 'instance', login: ['metadata'] },
      refused: [{ what: 'of another machine', authConfig: { ...MANAGED, azure_managed_client_id: CLIENT_ID } }],
    },
    {
      name: 'azure default, of a machine',
      ...{ ...common, authConfig: DEFAULT, machine: 'instance', login: ['metadata'] },
      refused: [noIdentity],
    },
    {
      name: 'azure default, of a pod (workload identity)',
      ...{ ...common, authConfig: DEFAULT, machine: 'pod', login: ['token'] },
      refused: [{ what: 'nobody trusts its token', during: meanwhile(azure, 'applications', { [CLIENT_ID]: {} }) }],
    },
  ]
}

const LOGINS = new Set(['token', 'metadata'])
