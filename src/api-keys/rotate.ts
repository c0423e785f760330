import { and, eq, gt, isNull } from 'drizzle-orm'
import type { ApiKeyRotated, RotateApiKey } from '../../schema/api/api-keys.ts'
import type { Actor, KeyActor, KeyType } from '../auth/caller.ts'
import { conflict, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { maskKey } from './key.ts'
import { assertMayMake } from './minting.ts'
import { organisationOf } from './people.ts'
import { afterRotation, columnsOfSchedule, DEFAULT_TRANSITION_MS, scheduleOf } from './rotation-policy.ts'
import { eventOf, getApiKey, lockApiKey, newKeyOf } from './service.ts'
import { type ApiKeyRow, findApiKey } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'digestKey'>

/**
 * Gives a key a new secret, which is in this answer and nowhere else. The old one goes on until the end of the
 * transition window; there are never more than two. A key may always rotate itself.
 *
 * @throws GatehouseError `conflict` inside the window of the last rotation and for an expired key, `forbidden` when the
 *         key is more than the caller (decision 31), `not_found`
 */
export async function rotateApiKey(
  { audited, read, digestKey }: Deps,
  actor: KeyActor,
  id: string,
  body: RotateApiKey,
): Promise<ApiKeyRotated> {
  const { caller } = actor
  const isItself = caller.keyId === id
  const found = isItself
    ? await findApiKey(read, caller.organisationId, id)
    : await getApiKey(read, caller, id, 'rotate', 'update')
  if (found === undefined) throw notFound('API key')
  return audited(actor, eventOf(found, 'rotate'), async (tx) => {
    const before = await lockApiKey(tx, id)
    if (!isItself) await assertMayMake(tx, caller, before)
    if (before.expiresAt !== null && before.expiresAt <= tx.now)
      throw conflict('this API key has expired: set expires_at first, then rotate it')
    if (hasOldSecret(before, tx.now))
      throw conflict('this API key was rotated already; rotate it again when the window of its old secret has ended')
    const key = newKeyOf(before.type as KeyType)
    const schedule = scheduleOf(before)
    const transitionMs =
      body.key_transition_period_ms ?? schedule?.policy.key_transition_period_ms ?? DEFAULT_TRANSITION_MS
    // A key that had no secret yet has no old one either.
    const endsAt =
      before.digest === null ? tx.now : Math.min(tx.now + transitionMs, before.expiresAt ?? Number.POSITIVE_INFINITY)
    const { apiKeys: t } = tx.tables
    await tx
      .update(t)
      .set({
        digest: digestKey(key),
        masked: maskKey(key),
        previousDigest: before.digest,
        previousDigestExpiresAt: before.digest === null ? null : endsAt,
        ...columnsOfSchedule(afterRotation(schedule, tx.now)),
        lastUpdatedAt: Math.max(tx.now, before.lastUpdatedAt + 1),
      })
      .where(eq(t.id, id))
      .returning({ id: t.id })
    const key_transition_expires_at = new Date(endsAt).toISOString()
    tx.event.details = {
      api_key_id: id,
      rotation_mode: 'manual',
      old_key_masked: before.masked,
      transition_expires_at: key_transition_expires_at,
    }
    tx.changed('api_key', id)
    return { id, key, key_transition_expires_at }
  })
}

const hasOldSecret = ({ previousDigestExpiresAt: endsAt }: ApiKeyRow, now: number): boolean =>
  endsAt !== null && endsAt > now

/**
 * Ends the old secret of a rotated key now.
 *
 * @throws GatehouseError `not_found`; `conflict` when the key has no old secret
 */
export async function endTransition({ audited, read }: Deps, actor: Actor, id: string): Promise<void> {
  const row = await findApiKey(read, organisationOf(actor), id)
  if (row === undefined) throw notFound('API key')
  await audited(actor, eventOf(row, 'rotate'), async (tx) => {
    const { apiKeys: t } = tx.tables
    const rows = await tx
      .update(t)
      // The digest stays, so that its use stays attributable (decision 39); 0 is past for every clock.
      .set({ previousDigestExpiresAt: 0, lastUpdatedAt: tx.now })
      .where(and(eq(t.id, id), isNull(t.deletedAt), gt(t.previousDigestExpiresAt, tx.now)))
      .returning({ id: t.id })
    if (rows.length === 0) throw conflict('this API key has no old secret; it was not rotated, or the window has ended')
    tx.event.details = { api_key_id: id, transition_ended: true }
    tx.changed('api_key', id)
  })
}
