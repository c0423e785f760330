import type { ManagerType } from '../../schema/api/secret-references.ts'
import { awsSm } from './aws-sm.ts'
import { azureKv } from './azure-kv.ts'
import { hashicorpVault } from './hashicorp-vault.ts'
import type { SecretManager } from './manager.ts'

/** Every manager. Each loads its SDK when it is first asked for a secret, so that nobody else waits for that. */
export const MANAGERS: Record<ManagerType, SecretManager> = {
  aws_sm: awsSm,
  azure_kv: azureKv,
  hashicorp_vault: hashicorpVault,
}
