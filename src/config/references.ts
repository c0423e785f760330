import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redacted } from '../redacted.ts'
import { EXIT, StartError } from '../start-error.ts'

/** Environment variables by name: `process.env`, or a test's own. */
export type Environment = Readonly<Record<string, string | undefined>>

export type Reference = { kind: 'file' | 'env' | 'credential'; name: string }

/** What a secret setting may hold: `file:/path`, `env:NAME` or `credential:name` (CF-3). */
export function parseReference(text: string): Reference | undefined {
  const match = /^(?:(file):(\/.+)|(env):([A-Za-z_][A-Za-z0-9_]*)|(credential):([A-Za-z0-9_.-]+))$/.exec(text)
  if (match === null || match[6] === '.' || match[6] === '..') return undefined
  const [, file, filePath, env, envName, credential, credentialName] = match
  if (file === 'file') return { kind: 'file', name: filePath! }
  if (env === 'env') return { kind: 'env', name: envName! }
  return credential === 'credential' ? { kind: 'credential', name: credentialName! } : undefined
}

/**
 * The bytes that a reference points at.
 *
 * @param setting     the setting that holds it, for messages: `database.password`
 * @param missingCode code of the error when there is nothing to read
 * @throws StartError 78 `missingCode`, 77 SECRET_PERMISSIONS when others may read the file
 */
export function readReference(
  reference: Reference,
  env: Environment,
  setting: string,
  missingCode = 'SECRET_MISSING',
): Redacted<Buffer> {
  const missing = (what: string, fix: string) => new StartError(missingCode, EXIT.config, `${setting}: ${what}`, fix)
  if (reference.kind === 'env') {
    const value = env[reference.name]
    if (!value)
      throw missing(`the environment variable ${reference.name} is not set`, `set ${reference.name} for this process`)
    return new Redacted(Buffer.from(value))
  }
  if (reference.kind === 'file') return readSecretFile(reference.name, setting, missing)
  const folder = env['CREDENTIALS_DIRECTORY']
  if (!folder)
    throw missing(
      'CREDENTIALS_DIRECTORY is not set',
      `start under systemd with LoadCredential=${reference.name}:<file>`,
    )
  // systemd guards its credentials by ACL, which shows as group bits: no look at the mode here
  return readWhole(join(folder, reference.name), missing)
}

type Missing = (what: string, fix: string) => StartError

function readSecretFile(path: string, setting: string, missing: Missing): Redacted<Buffer> {
  return readWhole(path, missing, (fd) => {
    const { mode, uid } = fstatSync(fd)
    if ((mode & 0o077) !== 0) {
      throw new StartError(
        'SECRET_PERMISSIONS',
        EXIT.permission,
        `${setting}: ${path} is open to group or others`,
        `chmod 0400 ${path}`,
      )
    }
    if (!isExpectedOwner(uid)) {
      throw new StartError(
        'SECRET_PERMISSIONS',
        EXIT.permission,
        `${setting}: ${path} belongs to uid ${uid}`,
        `chown ${process.geteuid?.()} ${path}`,
      )
    }
  })
}

/** Files that we trust belong to root or to the user that runs us. */
export const isExpectedOwner = (uid: number): boolean => uid === 0 || uid === process.geteuid?.()

function readWhole(path: string, missing: Missing, check?: (fd: number) => void): Redacted<Buffer> {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    throw missing(
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`,
      `create ${path}, readable by the service user alone`,
    )
  }
  try {
    if (!fstatSync(fd).isFile()) throw missing(`${path} is no regular file`, `put the secret into a file at ${path}`)
    check?.(fd)
    return new Redacted(readFileSync(fd))
  } finally {
    closeSync(fd)
  }
}
