import { sql } from 'drizzle-orm'
import * as pg from 'drizzle-orm/pg-core'
import * as sqlite from 'drizzle-orm/sqlite-core'

/**
 * The few kinds of column that the data model uses, for SQLite. JSON is text in both dialects (never `jsonb`: what we
 * store is returned to the letter, and big integers survive); times are integers, UTC milliseconds.
 */
export const sqliteColumns = {
  table: sqlite.sqliteTable,
  text: (name: string) => sqlite.text(name),
  integer: (name: string) => sqlite.integer(name),
  boolean: (name: string) => sqlite.integer(name, { mode: 'boolean' }),
  /** UTC milliseconds since 1970 */
  time: (name: string) => sqlite.integer(name),
  bytes: (name: string) => sqlite.blob(name, { mode: 'buffer' }),
  index: sqlite.index,
  uniqueIndex: sqlite.uniqueIndex,
  primaryKey: sqlite.primaryKey,
  /** `column` holds one of `values`: a CHECK, whose unqualified column name survives the rebuilding of a table */
  oneOf: (name: string, column: string, values: readonly string[]) => sqlite.check(name, isOneOf(column, values)),
}

export type Columns = typeof sqliteColumns

/** The same kinds for PostgreSQL, under SQLite's type, so that one set of queries is checked once. The cast ends here. */
export const postgresColumns = {
  table: pg.pgTable,
  // Compared by bytes as SQLite does, so that lists have the same order whatever the server's locale.
  text: (name: string) => pg.customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' })(name),
  integer: (name: string) => pg.bigint(name, { mode: 'number' }),
  boolean: (name: string) => pg.boolean(name),
  time: (name: string) => pg.bigint(name, { mode: 'number' }),
  bytes: (name: string) =>
    pg.customType<{ data: Buffer; driverData: Uint8Array }>({
      dataType: () => 'bytea',
      fromDriver: (value) => Buffer.from(value),
    })(name),
  index: pg.index,
  uniqueIndex: pg.uniqueIndex,
  primaryKey: pg.primaryKey,
  oneOf: (name: string, column: string, values: readonly string[]) => pg.check(name, isOneOf(column, values)),
} as unknown as Columns

const isOneOf = (column: string, values: readonly string[]) =>
  sql.raw(`${column} IN (${values.map((value) => `'${value}'`).join(', ')})`)
