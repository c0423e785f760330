import { and, asc, count, eq, inArray, isNull, ne, or, type SQL, sql } from 'drizzle-orm'
import type { WorkspaceRole } from '../../schema/api/members.ts'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader, Tx } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'

export type MemberRow = Tables['workspaceMembers']['$inferSelect'] &
  Pick<Tables['users']['$inferSelect'], 'email' | 'firstName' | 'lastName'> & { organisationRole: string }

export interface MemberFilter {
  /** as it is read: owners and admins of the organisation are admins */
  role: WorkspaceRole | undefined
  /** in any case */
  email: string | undefined
}

/** Oldest membership first. */
export function listMembers(db: Reader, workspaceId: string, filter: MemberFilter, page: Page) {
  const { workspaceMembers: m, users: u } = db.tables
  const where = and(
    isMemberOf(db, workspaceId),
    filter.role === undefined ? undefined : hasRole(db, filter.role),
    filter.email === undefined ? undefined : eq(sql`lower(${u.email})`, filter.email.toLowerCase()),
  )
  const rows = selectMembers(db).where(where).orderBy(asc(m.createdAt), asc(m.userId))
  return paged<MemberRow>(rows, db.select({ n: count() }).from(m).innerJoin(u, eq(u.id, m.userId)).where(where), page)
}

export async function findMember(db: Reader, workspaceId: string, userId: string): Promise<MemberRow | undefined> {
  const [row] = await selectMembers(db)
    .where(and(isMemberOf(db, workspaceId), eq(db.tables.users.id, userId)))
    .limit(1)
  return row
}

function selectMembers(db: Reader) {
  const { workspaceMembers: m, users: u } = db.tables
  return db
    .select({
      workspaceId: m.workspaceId,
      userId: m.userId,
      role: m.role,
      createdAt: m.createdAt,
      lastUpdatedAt: m.lastUpdatedAt,
      email: u.email,
      firstName: u.firstName,
      lastName: u.lastName,
      organisationRole: u.role,
    })
    .from(m)
    .innerJoin(u, eq(u.id, m.userId))
}

const isMemberOf = (db: Reader, workspaceId: string): SQL | undefined =>
  and(eq(db.tables.workspaceMembers.workspaceId, workspaceId), eq(db.tables.users.status, 'active'))

function hasRole(db: Reader, role: WorkspaceRole): SQL | undefined {
  const { workspaceMembers: m, users: u } = db.tables
  return role === 'admin' ? or(eq(m.role, role), ne(u.role, 'member')) : and(eq(m.role, role), eq(u.role, 'member'))
}

/** Those of the ids that are active people of the organisation. */
export async function findPeople(db: Reader, organisationId: string, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set()
  const { users: t } = db.tables
  const rows = await db
    .select({ id: t.id })
    .from(t)
    .where(and(inArray(t.id, [...ids]), eq(t.organisationId, organisationId), eq(t.status, 'active')))
  return new Set(rows.map(({ id }) => id))
}

/** Adds a member, or gives the one that is there another role. */
export async function putMember(tx: Tx, workspaceId: string, userId: string, role: WorkspaceRole): Promise<void> {
  const { workspaceMembers: t } = tx.tables
  await tx
    .insert(t)
    .values({ workspaceId, userId, role, createdAt: tx.now, lastUpdatedAt: tx.now })
    .onConflictDoUpdate({ target: [t.workspaceId, t.userId], set: { role, lastUpdatedAt: tx.now } })
    .returning({ userId: t.userId })
}

export async function deleteMember(tx: Tx, workspaceId: string, userId: string): Promise<boolean> {
  const { workspaceMembers: t } = tx.tables
  const rows = await tx
    .delete(t)
    .where(and(eq(t.workspaceId, workspaceId), eq(t.userId, userId)))
    .returning({ userId: t.userId })
  return rows.length > 0
}

/** Revokes the user keys that act as a person in a workspace; returns their ids. */
export async function revokeUserKeys(tx: Tx, workspaceId: string, userId: string): Promise<string[]> {
  const { apiKeys: t } = tx.tables
  const keys = await tx
    .update(t)
    .set({ deletedAt: tx.now, lastUpdatedAt: tx.now })
    .where(and(eq(t.workspaceId, workspaceId), eq(t.userId, userId), isNull(t.deletedAt)))
    .returning({ id: t.id })
  for (const { id } of keys) tx.changed('api_key', id)
  return keys.map(({ id }) => id)
}

/** The live service keys of a workspace that a person answers for. */
export async function listServiceKeys(db: Reader, workspaceId: string, userId: string): Promise<string[]> {
  const { apiKeys: t } = db.tables
  const keys = await db
    .select({ id: t.id })
    .from(t)
    .where(
      and(
        eq(t.workspaceId, workspaceId),
        eq(t.accountableUserId, userId),
        eq(t.type, 'workspace-service'),
        isNull(t.deletedAt),
      ),
    )
  return keys.map(({ id }) => id)
}
