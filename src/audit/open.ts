import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../schema/config.ts'
import type { Database } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import type { Metrics } from '../http/metrics.ts'
import { describeError, type Log } from '../log.ts'
import { type AnchorKeeper, anchorProblem, keepAnchor, readAnchor, rolledBack, writeAnchor } from './anchor.ts'
import { type Audited, createTrail } from './audited.ts'
import { findHead } from './head.ts'
import type { AuditKeys } from './keys.ts'
import { type AuditReader, createAuditReader } from './reader.ts'
import { createRefusals, type Refusals } from './refusals.ts'
import { rowOfRestore } from './restore.ts'
import { type AuditSink, openSink } from './sink.ts'
import { createUses, type Uses } from './uses.ts'

/** Everything that an opened installation does with its audit trail. */
export interface Audit {
  audited: Audited
  refusals: Refusals
  uses: Uses
  list: AuditReader['list']
  /** takes the keys of the keyring; at start, after bootstrap and after a rotation */
  useKeys(keys: AuditKeys): Promise<void>
  /**
   * Sees that the database is not older than its anchor (AU-5), and keeps the anchor from then on. A missing one is told
   * in the log and in the trail, and made anew.
   *
   * @param acceptedBecause why an older one is taken all the same; its row says so
   * @throws StartError 65 ROLLBACK_DETECTED, 65 ANCHOR_UNREADABLE
   */
  assertNotRolledBack(acceptedBecause: string | undefined): Promise<void>
  /** copies rows to `audit.sink` from here on, if there is one; it is not waited for */
  startSink(): void
  /** whether a required `audit.sink` takes no rows, so that changes are refused */
  isSinkMissing(): boolean
  /** writes what is only counted yet; before the database is closed */
  close(): Promise<void>
}

export function openAudit(
  database: Database,
  config: Pick<Config, 'audit' | 'data'>,
  log: Log,
  metrics: Pick<Metrics, 'auditSinkFailed'>,
): Audit {
  const { read } = database
  const dataDir = config.data.dir
  let keys: AuditKeys | undefined
  let organisationId: string | undefined
  let anchor: AnchorKeeper | undefined
  let sink: AuditSink | undefined
  const currentKeys = (): AuditKeys => {
    if (keys === undefined)
      throw new GatehouseError('not_initialised', 'this installation is empty: run gatehouse bootstrap')
    return keys
  }
  const trail = createTrail(database, {
    keys: currentKeys,
    log,
    appended: () => anchor?.appended(),
    sink: () => sink,
  })
  const lost = (event: string) => (error: unknown, count: number) =>
    log.error(event, { count, cause: describeError(error) })
  const { record, audited } = trail
  const refusals = createRefusals({
    record,
    keys: currentKeys,
    lost: lost('audit_refusals_lost'),
    organisationId: () => organisationId,
  })
  const uses = createUses({ record, audited, keys: currentKeys, lost: lost('audit_uses_lost') })
  const reader = createAuditReader(database, dataDir)

  /** Without an anchor nothing shows whether rows are missing; the trail says that it was so. */
  async function tellMissing(): Promise<void> {
    const head = await findHead(read)
    if (head === undefined || keys === undefined || !existsSync(join(dataDir, 'INITIALISED'))) return
    log.warn('audit_anchor_missing', {
      code: 'ANCHOR_MISSING',
      seq: head.seq,
      fix: 'compare the last row with a backup or an export; nothing else shows whether later ones are missing',
    })
    const actor = { kind: 'system', organisationId: head.organisationId } as const
    const details = { head: { chain_id: head.chainId, seq: head.seq, hash: head.hash } }
    await audited(actor, { action: 'system.anchor_missing', details }, async () => {})
    await writeAnchor(dataDir, (await findHead(read)) ?? head)
  }

  return {
    audited,
    refusals,
    uses,
    list: reader.list,
    async useKeys(next) {
      keys = next
      organisationId = (await findHead(read))?.organisationId
      // Before bootstrap leaves its marker: from then on a missing anchor is a loss.
      await anchor?.save()
    },
    async assertNotRolledBack(acceptedBecause) {
      // Nodes that share a PostgreSQL have no folder that outlives them: its own backups are its anchor.
      if (database.dialect === 'postgres') return
      const seen = await readAnchor(dataDir)
      if (seen === undefined) await tellMissing()
      else if ((await anchorProblem(read, seen)) !== undefined) {
        const head = await findHead(read)
        if (acceptedBecause === undefined || head === undefined) throw rolledBack()
        const { row, beyond } = rowOfRestore(head, seen, acceptedBecause)
        await record(row, beyond)
        await writeAnchor(dataDir, (await findHead(read)) ?? head)
        log.warn('rollback_accepted', { seq: beyond + 1 })
      }
      anchor = keepAnchor(read, dataDir, log)
    },
    startSink() {
      const { sink: path, sink_required: isRequired } = config.audit
      if (path !== '') sink = openSink({ path, isRequired, read, log, failed: metrics.auditSinkFailed })
    },
    isSinkMissing: () => sink?.isMissing() === true,
    async close() {
      await Promise.all([refusals.flush(), uses.flush()])
      reader.close()
      await sink?.close()
      await anchor?.stop()
    },
  }
}
