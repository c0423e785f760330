import { and, eq, isNull } from 'drizzle-orm'
import type { CreateWorkspace, DeleteWorkspace, UpdateWorkspace, Workspace } from '../../schema/api/workspaces.ts'
import type { KeyActor } from '../auth/caller.ts'
import type { Tx } from '../db/database.ts'
import { isUniqueViolation } from '../db/errors.ts'
import { difference } from '../difference.ts'
import { conflict, GatehouseError, invalid, invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { makeFirstKey } from '../members/first-key.ts'
import { findPeople, putMember } from '../members/store.ts'
import { organisationSettings } from '../organisation/settings.ts'
import { withNewSlug } from '../slug.ts'
import { changed } from './change.ts'
import { contentOf, displayName, presentWorkspace } from './present.ts'
import { dependantsOf, getWorkspace, lockWorkspace, type WorkspaceRow } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read'>

/**
 * Makes a workspace with its default collection and its first members.
 *
 * @throws GatehouseError `invalid` (unknown people among others), `conflict` for a slug that is taken
 */
export async function createWorkspace(
  { audited, read }: Deps,
  actor: KeyActor,
  body: CreateWorkspace,
): Promise<Workspace> {
  const { organisationId, accountableUserId } = actor.caller
  const users = body.users ?? []
  const general = await organisationSettings(read, organisationId)
  const metadata = body.defaults?.metadata ?? null
  const id = Bun.randomUUIDv7()
  const what = { action: 'workspaces.create', workspaceId: id, resourceId: id, resourceName: body.name }
  const write = (slug: string, collectionSlug: string) =>
    audited(actor, what, async (tx) => {
      const blank = newWorkspace({ id, slug, organisationId, createdBy: accountableUserId }, tx.now)
      const row = changed(blank, { ...body, defaults: { ...body.defaults, metadata } }, general, tx.now)
      await tx.insert(tx.tables.workspaces).values(row).returning({ id: tx.tables.workspaces.id })
      await insertDefaultCollection(tx, id, collectionSlug)
      await assertPeople(tx, organisationId, users)
      for (const userId of users) {
        await putMember(tx, id, userId, 'member')
        await makeFirstKey(tx, actor.caller, row, userId)
      }
      tx.event.details = { after: { slug, ...auditedFields(row), users } }
      return presentWorkspace(row)
    })
  return withWorkspaceSlug(body, (slug) =>
    withNewSlug('co', 'default', 'collections_slug', (collectionSlug) => write(slug, collectionSlug)),
  )
}

/** @throws GatehouseError `forbidden` for a workspace key that sends settings (decision 34), `invalid`, `not_found` */
export async function updateWorkspace(
  { audited, read }: Deps,
  actor: KeyActor,
  idOrSlug: string,
  body: UpdateWorkspace,
): Promise<WorkspaceRow> {
  const { caller } = actor
  const { id, name } = await getWorkspace(read, caller, idOrSlug)
  if (Object.keys(body).length === 0)
    throw invalidField('', 'nothing to update: send name, icon, description, defaults or limits')
  if (caller.workspaceId !== null && (body.settings !== undefined || body.security_settings !== undefined))
    throw new GatehouseError('forbidden', 'settings and security_settings of a workspace take an admin key')
  const what = { action: 'workspaces.update', workspaceId: id, resourceId: id, resourceName: name }
  return audited(actor, what, async (tx) => {
    const before = await lockWorkspace(tx, id)
    const after = changed(before, body, await organisationSettings(tx, caller.organisationId), tx.now)
    const { workspaces: t } = tx.tables
    await tx.update(t).set(after).where(eq(t.id, id)).returning({ id: t.id })
    tx.event.details = difference(auditedFields(before), auditedFields(after))
    if (body.security_settings !== undefined) tx.changed('workspace', id)
    return after
  })
}

/**
 * Archives a workspace; its keys are revoked with it. The rows stay, so that what was done there stays attributable.
 *
 * @throws GatehouseError `conflict` for the default workspace, and for one that holds something unless it is forced;
 *         `invalid` when the name does not confirm it; `not_found`
 */
export async function deleteWorkspace(
  { audited, read }: Deps,
  actor: KeyActor,
  idOrSlug: string,
  { name, force_delete: isForced }: DeleteWorkspace,
): Promise<Record<string, never>> {
  const { id, ...found } = await getWorkspace(read, actor.caller, idOrSlug)
  if (found.isDefault) throw conflict('the default workspace cannot be deleted')
  const what = { action: 'workspaces.delete', workspaceId: id, resourceId: id, resourceName: found.name }
  await audited(actor, what, async (tx) => {
    const row = await lockWorkspace(tx, id)
    const confirmed = name ?? row.name
    if (confirmed !== row.name && confirmed !== displayName(row))
      throw invalidField('name', 'is not the name of this workspace; send its name to confirm, or leave it out')
    const dependants = isForced ? [] : await dependantsOf(tx, id)
    if (dependants.length > 0)
      throw conflict(`the workspace still holds ${dependants.join(' and ')}; delete them, or send force_delete: true`)
    const { workspaces: t } = tx.tables
    await tx.update(t).set({ status: 'archived', lastUpdatedAt: tx.now }).where(eq(t.id, id)).returning({ id: t.id })
    const revoked = await revokeKeys(tx, id)
    tx.event.details = { before: { status: 'active' }, after: { status: 'archived' }, revoked_keys: revoked }
    tx.changed('workspace', id)
  })
  return {}
}

async function revokeKeys(tx: Tx, workspaceId: string): Promise<string[]> {
  const { apiKeys: t } = tx.tables
  const keys = await tx
    .update(t)
    .set({ deletedAt: tx.now, lastUpdatedAt: tx.now })
    .where(and(eq(t.workspaceId, workspaceId), isNull(t.deletedAt)))
    .returning({ id: t.id })
  for (const { id } of keys) tx.changed('api_key', id)
  return keys.map(({ id }) => id)
}

async function assertPeople(tx: Tx, organisationId: string, ids: readonly string[]): Promise<void> {
  const known = await findPeople(tx, organisationId, ids)
  const unknown = ids.flatMap((id, i) => (known.has(id) ? [] : [{ path: `users[${i}]`, message: 'is unknown' }]))
  if (unknown.length > 0) throw invalid(unknown)
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Under the slug that was asked for, or under a new one. */
async function withWorkspaceSlug<T>({ slug, name }: CreateWorkspace, write: (slug: string) => Promise<T>): Promise<T> {
  if (slug === undefined || slug === null) return withNewSlug('ws', name, 'workspaces_slug', write)
  if (UUID.test(slug)) throw invalidField('slug', 'must not look like an id')
  try {
    return await write(slug)
  } catch (error) {
    if (isUniqueViolation(error, 'workspaces_slug'))
      throw conflict('slug is taken by another workspace; choose another one, or leave it out')
    throw error
  }
}

const newWorkspace = (
  given: Pick<WorkspaceRow, 'id' | 'slug' | 'organisationId' | 'createdBy'>,
  now: number,
): WorkspaceRow => ({
  ...given,
  name: '',
  icon: null,
  description: null,
  isDefault: false,
  status: 'active',
  defaults: null,
  usageLimits: null,
  rateLimits: null,
  securitySettings: null,
  settings: null,
  createdAt: now,
  lastUpdatedAt: now,
})

async function insertDefaultCollection(tx: Tx, workspaceId: string, slug: string): Promise<void> {
  const { collections: t } = tx.tables
  const collection = { id: Bun.randomUUIDv7(), workspaceId, slug, name: 'Default', parentCollectionId: null }
  await tx
    .insert(t)
    .values({ ...collection, isDefault: true, createdAt: tx.now, lastUpdatedAt: tx.now })
    .returning({ id: t.id })
}

const auditedFields = (row: WorkspaceRow) => ({
  name: row.name,
  icon: row.icon,
  description: row.description,
  ...contentOf(row),
})
