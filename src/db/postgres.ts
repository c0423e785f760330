import { SQL, type TransactionSQL } from 'bun'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sql'
import { postgresTables as tables } from '../../schema/db/tables.ts'
import type { SealedKeyringRow } from '../crypto/keyring.ts'
import { GatehouseError } from '../errors.ts'
import { EXIT, StartError } from '../start-error.ts'
import { type Admit, SELECT_KEYRING } from './admit.ts'
import { type ChangeFeed, followChanges } from './changes.ts'
import { CLOSURE_MS, overloaded, PROBE_MS, QUEUE_BOUND, requireLife, settledWithin } from './closure.ts'
import type { AuditDraft, Change, Database, Reader, Tx } from './database.ts'
import { isConnectionFailure, mayRerun, storageFailure, withoutParameters } from './errors.ts'
import { migratePostgres } from './migrate.ts'
import { boundedQueries, DEADLINE_MS, onConnection, type Queries } from './postgres-connection.ts'
import { postgresOptions } from './postgres-url.ts'

export interface PostgresOptions {
  /** see `postgres-url.ts` */
  url: string
  /** instead of one in the URL */
  password?: string | undefined
  admit?: Admit
  /** connections of this node: half for changes, half for reading, so that neither waits for the other */
  poolSize?: number
  /** milliseconds between looks at what other nodes changed */
  pollMs?: number
  /** milliseconds that a closure may take; 5,000 unless a test is in a hurry */
  closureMs?: number
  /** milliseconds that a change or a read may take; 10,000 unless a test is in a hurry */
  deadlineMs?: number
}

interface Bounds {
  closureMs: number
  deadlineMs: number
}

/** A connection that is not made by then is given up. */
const CONNECT_MS = 5_000

/** How often a closure may run again after a serialisation failure or a deadlock (decision 2). */
const RERUNS = 5

/**
 * PostgreSQL through Bun's own client, shared by any number of nodes.
 *
 * @throws StartError see `open.ts`; DATABASE_UNREACHABLE (69) where nobody answers or the login is refused
 */
export async function openPostgres(options: PostgresOptions): Promise<Database> {
  const { closureMs = CLOSURE_MS, deadlineMs = DEADLINE_MS } = options
  const client = {
    ...postgresOptions(options.url, options.password),
    connectionTimeout: Math.min(CONNECT_MS, deadlineMs) / 1000,
    // One that fell silent while nobody used it is gone before it can hold up many.
    idleTimeout: deadlineMs / 1000,
  }
  const poolSize = Math.max(2, options.poolSize ?? 10)
  const writers = new SQL({ ...client, max: Math.ceil(poolSize / 2) })
  const readers = new SQL({ ...client, max: Math.floor(poolSize / 2) })
  const closePools = async () => {
    await Promise.all([writers.close({ timeout: 1 }), readers.close({ timeout: 1 })])
  }
  try {
    options.admit?.(await onConnection(writers, deadlineMs, readKeyring))
    await migratePostgres(writers)
    const revision = await onConnection(writers, deadlineMs, ensureInstallation)
    const feed = followChanges(readers, options.pollMs ?? 500, revision)
    return databaseOver(writers, readers, feed, { closureMs, deadlineMs }, closePools)
  } catch (error) {
    await closePools()
    throw startErrorOf(error) ?? error
  }
}

/** Nothing where there is no schema yet. */
async function readKeyring(client: SQL): Promise<SealedKeyringRow[]> {
  const [table]: { found: string | null }[] = await client`SELECT to_regclass('keyring')::text AS found`
  return table?.found ? client.unsafe(SELECT_KEYRING) : []
}

async function ensureInstallation(client: SQL): Promise<number> {
  await client`INSERT INTO installation (id, instance_id, revision, pruned_revision, created_at)
    VALUES ('installation', ${Bun.randomUUIDv7()}, 0, 0, ${Date.now()}) ON CONFLICT DO NOTHING`
  const [row]: { revision: string }[] = await client`SELECT revision FROM installation`
  return Number(row?.revision)
}

function databaseOver(
  writers: SQL,
  readers: SQL,
  feed: ChangeFeed,
  { closureMs, deadlineMs }: Bounds,
  release: () => Promise<void>,
): Database {
  const inFlight = new Set<Promise<unknown>>()
  let closing = false

  async function change<T>(ms: number, event: AuditDraft, work: (tx: Tx) => Promise<T>): Promise<T> {
    const endsAt = performance.now() + ms
    const { value, revision } = await commit(writers, event, { closureMs, endsAt }, work)
    try {
      await settledWithin(endsAt - performance.now(), () => feed.reach(revision))
    } catch (cause) {
      throw outcomeUnknown('the change was stored, but is not in force yet; read it again', cause)
    }
    return value
  }

  async function transaction<T>(ms: number, event: AuditDraft, work: (tx: Tx) => Promise<T>): Promise<T> {
    if (closing) throw new GatehouseError('draining', 'the server is shutting down; try again')
    if (inFlight.size >= QUEUE_BOUND) throw overloaded()
    const running = change(ms, event, work)
    inFlight.add(running)
    try {
      return await running
    } finally {
      inFlight.delete(running)
    }
  }

  return {
    dialect: 'postgres',
    read: asReader(boundedQueries(readers, deadlineMs)),
    transaction: (event, work) => transaction(deadlineMs, event, work),
    onCommitted: feed.onCommitted,
    probe: () => transaction(Math.min(PROBE_MS, deadlineMs), { action: 'probe' }, async () => {}),
    staleMs: feed.staleMs,
    async close() {
      closing = true
      await Promise.allSettled(inFlight)
      await feed.stop()
      await release()
    },
  }
}

interface Committed<T> {
  value: T
  revision: number
}

async function commit<T>(
  writers: SQL,
  event: AuditDraft,
  { closureMs, endsAt }: { closureMs: number; endsAt: number },
  work: (tx: Tx) => Promise<T>,
): Promise<Committed<T>> {
  for (let reruns = 0; ; reruns++) {
    const progress = { committing: false }
    try {
      return await onConnection(writers, endsAt - performance.now(), (connection) =>
        connection.begin('isolation level read committed', (client) =>
          runChange(client, event, (tx) => settledWithin(closureMs, () => work(tx)), progress),
        ),
      )
    } catch (error) {
      if (mayRerun(error) && reruns < RERUNS) continue
      if (progress.committing && isConnectionFailure(error)) {
        throw outcomeUnknown('the connection broke during the commit; read again whether the change is there', error)
      }
      throw storageFailure(error) ?? withoutParameters(error)
    }
  }
}

const outcomeUnknown = (message: string, cause: unknown) => new GatehouseError('outcome_unknown', message, { cause })

async function runChange<T>(
  client: TransactionSQL,
  event: AuditDraft,
  work: (tx: Tx) => Promise<T>,
  progress: { committing: boolean },
): Promise<Committed<T>> {
  const life = { alive: true }
  const changes = new Map<string, Change>()
  try {
    const tx = createTx(client, life, event, changes)
    const value = await work(tx)
    const revision = await tx.revise()
    const rows = [...changes.values()].map((change) => ({ revision, at: tx.now, ...change }))
    if (rows.length > 0) await tx.insert(tx.tables.changes).values(rows)
    progress.committing = true
    return { value, revision }
  } finally {
    life.alive = false
  }
}

function createTx(
  client: TransactionSQL,
  life: { alive: boolean },
  event: AuditDraft,
  changes: Map<string, Change>,
): Tx {
  const unsafe: TransactionSQL['unsafe'] = (text, values) => {
    requireLife(life)
    return client.unsafe(text, values)
  }
  const db = asWriter({ unsafe } as TransactionSQL)
  const { installation } = tables
  let revision: Promise<number> | undefined
  // The row stays locked until the commit: that is what puts the commits of all nodes into one order.
  const nextRevision = async (): Promise<number> => {
    const [row] = await db
      .update(installation)
      .set({ revision: sql`${installation.revision} + 1` })
      .returning({ revision: installation.revision })
    return row!.revision
  }
  return Object.assign(db, {
    now: Date.now(),
    event: { ...event },
    seen: new Map<object, unknown>(),
    changed: (kind: Change['kind'], id: string) => void changes.set(`${kind} ${id}`, { kind, id }),
    revise: () => {
      revision ??= nextRevision()
      return revision
    },
  })
}

// drizzle's types differ by dialect, its queries as used here do not: the casts to SQLite's types end here.
export const asReader = (client: Queries): Reader =>
  Object.assign(drizzle({ client: client as SQL }), {
    tables,
    run: async (text: string, values: unknown[]) => client.unsafe(text, values).values(),
  }) as unknown as Reader

const asWriter = (client: TransactionSQL) => asReader(client) as Reader & Pick<Tx, 'insert' | 'update' | 'delete'>

/** No SQLSTATE: no connection, no TLS or a certificate that is not trusted. Class 28: login, 3D: no such database. */
export function startErrorOf(error: unknown): StartError | undefined {
  if (!(error instanceof Error && 'code' in error) || error instanceof StartError) return undefined
  const state = 'errno' in error && typeof error.errno === 'string' ? error.errno : undefined
  if (state !== undefined && !/^(08|28|3D|53|55|57)/.test(state)) return undefined
  return new StartError(
    'DATABASE_UNREACHABLE',
    EXIT.unavailable,
    `PostgreSQL cannot be used (${state ?? error.code})`,
    'check database.url, its password and sslmode, and whether the server runs and the database exists',
  )
}
