import { type Column, fillPlaceholders, type Query } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Tx } from './database.ts'

type Text = Pick<Query, 'sql' | 'params'>
type Values = Record<string, unknown>

/**
 * A statement that every change runs: drizzle builds it once a dialect, and it is run by its text from then on, since
 * building it takes several times longer than running it.
 *
 * @param build makes the statement, with `sql.placeholder(name)` for each value
 */
export function compiled(build: (tx: Tx) => { toSQL(): Text }): (tx: Tx, values: Values) => Promise<void> {
  const textOf = oncePerDialect((tx) => build(tx).toSQL())
  return async (tx, values) => {
    const { sql, params } = textOf(tx)
    await tx.run(sql, fillPlaceholders(params, values))
  }
}

/** The same for a query of plain columns: its rows are those that drizzle would give. */
export function compiledSelect<Row>(
  build: (tx: Tx) => PromiseLike<Row[]> & { toSQL(): Text },
): (tx: Tx, values?: Values) => Promise<Row[]> {
  const queryOf = oncePerDialect((tx) => {
    const query = build(tx)
    const fields = Object.entries(
      (query as unknown as { getSelectedFields(): Record<string, Column> }).getSelectedFields(),
    )
    return { ...query.toSQL(), fields }
  })
  return async (tx, values = {}) => {
    const { sql, params, fields } = queryOf(tx)
    const decode = (value: unknown, column: Column) => (value === null ? null : column.mapFromDriverValue(value))
    const rows = await tx.run(sql, fillPlaceholders(params, values))
    return rows.map(
      (row) => Object.fromEntries(fields.map(([name, column], i) => [name, decode(row[i], column)])) as Row,
    )
  }
}

function oncePerDialect<T>(make: (tx: Tx) => T): (tx: Tx) => T {
  const made = new WeakMap<Tables, T>()
  return (tx) => {
    const value = made.get(tx.tables) ?? make(tx)
    made.set(tx.tables, value)
    return value
  }
}
