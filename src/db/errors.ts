import { DrizzleQueryError } from 'drizzle-orm'
import { getTableConfig, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import { sqliteTables } from '../../schema/db/tables.ts'
import { GatehouseError, invalidField } from '../errors.ts'

/**
 * Whether a unique index or primary key refused a row, in either dialect.
 * @param index the name of a unique index in `tables.ts`; without it any of them will do
 */
export function isUniqueViolation(error: unknown, index?: string): boolean {
  const driverError = driverErrorOf(error)
  if (driverError === undefined) return false
  if (driverError.errno === '23505') return index === undefined || driverError.constraint === index
  if (driverError.code !== 'SQLITE_CONSTRAINT_UNIQUE' && driverError.code !== 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return false
  // SQLite names the columns, never the index.
  return index === undefined || driverError.message.endsWith(`: ${columnsOfIndex(index)}`)
}

/**
 * What a driver's error means to a caller: `storage_unavailable` for a full or unwritable disk, a lost connection, a lock
 * not had in time; `invalid` for text that PostgreSQL cannot hold. Undefined for all others: those are our mistakes.
 * Reads outside a transaction pass their errors through here as well (`http/problems.ts`).
 */
export function storageFailure(error: unknown): GatehouseError | undefined {
  const driverError = driverErrorOf(error)
  if (driverError === undefined) return undefined
  if (driverError.errno === '22021') return invalidField('', 'text must not contain the character U+0000')
  return isStorageFailure(driverError) ? storageUnavailable(error) : undefined
}

export const storageUnavailable = (cause: unknown): GatehouseError =>
  new GatehouseError(
    'storage_unavailable',
    'the database cannot be written or reached; nothing was changed, try again',
    {
      retryAfterSeconds: 5,
      cause,
    },
  )

/** drizzle's own error quotes the query's parameters in its message; the driver's error below it does not. */
export const withoutParameters = (error: unknown): unknown =>
  error instanceof DrizzleQueryError ? (error.cause ?? new Error('a query failed')) : error

/** A serialisation failure or a deadlock: PostgreSQL asks to run the transaction again. */
export function mayRerun(error: unknown): boolean {
  const errno = driverErrorOf(error)?.errno
  return errno === '40001' || errno === '40P01'
}

/** Whether the connection to PostgreSQL broke, so that nobody knows how an unanswered COMMIT ended. */
export const isConnectionFailure = (error: unknown): boolean =>
  POSTGRES_CONNECTION.test(driverErrorOf(error)?.code ?? '') || /^(08|57P)/.test(String(driverErrorOf(error)?.errno))

interface DriverError {
  /** `SQLITE_FULL`, `ERR_POSTGRES_…`; the class name says nothing (P26) */
  code: string
  /** SQLite: a number; PostgreSQL: the five characters of SQLSTATE */
  errno: unknown
  constraint: unknown
  message: string
}

const SQLITE_STORAGE = /^SQLITE_(FULL|IOERR|READONLY|CANTOPEN|BUSY|LOCKED|CORRUPT|NOTADB|NOMEM|PROTOCOL)/
const POSTGRES_CONNECTION =
  /^(ERR_POSTGRES_(CONNECTION|IDLE_TIMEOUT|LIFETIME_TIMEOUT|TLS)|ECONN|EPIPE|ENOTFOUND|ETIMEDOUT)/
/**
 * Connection 08, login 28, no such database 3D, insufficient resources 53, not ready or locked 55, operator 57, system 58,
 * read-only 25006, ended by a timeout of transactions 25P03 and 25P04, damaged XX00x.
 */
const POSTGRES_STORAGE = /^(08|28|3D|53|55|57|58|25006|25P0[34]|XX00[12])/

const isStorageFailure = ({ code, errno }: DriverError): boolean =>
  SQLITE_STORAGE.test(code) ||
  POSTGRES_CONNECTION.test(code) ||
  (typeof errno === 'string' && POSTGRES_STORAGE.test(errno))

/** drizzle wraps PostgreSQL's errors, with the parameters in the message; the driver's own one is the innermost cause. */
function driverErrorOf(error: unknown): DriverError | undefined {
  for (let inner = error, depth = 0; inner instanceof Error && depth < 5; inner = inner.cause, depth++) {
    if (inner instanceof GatehouseError) return undefined
    if ('code' in inner && typeof inner.code === 'string') {
      return {
        code: inner.code,
        errno: 'errno' in inner ? inner.errno : undefined,
        constraint: 'constraint' in inner ? inner.constraint : undefined,
        message: inner.message,
      }
    }
  }
  return undefined
}

function columnsOfIndex(name: string): string {
  for (const table of Object.values(sqliteTables)) {
    const config = getTableConfig(table as SQLiteTable)
    const index = config.indexes.find((candidate) => candidate.config.name === name)
    if (index === undefined) continue
    return index.config.columns.map((column) => `${config.name}.${'name' in column ? column.name : ''}`).join(', ')
  }
  throw new Error(`no index ${name} in tables.ts`)
}
