import { and, eq } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import { successorOf } from '../crypto/keyring.ts'
import type { MasterKeys } from '../crypto/master-key.ts'
import { conflict } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { auditKeys } from './keys.ts'

/**
 * Gives the trail a new signing key (decision 42). Its row holds the new public key, vouched for by the old one, so that
 * whoever has the first public key can check what comes after.
 *
 * @throws GatehouseError conflict when another rotation was quicker
 * @throws StartError 78 MASTER_KEY_MISMATCH when the master key of the current signing key is not among `masterKeys`
 */
export async function rotateSigningKey(
  { audited, read, keyring }: Pick<Gatehouse, 'audited' | 'read' | 'keyring'>,
  actor: Actor,
  masterKeys: MasterKeys,
): Promise<{ id: string; public_key: string }> {
  const { keyring: t } = read.tables
  const current = and(eq(t.purpose, 'audit_signing'), eq(t.state, 'current'))
  const [row] = await read.select().from(t).where(current)
  if (row === undefined) throw new Error('the keyring has no current audit_signing key')
  const successor = successorOf(row, masterKeys, Date.now())
  // This node may be unable to read the master key source; the others open the row with it.
  keyring().known.set(successor.row.id, successor.key)
  const { fingerprint, auditSigning } = keyring()
  const rotatedFrom = auditKeys({ auditSigning, fingerprint })
  const keys = auditKeys({ auditSigning: successor.key, fingerprint })
  const what = { action: 'audit_logs.rotate_key', resourceId: keys.id }
  const store = async (tx: Parameters<Parameters<typeof audited>[2]>[0]): Promise<void> => {
    const retired = await tx
      .update(t)
      .set({ state: 'retired' })
      .where(and(eq(t.id, row.id), current))
      .returning({ id: t.id })
    if (retired.length === 0) throw conflict('the signing key has just been rotated')
    await tx.insert(t).values(successor.row).returning({ id: t.id })
    // Every node takes the new key before it writes the next row.
    tx.changed('*', '')
  }
  await audited(actor, what, store, { keys, rotatedFrom })
  return { id: keys.id, public_key: keys.publicKey }
}
