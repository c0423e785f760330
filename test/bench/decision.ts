import { heapStats } from 'bun:jsc'
import { Database } from 'bun:sqlite'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { GRANTABLE } from '../../schema/api/permissions.ts'
import { maskKey, newApiKey } from '../../src/api-keys/key.ts'
import { createKeys, type Keys } from '../../src/auth/keys.ts'
import { reaches } from '../../src/auth/tenancy.ts'
import { createDigest } from '../../src/crypto/digest.ts'
import { openDatabase } from '../../src/db/open.ts'
import { freshFolder } from '../support/database.ts'

// What a request costs before it is known to be allowed: the key's digest, its look-up, the scope, the workspace.
//
//   bun test/bench/decision.ts [keys, a million unless said otherwise]

export interface DecisionFigures {
  keys: number
  /** each by another key, by the second of processor time that the whole process used */
  decisionsPerSecond: number
  /** what the garbage collector sees, after a full collection */
  bytesPerKey: number
  loadSeconds: number
}

const WORKSPACES = 1_000
const PEOPLE = 20_000
const SCOPES_A_KEY = 24
/** Callers of the loop: enough to miss the processor's caches. */
const CALLERS = 100_000
const LOOP_MS = 3_000

export async function measureDecisions(count: number): Promise<DecisionFigures> {
  const dataDir = freshFolder()
  const digest = createDigest(crypto.getRandomValues(new Uint8Array(32)))
  const db = await openDatabase({ dialect: 'sqlite', dataDir, create: true })
  try {
    const clearKeys = insertKeys(join(dataDir, 'gatehouse.db'), count, digest)
    const before = heapBytes()
    const keys = createKeys(db.read, { enforcesRotation: false })
    const startedAt = performance.now()
    await keys.load()
    const loadSeconds = (performance.now() - startedAt) / 1000
    const bytesPerKey = (heapBytes() - before) / count
    if (keys.count() !== count) throw new Error(`${keys.count()} of ${count} keys were loaded`)
    return { keys: count, decisionsPerSecond: decide(keys, clearKeys, digest), bytesPerKey, loadSeconds }
  } finally {
    await db.close()
    rmSync(dataDir, { recursive: true })
  }
}

/** Decisions a second: may this key list the prompts of workspace 1? */
function decide(keys: Keys, clearKeys: string[], digest: (clear: string) => string): number {
  const thing = { organisationId: 'o', workspaceId: idOf('w', 1) }
  let allowed = 0
  let made = 0
  const startedAt = performance.now()
  const usedBefore = process.cpuUsage()
  while (performance.now() - startedAt < LOOP_MS) {
    for (const clear of clearKeys) {
      const caller = keys.find(digest(clear), Date.now())
      if (caller?.permissions.has('prompts.list') === true && reaches(caller, thing)) allowed += 1
      made += 1
    }
  }
  if (allowed === 0 || allowed === made) throw new Error('the decision is always the same')
  const { user, system } = process.cpuUsage(usedBefore)
  return made / ((user + system) / 1_000_000)
}

const idOf = (kind: string, n: number): string => `${kind}0000000-0000-7000-8000-${String(n).padStart(12, '0')}`

/** A tenth admin keys, half service keys, the rest user keys of people of every role. Answers some of the clear keys. */
function insertKeys(path: string, count: number, digest: (clear: string) => string): string[] {
  const sqlite = new Database(path)
  sqlite.run('PRAGMA synchronous = OFF')
  sqlite.run("INSERT INTO organisations (id, name, created_at) VALUES ('o', 'Bench', 0)")
  const insert = (table: string, columns: string) =>
    sqlite.prepare(`INSERT INTO ${table} (${columns}) VALUES (${columns.replaceAll(/\w+/g, '?')})`)
  const workspace = insert(
    'workspaces',
    'id, organisation_id, slug, name, is_default, status, created_at, last_updated_at',
  )
  const user = insert('users', 'id, organisation_id, email, role, status, created_at, last_updated_at')
  const member = insert('workspace_members', 'workspace_id, user_id, role, created_at, last_updated_at')
  const key = insert(
    'api_keys',
    'id, organisation_id, workspace_id, user_id, accountable_user_id, type, name, scopes, digest, masked, creation_mode, created_at, last_updated_at',
  )
  const clearKeys: string[] = []
  sqlite.transaction(() => {
    for (let w = 0; w < WORKSPACES; w++) workspace.run(idOf('w', w), 'o', `w${w}`, 'w', 0, 'active', 0, 0)
    for (let u = 0; u < PEOPLE; u++) {
      user.run(idOf('u', u), 'o', `${u}@example.com`, u % 100 === 0 ? 'admin' : 'member', 'active', 0, 0)
      member.run(idOf('w', u % WORKSPACES), idOf('u', u), (['admin', 'manager', 'member'] as const)[u % 3]!, 0, 0)
    }
    for (let i = 0; i < count; i++) {
      const type = i % 10 === 0 ? 'organisation-service' : i % 2 === 0 ? 'workspace-service' : 'workspace-user'
      const clear = newApiKey(type === 'organisation-service' ? 'a' : 'w')
      if ((i * 7919) % count < CALLERS) clearKeys.push(clear)
      const scopes = scopesFrom(GRANTABLE[type], i)
      const person = idOf('u', i % PEOPLE)
      const workspaceId = type === 'organisation-service' ? null : idOf('w', i % WORKSPACES)
      const userId = type === 'workspace-user' ? person : null
      const masked = maskKey(clear)
      const id = Bun.randomUUIDv7()
      key.run(
        id,
        'o',
        workspaceId,
        userId,
        person,
        type,
        'k',
        JSON.stringify(scopes),
        digest(clear),
        masked,
        'api',
        0,
        0,
      )
    }
  })()
  sqlite.close()
  return clearKeys
}

/** One of about a hundred lists for each type. */
function scopesFrom(grantable: ReadonlySet<string>, i: number): string[] {
  const all = [...grantable]
  return Array.from({ length: SCOPES_A_KEY }, (_, n) => all[(i + n) % all.length]!)
}

function heapBytes(): number {
  Bun.gc(true)
  Bun.gc(true)
  const { heapSize, extraMemorySize } = heapStats()
  return heapSize + extraMemorySize
}

if (import.meta.main) {
  const { keys, decisionsPerSecond, bytesPerKey, loadSeconds } = await measureDecisions(
    Number(process.argv[2] ?? 1_000_000),
  )
  process.stdout.write(
    `${keys} keys: ${Math.round(decisionsPerSecond)} decisions/s, ${Math.round(bytesPerKey)} bytes/key, loaded in ${loadSeconds.toFixed(1)} s\n`,
  )
}
