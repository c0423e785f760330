import { and, asc, count, desc, eq, inArray, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Caller } from '../auth/caller.ts'
import type { Reader, Tx } from '../db/database.ts'
import { notFound } from '../errors.ts'
import { type Page, paged } from '../http/paging.ts'

export type WorkspaceRow = Tables['workspaces']['$inferSelect']
export type WorkspaceStatus = 'active' | 'archived'
type Reach = Pick<Caller, 'organisationId' | 'workspaceId'>

/**
 * The workspace of an id or slug within the caller's reach. An archived one is gone (D-68).
 *
 * @throws GatehouseError `not_found`, also for what lies out of reach
 */
export async function getWorkspace(db: Reader, caller: Reach, idOrSlug: string): Promise<WorkspaceRow> {
  const { workspaces: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(withinReach(t, caller), eq(t.status, 'active'), or(eq(t.id, idOrSlug), eq(t.slug, idOrSlug))))
    .limit(1)
  if (row === undefined) throw notFound('workspace')
  return row
}

const withinReach = (t: Tables['workspaces'], { organisationId, workspaceId }: Reach): SQL | undefined =>
  and(eq(t.organisationId, organisationId), workspaceId === null ? undefined : eq(t.id, workspaceId))

/** The row as it is now; until the end of the change nobody else changes it. Throws `not_found` once it is archived. */
export async function lockWorkspace(tx: Tx, id: string): Promise<WorkspaceRow> {
  const { workspaces: t } = tx.tables
  const [row] = await tx
    .update(t)
    .set({ status: sql`${t.status}` })
    .where(and(eq(t.id, id), eq(t.status, 'active')))
    .returning()
  if (row === undefined) throw notFound('workspace')
  return row
}

export interface WorkspaceFilter {
  /** part of the name as it is displayed */
  name: string | undefined
  exactName: string | undefined
  statuses: readonly WorkspaceStatus[]
}

/** The default workspace first, then the oldest. */
export function listWorkspaces(db: Reader, caller: Caller, filter: WorkspaceFilter, page: Page) {
  const { workspaces: t } = db.tables
  const displayed = sql`coalesce(${t.icon} || ' ', '') || ${t.name}`
  const where = and(
    withinReach(t, caller),
    inArray(t.status, [...filter.statuses]),
    // `like` takes a for A on SQLite, and not on PostgreSQL.
    filter.name ? sql`replace(${displayed}, ${filter.name}, '') <> ${displayed}` : undefined,
    filter.exactName === undefined ? undefined : sql`${filter.exactName} in (${t.name}, ${displayed})`,
  )
  const rows = db.select().from(t).where(where).orderBy(desc(t.isDefault), asc(t.createdAt), asc(t.id))
  return paged(rows, db.select({ n: count() }).from(t).where(where), page)
}

export interface Person {
  id: string
  email: string
  firstName: string
  lastName: string
  organisationRole: string
  role: string
}

/** The members of a workspace, oldest membership first. */
export function listPeople(db: Reader, workspaceId: string): PromiseLike<Person[]> {
  const { workspaceMembers: m, users: u } = db.tables
  return db
    .select({
      id: u.id,
      email: u.email,
      firstName: u.firstName,
      lastName: u.lastName,
      organisationRole: u.role,
      role: m.role,
    })
    .from(m)
    .innerJoin(u, eq(u.id, m.userId))
    .where(and(eq(m.workspaceId, workspaceId), eq(u.status, 'active')))
    .orderBy(asc(m.createdAt), asc(u.id))
}

/** What keeps a workspace from being deleted, in words. */
export async function dependantsOf(db: Reader, workspaceId: string): Promise<string[]> {
  const { apiKeys, prompts, partials } = db.tables
  const liveKeys = and(eq(apiKeys.workspaceId, workspaceId), isNull(apiKeys.deletedAt))
  const [keys, ofPrompts, ofPartials] = await Promise.all([
    db.select({ id: apiKeys.id }).from(apiKeys).where(liveKeys).limit(1),
    db.select({ id: prompts.id }).from(prompts).where(eq(prompts.workspaceId, workspaceId)).limit(1),
    db.select({ id: partials.id }).from(partials).where(eq(partials.workspaceId, workspaceId)).limit(1),
  ])
  const found = [
    ['API keys', keys],
    ['prompts', ofPrompts],
    ['partials', ofPartials],
  ] as const
  return found.flatMap(([words, rows]) => (rows.length > 0 ? [words] : []))
}
