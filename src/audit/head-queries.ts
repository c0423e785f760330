import type { Placeholder } from 'drizzle-orm'
import { compiled, compiledInsert, compiledSelect, placeholders } from '../db/compiled.ts'
import type { Head } from './chain.ts'

// What every change does to the trail.

export type SignedHead = Head & { signature: string }

export const insertEvent = compiledInsert((tables) => tables.auditEvents)

/** What is left as it is: the chain, its organisation, and what was pruned. */
export const moveHead = compiled((tx) => {
  const moved: Record<string, Placeholder> = placeholders('seq', 'hash', 'createdAt', 'clock', 'keyId', 'signature')
  return tx.update(tx.tables.auditHead).set(moved)
})

/** As `findHead` does it for everything else. */
export const readHead = compiledSelect((tx) => tx.select().from(tx.tables.auditHead))
