import type { SQL } from 'bun'
import type { Change, ChangeKind } from './database.ts'
import { onConnection } from './postgres-connection.ts'

/** A node that was away for longer loads everything again. */
const KEEP_MS = 3_600_000
const PRUNE_EVERY_MS = 60_000
const READ_MS = 2_000

export interface ChangeFeed {
  onCommitted(listener: (changes: Change[]) => Promise<void>): void
  /** resolves when the listener has been told of every change up to `revision` */
  reach(revision: number): Promise<void>
  staleMs(): number
  stop(): Promise<void>
}

/**
 * Tells the listener of every commit on any node, in the order of revisions. Our own commits take the same way as
 * those of others, so there is one order; a poll finds those of others (decision 13).
 *
 * @param seen the revision that the listener's caches start from
 */
export function followChanges(sql: SQL, pollMs: number, seen: number): ChangeFeed {
  let listener: (changes: Change[]) => Promise<void> = async () => {}
  let running: Promise<void> | undefined
  let polledAt = performance.now()
  let prunedAt = performance.now()

  async function catchUp(): Promise<void> {
    const startedAt = performance.now()
    const { revision, changes } = await onConnection(sql, READ_MS, (connection) => readChanges(connection, seen))
    if (changes.length > 0) await listener(changes)
    seen = revision
    polledAt = startedAt
  }

  function catchUpOnce(): Promise<void> {
    running ??= catchUp().finally(() => {
      running = undefined
    })
    return running
  }

  async function poll(): Promise<void> {
    try {
      await catchUpOnce()
      if (performance.now() - prunedAt < PRUNE_EVERY_MS) return
      prunedAt = performance.now()
      await onConnection(sql, READ_MS, (connection) => pruneChanges(connection, Date.now() - KEEP_MS))
    } catch {
      // `staleMs` grows, and the server answers 503 once it is too much; the next poll tries again.
    }
  }

  const timer = setInterval(poll, pollMs)
  return {
    onCommitted: (next) => {
      listener = next
    },
    async reach(revision) {
      // One that is already running may have read before this commit, or be waiting for a connection that fell silent.
      await running?.catch(() => {})
      while (seen < revision) await catchUpOnce()
    },
    staleMs: () => performance.now() - polledAt,
    async stop() {
      clearInterval(timer)
      await running?.catch(() => {})
    },
  }
}

/** One statement, hence one snapshot. Revisions are committed in their order, so none can turn up below one that was seen. */
async function readChanges(sql: SQL, seen: number): Promise<{ revision: number; changes: Change[] }> {
  const rows: { revision: string; pruned: string; kind: ChangeKind | null; id: string | null }[] = await sql`
    SELECT i.revision, i.pruned_revision AS pruned, c.kind, c.id
    FROM installation i LEFT JOIN changes c ON c.revision > ${seen}
    ORDER BY c.revision`
  const [first] = rows
  if (first === undefined) throw new Error('the installation row is missing')
  const revision = Number(first.revision)
  // Pruned further than we have seen, or set back by a restore.
  if (Number(first.pruned) > seen || revision < seen) return { revision, changes: [{ kind: '*', id: '' }] }
  return { revision, changes: rows.flatMap(({ kind, id }) => (kind === null || id === null ? [] : [{ kind, id }])) }
}

/** Forgets what changed before `before` (UTC ms), and notes how far, so that a node left behind knows it. */
export async function pruneChanges(sql: SQL, before: number): Promise<void> {
  await sql`
    WITH gone AS (DELETE FROM changes WHERE at < ${before} RETURNING revision)
    UPDATE installation SET pruned_revision = greatest(pruned_revision, (SELECT max(revision) FROM gone))
    WHERE EXISTS (SELECT 1 FROM gone)`
}
