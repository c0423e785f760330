import { and, count, desc, eq, gt, lte, type SQL } from 'drizzle-orm'
import type { Invite } from '../../schema/api/invites.ts'
import type { Metadata } from '../../schema/api/metadata.ts'
import type { Permission } from '../../schema/api/permissions.ts'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'
import { isEmail } from '../users/store.ts'

export type InviteRow = Tables['invites']['$inferSelect']

/** What an invite gives: memberships, and user keys. Kept as JSON in two columns. */
export interface Grant {
  workspaces: Invite['workspaces']
  /** a user key for each of these workspaces */
  keys: { workspaceId: string; scopes: Permission[] }[]
  keyName: string
  /** UTC milliseconds, or null; with the caller's own text */
  keyExpiresAt: number | null
  keyExpiresAtText: string | null
  keyMetadata: Metadata | null
}

/** The columns of a grant. */
export const columnsOfGrant = ({ workspaces, ...keyDetails }: Grant) => ({
  workspaces: JSON.stringify(workspaces),
  keyDetails: JSON.stringify(keyDetails),
})

export const grantOf = ({ workspaces, keyDetails }: InviteRow): Grant => ({
  workspaces: JSON.parse(workspaces) as Grant['workspaces'],
  ...(JSON.parse(keyDetails) as Omit<Grant, 'workspaces'>),
})

/** An invite that is taken back or used stays readable. */
export async function findInvite(db: Reader, organisationId: string, id: string): Promise<InviteRow | undefined> {
  const { invites: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.organisationId, organisationId), eq(t.id, id)))
    .limit(1)
  return row
}

/** The invite that a token opens, while it does. */
export async function findOpenInvite(db: Reader, tokenDigest: string, now: number): Promise<InviteRow | undefined> {
  const { invites: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.tokenDigest, tokenDigest), isOpen(db, now)))
    .limit(1)
  return row
}

export async function findOpenInviteTo(
  db: Reader,
  organisationId: string,
  email: string,
  now: number,
): Promise<InviteRow | undefined> {
  const { invites: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.organisationId, organisationId), isEmail(t.email, email), isOpen(db, now)))
    .limit(1)
  return row
}

export const isOpen = (db: Reader, now: number): SQL | undefined =>
  and(eq(db.tables.invites.status, 'pending'), gt(db.tables.invites.expiresAt, now))

export interface InviteFilter {
  role: string | undefined
  email: string | undefined
  status: Invite['status'] | undefined
}

/** Newest first. */
export function listInvites(
  db: Reader,
  organisationId: string,
  { role, email, status }: InviteFilter,
  page: Page,
  now: number,
): Promise<{ rows: InviteRow[]; total: number }> {
  const { invites: t } = db.tables
  const where = and(
    eq(t.organisationId, organisationId),
    role === undefined ? undefined : eq(t.role, role),
    email === undefined ? undefined : isEmail(t.email, email),
    status === undefined ? undefined : hasStatus(db, status, now),
  )
  const rows = db.select().from(t).where(where).orderBy(desc(t.createdAt), desc(t.id))
  return paged(rows, db.select({ n: count() }).from(t).where(where), page)
}

function hasStatus(db: Reader, status: Invite['status'], now: number): SQL | undefined {
  const { invites: t } = db.tables
  if (status === 'pending') return isOpen(db, now)
  if (status === 'expired') return and(eq(t.status, 'pending'), lte(t.expiresAt, now))
  return eq(t.status, status)
}
