import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

// The rules of the house (section 2.2), read from the sources. A rule that nobody checks is a wish.

const ROOT = join(import.meta.dir, '..')

interface Source {
  /** `src/auth/guard.ts` */
  path: string
  text: string
  /** what it needs at run time; type-only imports are erased and do not count */
  imports: string[]
}

const transpiler = new Bun.Transpiler({ loader: 'ts' })
const sources: Source[] = [...new Bun.Glob('{src,schema}/**/*.ts').scanSync(ROOT)].sort().map((path) => {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const imports = transpiler
    .scanImports(text)
    .map((each) => (each.path.startsWith('.') ? new URL(each.path, `file:///${path}`).pathname.slice(1) : each.path))
  return { path, text, imports }
})
const ours = (imports: string[]): string[] => imports.filter((path) => /^(?:src|schema)\/.*\.ts$/.test(path))
const packages = (imports: string[]): string[] =>
  imports.filter((path) => !/^(?:src|schema)\/|^package\.json$|^(?:node|bun):|^bun$/.test(path))

/**
 * Who may import whom: from the ground up, and a file takes the first row that fits it. An import goes to a lower row,
 * or to the same folder.
 */
const LAYERS: [name: string, pattern: RegExp][] = [
  ['promises', /^schema\//],
  // Pure modules without a home of their own below everything: what a key, a page, a complaint is.
  [
    'words',
    /^src\/(?:api-keys\/key|auth\/caller|config\/ambient|db\/errors|http\/(?:paging|complaints|describe|request-id)|outbound\/(?:address|endpoint))\.ts$/,
  ],
  ['words', /^src\/(?!main|app|gatehouse)[^/]+\.ts$/],
  ['configuration', /^src\/config\//],
  ['ground', /^src\/(?:db|crypto|templates|outbound|secret-managers)\//],
  // Who may do what: tables and pure rules, and the rows they are read from.
  ['decision', /^src\/auth\/(?:roles|ceiling|key-rows|still-valid)\.ts$/],
  // Reading the trail is a feature like others; writing it is below them all.
  ['features', /^src\/audit\/(?:[a-z-]+-)?routes\.ts$/],
  ['audit', /^src\/audit\//],
  // The server and the printed description stand on the app; the rest of http is below the features.
  ['program', /^src\/http\/(?:server|openapi)\.ts$/],
  ['doors', /^src\/(?:auth|http)\//],
  ['gatehouse', /^src\/gatehouse\.ts$/],
  ['app', /^src\/app\.ts$/],
  ['commands', /^src\/cli\//],
  ['main', /^src\/main\.ts$/],
  ['features', /^src\/[^/]+\//],
]
const ORDER = [
  'promises',
  'words',
  'configuration',
  'ground',
  'decision',
  'audit',
  'doors',
  'features',
  'gatehouse',
  'app',
  'program',
  'commands',
  'main',
]

/** Describes the very app that serves it, and is imported only when the description is first asked for. */
const LAZY = 'src/http/openapi.ts'

const layerOf = (path: string): string => LAYERS.find(([, pattern]) => pattern.test(path))?.[0] ?? ''
const heightOf = (path: string): number => ORDER.indexOf(layerOf(path))
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

test('the rules below look at the whole program', () => {
  expect(sources.length).toBeGreaterThan(120)
  expect(sources.filter(({ path }) => heightOf(path) === -1)).toEqual([])
  expect(sources.find(({ path }) => path === 'src/app.ts')?.imports).toContain('src/prompts/routes.ts')
})

describe('arrows between modules', () => {
  test('never turn back: an import goes down, or stays in its folder', () => {
    const wrong = sources.flatMap(({ path, imports }) =>
      ours(imports)
        .filter((to) => heightOf(to) > heightOf(path) && folderOf(to) !== folderOf(path))
        .map((to) => `${path} (${layerOf(path)}) imports ${to} (${layerOf(to)})`),
    )
    expect(wrong).toEqual([])
  })

  /** What a feature offers to others besides its store: rules, and the making of a key inside their own change. */
  const OFFERED = new Set([
    'src/api-keys/scopes.ts',
    'src/api-keys/service.ts',
    'src/members/first-key.ts',
    'src/members/role.ts',
    'src/organisation/metadata.ts',
    'src/organisation/settings.ts',
    'src/users/present.ts',
  ])

  test('a feature reads what another one stores, and calls nothing else of it but what is offered', () => {
    const wrong = sources
      .filter(({ path }) => layerOf(path) === 'features')
      .flatMap(({ path, imports }) =>
        ours(imports)
          .filter((to) => layerOf(to) === 'features' && folderOf(to) !== folderOf(path))
          .filter((to) => !to.endsWith('/store.ts') && !OFFERED.has(to))
          .map((to) => `${path} imports ${to}`),
      )
    expect(wrong).toEqual([])
  })

  test('no module is its own ground, over however many others', () => {
    const below = new Map(sources.map(({ path, imports }) => [path, ours(imports).filter((to) => to !== LAZY)]))
    const reaches = (from: string, target: string, seen: Set<string>): boolean =>
      (below.get(from) ?? []).some((to) => to === target || (!seen.has(to) && reaches(to, target, seen.add(to))))
    expect(sources.filter(({ path }) => reaches(path, path, new Set())).map(({ path }) => path)).toEqual([])
  })
})

/** Files whose text holds something, but for those that may. */
const holders = (what: RegExp, allowed: RegExp): string[] =>
  sources.filter(({ path, text }) => !allowed.test(path) && what.test(text)).map(({ path }) => path)

describe('kept where it belongs', () => {
  test('the database that can write: db, audit and gatehouse; a feature gets `read` and `audited`', () => {
    const database = /import (?:type )?\{[^}]*\bDatabase\b[^}]*\} from '[^']*\/database\.ts'/
    expect(holders(database, /^src\/(?:db|audit|metering)\/|^src\/gatehouse\.ts$/)).toEqual([])
    expect(holders(/\bcreateAudited\(/, /^src\/audit\/audited\.ts$|^src\/gatehouse\.ts$/)).toEqual([])
  })

  test('Elysia: the app, http, the guard and routes; a service sees no context, status or header', () => {
    expect(
      holders(
        /from 'elysia'/,
        /^src\/app\.ts$|^src\/http\/|^src\/auth\/guard\.ts$|^src\/[^/]+\/(?:[a-z-]+-)?routes\.ts$/,
      ),
    ).toEqual([])
  })

  test('queries that work in one dialect only: .get(), .all() and .run() are those of SQLite', () => {
    // bun:sqlite itself, asked for its version
    expect(holders(/\.(?:get|all|run)\(\s*\)/, /^src\/db\/|^src\/cli\/version\.ts$/)).toEqual([])
  })

  test('the environment: read once, by main, after it was scrubbed', () => {
    expect(
      holders(
        /\b(?:process|Bun)\.env\b(?!`)|import\.meta\.env/,
        /^src\/(?:main|scrub-environment)\.ts$|^src\/config\//,
      ),
    ).toEqual([])
  })

  test('the end of the process: main alone', () => {
    expect(holders(/\bprocess\.exit\(/, /^src\/main\.ts$/)).toEqual([])
  })

  test('each package of somebody else, but for the four that the house is built of: one file', () => {
    const users = Map.groupBy(
      sources.flatMap(({ path, imports }) =>
        packages(imports).map((name) => ({
          path,
          name: name
            .split('/')
            .slice(0, name.startsWith('@') ? 2 : 1)
            .join('/'),
        })),
      ),
      ({ name }) => name,
    )
    for (const builtOf of ['drizzle-orm', 'elysia', '@sinclair/typebox'])
      expect(users.delete(builtOf), builtOf).toBe(true)
    const shared = [...users]
      .map(([name, at]) => [name, new Set(at.map(({ path }) => path)).size] as const)
      .filter(([, files]) => files > 1)
    expect(shared).toEqual([])
  })
})

describe('each file', () => {
  test('stays below 300 lines, or says at its head why it is longer', () => {
    const long = sources.filter(
      ({ text }) => text.split('\n').length > 300 && !/^(?:\/\/|\/\*)[\s\S]{0,600}300 lines/.test(text),
    )
    expect(long.map(({ path, text }) => `${path}: ${text.split('\n').length}`)).toEqual([])
  })

  test('is named for what it does', () => {
    expect(
      sources
        .filter(({ path }) => /\/(?:utils?|helpers?|types|constants|common|shared|misc|index)\.ts$/.test(path))
        .map(({ path }) => path),
    ).toEqual(['schema/api/common.ts'])
  })

  test('hands on nothing that is not its own', () => {
    expect(holders(/^export (?:\*|(?:type )?\{[^}]*\}) from/m, /^$/)).toEqual([])
  })

  test('does nothing slow when it is imported: it reads no file and awaits nothing', () => {
    const atTopLevel =
      /^(?:export )?(?:await |(?:const|let) [^=\n]+ = (?:await |[^=\n]*\b(?:readFileSync|readdirSync|openSync|existsSync|statSync|Bun\.file)\())/m
    expect(holders(atTopLevel, /^src\/main\.ts$|^schema\/db\/generate\.ts$|^src\/config\/write-readme\.ts$/)).toEqual(
      [],
    )
  })

  test('names no place that only its authors have', () => {
    expect(holders(/\/work\/|\.\.\/shared|\/home\//, /^$/)).toEqual([])
  })
})
