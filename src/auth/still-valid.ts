import { and, eq, sql } from 'drizzle-orm'
import { compiledSelect } from '../db/compiled.ts'
import type { Tx } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import type { Caller, KeyActor } from './caller.ts'
import { ranksAbove } from './ceiling.ts'
import { callersOf, type KeyRow, selectKeys, unshared } from './key-rows.ts'

/**
 * Reads a caller's key, workspace and person again inside its change: who was revoked or demoted changes nothing on any
 * node, however old that node's cache is (decision 13).
 *
 * @throws GatehouseError `unauthenticated` for a dead key or an ended secret, `forbidden` when nothing is left of what
 *         the route asks for, `stale` when anything else was taken away meanwhile: the ceiling goes by all of it
 */
export async function assertStillValid(tx: Tx, { caller, permissions }: KeyActor): Promise<void> {
  const row = await rowOf(tx, caller)
  const fresh = row === undefined ? undefined : callerOf(row, caller)
  if (fresh === undefined || (fresh.endsAt !== null && fresh.endsAt <= tx.now))
    throw new GatehouseError('unauthenticated', 'the API key is not valid')
  if (permissions.length > 0 && !permissions.some((permission) => fresh.permissions.has(permission)))
    throw new GatehouseError('forbidden', `this API key lacks the scope ${permissions.join(' or ')}`)
  if (fresh.hasLost)
    throw new GatehouseError('stale', 'what this API key may do has just changed; send the request again', {
      retryAfterSeconds: 1,
    })
}

async function rowOf(tx: Tx, caller: Caller): Promise<KeyRow | undefined> {
  const seen = tx.seen.get(caller) as KeyRow | undefined
  if (seen !== undefined) return seen
  const [row] = await selectKey(tx, { keyId: caller.keyId, organisationId: caller.organisationId })
  tx.seen.set(caller, row)
  return row
}

/** What was seen of a caller the last time: its key is rarely another one, and its scopes are many. */
const lastSeen = new WeakMap<Caller, { row: KeyRow; now: (Caller & { hasLost: boolean }) | undefined }>()

function callerOf(row: KeyRow, caller: Caller): (Caller & { hasLost: boolean }) | undefined {
  const before = lastSeen.get(caller)
  if (before !== undefined && isSameRow(before.row, row)) return before.now
  const found = callersOf(row, unshared).find(({ digest }) => digest === caller.digest)
  const now = found && { ...found, hasLost: hasLost(caller, found) }
  lastSeen.set(caller, { row, now })
  return now
}

const isSameRow = (one: KeyRow, other: KeyRow): boolean =>
  one === other || (Object.keys(one) as (keyof KeyRow)[]).every((column) => one[column] === other[column])

const selectKey = compiledSelect((tx) => {
  const { apiKeys } = tx.tables
  const { placeholder } = sql
  return selectKeys(tx).where(
    and(eq(apiKeys.id, placeholder('keyId')), eq(apiKeys.organisationId, placeholder('organisationId'))),
  )
})

type Powers = Pick<Caller, 'rank' | 'permissions'>

/** Whether anything that a caller had was taken from it. */
export const hasLost = (before: Powers, now: Powers): boolean =>
  ranksAbove(before.rank, now.rank) || [...before.permissions].some((permission) => !now.permissions.has(permission))
