import { and, eq, isNull, lte, ne, or } from 'drizzle-orm'
import { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { eventOf } from './service.ts'
import type { ApiKeyRow } from './store.ts'

type Deps = Pick<Gatehouse, 'read' | 'audited' | 'metrics'>

/** What time alone does to a key: the column that says when, and the one that says which time was recorded. */
interface Event {
  at: 'nextRotationAt' | 'expiresAt'
  recordedAt: 'rotationDueRecordedAt' | 'expiryRecordedAt'
  verb: string
  details(row: ApiKeyRow, at: string): Record<string, unknown>
}

const ROTATION: Event = {
  at: 'nextRotationAt',
  recordedAt: 'rotationDueRecordedAt',
  verb: 'rotation_due',
  details: (row, due_at) => ({ api_key_id: row.id, rotation_mode: 'auto', status: 'due', due_at }),
}
const EXPIRY: Event = {
  at: 'expiresAt',
  recordedAt: 'expiryRecordedAt',
  verb: 'expire',
  details: (row, expires_at) => ({ api_key_id: row.id, expires_at }),
}

/** Keys of one look. */
const BATCH = 500

/**
 * Leaves an audit row for each rotation that has come due (decision 35) and each key that has expired (decision 40)
 * since the last look, once for each time, however often and on however many nodes it is looked.
 */
export async function recordDue(deps: Deps, now: number): Promise<void> {
  for (const event of [ROTATION, EXPIRY]) {
    let recorded = BATCH
    while (recorded === BATCH) recorded = await recordSome(deps, event, now)
  }
}

async function recordSome({ read, audited, metrics }: Deps, event: Event, now: number): Promise<number> {
  const { apiKeys: t } = read.tables
  const isNew = or(isNull(t[event.recordedAt]), ne(t[event.recordedAt], t[event.at]))
  const rows = await read
    .select()
    .from(t)
    .where(and(lte(t[event.at], now), isNull(t.deletedAt), isNew))
    .limit(BATCH)
  for (const row of rows) {
    const at = row[event.at] ?? 0
    const details = event.details(row, new Date(at).toISOString())
    const actor = { kind: 'system', organisationId: row.organisationId } as const
    try {
      await audited(actor, { ...eventOf(row, event.verb), details }, async (tx) => {
        const found = await tx
          .update(t)
          .set({ [event.recordedAt]: at })
          .where(and(eq(t.id, row.id), eq(t[event.at], at), isNull(t.deletedAt), isNew))
          .returning({ id: t.id })
        if (found.length === 0) throw new GatehouseError('conflict', 'another node was first')
      })
      if (event === ROTATION) metrics.rotationDue()
    } catch (error) {
      if (!(error instanceof GatehouseError) || error.code !== 'conflict') throw error
    }
  }
  return rows.length
}
