import { and, inArray, isNull, lt, or } from 'drizzle-orm'
import type { Database } from '../db/database.ts'

/** When keys were last used: noted in memory, written now and then, so that no request waits for it (AK-2). */
export interface LastUsed {
  /** @param now UTC milliseconds */
  note(keyId: string, now: number): void
  /** Writes what was noted; what cannot be written is kept for the next time. */
  flush(): Promise<void>
}

const MINUTE_MS = 60_000
/** Keys of one statement. */
const BATCH = 500

/** @param transaction the database's own: this is no change that anybody makes, so it leaves no audit row */
export function createLastUsed(transaction: Database['transaction']): LastUsed {
  let used = new Map<string, number>()

  return {
    note: (keyId, now) => void used.set(keyId, now),
    async flush() {
      const noted = used
      used = new Map()
      try {
        for (const { minute, ids } of batches(noted)) {
          await transaction({ action: 'api_keys.use' }, async (tx) => {
            const { apiKeys: t } = tx.tables
            const isOlder = or(isNull(t.lastUsedAt), lt(t.lastUsedAt, minute))
            await tx
              .update(t)
              .set({ lastUsedAt: minute })
              .where(and(inArray(t.id, ids), isOlder))
          })
          for (const id of ids) noted.delete(id)
        }
      } catch (error) {
        for (const [id, at] of noted) if (!used.has(id)) used.set(id, at)
        throw error
      }
    },
  }
}

/** By the minute, since many keys share one, and nobody needs to know better. */
function batches(noted: Map<string, number>): { minute: number; ids: string[] }[] {
  const byMinute = Map.groupBy(noted, ([, at]) => at - (at % MINUTE_MS))
  return [...byMinute].flatMap(([minute, entries]) =>
    Array.from({ length: Math.ceil(entries.length / BATCH) }, (_, i) => ({
      minute,
      ids: entries.slice(i * BATCH, (i + 1) * BATCH).map(([id]) => id),
    })),
  )
}
