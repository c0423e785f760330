import type { Database as Connection } from 'bun:sqlite'
import { SQL } from 'bun'
import type { Reader } from './database.ts'
import type { DatabaseOptions } from './open.ts'
import { asReader as asPostgresReader, startErrorOf as postgresStartError } from './postgres.ts'
import { DEADLINE_MS, type Queries } from './postgres-connection.ts'
import { postgresOptions } from './postgres-url.ts'
import { asReader, connect, ensureFile, startErrorOf } from './sqlite-file.ts'

export interface Snapshot {
  read: Reader
  /** SQLite's own, for what goes through millions of rows */
  connection?: Connection
}

/**
 * Runs `work` on the database as it is at this moment, beside a running server or without one: it takes no lock, makes
 * and migrates nothing, and never sees half a change.
 *
 * @throws StartError when there is no database, or it cannot be read
 */
export async function withSnapshot<T>(options: DatabaseOptions, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  return options.dialect === 'sqlite' ? onSqlite(options.dataDir, work) : onPostgres(options, work)
}

async function onSqlite<T>(dataDir: string, work: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  const path = `${dataDir}/gatehouse.db`
  ensureFile(dataDir, path, false)
  const connection = open(path)
  try {
    connection.run('BEGIN')
    return await work({ read: asReader(connection), connection })
  } finally {
    // Statements that are not collected yet keep a closed connection, and with it the state that a checkpoint waits for.
    if (connection.inTransaction) connection.run('ROLLBACK')
    connection.close()
  }
}

function open(path: string) {
  try {
    return connect(path, 'read')
  } catch (error) {
    throw startErrorOf(error) ?? error
  }
}

async function onPostgres<T>(
  { url, password, deadlineMs = DEADLINE_MS }: Extract<DatabaseOptions, { dialect: 'postgres' }>,
  work: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  const client = new SQL({ ...postgresOptions(url, password), max: 1 })
  // The whole may take long; that no statement is answered for so long means that none will be.
  const silence = setTimeout(() => void client.close({ timeout: 0 }), deadlineMs)
  try {
    return await client.begin('isolation level repeatable read read only', (transaction) =>
      work({ read: asPostgresReader(heardBy(() => silence.refresh(), transaction)) }),
    )
  } catch (error) {
    throw postgresStartError(error) ?? error
  } finally {
    clearTimeout(silence)
    await client.close({ timeout: 1 })
  }
}

const heardBy = (heard: () => void, client: SQL): Queries => ({
  unsafe: (text, values) => ({ values: () => client.unsafe(text, values).values().finally(heard) }),
})
