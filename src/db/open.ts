import type { Database } from './database.ts'
import { openPostgres, type PostgresOptions } from './postgres.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'

export type DatabaseOptions = ({ dialect: 'sqlite' } & SqliteOptions) | ({ dialect: 'postgres' } & PostgresOptions)

/**
 * Opens the database of this installation, makes it if that is wanted, and brings it to the newest schema.
 *
 * @throws StartError when a person has to do something first; its code says what (`sqlite-file.ts`, `migrate.ts`)
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  return options.dialect === 'sqlite' ? openSqlite(options) : openPostgres(options)
}
