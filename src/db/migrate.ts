import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import type { TransactionSQL } from 'bun'
import { MIGRATIONS } from '../../schema/db/migrations.ts'
import { EXIT, StartError } from '../start-error.ts'

/** One step forward. `text` is the SQL as embedded; its checksum is stored with the database. */
export interface Migration {
  /** 1, 2, 3 … without a gap */
  version: number
  name: string
  text: string
}

/** A row of `schema_migrations`. */
export interface Applied {
  version: number
  checksum: string
}

/** What `migrate…` needs of PostgreSQL's client: transactions on one connection. */
export interface PostgresTransactions {
  begin<T>(work: (tx: TransactionSQL) => Promise<T>): Promise<T>
}

/** `GTHS`: what `PRAGMA application_id` answers in a database of ours. */
export const APPLICATION_ID = 0x47_54_48_53

/** Serialises the migrations of all nodes that share one PostgreSQL database. */
const ADVISORY_LOCK = 0x47_54_48_53

/**
 * Brings a SQLite database to the newest version: forward only, one transaction a migration with its `user_version`.
 * A failing migration leaves the version before it. The caller holds the data folder's lock.
 *
 * @throws StartError SCHEMA_NEWER or MIGRATION_CHANGED (both 65)
 */
export function migrateSqlite(db: Database, migrations: Migration[] = MIGRATIONS.sqlite): void {
  for (;;) {
    const { user_version: version } = db.query('PRAGMA user_version').get() as { user_version: number }
    assertKnownVersion(version, migrations)
    const applied =
      version === 0 ? [] : (db.query('SELECT version, checksum FROM schema_migrations').all() as Applied[])
    const next = nextMigration(applied, migrations)
    if (next === undefined) return
    // Inside a transaction this PRAGMA does nothing, and dropping a parent that is being rebuilt deletes its children.
    db.run('PRAGMA foreign_keys = OFF')
    try {
      db.transaction(() => applyToSqlite(db, next)).immediate()
    } finally {
      db.run('PRAGMA foreign_keys = ON')
    }
  }
}

function applyToSqlite(db: Database, migration: Migration): void {
  db.run(migration.text)
  const orphan = db.query('PRAGMA foreign_key_check').get() as { table: string } | null
  if (orphan !== null)
    throw new Error(`migration ${migration.version} leaves rows of ${orphan.table} without their parent`)
  db.query('INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)').run(
    migration.version,
    migration.name,
    checksum(migration),
    Date.now(),
  )
  db.run(`PRAGMA user_version = ${migration.version}`)
}

/**
 * The same for PostgreSQL. Nodes that start together take turns by an advisory lock, which ends with the transaction.
 *
 * @throws StartError SCHEMA_NEWER, MIGRATION_CHANGED or NOT_OUR_DATABASE (all 65)
 */
export async function migratePostgres(
  sql: PostgresTransactions,
  migrations: Migration[] = MIGRATIONS.postgres,
): Promise<void> {
  while (await sql.begin((tx) => applyNextToPostgres(tx, migrations)));
}

async function applyNextToPostgres(tx: TransactionSQL, migrations: Migration[]): Promise<boolean> {
  await tx`SET LOCAL statement_timeout = 0`
  await tx`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`
  const next = nextMigration(await appliedToPostgres(tx), migrations)
  if (next === undefined) return false
  await tx.unsafe(next.text).simple()
  await tx`INSERT INTO schema_migrations (version, name, checksum, applied_at)
    VALUES (${next.version}, ${next.name}, ${checksum(next)}, ${Date.now()})`
  return true
}

async function appliedToPostgres(tx: TransactionSQL): Promise<Applied[]> {
  const tables: { name: string }[] =
    await tx`SELECT table_name AS name FROM information_schema.tables WHERE table_schema = current_schema()`
  if (tables.some(({ name }) => name === 'schema_migrations')) {
    const rows: { version: number | string; checksum: string }[] =
      await tx`SELECT version, checksum FROM schema_migrations`
    return rows.map((row) => ({ version: Number(row.version), checksum: row.checksum }))
  }
  if (tables.length === 0) return []
  throw new StartError(
    'NOT_OUR_DATABASE',
    EXIT.data,
    'the PostgreSQL database holds tables of something else',
    'create an empty database for Gatehouse and name it in database.url',
  )
}

function nextMigration(applied: Applied[], known: Migration[]): Migration | undefined {
  const newest = applied.reduce((highest, { version }) => Math.max(highest, version), 0)
  assertKnownVersion(newest, known)
  for (const { version, checksum: stored } of applied) {
    const migration = known.find((candidate) => candidate.version === version)
    if (migration !== undefined && checksum(migration) === stored) continue
    throw new StartError(
      'MIGRATION_CHANGED',
      EXIT.data,
      `the database was made with another text of migration ${version}`,
      'run the Gatehouse build that made this database',
    )
  }
  return known.find(({ version }) => version === newest + 1)
}

function assertKnownVersion(version: number, known: Migration[]): void {
  if (version <= known.length) return
  throw new StartError(
    'SCHEMA_NEWER',
    EXIT.data,
    `the database has schema version ${version}, this program knows ${known.length}`,
    'run the newer Gatehouse that made it, or restore the backup from before its upgrade',
  )
}

const checksum = (migration: Migration): string => createHash('sha256').update(migration.text).digest('hex')
