import { asc, desc, gt, lt } from 'drizzle-orm'
import type { Snapshot } from '../db/snapshot.ts'
import { type Head, headMessage, rowHash } from './chain.ts'
import { findHead } from './head.ts'
import { isSignedBy } from './keys.ts'
import { type AuditRow, columnsOf } from './row.ts'
import { rowsOf, type StoredRow } from './rows.ts'
import { introductionProblem, keyProblem, listKeys, type StoredKey } from './verify-keys.ts'

export interface Verified {
  /** rows that were read and fit */
  rows: number
  head: Head | undefined
  /** the first public key, which leads to all others */
  publicKey: string | undefined
  /** the first row that is wrong, undefined if none is; 0 when it is the head or a key */
  fault: { seq: number; problem: string } | undefined
}

/** Rows from one number to another, both included. */
export interface SeqRange {
  first: number
  last: number
}

export interface CheckedRows {
  rows: number
  /** of the last row that fits; of the row before the range if there is none */
  lastSeq: number
  fault: Verified['fault']
}

/** Checks the rows of a range against the head and the keys of the trail. */
export type CheckRows = (head: Head, keys: readonly StoredKey[], range: SeqRange) => Promise<CheckedRows>

/** Below so many rows a range is not worth a thread. */
const SMALLEST_RANGE = 100_000

/**
 * Checks the whole trail: every hash, every number, every column beside a text, the keys and the signature of the head.
 *
 * @param snapshot  one state of the database
 * @param publicKey base64; when given, the trail has to begin with this one
 * @param threads   how many ranges are checked by `checkRows` at a time: a row needs only the hash of the one before it
 */
export async function verifyTrail(
  snapshot: Snapshot,
  publicKey?: string,
  threads = 1,
  checkRows: CheckRows = (...range) => checkRowsOf(snapshot, ...range),
): Promise<Verified> {
  const { read } = snapshot
  const head = await findHead(read)
  const keys = await listKeys(read)
  const first = keys[0]?.publicKey
  const verified = (rows: number, problem?: string, seq = 0): Verified => ({
    rows,
    head,
    publicKey: first,
    fault: problem === undefined ? undefined : { seq, problem },
  })
  if (head === undefined) {
    const { auditEvents: t } = read.tables
    const [row] = await read.select({ seq: t.seq }).from(t).orderBy(asc(t.seq)).limit(1)
    return verified(0, row !== undefined || keys.length > 0 ? 'the head of the trail is missing' : undefined, row?.seq)
  }
  const checked = await Promise.all(rangesOf(head, threads).map((range) => checkRows(head, keys, range)))
  const rows = checked.reduce((sum, part) => sum + part.rows, 0)
  const fault = checked.find((part) => part.fault !== undefined)?.fault
  if (fault !== undefined) return verified(rows, fault.problem, fault.seq)
  const lastSeq = checked.at(-1)?.lastSeq ?? 0
  if (lastSeq < head.seq) return verified(rows, `rows up to ${head.seq} are missing`, lastSeq + 1)
  const beyond = await firstBeyond(snapshot, head)
  if (beyond !== undefined) return verified(rows, `it lies beyond the signed head ${head.seq}`, beyond)
  if (publicKey !== undefined && first !== publicKey)
    return verified(rows, 'the trail does not begin with the public key given')
  return verified(rows, keyProblem(head, keys) ?? headProblem(head, keys))
}

/** In the state that the head is of: another thread may see rows that have come since. */
async function firstBeyond({ read }: Snapshot, { seq }: Head): Promise<number | undefined> {
  const { auditEvents: t } = read.tables
  const [row] = await read.select({ seq: t.seq }).from(t).where(gt(t.seq, seq)).orderBy(asc(t.seq)).limit(1)
  return row?.seq
}

function rangesOf({ prunedSeq, seq }: Head, threads: number): SeqRange[] {
  const count = Math.max(1, Math.min(threads, Math.floor((seq - prunedSeq) / SMALLEST_RANGE)))
  const starts = Array.from({ length: count }, (_, i) => prunedSeq + 1 + Math.floor(((seq - prunedSeq) * i) / count))
  return starts.map((start, i) => ({
    first: i === 0 ? 0 : start,
    last: (starts[i + 1] ?? seq + 1) - 1,
  }))
}

export async function checkRowsOf(
  snapshot: Snapshot,
  ...[head, keys, range]: Parameters<CheckRows>
): Promise<CheckedRows> {
  const check = createRowCheck(head, keys, await rowBefore(snapshot, head, range.first))
  let rows = 0
  for await (const batch of rowsOf(snapshot, range.first, range.last)) {
    for (const row of batch) {
      const problem = check.take(row)
      if (problem !== undefined) return { rows, lastSeq: check.last(), fault: { seq: row.seq, problem } }
      rows++
    }
  }
  return { rows, lastSeq: check.last(), fault: undefined }
}

/** Number and hash that the row `seq` follows, which need not be there. */
export async function rowBefore({ read }: Snapshot, head: Head, seq: number): Promise<{ seq: number; hash: string }> {
  const { auditEvents: t } = read.tables
  const columns = { seq: t.seq, hash: t.hash }
  const [row] = await read.select(columns).from(t).where(lt(t.seq, seq)).orderBy(desc(t.seq)).limit(1)
  return row ?? { seq: head.prunedSeq, hash: head.prunedHash }
}

/** Takes rows in their order and says what is wrong with one, if something is. */
function createRowCheck(head: Head, keys: readonly StoredKey[], before: { seq: number; hash: string }) {
  let { seq, hash } = before
  const keysBySeq = new Map(keys.map((key) => [key.seq, key]))
  return {
    last: () => seq,
    take(row: StoredRow): string | undefined {
      if (rowHash(head.chainId, row.seq, hash, row.text) !== row.hash)
        return row.seq === seq + 1
          ? 'its text, its hash or the row before it was changed'
          : 'rows before it are missing'
      const said = JSON.parse(row.text) as AuditRow
      // After a restore the numbers go on beyond those that were given before it (decision 38).
      const isJump = said.resource_type === 'system' && said.action === 'restore' && row.seq > seq
      if (row.seq !== seq + 1 && !isJump) return 'rows before it are missing'
      const column = differingColumn(row, said, head.organisationId)
      if (column !== undefined) return `its column ${column} differs from its text`
      const introduction = introductionProblem(row.seq, said, keysBySeq.get(row.seq))
      if (introduction !== undefined) return introduction
      seq = row.seq
      hash = row.hash
      return undefined
    },
  }
}

function differingColumn(row: StoredRow, said: AuditRow, organisationId: string): string | undefined {
  const columns = columnsOf(said, organisationId)
  for (const name in columns) {
    const column = name as keyof typeof columns
    if (columns[column] !== row[column]) return column
  }
  return undefined
}

function headProblem(head: Head & { signature: string }, keys: readonly StoredKey[]): string | undefined {
  const key = keys.at(-1)
  if (key === undefined) return 'the public key of the trail is missing'
  if (key.id !== head.keyId) return 'the head is not signed with the newest key'
  return isSignedBy(key.publicKey, headMessage(head), head.signature) ? undefined : 'the signature of the head is wrong'
}
