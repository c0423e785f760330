import { and, asc, count, eq, inArray, isNull } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { KeyType } from '../auth/caller.ts'
import type { Reader } from '../db/database.ts'
import { type Page, paged } from '../http/paging.ts'

export type ApiKeyRow = Tables['apiKeys']['$inferSelect']

export interface ApiKeyFilter {
  organisationId: string
  workspaceId: string | undefined
  /** only the user keys of this person; undefined: all keys, null: none */
  userId: string | null | undefined
  ids: readonly string[] | undefined
  types: readonly KeyType[]
}

/** Live keys, oldest first. System keys are never among them. */
export function listApiKeyRows(
  db: Reader,
  filter: ApiKeyFilter,
  page: Page,
): Promise<{ rows: ApiKeyRow[]; total: number }> {
  const { apiKeys: t } = db.tables
  const where = and(
    eq(t.organisationId, filter.organisationId),
    isNull(t.deletedAt),
    inArray(t.type, [...filter.types]),
    filter.workspaceId === undefined ? undefined : eq(t.workspaceId, filter.workspaceId),
    filter.userId === undefined ? undefined : eq(t.userId, filter.userId ?? ''),
    filter.ids === undefined ? undefined : inArray(t.id, [...filter.ids]),
  )
  const rows = db.select().from(t).where(where).orderBy(asc(t.createdAt), asc(t.id))
  return paged(rows, db.select({ n: count() }).from(t).where(where), page)
}

export async function findApiKey(db: Reader, organisationId: string, id: string): Promise<ApiKeyRow | undefined> {
  const { apiKeys: t } = db.tables
  const [row] = await db
    .select()
    .from(t)
    .where(and(eq(t.id, id), eq(t.organisationId, organisationId), isNull(t.deletedAt)))
    .limit(1)
  return row
}
