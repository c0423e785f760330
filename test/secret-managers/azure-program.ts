import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import { azureKv } from '../../src/secret-managers/azure-kv.ts'
import { ManagerError } from '../../src/secret-managers/manager.ts'

// Reads secrets in a process of its own, which can be compiled: azure-program.ts '{"connect", "ca", "reads"}'.
// Prints what became of each, as JSON.

interface Asked {
  connect: Record<string, string>
  ca: string
  reads: { authConfig: AzureAuthConfig; secretPath: string }[]
}

async function main({ connect, ca, reads }: Asked): Promise<void> {
  const config = { allow: [], allow_http: [], connect, proxy: '' }
  const outbound = createOutbound({ config, ownListeners: () => [] })
  const outcomes: unknown[] = []
  for (const { authConfig, secretPath } of reads) {
    const settings = { azure_workload_token_file: '' } as never
    const client = azureKv.open(authConfig, { transport: outbound.open({ ca }), settings, referenceId: 'reference' })
    const call = { signal: AbortSignal.timeout(5_000), passed() {} }
    outcomes.push(
      await client
        .fetchSecret(secretPath, call)
        .catch((error) => (error instanceof ManagerError ? `${error.failure} at ${error.step}` : `${error}`)),
    )
    client.close()
  }
  process.stdout.write(JSON.stringify(outcomes))
}

void main(JSON.parse(process.argv[2] ?? ''))
