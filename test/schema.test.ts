import { Database as Connection } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { SQL } from 'bun'
import { getTableColumns, getTableName } from 'drizzle-orm'
import { embeddedList, pendingStatements, repairSqlite } from '../schema/db/generate.ts'
import { MIGRATIONS } from '../schema/db/migrations.ts'
import { postgresTables, sqliteTables, type Tables } from '../schema/db/tables.ts'
import { migratePostgres, migrateSqlite } from '../src/db/migrate.ts'
import { freshPostgresUrl } from './support/postgres.ts'

const FOLDER = `${import.meta.dir}/../schema/db/migrations`
const postgresUrl = await freshPostgresUrl()

describe.each(['sqlite', 'postgres'] as const)('migrations of %s', (dialect) => {
  test('nothing in tables.ts waits for `bun run schema`', async () => {
    expect((await pendingStatements(dialect)).statements).toEqual([])
  })

  test('all files are embedded, to the letter and in order', async () => {
    const files = readdirSync(`${FOLDER}/${dialect}`)
      .filter((file) => file.endsWith('.sql'))
      .sort()
    const texts = await Promise.all(files.map((file) => Bun.file(`${FOLDER}/${dialect}/${file}`).text()))
    expect(MIGRATIONS[dialect].map(({ text }) => text)).toEqual(texts)
    expect(MIGRATIONS[dialect].map(({ version }) => version)).toEqual(files.map((_, i) => i + 1))
  })
})

/** `table.column` → whether it may be null, as `tables.ts` has it */
function declared(tables: Tables): Record<string, boolean> {
  const columns = Object.values(tables).flatMap((table) =>
    Object.values(getTableColumns(table)).map((column) => [`${getTableName(table)}.${column.name}`, !column.notNull]),
  )
  return Object.fromEntries(columns)
}

const made = (rows: { name: string; nullable: boolean | number }[]) =>
  Object.fromEntries(rows.map(({ name, nullable }) => [name, Boolean(nullable)]))

test('SQLite: the migrations make exactly the tables and columns of tables.ts', () => {
  const db = new Connection(':memory:')
  migrateSqlite(db)
  const rows = db
    .query(
      `SELECT t.name || '.' || c.name AS name, NOT c."notnull" AS nullable
       FROM pragma_table_list t JOIN pragma_table_info(t.name) c
       WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite_%'`,
    )
    .all() as { name: string; nullable: number }[]
  expect(made(rows)).toEqual(declared(sqliteTables))
})

test.skipIf(postgresUrl === undefined)(
  'PostgreSQL: the migrations make exactly the tables and columns of tables.ts',
  async () => {
    const sql = new SQL(postgresUrl!, { max: 1 })
    await migratePostgres(sql)
    const rows: { name: string; nullable: boolean }[] = await sql`
    SELECT table_name || '.' || column_name AS name, is_nullable = 'YES' AS nullable
    FROM information_schema.columns WHERE table_schema = current_schema()`
    await sql.close()
    expect(made(rows)).toEqual(declared(postgresTables))
  },
)

test('what drizzle-kit writes for SQLite becomes STRICT and loses its PRAGMA', () => {
  const written = [
    'PRAGMA foreign_keys=OFF;',
    'CREATE TABLE `__new_a` (\n\t`id` text\n);\n',
    'DROP TABLE `a`;',
    'PRAGMA foreign_keys=ON;',
  ]
  expect(repairSqlite(written)).toEqual(['CREATE TABLE `__new_a` (\n\t`id` text\n) STRICT;', 'DROP TABLE `a`;'])
})

test('the embedded list imports text, so that the executable needs no folder', () => {
  const list = embeddedList(['0001_init.sql', '0002_teams.sql'])
  expect(list).toContain("import sqlite0002 from './migrations/sqlite/0002_teams.sql' with { type: 'text' }")
  expect(list).toContain("{ version: 2, name: 'teams', text: postgres0002 },")
})
