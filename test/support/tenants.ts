import { eq } from 'drizzle-orm'
import { GRANTABLE } from '../../schema/api/permissions.ts'
import { maskKey, newApiKey } from '../../src/api-keys/key.ts'
import type { KeyType } from '../../src/auth/caller.ts'
import type { Tx } from '../../src/db/database.ts'
import type { Gatehouse } from '../../src/gatehouse.ts'
import type { Bootstrapped } from '../../src/organisation/bootstrap.ts'
import { newSlug } from '../../src/slug.ts'

// What no call of the API makes yet, or ever (decision 19: an installation has one organisation). Written directly, so
// that isolation between tenants can be proved.

export interface Tenant {
  organisationId: string
  workspaceId: string
  collectionId: string
  /** owner of the organisation */
  userId: string
}

/** What bootstrap made. */
export const defaultTenant = (made: Bootstrapped): Tenant => ({
  organisationId: made.organisation_id,
  workspaceId: made.workspace_id,
  collectionId: made.collection_id,
  userId: made.user_id,
})

/** A second organisation with a workspace, its default collection, an owner and an admin key. */
export async function addOrganisation(gatehouse: Gatehouse): Promise<Tenant & { adminKey: string }> {
  const organisationId = Bun.randomUUIDv7()
  await change(gatehouse, organisationId, async (tx) => {
    const { organisations: t } = tx.tables
    await tx.insert(t).values({ id: organisationId, name: 'Other', createdAt: tx.now }).returning({ id: t.id })
  })
  const userId = await addPerson(gatehouse, organisationId, 'owner')
  const tenant = { organisationId, userId, ...(await addWorkspace(gatehouse, organisationId)) }
  return { ...tenant, adminKey: await addKey(gatehouse, tenant, 'organisation-service') }
}

/**
 * Another workspace of an organisation, with its default collection.
 *
 * @param given id and slug that a test has to know beforehand
 */
export async function addWorkspace(
  gatehouse: Gatehouse,
  organisationId: string,
  { workspaceId = Bun.randomUUIDv7(), slug = newSlug('ws', 'second') }: { workspaceId?: string; slug?: string } = {},
) {
  const collectionId = Bun.randomUUIDv7()
  await change(gatehouse, organisationId, async (tx) => {
    const { workspaces, collections } = tx.tables
    const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
    const workspace = { id: workspaceId, organisationId, slug, name: 'Second', isDefault: false, status: 'active' }
    await tx
      .insert(workspaces)
      .values({ ...workspace, ...times })
      .returning({ id: workspaces.id })
    const collection = { id: collectionId, workspaceId, slug: newSlug('co', 'default'), name: 'Default' }
    await tx
      .insert(collections)
      .values({ ...collection, isDefault: true, ...times })
      .returning({ id: collections.id })
  })
  return { workspaceId, workspaceSlug: slug, collectionId }
}

/** A person of an organisation, member of no workspace. */
export async function addPerson(
  gatehouse: Gatehouse,
  organisationId: string,
  role: 'owner' | 'admin' | 'member',
): Promise<string> {
  const id = Bun.randomUUIDv7()
  await change(gatehouse, organisationId, async (tx) => {
    const { users: t } = tx.tables
    const person = { id, organisationId, email: `${id}@example.com`, role, status: 'active' }
    await tx
      .insert(t)
      .values({ ...person, createdAt: tx.now, lastUpdatedAt: tx.now })
      .returning({ id: t.id })
  })
  return id
}

/** A clear key of a tenant, with every permission that its type may hold unless `scopes` says otherwise. */
export async function addKey(
  gatehouse: Gatehouse,
  { organisationId, workspaceId, userId }: Tenant,
  type: Exclude<KeyType, 'system'>,
  scopes: readonly string[] = [...GRANTABLE[type]],
): Promise<string> {
  const isAdmin = type === 'organisation-service'
  const key = newApiKey(isAdmin ? 'a' : 'w')
  await change(gatehouse, organisationId, async (tx) => {
    const { apiKeys: t } = tx.tables
    const id = Bun.randomUUIDv7()
    const row = {
      id,
      organisationId,
      workspaceId: isAdmin ? null : workspaceId,
      userId: type === 'workspace-user' ? userId : null,
      accountableUserId: userId,
      type,
      name: 'of a tenant',
      scopes: JSON.stringify(scopes),
      digest: gatehouse.digestKey(key),
      masked: maskKey(key),
      creationMode: 'api',
    }
    await tx
      .insert(t)
      .values({ ...row, createdAt: tx.now, lastUpdatedAt: tx.now })
      .returning({ id: t.id })
    tx.changed('api_key', id)
  })
  return key
}

/** As another node does it before this one has polled: the row is gone, the cache does not know. */
export async function revokeUnnoticed(gatehouse: Gatehouse, key: string): Promise<void> {
  const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
  await gatehouse.audited(actor, { action: 'test.revoke' }, async (tx) => {
    const { apiKeys: t } = tx.tables
    const ofKey = eq(t.digest, gatehouse.digestKey(key))
    await tx.update(t).set({ deletedAt: tx.now }).where(ofKey).returning({ id: t.id })
  })
}

const change = (gatehouse: Gatehouse, organisationId: string, work: (tx: Tx) => Promise<void>): Promise<void> =>
  gatehouse.audited({ kind: 'cli', uid: 0, organisationId, command: 'test' }, { action: 'test.set_up' }, work)
