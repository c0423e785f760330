import { AsyncLocalStorage } from 'node:async_hooks'
import type { Actor } from '../auth/caller.ts'
import { assertStillValid } from '../auth/still-valid.ts'
import type { AuditDraft, Database, Tx } from '../db/database.ts'
import type { Log } from '../log.ts'
import { appendRow, signHead } from './head.ts'
import type { AuditKeys } from './keys.ts'
import { rowOfChange, type UnplacedRow } from './row.ts'
import type { AuditSink } from './sink.ts'

export type Audited = <T>(
  actor: Actor,
  what: AuditDraft,
  work: (tx: Tx) => Promise<T>,
  newKeys?: NewAuditKeys,
) => Promise<T>

/** Keys that a change stores itself, which its own row introduces: at bootstrap, and when the signing key is rotated. */
export interface NewAuditKeys {
  keys: AuditKeys
  rotatedFrom?: AuditKeys
}

export interface Trail {
  /**
   * The only door to a write transaction (house 2.3): proves the actor again, runs `work`, and leaves one audit row, all
   * in one transaction. If it throws, nothing happened.
   *
   * `work` may complete `tx.event`; it must not reach outside `tx` (on PostgreSQL it may run again) and must not call
   * `audited`: a change inside a change would wait for its own end, and is refused at once.
   *
   * @throws GatehouseError `unauthenticated`, `forbidden` or `stale` (`assertStillValid`); `storage_unavailable` when
   *                        change or row cannot be written; of a required sink, `audit_unavailable` and
   *                        `outcome_unknown` (`AuditSink`)
   */
  audited: Audited
  /**
   * Writes a row that stands for no change, such as a refusal.
   *
   * @param beyond its number is beyond this one: only for `system.restore`
   */
  record(row: UnplacedRow, beyond?: number): Promise<void>
}

interface TrailOptions {
  /** the keyring's; throws before there is one */
  keys(): AuditKeys
  /** told when the clock was set back */
  log?: Log
  /** called after each row that was stored */
  appended?(): void
  /** where rows are copied to, once it is open */
  sink?(): AuditSink | undefined
}

export function createTrail(db: Database, { keys, log, appended, sink }: TrailOptions): Trail {
  const inside = new AsyncLocalStorage<true>()
  // Where commits are taken in groups, the head is signed once a group.
  const isGrouped = db.beforeCommit !== undefined
  const used = new Map<string, AuditKeys>()
  db.beforeCommit?.((tx) => signHead(tx, (id) => used.get(id)))

  /** @returns the number of the row */
  async function append(tx: Tx, row: UnplacedRow, by: NewAuditKeys, beyond?: number): Promise<number> {
    // Only after this does nobody else take the next number.
    await tx.revise()
    used.set(by.keys.id, by.keys)
    const how = { sign: !isGrouped, rotatedFrom: by.rotatedFrom, beyond }
    const { head, clockStepMs } = await appendRow(tx, row, by.keys, how)
    if (clockStepMs > 0) log?.warn('clock_step', { code: 'CLOCK_STEP', backMs: clockStepMs, seq: head.seq })
    return head.seq
  }

  return {
    async audited(actor, what, work, newKeys) {
      if (inside.getStore()) throw new Error(`audited(${what.action}) was called inside another change`)
      await sink?.()?.admit()
      let seq = 0
      const value = await db.transaction(what, (tx) =>
        inside.run(true, async () => {
          if (actor.kind === 'key') await assertStillValid(tx, actor)
          const once = actor.kind === 'key' ? actor.once : undefined
          const made = await (once === undefined ? work(tx) : once.run(tx, work))
          const by = newKeys ?? { keys: keys() }
          seq = await append(tx, rowOfChange(actor, tx.event, by.keys), by)
          return made
        }),
      )
      appended?.()
      await sink?.()?.stored(seq)
      return value
    },
    async record(row, beyond) {
      const seq = await db.transaction({ action: 'audit.record' }, (tx) => append(tx, row, { keys: keys() }, beyond))
      appended?.()
      // What it tells of was answered, and its row is stored: a sink that is down gets it later.
      sink?.()
        ?.stored(seq)
        .catch(() => {})
    },
  }
}
