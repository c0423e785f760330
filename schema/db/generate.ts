import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import {
  generateDrizzleJson,
  generateMigration,
  generateSQLiteDrizzleJson,
  generateSQLiteMigration,
} from 'drizzle-kit/api'
import { postgresTables, sqliteTables } from './tables.ts'

// Development only: `bun run schema [name]` compares `tables.ts` with the last snapshots and writes the next migration
// of both dialects, the new snapshots and the list that embeds them. Without a difference there is no new migration.

const FOLDER = `${import.meta.dir}/migrations`

type Dialect = 'sqlite' | 'postgres'

/** The statements that lead from the last snapshot to `tables.ts`, and the snapshot that they lead to. */
export async function pendingStatements(dialect: Dialect): Promise<{ statements: string[]; snapshot: unknown }> {
  const file = Bun.file(`${FOLDER}/${dialect}/snapshot.json`)
  const last = (await file.exists()) ? await file.json() : undefined
  if (dialect === 'postgres') {
    const snapshot = generateDrizzleJson({ ...postgresTables }, last?.id)
    return { snapshot, statements: await generateMigration(last ?? generateDrizzleJson({}), snapshot) }
  }
  const snapshot = await generateSQLiteDrizzleJson({ ...sqliteTables }, last?.id)
  const statements = await generateSQLiteMigration(last ?? (await generateSQLiteDrizzleJson({})), snapshot)
  return { snapshot, statements: repairSqlite(statements) }
}

/**
 * drizzle-kit knows no STRICT. It also writes PRAGMA foreign_keys=OFF into the migration, where it does nothing because
 * a transaction is open, and the rebuilding of a parent table would delete its children: `migrate.ts` does it before BEGIN.
 */
export function repairSqlite(statements: string[]): string[] {
  return statements
    .filter((statement) => !/^\s*PRAGMA\s+foreign_keys\s*=/i.test(statement))
    .map((statement) =>
      /^\s*CREATE TABLE/i.test(statement) ? statement.trimEnd().replace(/\);?$/, ') STRICT;') : statement,
    )
}

async function writeNextMigration(name: string): Promise<void> {
  const pending = { sqlite: await pendingStatements('sqlite'), postgres: await pendingStatements('postgres') }
  if (pending.sqlite.statements.length === 0 && pending.postgres.statements.length === 0) {
    await Bun.write(`${import.meta.dir}/migrations.ts`, embeddedList(migrationFiles()))
    return
  }
  const number = String(migrationFiles().length + 1).padStart(4, '0')
  for (const dialect of ['sqlite', 'postgres'] as const) {
    const folder = `${FOLDER}/${dialect}`
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true })
    await Bun.write(
      `${folder}/${number}_${name}.sql`,
      `${pending[dialect].statements.map((s) => s.trim()).join('\n')}\n`,
    )
    await Bun.write(`${folder}/snapshot.json`, `${JSON.stringify(pending[dialect].snapshot, null, 2)}\n`)
  }
  await Bun.write(`${import.meta.dir}/migrations.ts`, embeddedList(migrationFiles()))
}

const migrationFiles = (): string[] =>
  existsSync(`${FOLDER}/sqlite`)
    ? readdirSync(`${FOLDER}/sqlite`)
        .filter((file) => file.endsWith('.sql'))
        .sort()
    : []

/** The source of `migrations.ts`: text imports, since nothing can be read from the source tree at run time. */
export function embeddedList(files: string[]): string {
  const imports = (dialect: Dialect) =>
    files.map(
      (file) => `import ${dialect}${file.slice(0, 4)} from './migrations/${dialect}/${file}' with { type: 'text' }`,
    )
  const rows = (dialect: Dialect) =>
    files.map(
      (file, i) => `    { version: ${i + 1}, name: '${file.slice(5, -4)}', text: ${dialect}${file.slice(0, 4)} },`,
    )
  return [
    '// biome-ignore-all format: written by `bun run schema`',
    '',
    ...imports('postgres'),
    ...imports('sqlite'),
    '',
    '/** Append only: an applied migration is never edited (its checksum is stored). */',
    'export const MIGRATIONS = {',
    '  sqlite: [',
    ...rows('sqlite'),
    '  ],',
    '  postgres: [',
    ...rows('postgres'),
    '  ],',
    '}',
    '',
  ].join('\n')
}

if (import.meta.main) await writeNextMigration(Bun.argv[2] ?? 'change')
