import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { tryLock } from '../db/lock.ts'
import { EXIT, StartError } from '../start-error.ts'
import { newMasterKeyLine } from './master-key.ts'

/**
 * Runs `work` while no other process of ours changes the key file: two that read it at the same time would each write
 * back a file without the other's key.
 *
 * @throws StartError 69 MASTER_KEY_LOCKED, 73 CANNOT_CREATE
 */
export async function withMasterKeyFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  const unlock = lock(`${realpathSync(path)}.lock`)
  if (unlock === undefined)
    throw new StartError(
      'MASTER_KEY_LOCKED',
      EXIT.unavailable,
      'another rotation of the master key is running',
      'wait for its end, then look which key is in use',
    )
  try {
    return await work()
  } finally {
    unlock()
  }
}

function lock(path: string): (() => void) | undefined {
  try {
    return tryLock(path)
  } catch (error) {
    throw cannotWrite(path, error)
  }
}

/** Adds a line with a fresh key at the end. */
export function appendMasterKey(path: string): void {
  const text = readFileSync(path, 'utf8')
  rewrite(path, `${text}${text.endsWith('\n') ? '' : '\n'}${newMasterKeyLine()}`)
}

/** Removes the lines of keys; comments stay. */
export function dropMasterKeys(path: string, ids: readonly string[]): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  rewrite(path, lines.filter((line) => !ids.includes(line.trim().split(/\s/)[0] ?? '')).join('\n'))
}

/** Whoever reads the file, and whatever ends this process, there is the old text or the new one, whole. */
function rewrite(path: string, text: string): void {
  const target = realpathSync(path)
  const next = `${target}.new`
  try {
    const { mode, uid, gid } = statSync(target)
    rmSync(next, { force: true })
    const fd = openSync(next, 'wx', 0o400)
    try {
      if (process.geteuid?.() === 0) fchownSync(fd, uid, gid)
      fchmodSync(fd, mode & 0o777)
      writeSync(fd, text)
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(next, target)
    syncFolder(dirname(target))
  } catch (error) {
    throw cannotWrite(target, error)
  }
}

const cannotWrite = (path: string, error: unknown): StartError =>
  new StartError(
    'CANNOT_CREATE',
    EXIT.cannotCreate,
    `${path} cannot be written (${(error as NodeJS.ErrnoException).code})`,
    'run this as a user who may write to its folder',
  )

/** Without it the new name may be gone after a power cut. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
