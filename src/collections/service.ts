import { eq } from 'drizzle-orm'
import type { CreateCollection, UpdateCollection } from '../../schema/api/collections.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { assertSameWorkspace, workspaceForCreate } from '../auth/tenancy.ts'
import { difference } from '../difference.ts'
import { conflict, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { withNewSlug } from '../slug.ts'
import { type CollectionRow, detailsOf, findCollection } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read'>

export async function createCollection({ audited, read }: Deps, actor: KeyActor, body: CreateCollection) {
  const parent = body.parent_collection_id
    ? await findCollection(read, actor.caller, body.parent_collection_id)
    : undefined
  if (body.parent_collection_id && parent === undefined) throw invalidField('parent_collection_id', 'is unknown')
  const workspaceId =
    parent !== undefined && !body.workspace_id
      ? parent.workspaceId
      : (await workspaceForCreate(read, actor.caller, body.workspace_id)).id
  if (parent !== undefined && parent.workspaceId !== workspaceId)
    throw invalidField('parent_collection_id', 'is in another workspace')
  const id = Bun.randomUUIDv7()
  const what = { action: 'collections.create', workspaceId, resourceId: id, resourceName: body.name }
  const write = (slug: string) =>
    audited(actor, what, async (tx) => {
      const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
      const row = {
        id,
        slug,
        name: body.name,
        workspaceId,
        parentCollectionId: parent?.id ?? null,
        isDefault: false,
        ...times,
      }
      await tx.insert(tx.tables.collections).values(row).returning({ id: tx.tables.collections.id })
      tx.event.details = { after: told(row) }
      return { id, slug }
    })
  return withNewSlug('co', body.name, 'collections_slug', write)
}

export async function renameCollection(
  { audited, read }: Deps,
  actor: KeyActor,
  idOrSlug: string,
  body: UpdateCollection,
): Promise<Record<string, never>> {
  const collection = await getCollection(read, actor.caller, idOrSlug)
  await assertSameWorkspace(read, actor.caller, body.workspace_id, collection.workspaceId)
  const { name } = body
  const { collections } = read.tables
  await audited(actor, event('collections.update', collection), async (tx) => {
    const isIt = eq(collections.id, collection.id)
    // From here on nobody else changes it.
    const [before] = await tx.update(collections).set({ id: collection.id }).where(isIt).returning()
    if (before === undefined) throw notFound('collection')
    await tx.update(collections).set({ name, lastUpdatedAt: tx.now }).where(isIt).returning({ id: collections.id })
    tx.event.details = difference(told(before), told({ ...before, name }))
  })
  return {}
}

/** The default collection cannot be deleted, and answers like one that does not exist (file 03). */
export async function deleteCollection(
  { audited, read }: Deps,
  actor: KeyActor,
  idOrSlug: string,
): Promise<Record<string, never>> {
  const collection = await getCollection(read, actor.caller, idOrSlug)
  if (collection.isDefault) throw notFound('deletable collection')
  const { collections, partials } = read.tables
  await audited(actor, event('collections.delete', collection), async (tx) => {
    const held = (await detailsOf(tx, [collection.id]))(collection.id)
    const [partial] = await tx
      .select({ id: partials.id })
      .from(partials)
      .where(eq(partials.collectionId, collection.id))
      .limit(1)
    if (held.children > 0 || held.prompts > 0 || partial !== undefined)
      throw conflict('the collection still holds prompts, partials or collections; move or delete them first')
    const [deleted] = await tx.delete(collections).where(eq(collections.id, collection.id)).returning()
    if (deleted === undefined) throw notFound('collection')
    tx.event.details = { before: told(deleted) }
  })
  return {}
}

/** @throws GatehouseError `not_found`, also for a collection out of the caller's reach */
export async function getCollection(read: Gatehouse['read'], caller: Caller, idOrSlug: string): Promise<CollectionRow> {
  const collection = await findCollection(read, caller, idOrSlug)
  if (collection === undefined) throw notFound('collection')
  return collection
}

/** What an audit row says of a collection. */
const told = ({ slug, name, parentCollectionId }: Pick<CollectionRow, 'slug' | 'name' | 'parentCollectionId'>) => ({
  slug,
  name,
  parent_collection_id: parentCollectionId,
})

const event = (action: string, { workspaceId, id, name }: CollectionRow) => ({
  action,
  workspaceId,
  resourceId: id,
  resourceName: name,
})
