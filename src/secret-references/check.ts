import { asc, gt } from 'drizzle-orm'
import type { AuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { missingGrant } from '../secret-managers/grants.ts'
import { openAuthConfig } from './sealed-auth-config.ts'
import { listAllowedWorkspaces, type SecretReferenceRow } from './store.ts'

/** A reference that cannot be resolved as the settings are. */
export interface Uncovered {
  id: string
  slug: string
  /** what stands in the way: no grant, no entry of `[outbound] allow`, or a login that cannot be opened */
  problem: 'grant' | 'address' | 'sealed'
  /** with the lines to add */
  message: string
}

export interface CheckedReferences {
  checked: number
  /** in the order of their ids */
  uncovered: Uncovered[]
}

/** References that are read, and looked at, together. */
const BATCH = 500

/**
 * Looks for references that no grant or `[outbound] allow` covers any more. DNS is asked, since what a name stands for
 * decides whether it needs an entry; no manager is.
 *
 * @param settings.grants `secret_managers.machine_identity`
 */
export async function checkSecretReferences(
  { read, keyring }: Pick<Gatehouse, 'read' | 'keyring'>,
  settings: { grants: Config['secret_managers']['machine_identity']; outbound: Pick<Outbound, 'refusalOf'> },
): Promise<CheckedReferences> {
  const { secretReferences: t } = read.tables
  const refusalOf = remembered((address) => settings.outbound.refusalOf(address, 'listed'))

  async function look(row: SecretReferenceRow): Promise<Uncovered[]> {
    const { id, slug, secretPath, allowAllWorkspaces } = row
    const authConfig = openedOrNot(() => openAuthConfig(keyring(), row))
    if (authConfig === undefined)
      return [{ id, slug, problem: 'sealed', message: 'its auth_config cannot be opened: it was changed, or moved' }]
    const workspaces = allowAllWorkspaces ? 'all' : await listAllowedWorkspaces(read, id)
    const lines = missingGrant(authConfig, { secretPath, workspaces }, settings.grants)
    const address = addressOf(authConfig)
    const refusal = address === undefined ? undefined : await refusalOf(address)
    return [
      ...(lines === undefined ? [] : [{ id, slug, problem: 'grant' as const, message: `add:\n${lines}` }]),
      ...(refusal === undefined ? [] : [{ id, slug, problem: 'address' as const, message: refusal }]),
    ]
  }

  const found: CheckedReferences = { checked: 0, uncovered: [] }
  for (let after = ''; ; ) {
    const rows = await read.select().from(t).where(gt(t.id, after)).orderBy(asc(t.id)).limit(BATCH)
    found.uncovered.push(...(await Promise.all(rows.map(look))).flat())
    found.checked += rows.length
    after = rows.at(-1)?.id ?? ''
    if (rows.length < BATCH) return found
  }
}

/** Hosts of AWS are built from a region, and need no entry. */
function addressOf(authConfig: AuthConfig): string | undefined {
  if ('aws_auth_type' in authConfig) return undefined
  return 'azure_auth_mode' in authConfig ? authConfig.azure_vault_url : authConfig.vault_addr
}

function openedOrNot(opens: () => AuthConfig): AuthConfig | undefined {
  try {
    return opens()
  } catch {
    return undefined
  }
}

/** Many references have one address. */
function remembered<T>(ask: (address: string) => Promise<T>): (address: string) => Promise<T> {
  const asked = new Map<string, Promise<T>>()
  return (address) => {
    const answer = asked.get(address) ?? ask(address)
    asked.set(address, answer)
    return answer
  }
}
