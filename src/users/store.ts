import { type AnyColumn, and, asc, count, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'

export type UserRow = Tables['users']['$inferSelect']

/** A person of the organisation; people who were removed are not. */
export async function findUser(db: Reader, organisationId: string, id: string): Promise<UserRow | undefined> {
  const { users: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(isOf(db, organisationId), eq(t.id, id)))
    .limit(1)
  return row
}

export async function findUserByEmail(db: Reader, organisationId: string, email: string): Promise<UserRow | undefined> {
  const { users: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(isOf(db, organisationId), isEmail(t.email, email)))
    .limit(1)
  return row
}

export interface UserFilter {
  role: string | undefined
  email: string | undefined
}

/** Owners first, then the oldest: clients take the first row for an owner (file 09). */
export function listUsers(
  db: Reader,
  organisationId: string,
  { role, email }: UserFilter,
  page: Page,
): Promise<{ rows: UserRow[]; total: number }> {
  const { users: t } = db.tables
  const where = and(
    isOf(db, organisationId),
    role === undefined ? undefined : eq(t.role, role),
    email === undefined ? undefined : isEmail(t.email, email),
  )
  const rows = db
    .select()
    .from(t)
    .where(where)
    .orderBy(sql`case ${t.role} when 'owner' then 0 else 1 end`, asc(t.createdAt), asc(t.id))
  return paged(rows, db.select({ n: count() }).from(t).where(where), page)
}

/** The slugs of the live workspaces that people are members of, in the order they came to them. */
export async function workspaceSlugsOf(db: Reader, userIds: readonly string[]): Promise<(id: string) => string[]> {
  const { workspaceMembers: t, workspaces } = db.tables
  const rows =
    userIds.length === 0
      ? []
      : await db
          .select({ userId: t.userId, slug: workspaces.slug })
          .from(t)
          .innerJoin(workspaces, and(eq(workspaces.id, t.workspaceId), eq(workspaces.status, 'active')))
          .where(inArray(t.userId, [...userIds]))
          .orderBy(asc(t.createdAt), asc(workspaces.slug))
  const byUser = Map.groupBy(rows, ({ userId }) => userId)
  return (id) => byUser.get(id)?.map(({ slug }) => slug) ?? []
}

const isOf = (db: Reader, organisationId: string): SQL | undefined =>
  and(eq(db.tables.users.organisationId, organisationId), eq(db.tables.users.status, 'active'))

/** Whether a column holds an address; upper and lower case are the same. */
export const isEmail = (column: AnyColumn, email: string): SQL => sql`lower(${column}) = ${email.toLowerCase()}`
