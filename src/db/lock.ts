import { Database } from 'bun:sqlite'
import { readFileSync, writeFileSync } from 'node:fs'
import { EXIT, StartError } from '../start-error.ts'

/**
 * Takes `<dataDir>/LOCK` for this process and returns what lets it go. The lock is SQLite's exclusive lock on an empty
 * file: the kernel drops it with the process, however that ends, so there is no stale lock to clean up. The pid stands
 * beside it, because closing any descriptor of a locked file drops the lock (POSIX), so LOCK itself is never read.
 *
 * @throws StartError DATA_DIR_LOCKED (69) with the pid of the process that holds it
 */
export function lockDataDir(dataDir: string): () => void {
  const lock = new Database(`${dataDir}/LOCK`, { create: true })
  try {
    // MEMORY: the transaction stays open, and a journal file would look like an interrupted one.
    lock.run('PRAGMA journal_mode = MEMORY')
    lock.run('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')) throw error
    throw new StartError(
      'DATA_DIR_LOCKED',
      EXIT.unavailable,
      `another Gatehouse process (pid ${holder(dataDir)}) uses the data folder`,
      'stop that process, or give this one a data folder of its own',
    )
  }
  writeFileSync(`${dataDir}/LOCK.pid`, `${process.pid}\n`)
  return () => lock.close()
}

function holder(dataDir: string): string {
  try {
    return readFileSync(`${dataDir}/LOCK.pid`, 'utf8').trim() || 'unknown'
  } catch {
    return 'unknown'
  }
}
