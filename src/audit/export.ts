import { and, desc, eq, gte, lt, max, min } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import type { Snapshot } from '../db/snapshot.ts'
import { conflict } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { type ExportRange, exportMessage, type Head } from './chain.ts'
import { findHead } from './head.ts'
import { auditKeys } from './keys.ts'
import type { AuditRow } from './row.ts'
import { rowsOf, type StoredRow } from './rows.ts'
import { listKeys, type StoredKey } from './verify-keys.ts'

export type ExportFormat = 'ndjson' | 'csv'
export type UnsignedRange = Omit<ExportRange, 'keyId'>

/** What is exported: all rows from the first to the last one whose time lies in it, so that the chain has no gap. */
export interface ExportPeriod {
  /** UTC milliseconds, included */
  from: number
  /** UTC milliseconds, not included */
  to: number
}

/**
 * Writes the rows of a period with what a stranger needs to check them: the chain's id, the hash before the first row and
 * the public keys before them. `writeSignature` ends the file.
 *
 * @param write takes text in the order of the file
 * @returns     what the signature has to cover, and the ids of the keys in the file
 */
export async function writeRows(
  snapshot: Snapshot,
  format: ExportFormat,
  period: ExportPeriod,
  write: (text: string) => Promise<void>,
): Promise<{ range: UnsignedRange; keyIds: string[] } | undefined> {
  const { read } = snapshot
  const head = await findHead(read)
  if (head === undefined) return undefined
  const keys = await listKeys(read)
  const { first, last, previousHash } = await edgesOf(snapshot, head, period)
  const range = { chainId: head.chainId, previousHash, lastSeq: first - 1, lastHash: previousHash, count: 0 }
  const toText = WRITERS[format]
  if (format === 'csv') await write(`${CSV_COLUMNS.join(',')}\n`)
  await write(toText({ kind: 'chain', text: chainText(head.chainId, previousHash, keys) }))
  for await (const batch of rowsOf(snapshot, first, last)) {
    await write(batch.map((row) => toText({ kind: 'row', ...row })).join(''))
    range.count += batch.length
    const end = batch.at(-1)
    if (end !== undefined) Object.assign(range, { lastSeq: end.seq, lastHash: end.hash })
  }
  return { range, keyIds: keys.map(({ id }) => id) }
}

/** The last record of an export. */
export function signatureRecord(format: ExportFormat, range: UnsignedRange, signed: Signed): string {
  const { lastSeq: last_seq, lastHash: last_hash, count } = range
  return WRITERS[format]({ kind: 'signature', text: JSON.stringify({ last_seq, last_hash, count, ...signed }) })
}

const FORMAT = 'gatehouse-audit-export-v1'

/** What the rows of a file follow, and the keys that lead from the first to the one that signs: the text of `chain`. */
export function chainText(chainId: string, previousHash: string, keys: readonly StoredKey[]): string {
  const vouched = keys.map(({ id, publicKey, vouchedBy, voucher }) => ({
    id,
    public_key: publicKey,
    vouched_by: vouchedBy,
    voucher,
  }))
  return JSON.stringify({ format: FORMAT, chain_id: chainId, previous_hash: previousHash, keys: vouched })
}

async function edgesOf({ read }: Snapshot, head: Head, { from, to }: ExportPeriod) {
  const { auditEvents: t } = read.tables
  const [edges] = await read
    .select({ first: min(t.seq), last: max(t.seq) })
    .from(t)
    .where(and(gte(t.createdAt, from), lt(t.createdAt, to)))
  // Without a row: the empty end of the trail.
  const first = edges?.first ?? head.seq + 1
  const last = edges?.last ?? head.seq
  const before = await read.select({ hash: t.hash }).from(t).where(lt(t.seq, first)).orderBy(desc(t.seq)).limit(1)
  return { first, last, previousHash: before[0]?.hash ?? head.prunedHash }
}

interface ExportRecord extends Partial<StoredRow> {
  kind: 'chain' | 'row' | 'signature'
  text: string
}

export const ndjsonRecord = ({ kind, seq, hash, text }: ExportRecord): string =>
  `${JSON.stringify({ kind, seq, hash, text })}\n`

const WRITERS: Record<ExportFormat, (record: ExportRecord) => string> = {
  ndjson: ndjsonRecord,
  csv: (record) => `${[...CSV_OWN.map((name) => record[name]), ...copied(record)].map(csvField).join(',')}\n`,
}

/** What is checked, then copies of parts of the text for reading; none of these begins like a formula. */
const CSV_OWN = ['kind', 'seq', 'hash', 'text'] as const
const CSV_COPIED = [
  'timestamp',
  'user_type',
  'user_id',
  'resource_type',
  'action',
  'resource_id',
  'response_status_code',
  'client_ip',
] as const
const CSV_COLUMNS = [...CSV_OWN, ...CSV_COPIED]

function copied({ kind, text }: ExportRecord): unknown[] {
  const row: Partial<AuditRow> = kind === 'row' ? JSON.parse(text) : {}
  return CSV_COPIED.map((name) => row[name])
}

function csvField(value: unknown): string {
  const text = value === undefined || value === null ? '' : String(value)
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

interface Signed {
  key_id: string
  /** Ed25519, base64 */
  signature: string
}

/**
 * Signs an export, after a row of its own that says what was exported.
 *
 * @throws GatehouseError conflict when the rows are not those of this trail
 */
export async function signExport(
  { audited, read, keyring }: Pick<Gatehouse, 'audited' | 'read' | 'keyring'>,
  actor: Actor,
  range: UnsignedRange,
): Promise<Signed> {
  const { auditEvents: t } = read.tables
  const head = await findHead(read)
  const [last] = await read.select({ hash: t.hash }).from(t).where(eq(t.seq, range.lastSeq))
  const isOurs = head?.chainId === range.chainId && (range.count === 0 || last?.hash === range.lastHash)
  if (!isOurs) throw conflict('these rows are not of this trail; export them again')
  await audited(actor, { action: 'audit_logs.export', details: { ...range } }, async () => {})
  const keys = auditKeys(keyring())
  return { key_id: keys.id, signature: keys.sign(exportMessage({ ...range, keyId: keys.id })) }
}
