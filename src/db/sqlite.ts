import type { Database as Connection } from 'bun:sqlite'
import type { SealedKeyringRow } from '../crypto/keyring.ts'
import { giveToOwnerOfFolder } from '../owner.ts'
import { type Admit, SELECT_KEYRING } from './admit.ts'
import type { Database } from './database.ts'
import { type GroupCommit, groupCommit } from './group-commit.ts'
import { lockDataDir } from './lock.ts'
import { migrateSqlite } from './migrate.ts'
import { asReader, connect, ensureFile, prepareDataDir, startErrorOf } from './sqlite-file.ts'

export interface SqliteOptions {
  dataDir: string
  /** whether a missing database is made; false for commands that only make sense on an existing one */
  create: boolean
  admit?: Admit
  allowNetworkFilesystem?: boolean
  /** milliseconds that a closure may take; 5,000 unless a test is in a hurry */
  closureMs?: number
}

/**
 * SQLite in `<dataDir>/gatehouse.db`: one connection for all transactions, taken in groups, and a read-only one that
 * never sees half a transaction (house 2.3).
 *
 * @throws StartError see `open.ts`
 */
export function openSqlite(options: SqliteOptions): Database {
  prepareDataDir(options.dataDir, options.allowNetworkFilesystem ?? false)
  const undo: (() => void)[] = [() => giveToOwnerOfFolder(options.dataDir)]
  try {
    undo.push(lockDataDir(options.dataDir))
    const path = `${options.dataDir}/gatehouse.db`
    ensureFile(options.dataDir, path, options.create)
    const writer = connect(path, 'write')
    undo.push(() => writer.close())
    options.admit?.(writer.query(SELECT_KEYRING).all() as SealedKeyringRow[])
    migrateSqlite(writer)
    const reader = connect(path, 'read')
    undo.push(() => reader.close())
    return databaseOver(groupCommit(writer, options.closureMs), writer, reader, () => runAll(undo))
  } catch (error) {
    runAll(undo)
    throw startErrorOf(error) ?? error
  }
}

const runAll = (steps: (() => void)[]): void => {
  for (const step of steps.reverse()) step()
}

function databaseOver(group: GroupCommit, writer: Connection, reader: Connection, release: () => void): Database {
  return {
    dialect: 'sqlite',
    read: asReader(reader),
    transaction: group.transaction,
    onCommitted: group.onCommitted,
    beforeCommit: group.beforeCommit,
    probe: () => group.transaction({ action: 'probe' }, async () => {}),
    staleMs: () => 0,
    async close() {
      await group.finish()
      try {
        // As far as it goes: who still reads, such as `audit verify`, is not waited for, and what is in the log is safe.
        writer.run('PRAGMA busy_timeout = 0')
        writer.run('PRAGMA wal_checkpoint(TRUNCATE)')
      } finally {
        release()
      }
    },
  }
}
