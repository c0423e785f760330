import { and, eq, or } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { AuditLogList, ListAuditLogsQuery } from '../../schema/api/audit-logs.ts'
import { problems } from '../../schema/api/errors.ts'
import { guarded, type Requires } from '../auth/guard.ts'
import { assertOwnOrganisation } from '../auth/tenancy.ts'
import type { Reader } from '../db/database.ts'
import { invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { realTimeOf } from '../rfc3339.ts'
import { presentAuditLog } from './present.ts'
import { type AuditFilter, findPeople, isPerson } from './store.ts'

const DEFAULT_DAYS = 30
const DAY_MS = 86_400_000
const DEFAULT_PAGE_SIZE = 20
const MAX_PAGE_SIZE = 100

export const auditRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/audit-logs', normalize: false }).decorate(guarded).get(
    '',
    async ({ query, caller }) => {
      assertOwnOrganisation(caller, query.organisation_id ?? query.organization_id)
      const page = readPage(query)
      const filter = await readFilter(gatehouse.read, caller.organisationId, query, Date.now())
      const { rows, total } =
        query.country === undefined || query.country === ''
          ? await gatehouse.listAuditRows(filter, page)
          : { rows: [], total: 0 }
      const answerable = rows.map(({ text }) => JSON.parse(text).accountable_user_id as string | null)
      const people = await findPeople(gatehouse.read, [...new Set(answerable.filter((id) => id !== null))])
      const records = rows.map((row) => presentAuditLog(row, people))
      return { object: 'list' as const, total, records, data: records }
    },
    {
      ...requires('audit_logs.list', 'List the audit trail, newest first'),
      query: ListAuditLogsQuery,
      response: { 200: AuditLogList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    },
  )

function readPage(query: ListAuditLogsQuery): { index: number; size: number } {
  const size = Number(query.page_size ?? query.pageSize ?? DEFAULT_PAGE_SIZE)
  if (size > MAX_PAGE_SIZE) throw invalidField('page_size', `must be from 0 to ${MAX_PAGE_SIZE}`)
  return { index: Number(query.current_page ?? query.currentPage ?? 0), size }
}

async function readFilter(
  read: Reader,
  organisationId: string,
  query: ListAuditLogsQuery,
  now: number,
): Promise<AuditFilter> {
  const { user_id: userId = query.actor_id, actor_id: actorId = userId } = query
  if (userId !== actorId) throw invalidField('actor_id', 'is another name of user_id; send one of the two')
  const { response_status_code: status, workspace_id: workspace } = query
  const ofPerson = userId !== undefined && (await isPerson(read, organisationId, userId))
  const equal = {
    method: query.method,
    requestId: query.request_id,
    userId: ofPerson ? undefined : userId,
    userType: query.user_type,
    workspaceId: workspace === undefined ? undefined : await workspaceIdOf(read, organisationId, workspace),
    status: status === undefined ? undefined : Number(status),
    resourceType: query.resource_type,
    resourceId: query.resource_id,
    action: query.action,
    clientIp: query.client_ip,
  }
  return {
    organisationId,
    ...readTimes(query, now),
    ...(query.uri !== undefined && { uri: query.uri }),
    ...(ofPerson && { personId: userId }),
    equal: Object.fromEntries(Object.entries(equal).filter(([, value]) => value !== undefined)),
  }
}

function readTimes({ start_time: start, end_time: end }: ListAuditLogsQuery, now: number) {
  const to = end === undefined ? Number.MAX_SAFE_INTEGER : readTime('end_time', end)
  const from =
    start === undefined ? (end === undefined ? now : to) - DEFAULT_DAYS * DAY_MS : readTime('start_time', start)
  if (from > to) throw invalidField('start_time', 'must not be after end_time')
  return { from, to }
}

function readTime(field: string, text: string): number {
  const time = realTimeOf(text)
  if (time === undefined) throw invalidField(field, 'is no time that exists')
  return time
}

/** Archived workspaces too: their rows are kept. */
async function workspaceIdOf(read: Reader, organisationId: string, idOrSlug: string): Promise<string> {
  const { workspaces: t } = read.tables
  const [row] = await read
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.organisationId, organisationId), or(eq(t.id, idOrSlug), eq(t.slug, idOrSlug))))
    .limit(1)
  if (row === undefined) throw notFound('workspace')
  return row.id
}
