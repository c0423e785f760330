import { getTableColumns, sql } from 'drizzle-orm'
import { compiled, compiledSelect } from '../db/compiled.ts'
import type { Head } from './chain.ts'

// What every change does to the trail.

export type SignedHead = Head & { signature: string }

/** Values are named as the columns of `audit_events` in `tables.ts`. */
export const insertEvent = compiled((tx) => {
  const { auditEvents } = tx.tables
  const names = Object.keys(getTableColumns(auditEvents))
  return tx.insert(auditEvents).values(placeholders(names) as unknown as typeof auditEvents.$inferInsert)
})

/** What is left as it is: the chain, its organisation, and what was pruned. */
export const moveHead = compiled((tx) =>
  tx.update(tx.tables.auditHead).set(placeholders(['seq', 'hash', 'createdAt', 'clock', 'keyId', 'signature'])),
)

const placeholders = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, sql.placeholder(name)]))

/** As `findHead` does it for everything else. */
export const readHead = compiledSelect((tx) => tx.select().from(tx.tables.auditHead))
