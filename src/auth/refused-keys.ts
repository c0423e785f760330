import { eq, or } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import type { Caller, KeyType } from './caller.ts'
import { type KeyRow, overdueAt, selectKeys } from './key-rows.ts'

/**
 * Why a key of ours proves nobody; `peer`: a system key, from where none is taken; `stale`: the database takes it, and
 * this node has not heard of that or saw it expire before its clock was set back.
 */
export type RefusedBecause =
  | 'deleted'
  | 'expired'
  | 'rotated'
  | 'rotation_overdue'
  | 'person_removed'
  | 'workspace_archived'
  | 'peer'
  | 'stale'

/** Whom the use of a refused key is put down to (decision 39). */
export type RefusedKey = Pick<Caller, 'keyId' | 'type' | 'organisationId' | 'workspaceId' | 'accountableUserId'> & {
  reason: RefusedBecause
}

export interface RefusedKeys {
  /**
   * Whose a refused secret is or was: resolves to undefined when it was never one of ours, or cannot be looked up.
   *
   * @param now UTC milliseconds
   * @returns undefined when too many others were asked for in this minute
   */
  find(digest: string, now: number): Promise<RefusedKey | undefined> | undefined
}

/**
 * Secrets that are looked up in a minute; anybody can make well-formed ones. Who sends more hides no more by it than the
 * trail hides anyway, which tells 60 kinds of refusals apart.
 */
const MOST_A_MINUTE = 600
const MINUTE_MS = 60_000

/** @param options.enforcesRotation `rotation.enforce` of the config */
export function createRefusedKeys(read: Reader, options: { enforcesRotation: boolean }): RefusedKeys {
  let asked = new Map<string, Promise<RefusedKey | undefined>>()
  let minute = 0

  async function lookUp(digest: string, now: number): Promise<RefusedKey | undefined> {
    // Only when the answer is on its way, so that its time does not tell whether the key was ever one of ours.
    await Bun.sleep(0)
    const { apiKeys: t } = read.tables
    const [row] = await selectKeys(read)
      .where(or(eq(t.digest, digest), eq(t.previousDigest, digest)))
      .limit(1)
    if (row === undefined) return undefined
    const { id: keyId, type, organisationId, workspaceId, accountableUserId } = row
    const reason = reasonOf(row, digest, now, options.enforcesRotation)
    return { keyId, type: type as KeyType, organisationId, workspaceId, accountableUserId, reason }
  }

  return {
    find(digest, now) {
      const current = Math.floor(now / MINUTE_MS)
      if (current !== minute) {
        minute = current
        asked = new Map()
      }
      const before = asked.get(digest)
      if (before !== undefined || asked.size >= MOST_A_MINUTE) return before
      const found = lookUp(digest, now).catch(() => undefined)
      asked.set(digest, found)
      return found
    },
  }
}

/** Leaving and archiving delete keys as well, and say more. */
function reasonOf(row: KeyRow, digest: string, now: number, enforcesRotation: boolean): RefusedBecause {
  const isPast = (time: number | null): boolean => time !== null && time <= now
  if (row.userStatus === 'removed') return 'person_removed'
  if (row.workspaceStatus === 'archived') return 'workspace_archived'
  if (row.deletedAt !== null) return 'deleted'
  if (digest === row.previousDigest && isPast(row.previousDigestExpiresAt)) return 'rotated'
  if (isPast(row.expiresAt)) return 'expired'
  if (enforcesRotation && digest === row.digest && isPast(overdueAt(row))) return 'rotation_overdue'
  return row.type === 'system' ? 'peer' : 'stale'
}
