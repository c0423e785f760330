import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { Database } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { freshPostgresUrl } from './postgres.ts'

export interface TestDatabase {
  db: Database
  /** closes it and removes its files */
  drop(): Promise<void>
}

/** The dialects that can be tested here: SQLite always, PostgreSQL where there is one. */
export const DIALECTS: Database['dialect'][] =
  (await freshPostgresUrl()) === undefined ? ['sqlite'] : ['sqlite', 'postgres']

/** A new, empty database of either dialect. */
export async function openTestDatabase(dialect: Database['dialect'], closureMs = 5_000): Promise<TestDatabase> {
  if (dialect === 'postgres') {
    const url = await freshPostgresUrl()
    if (url === undefined) throw new Error('no PostgreSQL here: go by DIALECTS')
    const db = await openDatabase({ dialect, url, pollMs: 50, closureMs })
    return { db, drop: () => db.close() }
  }
  const dataDir = freshFolder()
  const db = await openDatabase({ dialect, dataDir, create: true, closureMs })
  return {
    db,
    async drop() {
      await db.close()
      rmSync(dataDir, { recursive: true })
    },
  }
}

export const freshFolder = (): string => mkdtempSync(`${tmpdir()}/gatehouse-test-`)
