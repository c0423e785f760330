import { type AnyColumn, and, asc, count, desc, eq, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Caller } from '../auth/caller.ts'
import type { Reader, Tx } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'

export type PromptRow = Tables['prompts']['$inferSelect']
export type VersionRow = Tables['promptVersions']['$inferSelect']
export interface VersionLabel {
  id: string
  name: string
}

/** The prompt of an id or slug, if the caller may know of it. */
export async function findPrompt(db: Reader, caller: Caller, idOrSlug: string): Promise<PromptRow | undefined> {
  const { prompts, workspaces } = db.tables
  const [row] = await db
    .select({ prompt: prompts })
    .from(prompts)
    .innerJoin(workspaces, eq(workspaces.id, prompts.workspaceId))
    .where(and(isIdOrSlug(prompts, idOrSlug), withinReach(workspaces, caller)))
    .limit(1)
  return row?.prompt
}

/** Narrows a query that joins workspaces to what a key may see: its workspace, or the active ones of its organisation. */
export function withinReach(workspaces: Tables['workspaces'], caller: Caller): SQL | undefined {
  const isOwn =
    caller.workspaceId === null
      ? eq(workspaces.organisationId, caller.organisationId)
      : eq(workspaces.id, caller.workspaceId)
  return and(isOwn, eq(workspaces.status, 'active'))
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Slugs end in six hex digits after a prefix, so none has the shape of a UUID: one index look-up is enough. */
export const isIdOrSlug = (
  table: Tables['prompts'] | Tables['partials'] | Tables['collections'],
  idOrSlug: string,
): SQL => (UUID.test(idOrSlug) ? eq(table.id, idOrSlug) : eq(table.slug, idOrSlug))

/** Upper and lower case of ASCII letters are one, which both dialects do alike; `%` and `_` stand for themselves. */
export const nameContains = (name: AnyColumn, text: string): SQL =>
  sql`lower(${name}) like ${
    '%' +
    text
      .normalize('NFC')
      .replace(/[A-Z]/g, (letter) => letter.toLowerCase())
      .replace(/[\\%_]/g, '\\$&') +
    '%'
  } escape '\\'`

export interface PromptFilter {
  workspaceId: string | undefined
  collectionId: string | undefined
  search: string | undefined
}

/** Newest first, each with the model of its default version. */
export async function listPrompts(db: Reader, caller: Caller, filter: PromptFilter, page: Page) {
  const { prompts, promptVersions, workspaces } = db.tables
  const where = and(
    withinReach(workspaces, caller),
    filter.workspaceId === undefined ? undefined : eq(prompts.workspaceId, filter.workspaceId),
    filter.collectionId === undefined ? undefined : eq(prompts.collectionId, filter.collectionId),
    filter.search === undefined ? undefined : nameContains(prompts.name, filter.search),
  )
  const ofWorkspace = eq(workspaces.id, prompts.workspaceId)
  const rows = db
    .select({ prompt: prompts, model: promptVersions.model })
    .from(prompts)
    .innerJoin(workspaces, ofWorkspace)
    .innerJoin(
      promptVersions,
      and(eq(promptVersions.promptId, prompts.id), eq(promptVersions.number, prompts.defaultVersion)),
    )
    .where(where)
    .orderBy(desc(prompts.lastUpdatedAt), desc(prompts.id))
  const total = db.select({ n: count() }).from(prompts).innerJoin(workspaces, ofWorkspace).where(where)
  return paged(rows, total, page)
}

export async function findVersion(db: Reader, promptId: string, number: number): Promise<VersionRow | undefined> {
  const { promptVersions: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.promptId, promptId), eq(t.number, number)))
    .limit(1)
  return row
}

export async function findVersionById(db: Reader, promptId: string, id: string): Promise<VersionRow | undefined> {
  const { promptVersions: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.promptId, promptId), eq(t.id, id)))
    .limit(1)
  return row
}

/** The number of the version that carries a label, null if none does. */
export async function findLabelledVersion(db: Reader, promptId: string, labelId: string): Promise<number | null> {
  const { promptVersions: v, promptLabels: t } = db.tables
  const [row] = await db
    .select({ number: v.number })
    .from(t)
    .innerJoin(v, eq(v.id, t.versionId))
    .where(and(eq(t.promptId, promptId), eq(t.labelId, labelId)))
    .limit(1)
  return row?.number ?? null
}

/** The version that carries a label of the prompt's workspace, or one of the organisation. */
export async function findVersionByLabel(db: Reader, promptId: string, label: string): Promise<VersionRow | undefined> {
  const { promptVersions: v, promptLabels, labels } = db.tables
  const [row] = await db
    .select({ version: v })
    .from(promptLabels)
    .innerJoin(labels, eq(labels.id, promptLabels.labelId))
    .innerJoin(v, eq(v.id, promptLabels.versionId))
    .where(and(eq(promptLabels.promptId, promptId), eq(labels.name, label)))
    .limit(1)
  return row?.version
}

/** Newest first, each with the label that it got first. */
export async function listVersions(
  db: Reader,
  promptId: string,
): Promise<{ version: VersionRow; labelId: string | undefined }[]> {
  const { promptVersions: t, promptLabels } = db.tables
  const [versions, assigned] = await Promise.all([
    db.select().from(t).where(eq(t.promptId, promptId)).orderBy(desc(t.number)),
    db.select().from(promptLabels).where(eq(promptLabels.promptId, promptId)).orderBy(asc(promptLabels.assignedAt)),
  ])
  return versions.map((version) => ({
    version,
    labelId: assigned.find((label) => label.versionId === version.id)?.labelId,
  }))
}

/** First assigned first. */
export async function listVersionLabels(db: Reader, versionId: string): Promise<VersionLabel[]> {
  const { promptLabels, labels } = db.tables
  return db
    .select({ id: labels.id, name: labels.name })
    .from(promptLabels)
    .innerJoin(labels, eq(labels.id, promptLabels.labelId))
    .where(eq(promptLabels.versionId, versionId))
    .orderBy(asc(promptLabels.assignedAt), asc(labels.id))
}

export async function insertVersion(tx: Tx, row: VersionRow, partialSlugs: readonly string[]): Promise<void> {
  const { promptVersions, promptPartials } = tx.tables
  await tx.insert(promptVersions).values(row).returning({ id: promptVersions.id })
  const uses = [...new Set(partialSlugs)].map((partialSlug) => ({ versionId: row.id, partialSlug }))
  if (uses.length > 0) await tx.insert(promptPartials).values(uses).returning({ versionId: promptPartials.versionId })
}

/** Takes the next version number, which also makes other writers of this prompt wait; undefined when it was deleted meanwhile. */
export async function takeNextVersion(tx: Tx, promptId: string): Promise<number | undefined> {
  const { prompts } = tx.tables
  const [row] = await tx
    .update(prompts)
    .set({ latestVersion: sql`${prompts.latestVersion} + 1`, lastUpdatedAt: tx.now })
    .where(eq(prompts.id, promptId))
    .returning({ latestVersion: prompts.latestVersion })
  return row?.latestVersion
}

export async function updatePromptRow(
  tx: Tx,
  promptId: string,
  values: Partial<Pick<PromptRow, 'name' | 'collectionId' | 'defaultVersion'>>,
): Promise<boolean> {
  const { prompts } = tx.tables
  const rows = await tx
    .update(prompts)
    .set({ ...values, lastUpdatedAt: tx.now })
    .where(eq(prompts.id, promptId))
    .returning({ id: prompts.id })
  return rows.length > 0
}
