import { and, asc, count, desc, eq, inArray, max } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Caller } from '../auth/caller.ts'
import { workspaceForCreate } from '../auth/tenancy.ts'
import type { Reader } from '../db/database.ts'
import { invalidField } from '../errors.ts'
import { type Page, paged } from '../http/paging.ts'
import { isIdOrSlug, nameContains, withinReach } from '../prompts/store.ts'

export type CollectionRow = Tables['collections']['$inferSelect']

/** The collection of an id or slug, if the caller may know of it. */
export async function findCollection(db: Reader, caller: Caller, idOrSlug: string): Promise<CollectionRow | undefined> {
  const { collections, workspaces } = db.tables
  const [row] = await db
    .select({ collection: collections })
    .from(collections)
    .innerJoin(workspaces, eq(workspaces.id, collections.workspaceId))
    .where(and(isIdOrSlug(collections, idOrSlug), withinReach(workspaces, caller)))
    .limit(1)
  return row?.collection
}

/**
 * The collection that a new prompt or partial goes into: the one named, which decides the workspace, or the default
 * one of the workspace.
 *
 * @throws GatehouseError `invalid` for an unknown collection, or one of another workspace than `workspace` names
 */
export async function resolveCollection(
  db: Reader,
  caller: Caller,
  named: string | null | undefined,
  workspace: string | null | undefined,
): Promise<CollectionRow> {
  const isNamed = named !== null && named !== undefined
  const within = !isNamed || workspace ? (await workspaceForCreate(db, caller, workspace)).id : undefined
  const found = isNamed ? await findCollection(db, caller, named) : await findDefaultCollection(db, within ?? '')
  if (found === undefined)
    throw invalidField('collection_id', 'is unknown; GET /v1/collections lists the ones there are')
  if (within !== undefined && found.workspaceId !== within)
    throw invalidField('collection_id', 'is not in the workspace that workspace_id names')
  return found
}

export async function findDefaultCollection(db: Reader, workspaceId: string): Promise<CollectionRow | undefined> {
  const { collections: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.workspaceId, workspaceId), eq(t.isDefault, true)))
    .limit(1)
  return row
}

/** Oldest first, so that the default collection leads. */
export async function listCollections(
  db: Reader,
  caller: Caller,
  filter: { workspaceId: string | undefined; search: string | undefined },
  page: Page,
) {
  const { collections: t, workspaces } = db.tables
  const where = and(
    withinReach(workspaces, caller),
    filter.workspaceId === undefined ? undefined : eq(t.workspaceId, filter.workspaceId),
    filter.search === undefined ? undefined : nameContains(t.name, filter.search),
  )
  const ofWorkspace = eq(workspaces.id, t.workspaceId)
  const rows = db
    .select({ collection: t })
    .from(t)
    .innerJoin(workspaces, ofWorkspace)
    .where(where)
    .orderBy(desc(t.isDefault), asc(t.createdAt), asc(t.id))
  const found = await paged(
    rows,
    db.select({ n: count() }).from(t).innerJoin(workspaces, ofWorkspace).where(where),
    page,
  )
  return { rows: found.rows.map((row) => row.collection), total: found.total }
}

export const listChildren = (db: Reader, parentId: string): PromiseLike<CollectionRow[]> =>
  db
    .select()
    .from(db.tables.collections)
    .where(eq(db.tables.collections.parentCollectionId, parentId))
    .orderBy(asc(db.tables.collections.createdAt))

export interface CollectionDetails {
  children: number
  prompts: number
  childrenUpdatedAt: number | null
  promptsUpdatedAt: number | null
}

/** Counts below each collection, in two queries for all of them. */
export async function detailsOf(db: Reader, ids: readonly string[]): Promise<(id: string) => CollectionDetails> {
  const { collections, prompts } = db.tables
  const [children, held] =
    ids.length === 0
      ? [[], []]
      : await Promise.all([
          db
            .select({ id: collections.parentCollectionId, n: count(), at: max(collections.lastUpdatedAt) })
            .from(collections)
            .where(inArray(collections.parentCollectionId, [...ids]))
            .groupBy(collections.parentCollectionId),
          db
            .select({ id: prompts.collectionId, n: count(), at: max(prompts.lastUpdatedAt) })
            .from(prompts)
            .where(inArray(prompts.collectionId, [...ids]))
            .groupBy(prompts.collectionId),
        ])
  const byChild = new Map(children.map((row) => [row.id, row]))
  const byPrompt = new Map(held.map((row) => [row.id, row]))
  return (id) => ({
    children: byChild.get(id)?.n ?? 0,
    prompts: byPrompt.get(id)?.n ?? 0,
    childrenUpdatedAt: byChild.get(id)?.at ?? null,
    promptsUpdatedAt: byPrompt.get(id)?.at ?? null,
  })
}
