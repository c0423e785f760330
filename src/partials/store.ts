import { and, count, desc, eq, inArray, isNotNull, or, sql } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Caller } from '../auth/caller.ts'
import type { Reader, Tx } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'
import { isIdOrSlug, nameContains, withinReach } from '../prompts/store.ts'

export type PartialRow = Tables['partials']['$inferSelect']
export type PartialVersionRow = Tables['partialVersions']['$inferSelect']

/** The partial of an id or slug, if the caller may know of it. */
export async function findPartial(db: Reader, caller: Caller, idOrSlug: string): Promise<PartialRow | undefined> {
  const { partials, workspaces } = db.tables
  const [row] = await db
    .select({ partial: partials })
    .from(partials)
    .innerJoin(workspaces, eq(workspaces.id, partials.workspaceId))
    .where(and(isIdOrSlug(partials, idOrSlug), withinReach(workspaces, caller)))
    .limit(1)
  return row?.partial
}

/** Newest first. */
export async function listPartials(
  db: Reader,
  caller: Caller,
  filter: { workspaceId: string | undefined; collectionId: string | undefined; search: string | undefined },
  page: Page,
) {
  const { partials: t, workspaces } = db.tables
  const where = and(
    withinReach(workspaces, caller),
    filter.workspaceId === undefined ? undefined : eq(t.workspaceId, filter.workspaceId),
    filter.collectionId === undefined ? undefined : eq(t.collectionId, filter.collectionId),
    filter.search === undefined ? undefined : nameContains(t.name, filter.search),
  )
  const ofWorkspace = eq(workspaces.id, t.workspaceId)
  const rows = db
    .select({ partial: t })
    .from(t)
    .innerJoin(workspaces, ofWorkspace)
    .where(where)
    .orderBy(desc(t.lastUpdatedAt), desc(t.id))
  const found = await paged(
    rows,
    db.select({ n: count() }).from(t).innerJoin(workspaces, ofWorkspace).where(where),
    page,
  )
  return { rows: found.rows.map((row) => row.partial), total: found.total }
}

export async function findPartialVersion(
  db: Reader,
  partialId: string,
  number: number,
): Promise<PartialVersionRow | undefined> {
  const { partialVersions: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.partialId, partialId), eq(t.number, number)))
    .limit(1)
  return row
}

/** Newest first. */
export const listPartialVersions = (db: Reader, partialId: string): PromiseLike<PartialVersionRow[]> =>
  db
    .select()
    .from(db.tables.partialVersions)
    .where(eq(db.tables.partialVersions.partialId, partialId))
    .orderBy(desc(db.tables.partialVersions.number))

/** Takes the next version number and makes other writers of this partial wait; undefined when it was deleted meanwhile. */
export async function takeNextPartialVersion(tx: Tx, partialId: string): Promise<number | undefined> {
  const { partials: t } = tx.tables
  const next = { latestVersion: sql`${t.latestVersion} + 1`, lastUpdatedAt: tx.now }
  const [row] = await tx.update(t).set(next).where(eq(t.id, partialId)).returning({ latestVersion: t.latestVersion })
  return row?.latestVersion
}

/** The default and labelled versions of prompts that name one of these partials, by id or slug, in their own text. */
export function listPublishedUses(db: Reader, workspaceId: string, names: readonly string[]) {
  const { promptPartials, promptVersions, prompts, promptLabels } = db.tables
  const { template, templateType, isRaw } = promptVersions
  return db
    .selectDistinct({ slug: prompts.slug, template, templateType, isRaw })
    .from(promptPartials)
    .innerJoin(promptVersions, eq(promptVersions.id, promptPartials.versionId))
    .innerJoin(prompts, eq(prompts.id, promptVersions.promptId))
    .leftJoin(promptLabels, eq(promptLabels.versionId, promptVersions.id))
    .where(
      and(
        inArray(promptPartials.partialSlug, [...names]),
        eq(prompts.workspaceId, workspaceId),
        or(eq(promptVersions.number, prompts.defaultVersion), isNotNull(promptLabels.labelId)),
      ),
    )
    .orderBy(prompts.slug)
}

/** Every text of every partial of a workspace. */
export function listPartialTexts(db: Reader, workspaceId: string) {
  const { partials, partialVersions } = db.tables
  return db
    .select({ id: partials.id, slug: partials.slug, text: partialVersions.template })
    .from(partialVersions)
    .innerJoin(partials, eq(partials.id, partialVersions.partialId))
    .where(eq(partials.workspaceId, workspaceId))
}
