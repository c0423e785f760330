import { asc, lte } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import type { Tx } from '../db/database.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { findHead } from './head.ts'

/** Rows that one change removes: it must end long before its time is up. */
const BATCH = 10_000
const DAY_MS = 86_400_000

/**
 * Removes the oldest rows, up to the first one that is not older than `before` (decision 38): the only deletion there
 * is. What is left still verifies, since the signed head keeps the hash of the last row that is gone; each batch is a
 * row of its own.
 *
 * @param before UTC milliseconds
 * @returns      how many rows were removed
 * @throws GatehouseError invalid when `before` is within `audit.retention_min_days`
 */
export async function pruneTrail(
  { audited, config }: Pick<Gatehouse, 'audited' | 'config'>,
  actor: Actor,
  before: number,
): Promise<number> {
  const days = config.audit.retention_min_days
  if (before > Date.now() - days * DAY_MS)
    throw invalidField('before', `must be at least ${days} days ago (audit.retention_min_days)`)
  let removed = 0
  for (;;) {
    const batch = await audited(actor, { action: 'audit_logs.prune' }, (tx) => pruneBatch(tx, before))
    removed += batch
    if (batch < BATCH) return removed
  }
}

async function pruneBatch(tx: Tx, before: number): Promise<number> {
  // The head is ours from here on.
  await tx.revise()
  const { auditEvents: t, auditHead } = tx.tables
  const head = await findHead(tx)
  const rows = await tx
    .select({ seq: t.seq, hash: t.hash, createdAt: t.createdAt })
    .from(t)
    .orderBy(asc(t.seq))
    .limit(BATCH)
  const kept = rows.findIndex(({ createdAt }) => createdAt >= before)
  const old = kept === -1 ? rows : rows.slice(0, kept)
  const last = old.at(-1)
  tx.event.details = { before: new Date(before).toISOString(), count: old.length }
  if (head === undefined || last === undefined) return 0
  await tx.delete(t).where(lte(t.seq, last.seq)).returning({ seq: t.seq })
  await tx.update(auditHead).set({ prunedSeq: last.seq, prunedHash: last.hash }).returning({ seq: auditHead.seq })
  Object.assign(tx.event.details, { first_seq: old[0]?.seq, last_seq: last.seq, last_hash: last.hash })
  return old.length
}
