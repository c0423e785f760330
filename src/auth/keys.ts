import { and, asc, eq, gt, isNull, type SQL } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import type { Caller, KeyType } from './caller.ts'
import { callersOf, createShared, type KeyRow, type Shared, selectKeys } from './key-rows.ts'
import { createLimiters } from './rate-limit.ts'

/** Every live key of the installation in memory, by digest: a request reads no database to know its caller. */
export interface Keys {
  /** undefined: unknown, deleted, or expired at `now` (UTC milliseconds) */
  find(digest: string, now: number): Caller | undefined
  /** the type of a live key, undefined unless this organisation has it */
  typeOf(id: string, organisationId: string): KeyType | undefined
  count(): number
  /** reads all keys; at start, when this node has missed changes, and after a change of the organisation's settings */
  load(): Promise<void>
  /** reads one key again, after a commit touched it */
  reload(id: string): Promise<void>
  /** reads again the keys that a workspace (its settings included) or person (their memberships included) stands behind */
  reloadWhere(of: { workspaceId: string } | { userId: string }): Promise<void>
}

interface Cache {
  byDigest: Map<string, Caller>
  /** by key id: its callers in `byDigest`, one for each secret */
  byId: Map<string, Caller | Caller[]>
  shared: Shared
}

/** Rows of one read: a million at once would take gigabytes for a moment. */
const BATCH = 10_000

/** @param options.enforcesRotation `rotation.enforce` of the config */
export function createKeys(read: Reader, options: { enforcesRotation: boolean }): Keys {
  const limiters = createLimiters()
  const emptyCache = (): Cache => ({
    byDigest: new Map(),
    byId: new Map(),
    shared: createShared(limiters, options.enforcesRotation),
  })
  let cache = emptyCache()
  // Seen as expired once, expired for ever: the clock may step back (decision 13).
  const expired = new WeakSet<Caller>()
  // One after the other, or what was read first could be stored last.
  let turn: Promise<void> = Promise.resolve()
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    turn = turn.then(work, work)
    return turn
  }

  function put(into: Cache, row: KeyRow): void {
    const callers = callersOf(row, into.shared)
    for (const caller of callers) {
      const before = cache.byDigest.get(caller.digest)
      if (before !== undefined && before.endsAt === caller.endsAt && expired.has(before)) expired.add(caller)
    }
    const replaced = into.byId.get(row.id)
    if (replaced !== undefined) for (const { digest } of [replaced].flat()) into.byDigest.delete(digest)
    for (const caller of callers) into.byDigest.set(caller.digest, caller)
    if (callers.length === 0) {
      into.byId.delete(row.id)
      limiters.of(row.id, null)
    } else into.byId.set(row.id, callers.length === 1 ? callers[0]! : callers)
  }

  const reloadAll = (where: SQL | undefined) =>
    inTurn(async () => {
      for (const row of await selectKeys(read).where(where)) put(cache, row)
    })
  const { apiKeys } = read.tables

  return {
    find(digest, now) {
      const caller = cache.byDigest.get(digest)
      if (caller === undefined || caller.endsAt === null) return caller
      if (expired.has(caller)) return undefined
      if (now < caller.endsAt) return caller
      expired.add(caller)
      return undefined
    },
    typeOf(id, organisationId) {
      const [caller] = [cache.byId.get(id) ?? []].flat()
      return caller?.organisationId === organisationId ? caller.type : undefined
    },
    count: () => cache.byId.size,
    load: () =>
      inTurn(async () => {
        const next = emptyCache()
        for (let rows = await batchAfter(read, ''); rows.length > 0; rows = await batchAfter(read, rows.at(-1)!.id))
          for (const row of rows) put(next, row)
        cache = next
      }),
    reload: (id) => reloadAll(eq(apiKeys.id, id)),
    reloadWhere: (of) =>
      reloadAll(
        and(
          'workspaceId' in of ? eq(apiKeys.workspaceId, of.workspaceId) : eq(apiKeys.userId, of.userId),
          isNull(apiKeys.deletedAt),
        ),
      ),
  }
}

const batchAfter = (read: Reader, id: string): Promise<KeyRow[]> =>
  selectKeys(read)
    .where(and(isNull(read.tables.apiKeys.deletedAt), gt(read.tables.apiKeys.id, id)))
    .orderBy(asc(read.tables.apiKeys.id))
    .limit(BATCH)
