import { and, eq } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import { resealedRow } from '../crypto/keyring.ts'
import type { MasterKeys } from '../crypto/master-key.ts'
import type { Reader } from '../db/database.ts'
import { conflict } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

/** The ids of the lines in the master key source that the keyring needs. */
export async function masterKeysInUse(read: Reader): Promise<string[]> {
  const { keyring: t } = read.tables
  const rows = await read.selectDistinct({ id: t.sealedBy }).from(t)
  return rows.map(({ id }) => id).sort()
}

/**
 * Seals the keyring with the last of the master keys (decision 42). Nothing else changes, on no node: what the keyring
 * holds stays what it is.
 *
 * @returns the id of that master key
 * @throws StartError 78 MASTER_KEY_MISMATCH when a row does not open; GatehouseError `conflict` when that key is in use
 *         already, or another rotation was faster
 */
export async function rotateMasterKey(
  { audited }: Pick<Gatehouse, 'audited'>,
  actor: Actor,
  masterKeys: MasterKeys,
): Promise<string> {
  const to = masterKeys.at(-1)
  if (to === undefined) throw conflict('master_key.source holds no key')
  const what = { action: 'master_key.rotate_key', resourceId: to.id, resourceName: to.id }
  return audited(actor, what, async (tx) => {
    const { keyring: t } = tx.tables
    const rows = await tx.select().from(t).orderBy(t.id)
    const others = rows.filter(({ sealedBy }) => sealedBy !== to.id)
    if (others.length === 0) throw conflict('the last line of master_key.source seals the keyring already')
    for (const row of others) {
      const { sealed, sealedBy } = resealedRow(row, masterKeys, to)
      const isUnchanged = and(eq(t.id, row.id), eq(t.sealedBy, row.sealedBy))
      const done = await tx.update(t).set({ sealed, sealedBy }).where(isUnchanged).returning({ id: t.id })
      if (done.length === 0) throw conflict('another rotation of the master key was faster; look which key is in use')
    }
    const before = [...new Set(others.map(({ sealedBy }) => sealedBy))]
    tx.event.details = { before: { sealed_by: before }, after: { sealed_by: to.id }, keyring_rows: others.length }
    return to.id
  })
}
