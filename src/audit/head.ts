import type { Reader, Tx } from '../db/database.ts'
import { mayRerun, storageUnavailable } from '../db/errors.ts'
import { GatehouseError } from '../errors.ts'
import { canonicalJson, GENESIS_HASH, type Head, headMessage, rowHash, voucherMessage } from './chain.ts'
import { insertEvent, moveHead, readHead, type SignedHead } from './head-queries.ts'
import type { AuditKeys } from './keys.ts'
import { type AuditRow, columnsOf, type UnplacedRow } from './row.ts'

/** A clock that is set back by no more is taken to stand still, so that a correction of a few milliseconds is no event. */
const STANDSTILL_MS = 2000

export interface Placed {
  head: Head
  /** milliseconds by which the clock had been set back since the row before; 0 if it was not */
  clockStepMs: number
}

export interface Appending {
  /** sign the head now, and not with the others of its commit */
  sign: boolean
  /** the keys before `keys`, when this row introduces them */
  rotatedFrom?: AuditKeys | undefined
  /** the row's number is beyond this one: only for `system.restore` (decision 38) */
  beyond?: number | undefined
}

/**
 * Appends a row to the trail, in the transaction of what it tells of, and moves the head to it. The caller has taken
 * its place in the order of commits (`tx.revise`). The first row ever begins a chain.
 *
 * @throws GatehouseError storage_unavailable when the row cannot be written, whatever the reason (AU-1); stale when
 *                        another node has rotated the signing key
 */
export async function appendRow(tx: Tx, row: UnplacedRow, keys: AuditKeys, how: Appending): Promise<Placed> {
  const [found] = await readHead(tx)
  const tip = found ?? newHead(row.organisation_id, tx.now, keys.id)
  if (tip.keyId !== (how.rotatedFrom ?? keys).id)
    throw new GatehouseError(
      'stale',
      'the audit trail has a new signing key, which this node has yet to read; try again',
    )
  const isFirst = found === undefined
  const introduced = isFirst || how.rotatedFrom ? introduction(tip, keys, how.rotatedFrom) : undefined
  const placed = place(tip, row, tx.now, how.beyond ?? 0, introduced)
  const head = { ...placed.head, keyId: keys.id }
  try {
    await write(tx, placed, head, how.sign ? keys.sign(headMessage(head)) : '', isFirst)
    if (introduced !== undefined) await insertKey(tx, head.seq, introduced)
  } catch (error) {
    throw mayRerun(error) ? error : storageUnavailable(error)
  }
  return { head, clockStepMs: placed.clockStepMs }
}

/**
 * Signs the head that the changes of this commit have moved: once, however many they were.
 *
 * @param keysOf the keys that rows of this commit were appended with, by id
 */
export async function signHead(tx: Tx, keysOf: (id: string) => AuditKeys | undefined): Promise<void> {
  const [head] = await readHead(tx)
  if (head === undefined || head.signature !== '') return
  await moveHead(tx, { ...head, signature: keysOf(head.keyId)?.sign(headMessage(head)) })
}

export async function findHead(db: Reader): Promise<SignedHead | undefined> {
  const [head] = await db.select().from(db.tables.auditHead)
  return head
}

interface Introduction {
  id: string
  public_key: string
  chain_id: string
  vouched_by?: string
  voucher?: string
}

/** What a row says of a new signing key: whoever trusts the one before it can check it. */
function introduction({ chainId }: Head, { id, publicKey }: AuditKeys, before: AuditKeys | undefined): Introduction {
  const key = { id, public_key: publicKey, chain_id: chainId }
  if (before === undefined) return key
  return { ...key, vouched_by: before.id, voucher: before.sign(voucherMessage(chainId, before.id, id, publicKey)) }
}

function place(tip: Head, unplaced: UnplacedRow, now: number, beyond: number, introduced: Introduction | undefined) {
  const back = tip.createdAt - now
  const clockStepMs = back > STANDSTILL_MS ? back : 0
  const createdAt = clockStepMs > 0 ? now : Math.max(now, tip.createdAt)
  const clock = clockStepMs > 0 ? tip.clock + 1 : tip.clock
  const details = {
    ...unplaced.details,
    ...(clockStepMs > 0 && { clock_set_back_ms: clockStepMs }),
    ...(introduced && { signing_key: introduced }),
  }
  const row: AuditRow = { ...unplaced, details, timestamp: new Date(createdAt).toISOString(), clock }
  const text = canonicalJson(row)
  const seq = Math.max(tip.seq, beyond) + 1
  const hash = rowHash(tip.chainId, seq, tip.hash, text)
  return { row, text, clockStepMs, head: { ...tip, seq, hash, createdAt, clock } }
}

const newHead = (organisationId: string, now: number, keyId: string): Head => ({
  chainId: Bun.randomUUIDv7(),
  organisationId,
  seq: 0,
  hash: GENESIS_HASH,
  createdAt: now,
  clock: 0,
  prunedSeq: 0,
  prunedHash: GENESIS_HASH,
  keyId,
})

async function write(
  tx: Tx,
  { row, text }: ReturnType<typeof place>,
  head: Head,
  signature: string,
  isFirst: boolean,
): Promise<void> {
  const { seq, hash } = head
  await insertEvent(tx, { seq, hash, text, ...columnsOf(row, head.organisationId) })
  if (!isFirst) return void (await moveHead(tx, { ...head, signature }))
  const { auditHead } = tx.tables
  await tx
    .insert(auditHead)
    .values({ id: 'head', ...head, signature })
    .returning({ seq: auditHead.seq })
}

async function insertKey(tx: Tx, seq: number, introduced: Introduction): Promise<void> {
  const { auditKeys } = tx.tables
  const { id, public_key: publicKey, vouched_by: vouchedBy, voucher } = introduced
  await tx.insert(auditKeys).values({ id, seq, publicKey, vouchedBy, voucher }).returning({ id: auditKeys.id })
}
