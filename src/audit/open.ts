import type { Database } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import { describeError, type Log } from '../log.ts'
import { type AnchorKeeper, isRolledBack, keepAnchor, readAnchor, rolledBack, writeAnchor } from './anchor.ts'
import { type Audited, createTrail } from './audited.ts'
import { findHead } from './head.ts'
import type { AuditKeys } from './keys.ts'
import { type AuditReader, createAuditReader } from './reader.ts'
import { createRefusals, type Refusals } from './refusals.ts'
import { rowOfRestore } from './restore.ts'

/** Everything that an opened installation does with its audit trail. */
export interface Audit {
  audited: Audited
  refusals: Refusals
  list: AuditReader['list']
  /** takes the keys of the keyring; at start, after bootstrap and after a rotation */
  useKeys(keys: AuditKeys): Promise<void>
  /**
   * Sees that the database is not older than its anchor (AU-5), and keeps the anchor from then on.
   *
   * @param acceptedBecause why an older one is taken all the same; its row says so
   * @throws StartError 65 ROLLBACK_DETECTED, 65 ANCHOR_UNREADABLE
   */
  assertNotRolledBack(acceptedBecause: string | undefined): Promise<void>
  /** writes what is only counted yet; before the database is closed */
  close(): Promise<void>
}

export function openAudit(database: Database, dataDir: string, log: Log): Audit {
  const { read } = database
  let keys: AuditKeys | undefined
  let organisationId: string | undefined
  let anchor: AnchorKeeper | undefined
  const trail = createTrail(database, {
    keys() {
      if (keys === undefined)
        throw new GatehouseError('not_initialised', 'this installation is empty: run gatehouse bootstrap')
      return keys
    },
    log,
    appended: () => anchor?.appended(),
  })
  const refusals = createRefusals({
    record: trail.record,
    lost: (error, count) => log.error('audit_refusals_lost', { count, cause: describeError(error) }),
    organisationId: () => organisationId,
  })
  const reader = createAuditReader(database, dataDir)
  return {
    audited: trail.audited,
    refusals,
    list: reader.list,
    async useKeys(next) {
      keys = next
      organisationId = (await findHead(read))?.organisationId
    },
    async assertNotRolledBack(acceptedBecause) {
      // Nodes that share a PostgreSQL have no folder that outlives them: its own backups are its anchor.
      if (database.dialect === 'postgres') return
      const seen = await readAnchor(dataDir)
      if (seen !== undefined && (await isRolledBack(read, seen))) {
        const head = await findHead(read)
        if (acceptedBecause === undefined || head === undefined) throw rolledBack()
        const { row, beyond } = rowOfRestore(head, seen, acceptedBecause)
        await trail.record(row, beyond)
        await writeAnchor(dataDir, (await findHead(read)) ?? head)
        log.warn('rollback_accepted', { seq: beyond + 1 })
      }
      anchor = keepAnchor(read, dataDir, log)
    },
    async close() {
      await refusals.flush()
      reader.close()
      await anchor?.stop()
    },
  }
}
