import { isIP } from 'node:net'
import { and, asc, between, count, desc, eq, gte, inArray, lt, or, type SQL, sql } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import type { Head } from './chain.ts'
import { findHead } from './head.ts'
import { networkOf } from './refusals.ts'
import type { Range, Totals } from './totals.ts'

/** Which rows are meant: all conditions together. Plain values, since it crosses to the reading Worker. */
export interface AuditFilter {
  organisationId: string
  /** UTC milliseconds, both included */
  from: number
  to: number
  /** the beginning of the path and query */
  uri?: string
  /** the person who answers for them: rows of their own and of the keys that are theirs, which never become others' */
  personId?: string
  /** columns that hold exactly this; `clientIp` finds counted refusals of its network too */
  equal: Partial<Record<EqualColumn, string | number>>
}
type EqualColumn =
  | 'method'
  | 'requestId'
  | 'userId'
  | 'userType'
  | 'workspaceId'
  | 'status'
  | 'resourceType'
  | 'resourceId'
  | 'action'
  | 'clientIp'

export interface FoundRow {
  seq: number
  hash: string
  text: string
}

/** A prefix that fits more rows is walked by number, since the next one that fits is near. */
const DENSE = 100_000

/**
 * One page, newest first, and the exact count of all that fit. Filters are answered from their indexes alone; only the
 * texts of the page are read.
 *
 * @param page.size rows a page; 0: none, only the count
 * @param totals    of the same database
 */
export async function listAuditRows(
  read: Reader,
  filter: AuditFilter,
  page: { index: number; size: number },
  totals: Totals,
): Promise<{ rows: FoundRow[]; total: number }> {
  const { auditEvents: t } = read.tables
  const base = await baseCondition(read, filter)
  if (base === undefined) return { rows: [], total: 0 }
  const total = await countRows(read, filter, base, totals)
  const offset = page.index * page.size
  if (page.size === 0 || offset >= total) return { rows: [], total }
  const order = orderOf(read, filter, total > DENSE)
  const found = await read
    .select({ seq: t.seq })
    .from(t)
    .where(and(base.condition, within(base.ranges, order)))
    .orderBy(desc(order))
    .limit(page.size)
    .offset(offset)
  const seqs = found.map(({ seq }) => seq)
  const columns = { seq: t.seq, hash: t.hash, text: t.text }
  const rows = await read.select(columns).from(t).where(inArray(t.seq, seqs)).orderBy(desc(t.seq))
  return { rows, total }
}

type Base = NonNullable<Awaited<ReturnType<typeof baseCondition>>>

async function countRows(read: Reader, filter: AuditFilter, base: Base, totals: Totals): Promise<number> {
  const { auditEvents: t } = read.tables
  const counting = (isDense: boolean) => async (ranges: readonly Range[]) => {
    const condition = and(base.condition, within(ranges, orderOf(read, filter, isDense)))
    const [counted] = await read.select({ n: count() }).from(t).where(condition)
    return counted?.n ?? 0
  }
  const [range, ...others] = base.ranges
  if (range === undefined || others.length > 0) return counting(false)(base.ranges)
  return totals.count(
    base.key,
    base.state,
    range,
    (all) => counting(false)([all]),
    (near) => counting(true)([near]),
  )
}

/**
 * What rows are ordered by. For a few rows with a prefix or of a person both databases would rather walk all rows by
 * number than sort those few: the sum, which no index holds, keeps them from it.
 */
function orderOf(read: Reader, { uri, personId }: AuditFilter, isDense: boolean): SQL {
  const { seq } = read.tables.auditEvents
  return (uri === undefined && personId === undefined) || isDense ? sql`${seq}` : sql`(${seq} + 0)`
}

const within = (ranges: readonly Range[], order: SQL): SQL | undefined =>
  or(...ranges.map(([first, last]) => between(order, first, last)))

/** Undefined when no row can fit. */
async function baseCondition(read: Reader, filter: AuditFilter) {
  const { auditEvents: t } = read.tables
  const head = await findHead(read)
  if (head === undefined) return undefined
  const ranges = await rangesOf(read, filter, head)
  if (ranges.length === 0) return undefined
  const isForeign = filter.organisationId !== head.organisationId
  const { from, to, ...rest } = filter
  const { clientIp, ...others } = filter.equal
  const equal = Object.entries(others).map(([name, value]) => eq(t[name as EqualColumn], value))
  const condition = and(
    eq(t.isForeign, isForeign),
    isForeign ? eq(t.organisationId, filter.organisationId) : undefined,
    filter.uri === undefined ? undefined : beginsWith(t.uri, filter.uri),
    filter.personId === undefined ? undefined : answeredFor(read, filter.personId),
    head.clock < CLOCKS ? undefined : between(t.createdAt, from, to),
    clientIp === undefined ? undefined : inArray(t.clientIp, addressesOf(`${clientIp}`)),
    ...equal,
  )
  const key = JSON.stringify(head.clock < CLOCKS ? rest : filter)
  return { condition, ranges, key, state: `${head.chainId} ${head.prunedSeq}` }
}

function answeredFor({ tables: { auditEvents: t, apiKeys } }: Reader, personId: string): SQL {
  const keys = sql`select ${apiKeys.id} from ${apiKeys} where ${apiKeys.accountableUserId} = ${personId}`
  return sql`${t.userId} in (${keys} union all select ${personId})`
}

/** With the network that an address is in: by it alone the counted refusals of a minute can be found (decision 39). */
const addressesOf = (address: string): string[] => (isIP(address) === 0 ? [address] : [address, networkOf(address)])

type Column = Reader['tables']['auditEvents']['uri']

/** A range of the index. U+10FFFF sorts behind every character, by bytes too. */
const beginsWith = (column: Column, text: string): SQL | undefined =>
  and(gte(column, text), lt(column, `${text}\u{10ffff}`))

/** Beyond so many backward steps of the clock, times are compared row by row. */
const CLOCKS = 64

/**
 * Times as numbers of rows, by which every index goes on: as long as the clock is not set back, one grows with the
 * other.
 */
async function rangesOf(read: Reader, { from, to }: AuditFilter, head: Head): Promise<Range[]> {
  const { auditEvents: t } = read.tables
  if (head.clock >= CLOCKS) return [[0, head.seq]]
  const ranges: Range[] = []
  for (let clock = 0; clock <= head.clock; clock++) {
    const edge = async (direction: typeof asc) => {
      const [row] = await read
        .select({ seq: t.seq })
        .from(t)
        .where(and(eq(t.clock, clock), between(t.createdAt, from, to)))
        .orderBy(direction(t.createdAt), direction(t.seq))
        .limit(1)
      return row?.seq
    }
    const first = await edge(asc)
    const last = await edge(desc)
    if (first !== undefined && last !== undefined) ranges.push([first, last])
  }
  return ranges
}

/** Whether an id is that of a person of the organisation, removed ones too. */
export async function isPerson(read: Reader, organisationId: string, id: string): Promise<boolean> {
  const { users: t } = read.tables
  const [row] = await read
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.id, id), eq(t.organisationId, organisationId)))
    .limit(1)
  return row !== undefined
}

/** E-mail and name of the people who answer for rows, by id. */
export async function findPeople(read: Reader, ids: readonly string[]) {
  const { users: t } = read.tables
  const columns = { id: t.id, email: t.email, firstName: t.firstName, lastName: t.lastName }
  const rows =
    ids.length === 0
      ? []
      : await read
          .select(columns)
          .from(t)
          .where(inArray(t.id, [...ids]))
  return new Map(rows.map((row) => [row.id, row]))
}
