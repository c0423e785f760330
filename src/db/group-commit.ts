import type { Database as Connection } from 'bun:sqlite'
import { drizzle } from 'drizzle-orm/bun-sqlite'
import { sqliteTables as tables } from '../../schema/db/tables.ts'
import { GatehouseError } from '../errors.ts'
import { CLOSURE_MS, overloaded, QUEUE_BOUND, requireLife, settledWithin } from './closure.ts'
import type { AuditDraft, Change, Database, Tx } from './database.ts'
import { storageFailure, storageUnavailable } from './errors.ts'
import { runText } from './sqlite-file.ts'

/** More in one transaction gains little and lets the first wait for the last (M2). */
const GROUP_SIZE = 64

export type GroupCommit = ReturnType<typeof groupCommit>

interface Job {
  event: AuditDraft
  work: (tx: Tx) => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
}

type Outcome = { job: Job; changes: Change[]; value: unknown } | { job: Job; error: unknown }

/**
 * Group commit on SQLite's one write connection (decision 2): what is queued, at most 64, becomes one `BEGIN IMMEDIATE`
 * with a SAVEPOINT per closure and one fully synchronous COMMIT. drizzle's own `transaction` is of no use here: over
 * bun:sqlite it commits at the first `await` (P13).
 */
export function groupCommit(writer: Connection, closureMs = CLOSURE_MS) {
  const queue: Job[] = []
  /** committed, but the listener failed on them: told again with the next ones */
  let unannounced: Change[] = []
  let listener: (changes: Change[]) => Promise<void> = async () => {}
  let lastStep: (tx: Tx) => Promise<void> = async () => {}
  let running: Promise<void> | undefined
  let finishing = false

  async function commitAll(): Promise<void> {
    while (queue.length > 0) {
      await otherRequests(queue)
      await commitGroup(queue.splice(0, GROUP_SIZE))
    }
    running = undefined
  }

  async function commitGroup(jobs: Job[]): Promise<void> {
    const outcomes: Outcome[] = []
    const seen: Tx['seen'] = new Map()
    try {
      writer.run('BEGIN IMMEDIATE')
      for (const job of jobs) {
        const outcome = await runInSavepoint(writer, job, closureMs, seen)
        outcomes.push(outcome)
        if (!isContentAlone(outcome)) seen.clear()
      }
      await lastStep(createTx(writer, { alive: true }, { action: 'commit' }, [], seen))
      writer.run('COMMIT')
    } catch (error) {
      if (writer.inTransaction) writer.run('ROLLBACK')
      for (const job of jobs) job.reject(storageUnavailable(error))
      return
    }
    answer(outcomes, await announce(outcomes))
  }

  async function announce(outcomes: Outcome[]): Promise<GatehouseError | undefined> {
    unannounced.push(...outcomes.flatMap((outcome) => ('changes' in outcome ? outcome.changes : [])))
    if (unannounced.length === 0) return undefined
    try {
      await listener(unannounced)
      unannounced = []
      return undefined
    } catch (cause) {
      return new GatehouseError('outcome_unknown', 'the change was stored, but is not in force yet; read it again', {
        cause,
      })
    }
  }

  function transaction<T>(event: AuditDraft, work: (tx: Tx) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (finishing) return reject(new GatehouseError('draining', 'the server is shutting down; try again'))
      if (queue.length >= QUEUE_BOUND) return reject(overloaded())
      queue.push({ event, work, resolve: resolve as (value: unknown) => void, reject })
      running ??= commitAll()
    })
  }

  return {
    transaction,
    onCommitted: ((next) => {
      listener = next
    }) satisfies Database['onCommitted'],
    beforeCommit: ((hook) => {
      lastStep = hook
    }) satisfies Database['beforeCommit'],
    /** refuses new changes and resolves when the queued ones are answered */
    async finish(): Promise<void> {
      finishing = true
      await running
    },
  }
}

/**
 * Lets requests that have arrived come to their changes, so that these go into the same group: until a turn of the event
 * loop brings no more, so it waits for no others. A transaction runs in microtasks alone, so without this every group
 * would be of one change.
 */
async function otherRequests(queue: readonly Job[]): Promise<void> {
  let before: number
  do {
    before = queue.length
    await new Promise((resolve) => setImmediate(resolve))
  } while (before < queue.length && queue.length < GROUP_SIZE)
}

function answer(outcomes: Outcome[], unannounced: GatehouseError | undefined): void {
  for (const outcome of outcomes) {
    if ('error' in outcome) outcome.job.reject(outcome.error)
    else if (unannounced !== undefined) outcome.job.reject(unannounced)
    else outcome.job.resolve(outcome.value)
  }
}

const CONTENT: ReadonlySet<Change['kind']> = new Set(['label', 'partial', 'prompt'])

/** A change that names nothing it touched may have touched anything. */
const isContentAlone = (outcome: Outcome): boolean =>
  'changes' in outcome && outcome.changes.length > 0 && outcome.changes.every(({ kind }) => CONTENT.has(kind))

async function runInSavepoint(writer: Connection, job: Job, closureMs: number, seen: Tx['seen']): Promise<Outcome> {
  const life = { alive: true }
  const changes: Change[] = []
  writer.run('SAVEPOINT change')
  try {
    const tx = createTx(writer, life, job.event, changes, seen)
    const value = await settledWithin(closureMs, () => job.work(tx))
    await tx.revise()
    writer.run('RELEASE change')
    return { job, changes, value }
  } catch (error) {
    // A full disk may have ended the whole transaction: then nobody's change is left.
    if (!writer.inTransaction) throw error
    writer.run('ROLLBACK TO change')
    writer.run('RELEASE change')
    return { job, error: storageFailure(error) ?? error }
  } finally {
    life.alive = false
  }
}

function createTx(
  writer: Connection,
  life: { alive: boolean },
  event: AuditDraft,
  changes: Change[],
  seen: Tx['seen'],
): Tx {
  let revision: Promise<number> | undefined
  const db = drizzle({ client: mortal(writer, life) })
  const run: Tx['run'] = async (text, values) => {
    requireLife(life)
    return runText(writer, text, values)
  }
  const nextRevision = async (): Promise<number> => {
    const { revision: next } = writer
      .query('UPDATE installation SET revision = revision + 1 RETURNING revision')
      .get() as { revision: number }
    return next
  }
  return Object.assign(db, {
    tables,
    now: Date.now(),
    event: { ...event },
    seen,
    run,
    changed: (kind: Change['kind'], id: string) => void changes.push({ kind, id }),
    revise: () => {
      requireLife(life)
      revision ??= nextRevision()
      return revision
    },
  })
}

/** The write connection, as far as drizzle uses it, for as long as one change lives: a late write cannot get into another. */
function mortal(writer: Connection, life: { alive: boolean }): Connection {
  const prepare = (text: string) => {
    requireLife(life)
    const statement = writer.query(text)
    const whileAlive =
      <Result>(run: (...values: never[]) => Result) =>
      (...values: never[]): Result => {
        requireLife(life)
        return run.apply(statement, values)
      }
    return { run: whileAlive(statement.run), all: whileAlive(statement.all), values: whileAlive(statement.values) }
  }
  return { prepare } as unknown as Connection
}
