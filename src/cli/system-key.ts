import { and, eq } from 'drizzle-orm'
import { PERMISSIONS } from '../../schema/api/permissions.ts'
import { maskKey, newApiKey } from '../api-keys/key.ts'
import type { Actor } from '../auth/caller.ts'
import type { Tx } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

/** What a system key may do, no more and no less (decision 16). */
const SCOPES = PERMISSIONS.filter((permission) =>
  /^(prompts\.render|logs\.write|(secret_references|providers|configs|(organisation|workspace)_integrations)\.(read|list))$/.test(
    permission,
  ),
)

/**
 * Makes a key of the system caller (spec 2.5): bound to the organisation, made at the command line alone, neither
 * listed nor found by the API. The owner answers for it.
 *
 * @param input.expiresAt UTC milliseconds
 */
export async function createSystemKey(
  gatehouse: Gatehouse,
  actor: Extract<Actor, { kind: 'cli' }>,
  input: { name: string; expiresAt: number | undefined },
): Promise<{ id: string; key: string }> {
  const id = Bun.randomUUIDv7()
  const key = newApiKey('s')
  const what = {
    action: 'system_api_keys.create',
    resourceId: id,
    resourceName: input.name,
    details: { scopes: SCOPES },
  }
  await gatehouse.audited(actor, what, async (tx) => {
    const t = tx.tables.apiKeys
    const row = {
      id,
      organisationId: actor.organisationId,
      workspaceId: null,
      userId: null,
      accountableUserId: await ownerOf(tx, actor.organisationId),
      type: 'system',
      name: input.name,
      description: null,
      scopes: JSON.stringify(SCOPES),
      digest: gatehouse.digestKey(key),
      masked: maskKey(key),
      creationMode: 'api',
      createdByKeyId: null,
      expiresAt: input.expiresAt ?? null,
      deletedAt: null,
      createdAt: tx.now,
      lastUpdatedAt: tx.now,
    }
    await tx.insert(t).values(row).returning({ id: t.id })
    tx.changed('api_key', id)
  })
  return { id, key }
}

async function ownerOf(tx: Tx, organisationId: string): Promise<string> {
  const t = tx.tables.users
  const isOwner = and(eq(t.organisationId, organisationId), eq(t.role, 'owner'), eq(t.status, 'active'))
  const [owner] = await tx.select({ id: t.id }).from(t).where(isOwner).limit(1)
  if (owner === undefined) throw new GatehouseError('internal', 'the organisation has no owner')
  return owner.id
}
