import { Database } from 'bun:sqlite'
import { readFileSync, writeFileSync } from 'node:fs'
import { EXIT, StartError } from '../start-error.ts'

/**
 * Takes a file as a lock for this process and returns what lets it go, or undefined if another process holds it. The
 * lock is SQLite's exclusive lock on an empty file: the kernel drops it with the process, however that ends, so there is
 * no stale lock to clean up.
 */
export function tryLock(path: string): (() => void) | undefined {
  const lock = new Database(path, { create: true })
  try {
    // MEMORY: the transaction stays open, and a journal file would look like an interrupted one.
    lock.run('PRAGMA journal_mode = MEMORY')
    lock.run('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')) throw error
    return undefined
  }
  return () => lock.close()
}

/**
 * Takes `<dataDir>/LOCK` for this process and returns what lets it go. The pid stands beside it, because closing any
 * descriptor of a locked file drops the lock (POSIX), so LOCK itself is never read.
 *
 * @throws StartError DATA_DIR_LOCKED (69) with the pid of the process that holds it
 */
export function lockDataDir(dataDir: string): () => void {
  const unlock = tryLock(`${dataDir}/LOCK`)
  if (unlock === undefined)
    throw new StartError(
      'DATA_DIR_LOCKED',
      EXIT.unavailable,
      `another Gatehouse process (pid ${holder(dataDir)}) uses the data folder`,
      'stop that process, or give this one a data folder of its own',
    )
  writeFileSync(`${dataDir}/LOCK.pid`, `${process.pid}\n`)
  return unlock
}

function holder(dataDir: string): string {
  try {
    return readFileSync(`${dataDir}/LOCK.pid`, 'utf8').trim() || 'unknown'
  } catch {
    return 'unknown'
  }
}
