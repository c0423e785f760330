import { type Columns, postgresColumns, sqliteColumns } from './columns.ts'
import { defineAccessTables } from './tables/access.ts'
import { defineLabelTables } from './tables/labels.ts'
import { definePromptTables } from './tables/prompts.ts'
import { defineSecretTables } from './tables/secrets.ts'
import { defineSystemTables } from './tables/system.ts'

/**
 * The whole data model, once for both dialects. `bun run schema` writes the next migration of each from it.
 * Ids are lower-case UUIDs (v7) as text. JSON columns hold JSON text and say so in their comment.
 */
export function defineTables(columns: Columns) {
  const access = defineAccessTables(columns)
  const prompts = definePromptTables(columns, access)
  const labels = defineLabelTables(columns, { ...access, ...prompts })
  const secrets = defineSecretTables(columns, access)
  return { ...defineSystemTables(columns), ...access, ...prompts, ...labels, ...secrets }
}

export type Tables = ReturnType<typeof defineTables>
export const sqliteTables: Tables = defineTables(sqliteColumns)
/** PostgreSQL's tables under SQLite's type (see `columns.ts`). */
export const postgresTables: Tables = defineTables(postgresColumns)
