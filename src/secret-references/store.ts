import { and, asc, count, desc, eq, inArray, or, sql } from 'drizzle-orm'
import type { ManagerType } from '../../schema/api/secret-references.ts'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader, Tx } from '../db/database.ts'
import { notFound } from '../errors.ts'
import { type Page, paged } from '../http/paging.ts'
import { isRawJson } from '../json.ts'
import { nameContains } from '../prompts/store.ts'

export type SecretReferenceRow = Tables['secretReferences']['$inferSelect']
export type SecretMappingRow = Tables['secretMappings']['$inferSelect']
export type SecretTags = Record<string, unknown>
export interface AllowedWorkspace {
  id: string
  slug: string
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** No slug looks like an id. */
export async function findSecretReference(
  db: Reader,
  organisationId: string,
  idOrSlug: string,
): Promise<SecretReferenceRow | undefined> {
  const { secretReferences: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(isNamed(t, organisationId, idOrSlug))
    .limit(1)
  return row
}

const isNamed = (t: Tables['secretReferences'], organisationId: string, idOrSlug: string) =>
  and(eq(t.organisationId, organisationId), UUID.test(idOrSlug) ? eq(t.id, idOrSlug) : eq(t.slug, idOrSlug))

/**
 * The row as it is now, which nobody else changes until the end of the change. Whoever maps a field to a reference takes
 * this first, so that it is not deleted meanwhile.
 *
 * @throws GatehouseError `not_found` when it was deleted meanwhile
 */
export async function lockSecretReference(tx: Tx, id: string): Promise<SecretReferenceRow> {
  const { secretReferences: t } = tx.tables
  const [row] = await tx
    .update(t)
    .set({ revision: sql`${t.revision}` })
    .where(eq(t.id, id))
    .returning()
  if (row === undefined) throw notFound('secret reference')
  return row
}

export interface SecretReferenceFilter {
  managerType: ManagerType | undefined
  /** all of these pairs */
  tags: SecretTags
  search: string | undefined
}

/** Newest first. */
export function listSecretReferences(db: Reader, organisationId: string, filter: SecretReferenceFilter, page: Page) {
  const { secretReferences: t } = db.tables
  const where = and(
    eq(t.organisationId, organisationId),
    filter.managerType === undefined ? undefined : eq(t.managerType, filter.managerType),
    filter.search === undefined ? undefined : nameContains(t.name, filter.search),
    Object.keys(filter.tags).length === 0 ? undefined : inArray(t.id, idsWithTags(db, filter.tags)),
  )
  const rows = db.select().from(t).where(where).orderBy(desc(t.createdAt), desc(t.id))
  return paged(rows, db.select({ n: count() }).from(t).where(where), page)
}

function idsWithTags(db: Reader, tags: SecretTags) {
  const { secretReferenceTags: t } = db.tables
  const pairs = pairsOf(tags)
  return db
    .select({ id: t.referenceId })
    .from(t)
    .where(inArray(t.pair, pairs))
    .groupBy(t.referenceId)
    .having(eq(count(), pairs.length))
}

/** The workspaces that may use a reference that is not open to all; archived ones are gone. */
export function listAllowedWorkspaces(db: Reader, referenceId: string): PromiseLike<AllowedWorkspace[]> {
  const { secretReferenceWorkspaces: t, workspaces: w } = db.tables
  return db
    .select({ id: w.id, slug: w.slug })
    .from(t)
    .innerJoin(w, eq(w.id, t.workspaceId))
    .where(and(eq(t.referenceId, referenceId), eq(w.status, 'active')))
    .orderBy(asc(w.id))
}

/**
 * A reference with the workspaces that it names, archived ones too: as one statement saw them, so that nobody is let in
 * by a list that was made for another auth_config.
 */
export async function findWithWorkspaces(db: Reader, organisationId: string, idOrSlug: string) {
  const { secretReferences: t, secretReferenceWorkspaces: m, workspaces: w } = db.tables
  const rows = await db
    .select({ row: t, workspace: { id: w.id, slug: w.slug, status: w.status } })
    .from(t)
    .leftJoin(m, eq(m.referenceId, t.id))
    .leftJoin(w, eq(w.id, m.workspaceId))
    .where(isNamed(t, organisationId, idOrSlug))
  const [first] = rows
  return first && { row: first.row, named: rows.flatMap(({ workspace }) => workspace ?? []) }
}

/** The active workspaces that are meant by ids or slugs. */
export function findWorkspaces(
  db: Reader,
  organisationId: string,
  named: readonly string[],
): PromiseLike<AllowedWorkspace[]> {
  const { workspaces: t } = db.tables
  const isNamed = or(inArray(t.id, [...named]), inArray(t.slug, [...named]))
  return db
    .select({ id: t.id, slug: t.slug })
    .from(t)
    .where(and(eq(t.organisationId, organisationId), eq(t.status, 'active'), isNamed))
    .orderBy(asc(t.id))
}

export async function putAllowedWorkspaces(tx: Tx, referenceId: string, ids: readonly string[]): Promise<void> {
  const { secretReferenceWorkspaces: t } = tx.tables
  await tx.delete(t).where(eq(t.referenceId, referenceId))
  if (ids.length === 0) return
  const rows = ids.map((workspaceId) => ({ referenceId, workspaceId }))
  await tx.insert(t).values(rows).returning({ id: t.referenceId })
}

export async function putTags(tx: Tx, referenceId: string, tags: SecretTags): Promise<void> {
  const { secretReferenceTags: t } = tx.tables
  await tx.delete(t).where(eq(t.referenceId, referenceId))
  const rows = pairsOf(tags).map((pair) => ({ referenceId, pair }))
  if (rows.length > 0) await tx.insert(t).values(rows).returning({ id: t.referenceId })
}

/** What takes values from a reference, in the order of things and of their fields. */
export function listMappings(db: Reader, referenceId: string): PromiseLike<SecretMappingRow[]> {
  const { secretMappings: t } = db.tables
  return db
    .select()
    .from(t)
    .where(eq(t.secretReferenceId, referenceId))
    .orderBy(asc(t.holderKind), asc(t.holderId), asc(t.position))
}

export async function isMapped(db: Reader, referenceId: string): Promise<boolean> {
  const { secretMappings: t } = db.tables
  const rows = await db.select({ id: t.holderId }).from(t).where(eq(t.secretReferenceId, referenceId)).limit(1)
  return rows.length > 0
}

/** One short text for each pair, the same for what is the same JSON: 1 is not "1", and the order of members is nothing. */
const pairsOf = (tags: SecretTags): string[] =>
  Object.entries(tags).map((pair) =>
    new Bun.CryptoHasher('sha256').update(JSON.stringify(sorted(pair))).digest('base64url'),
  )

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null || isRawJson(value)) return value
  const members = Object.entries(value).map(([name, member]) => [name, sorted(member)] as const)
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}
