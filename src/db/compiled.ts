import { type Column, fillPlaceholders, getTableColumns, type Placeholder, type Query, sql } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader, Tx } from './database.ts'

type Text = Pick<Query, 'sql' | 'params'>
type Values = Record<string, unknown>

/**
 * A statement that every change runs: drizzle builds it once a dialect, and it is run by its text from then on, since
 * building it takes several times longer than running it.
 *
 * @param build makes the statement, with `sql.placeholder(name)` for each value
 */
export function compiled(build: (tx: Tx) => { toSQL(): Text }): (tx: Tx, values: Values) => Promise<void> {
  const textOf = oncePerDialect((tx: Tx) => build(tx).toSQL())
  return async (tx, values) => {
    const { sql: text, params } = textOf(tx)
    await tx.run(text, fillPlaceholders(params, values))
  }
}

/** Inserts a row that has a value, perhaps null, for every column of its table. */
export function compiledInsert<Table extends Tables[keyof Tables]>(
  tableOf: (tables: Tables) => Table,
): (tx: Tx, row: Table['$inferSelect']) => Promise<void> {
  return compiled((tx) => {
    const table = tableOf(tx.tables)
    return tx
      .insert(table as Tables[keyof Tables])
      .values(placeholders(...Object.keys(getTableColumns(table))) as never)
  })
}

/** The same for a query of plain columns, inside a transaction or outside: its rows are those that drizzle would give. */
export function compiledSelect<Row>(
  build: (db: Reader) => PromiseLike<Row[]> & { toSQL(): Text },
): (db: Reader, values?: Values) => Promise<Row[]> {
  const queryOf = oncePerDialect((db: Reader) => {
    const query = build(db)
    const fields = Object.entries(
      (query as unknown as { getSelectedFields(): Record<string, Column> }).getSelectedFields(),
    )
    return { ...query.toSQL(), fields }
  })
  return async (db, values = {}) => {
    const { sql: text, params, fields } = queryOf(db)
    const rows = await db.run(text, fillPlaceholders(params, values))
    return rows.map((row) => {
      const decoded: Values = {}
      for (let i = 0; i < fields.length; i++) decoded[fields[i]![0]] = decode(row[i], fields[i]![1])
      return decoded as Row
    })
  }
}

const decode = (value: unknown, column: Column) => (value === null ? null : column.mapFromDriverValue(value))

function oncePerDialect<Db extends Reader, T>(make: (db: Db) => T): (db: Db) => T {
  const made = new WeakMap<Tables, T>()
  return (db) => {
    const value = made.get(db.tables) ?? make(db)
    made.set(db.tables, value)
    return value
  }
}

/** A placeholder for each value, under its own name. */
export const placeholders = <Name extends string>(...names: Name[]): Record<Name, Placeholder> =>
  Object.fromEntries(names.map((name) => [name, sql.placeholder(name)])) as unknown as Record<Name, Placeholder>
