import type { Caller, KeyActor } from '../auth/caller.ts'
import type { AuditDraft } from '../db/database.ts'
import type { Audited } from './audited.ts'
import type { AuditKeys } from './keys.ts'
import { rowOfChange } from './row.ts'
import { createTallies, type TalliesOptions } from './tallies.ts'

/** The rows of what a key does over and over, and what no manager or database is asked for (decision 40). */
export interface Uses {
  /**
   * Counts a use of one thing by one key in one workspace. The first of its kind in a minute is a row, which names the
   * request and is stored before the promise resolves; the further ones are one more row at the minute's end.
   *
   * @param actor of this request, asked for only when it gets a row of its own
   * @returns undefined: it is counted, and its answer may go out
   * @throws as `audited`: then it is not counted, and must not be answered
   */
  note(caller: Caller, event: AuditDraft, actor: () => KeyActor): Promise<void> | undefined
  /** Writes what was counted; at shutdown. */
  flush(): Promise<void>
}

export function createUses({
  audited,
  keys,
  ...options
}: TalliesOptions & { audited: Audited; keys(): AuditKeys }): Uses {
  const tallies = createTallies(options)
  /** first uses whose row is not stored yet; what they cover waits for them */
  const storing = new Map<string, Promise<void>>()

  async function storeFirst(kind: string, caller: Caller, event: AuditDraft, actor: KeyActor): Promise<void> {
    await audited(actor, event, async () => {})
    if (tallies.find(kind) === undefined) tallies.begin(kind, () => rowOfChange({ kind: 'key', caller }, event, keys()))
  }

  function note(caller: Caller, event: AuditDraft, actor: () => KeyActor): Promise<void> | undefined {
    const kind = `${caller.keyId} ${event.action} ${event.resourceId} ${event.workspaceId}`
    const known = tallies.find(kind)
    if (known !== undefined) {
      tallies.count(known)
      return undefined
    }
    const first = storing.get(kind)
    if (first !== undefined) return first.then(() => note(caller, event, actor))
    const stored = storeFirst(kind, caller, event, actor()).finally(() => storing.delete(kind))
    storing.set(kind, stored)
    return stored
  }

  return { note, flush: tallies.flush }
}
