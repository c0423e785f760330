import { Database } from 'bun:sqlite'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statfsSync,
} from 'node:fs'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sqliteTables as tables } from '../../schema/db/tables.ts'
import { EXIT, StartError } from '../start-error.ts'
import type { Reader } from './database.ts'
import { APPLICATION_ID, migrateSqlite } from './migrate.ts'

/** Before it, a checkpoint at the wrong moment could lose commits (the WAL-reset bug, UP-4). */
const OLDEST_SQLITE = '3.51.3'

/** statfs magic numbers: NFS, SMB1, CIFS, SMB2, FUSE, 9P, AFS, Ceph. Their locks and fsync do not hold what SQLite needs. */
const NETWORK_FILESYSTEMS = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x5346414f, 0x00c36400,
])

/** What every connection sets, in this order; a read-only one skips what only a writer may (ST-2). */
const PRAGMAS = [
  'busy_timeout = 5000',
  'foreign_keys = ON',
  'trusted_schema = OFF',
  'cell_size_check = ON',
  'mmap_size = 0',
  'temp_store = MEMORY',
]
/** Statements that a connection keeps. Bun keeps the first 20, for ever: those of the start, and none that every change runs. */
const KEPT_STATEMENTS = 500
const WRITER_PRAGMAS = ['synchronous = FULL', 'secure_delete = ON', 'journal_size_limit = 67108864']

/**
 * Makes the data folder, for its owner alone, and sees that SQLite can be trusted in it.
 *
 * @throws StartError NETWORK_FILESYSTEM (65), SQLITE_TOO_OLD (65), DATA_DIR_UNUSABLE (73)
 */
export function prepareDataDir(dataDir: string, allowNetworkFilesystem: boolean): void {
  process.umask(0o077)
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw startErrorOf(error) ?? error
  }
  requireSqlite(sqliteVersion())
  if (allowNetworkFilesystem || !isNetworkFilesystem(statfsSync(dataDir).type)) return
  throw new StartError(
    'NETWORK_FILESYSTEM',
    EXIT.data,
    'the data folder is on a network or FUSE file system, where SQLite can lose data',
    'put data.dir on a local disk, use PostgreSQL (database.url), or allow it if you know that it locks and syncs',
  )
}

/** `type` is statfs's magic number, which means something on Linux only. */
export const isNetworkFilesystem = (type: number, platform: string = process.platform): boolean =>
  platform === 'linux' && NETWORK_FILESYSTEMS.has(type >>> 0)

/** @throws StartError SQLITE_TOO_OLD (65): the executable brings its own SQLite on Linux, macOS has the system's */
export function requireSqlite(version: string): void {
  if (Bun.semver.order(version, OLDEST_SQLITE) >= 0) return
  throw new StartError(
    'SQLITE_TOO_OLD',
    EXIT.data,
    `SQLite ${version} can lose commits`,
    `use SQLite ${OLDEST_SQLITE} or newer`,
  )
}

function sqliteVersion(): string {
  const db = new Database(':memory:')
  const { version } = db.query('SELECT sqlite_version() AS version').get() as { version: string }
  db.close()
  return version
}

/**
 * Sees that `<dataDir>/gatehouse.db` is a database of ours, or makes it. Where the marker INITIALISED stands there has
 * been one, and a fresh one in its place would be a silent loss of everything (FR-3).
 *
 * @throws StartError DATA_MISSING or NOT_OUR_DATABASE (both 65)
 */
export function ensureFile(dataDir: string, path: string, create: boolean): void {
  const found = identify(path)
  if (found === 'ours') return
  const initialised = existsSync(`${dataDir}/INITIALISED`)
  // A new file beside the log of an old one would have that log replayed into it.
  const orphanedLog = found === 'missing' && existsSync(`${path}-wal`)
  if (initialised || orphanedLog || (found === 'missing' && !create)) {
    throw new StartError(
      'DATA_MISSING',
      EXIT.data,
      `gatehouse.db is ${DESCRIBED[found]}${initialised ? ', but this data folder has been initialised' : ''}`,
      initialised || orphanedLog
        ? 'restore a backup, or mount the right disk'
        : 'start the server once, or check data.dir',
    )
  }
  if (found !== 'missing') {
    throw new StartError(
      'NOT_OUR_DATABASE',
      EXIT.data,
      `gatehouse.db is ${DESCRIBED[found]}`,
      'check data.dir; move the file away if it is not needed',
    )
  }
  createFile(dataDir, path)
}

const DESCRIBED = { missing: 'missing', empty: 'empty', foreign: 'not a Gatehouse database' }

/** Reads the file's header itself: SQLite takes an empty file for a new database, and would change a foreign one. */
function identify(path: string): 'missing' | 'empty' | 'foreign' | 'ours' {
  if (!existsSync(path)) return 'missing'
  const header = Buffer.alloc(100)
  const file = openSync(path, 'r')
  const length = readSync(file, header)
  closeSync(file)
  if (length === 0) return 'empty'
  const isSqlite = length === header.length && header.toString('latin1', 0, 16) === 'SQLite format 3\0'
  return isSqlite && header.readUInt32BE(68) === APPLICATION_ID ? 'ours' : 'foreign'
}

/** Under a temporary name, so that a file with the right name is always complete (FR-1). */
function createFile(dataDir: string, path: string): void {
  const unfinished = `${path}.new`
  for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(unfinished + suffix, { force: true })
  const db = new Database(unfinished, { create: true, strict: true })
  db.run(`PRAGMA application_id = ${APPLICATION_ID}`)
  migrateSqlite(db)
  db.query(
    "INSERT INTO installation (id, instance_id, revision, pruned_revision, created_at) VALUES ('installation', ?, 0, 0, ?)",
  ).run(Bun.randomUUIDv7(), Date.now())
  db.close()
  syncPath(unfinished)
  renameSync(unfinished, path)
  syncPath(dataDir)
}

function syncPath(path: string): void {
  const file = openSync(path, 'r')
  fsyncSync(file)
  closeSync(file)
}

/**
 * A connection with the settings of ST-2.
 *
 * @throws StartError JOURNAL_MODE (65) where the write-ahead log cannot be used
 */
export function connect(path: string, mode: 'write' | 'read'): Database {
  Database.MAX_QUERY_CACHE_SIZE = KEPT_STATEMENTS
  const db =
    mode === 'write'
      ? new Database(path, { readwrite: true, strict: true })
      : new Database(path, { readonly: true, strict: true })
  for (const pragma of PRAGMAS) db.run(`PRAGMA ${pragma}`)
  if (mode === 'read') return db
  const { journal_mode: journal } = db.query('PRAGMA journal_mode = WAL').get() as { journal_mode: string }
  if (journal !== 'wal') {
    throw new StartError(
      'JOURNAL_MODE',
      EXIT.data,
      `SQLite keeps journal_mode ${journal} instead of wal`,
      'put data.dir on a local disk',
    )
  }
  for (const pragma of WRITER_PRAGMAS) db.run(`PRAGMA ${pragma}`)
  return db
}

export const asReader = (connection: Database): Reader =>
  Object.assign(drizzle({ client: connection }), {
    tables,
    run: async (text: string, values: unknown[]) => runText(connection, text, values),
  })

/** Runs a statement by its text, which is prepared once. */
export const runText = (connection: Database, text: string, values: unknown[]): unknown[][] =>
  connection.query(text).values(...(values as string[]))

/** What a failure to open means to the person who starts the server; undefined if it is not one of the storage. */
export function startErrorOf(error: unknown): StartError | undefined {
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
    return new StartError(
      'DB_CORRUPT',
      EXIT.data,
      `gatehouse.db is damaged (${code}); it was left as it is`,
      'restore a backup',
    )
  }
  if (
    /^(SQLITE_(READONLY|CANTOPEN|PERM|AUTH|FULL|IOERR)|EACCES|EPERM|EROFS|ENOSPC|ENOTDIR|EISDIR|EEXIST|ENOENT)/.test(
      code,
    )
  ) {
    return new StartError(
      'DATA_DIR_UNUSABLE',
      EXIT.cannotCreate,
      `the data folder cannot be read and written (${code})`,
      'check data.dir, its owner, its mode and the space on its disk',
    )
  }
  return undefined
}
