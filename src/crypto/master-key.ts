import { randomBytes } from 'node:crypto'
import { closeSync, fchmodSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { type Environment, parseReference, readReference } from '../config/references.ts'
import { Redacted } from '../redacted.ts'
import { EXIT, StartError } from '../start-error.ts'
import type { SealingKey } from './cipher.ts'

/** The keys of the source in the order of its lines; the last one seals what is new (decision 42). */
export type MasterKeys = readonly SealingKey[]

/**
 * Reads the master key source: one line a key, `<id> <base64 of 32 bytes>`; blank lines and lines with # are skipped.
 *
 * @param source `master_key.source`: a reference, checked by the config's rules
 * @throws StartError 78 MASTER_KEY_MISSING when there is nothing to read, 78 MASTER_KEY_MISMATCH when a line is no key,
 *                    77 SECRET_PERMISSIONS
 */
export function readMasterKeys(source: string, env: Environment): MasterKeys {
  const reference = parseReference(source)
  if (reference === undefined)
    throw new StartError(
      'MASTER_KEY_MISSING',
      EXIT.config,
      'master_key.source is no reference',
      'gatehouse config check',
    )
  const text = readReference(reference, env, 'master_key.source', 'MASTER_KEY_MISSING').reveal().toString('utf8')
  const keys: SealingKey[] = []
  text.split('\n').forEach((written, i) => {
    const line = written.trim()
    if (line !== '' && !line.startsWith('#')) keys.push(parseLine(line, i + 1, keys))
  })
  if (keys.length === 0)
    throw new StartError(
      'MASTER_KEY_MISSING',
      EXIT.config,
      'master_key.source holds no key',
      'gatehouse init makes one, or restore yours',
    )
  return keys
}

function parseLine(line: string, number: number, before: MasterKeys): SealingKey {
  const match = /^([A-Za-z0-9_-]{1,64})\s+([A-Za-z0-9+/]{43}=)$/.exec(line)
  const bytes = Buffer.from(match?.[2] ?? '', 'base64')
  const id = match?.[1] ?? ''
  // the decoder forgives: what it would write differently was mistyped
  if (bytes.length !== 32 || bytes.toString('base64') !== match?.[2])
    throw mismatch(`line ${number} of master_key.source is not "<id> <base64 of 32 bytes>"`)
  if (before.some((key) => key.id === id))
    throw mismatch(`line ${number} of master_key.source repeats the id of another line`)
  return { id, bytes: new Redacted(bytes) }
}

/** The key is there, but it is not (or cannot be) the one that the keyring was sealed with. */
export function mismatch(message: string): StartError {
  return new StartError(
    'MASTER_KEY_MISMATCH',
    EXIT.config,
    message,
    'put the master key file of this installation back; without it the keyring stays closed',
  )
}

/** A fresh key as it stands in the source, with its line end. */
export const newMasterKeyLine = (): string =>
  `mk-${randomBytes(4).toString('hex')} ${randomBytes(32).toString('base64')}\n`

/**
 * Makes a key file with one fresh key, mode 0400. An existing file is never touched (FR-4).
 *
 * @throws StartError 73 MASTER_KEY_EXISTS, or 73 CANNOT_CREATE
 */
export function createMasterKeyFile(path: string): void {
  const line = newMasterKeyLine()
  let fd: number
  try {
    fd = openSync(path, 'wx', 0o400)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new StartError(
        'MASTER_KEY_EXISTS',
        EXIT.cannotCreate,
        `${path} exists`,
        'keep it: what it seals cannot be opened without it',
      )
    throw new StartError(
      'CANNOT_CREATE',
      EXIT.cannotCreate,
      `${path} cannot be created (${code})`,
      `create ${dirname(path)} and make it writable for this user`,
    )
  }
  try {
    fchmodSync(fd, 0o400)
    writeSync(fd, line)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
