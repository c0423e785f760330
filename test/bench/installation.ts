import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sqliteTables as tables } from '../../schema/db/tables.ts'
import { maskKey, newApiKey } from '../../src/api-keys/key.ts'
import { createInstallation, pathsBelow } from '../../src/cli/init.ts'
import { loadConfig } from '../../src/config/load.ts'
import { openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { type Bootstrapped, bootstrap } from '../../src/organisation/bootstrap.ts'

/** A bootstrapped installation with prompts and keys, ready for a server to be started on it. */
export interface Installation {
  configPath: string
  /** may do everything a workspace can */
  adminKey: string
  /** ten keys that may render, of those there are */
  keys: string[]
  /** slugs of the prompts that the load asks for: 100, of those there are */
  prompts: string[]
}

const WORKING_PROMPTS = 100
const WORKING_KEYS = 10

/** What saving a version of the measured prompt sends: two messages, three variables, one partial. */
export const PROMPT_VERSION = {
  string: JSON.stringify([
    {
      role: 'system',
      content:
        'You answer customers of {{company}}, by mail. Be brief, name the next step, and never promise a date that is not in the order. {{>tone}}',
    },
    {
      role: 'user',
      content: 'I am {{name}} and I have a question about what I bought from you last week: {{question}}',
    },
  ]),
  parameters: { temperature: 0.7, max_completion_tokens: 800 },
  model: 'gpt-4o-mini',
}

/** What the load sends. */
export const RENDER_BODY = JSON.stringify({
  variables: {
    company: 'Example Ltd',
    name: 'Ada Lovelace',
    question: 'when does the second parcel of my order leave?',
  },
  temperature: 0.3,
})

/**
 * Makes an installation below `dir`. Rows are written past the API, in bulk: 100,000 audited changes would take longer
 * than everything that is measured on them.
 *
 * @param size at least 100 prompts and 10 keys, so that every installation serves the same load
 */
export async function createLoadedInstallation(
  dir: string,
  size: { prompts: number; keys: number },
): Promise<Installation> {
  const paths = pathsBelow(dir)
  createInstallation(paths)
  const log = createLog({ level: 'warn', write: (line) => void process.stderr.write(line) })
  const gatehouse = await openGatehouse(loadConfig({ path: paths.config, env: {} }), log)
  const made = await bootstrap(gatehouse, { organisation: 'Bench', email: 'bench@example.com', uid: 0 })
  const clearKeys = Array.from({ length: size.keys }, () => newApiKey('w'))
  const digests = clearKeys.map(gatehouse.digestKey)
  await gatehouse.close()
  const sqlite = new Database(join(paths.data, 'gatehouse.db'))
  sqlite.transaction(() => {
    insert(sqlite, tables.apiKeys, size.keys, (i) => apiKeyRow(made, clearKeys[i]!, digests[i]!))
    insertPartial(sqlite, made)
    insertPrompts(sqlite, made, size.prompts)
  })()
  sqlite.close()
  return {
    configPath: paths.config,
    adminKey: made.admin_key,
    keys: spread(clearKeys, WORKING_KEYS),
    prompts: spread(
      Array.from({ length: size.prompts }, (_, i) => promptSlug(i)),
      WORKING_PROMPTS,
    ),
  }
}

/** `count` of the items, from all over the list. */
const spread = <T>(items: T[], count: number): T[] =>
  Array.from({ length: count }, (_, i) => items[Math.floor((i * items.length) / count)]!)

const NOW = Date.now()
const TIMES = { createdAt: NOW, lastUpdatedAt: NOW }
const promptSlug = (i: number): string => `pp-bench-${i}`

type BenchTables = typeof tables
type BenchTable = BenchTables[
  | 'apiKeys'
  | 'prompts'
  | 'promptVersions'
  | 'promptPartials'
  | 'partials'
  | 'partialVersions']

/** Well below SQLite's 32,766 parameters a statement. */
const ROWS_A_STATEMENT = 500

function insert<T extends BenchTable>(
  sqlite: Database,
  table: T,
  count: number,
  row: (i: number) => T['$inferInsert'],
): void {
  const db = drizzle({ client: sqlite })
  for (let start = 0; start < count; start += ROWS_A_STATEMENT) {
    const length = Math.min(ROWS_A_STATEMENT, count - start)
    const rows = Array.from({ length }, (_, i) => row(start + i))
    db.insert(table)
      .values(rows as never)
      .run()
  }
}

function apiKeyRow(made: Bootstrapped, clearKey: string, digest: string): BenchTables['apiKeys']['$inferInsert'] {
  return {
    id: Bun.randomUUIDv7(),
    organisationId: made.organisation_id,
    workspaceId: made.workspace_id,
    accountableUserId: made.user_id,
    type: 'workspace-service',
    name: 'bench',
    scopes: JSON.stringify(['prompts.render', 'completions.write']),
    digest,
    masked: maskKey(clearKey),
    creationMode: 'api',
    ...TIMES,
  }
}

function insertPartial(sqlite: Database, made: Bootstrapped): void {
  const id = Bun.randomUUIDv7()
  insert(sqlite, tables.partials, 1, () => ({
    id,
    workspaceId: made.workspace_id,
    collectionId: made.collection_id,
    slug: 'tone',
    name: 'tone',
    status: 'active',
    defaultVersion: 1,
    latestVersion: 1,
    ...TIMES,
  }))
  insert(sqlite, tables.partialVersions, 1, () => ({
    id: Bun.randomUUIDv7(),
    partialId: id,
    number: 1,
    template: 'Write plainly and kindly, in the language of the question, and sign as the team.',
    createdAt: NOW,
  }))
}

function insertPrompts(sqlite: Database, made: Bootstrapped, count: number): void {
  const ids = Array.from({ length: count }, () => ({ prompt: Bun.randomUUIDv7(), version: Bun.randomUUIDv7() }))
  insert(sqlite, tables.prompts, count, (i) => ({
    id: ids[i]!.prompt,
    workspaceId: made.workspace_id,
    collectionId: made.collection_id,
    slug: promptSlug(i),
    name: `bench ${i}`,
    defaultVersion: 1,
    latestVersion: 1,
    ...TIMES,
  }))
  insert(sqlite, tables.promptVersions, count, (i) => ({
    id: ids[i]!.version,
    promptId: ids[i]!.prompt,
    number: 1,
    template: PROMPT_VERSION.string,
    templateType: 'chat',
    isRaw: false,
    parameters: JSON.stringify(PROMPT_VERSION.parameters),
    templateMetadata: '{}',
    model: PROMPT_VERSION.model,
    createdAt: NOW,
  }))
  insert(sqlite, tables.promptPartials, count, (i) => ({ versionId: ids[i]!.version, partialSlug: 'tone' }))
}
