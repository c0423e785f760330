import type { ReservedSQL, SQL } from 'bun'
import { storageUnavailable } from './errors.ts'

/**
 * Milliseconds that a change or a read may take altogether, waiting for its turn included. Above `statement_timeout`, so
 * that a server that is there answers first.
 */
export const DEADLINE_MS = 10_000

/**
 * Runs `work` on a connection of its own, and closes that one if there is no end after `ms`: PostgreSQL that went silent
 * never answers, and closing makes fail what waits for it. What was not committed by then never is, since nothing more
 * can be sent; the server undoes what it no longer hears of (`SESSION`).
 *
 * @throws GatehouseError storage_unavailable when no connection was free in time
 * @throws what `work` throws; `isConnectionFailure` when its connection was closed
 */
export async function onConnection<T>(
  pool: SQL,
  ms: number,
  work: (connection: ReservedSQL) => Promise<T>,
): Promise<T> {
  const waiting = new AbortController()
  let connection: ReservedSQL | undefined
  const timer = setTimeout(() => {
    waiting.abort(storageUnavailable(new Error('no connection to PostgreSQL was free in time')))
    void connection?.close()
  }, ms)
  try {
    connection = await pool.reserve({ signal: waiting.signal })
    return await work(connection)
  } finally {
    clearTimeout(timer)
    void connection?.release()
  }
}

/** As much of a client as a reader needs. */
export interface Queries {
  unsafe(text: string, values?: unknown[]): { values(): Promise<unknown[][]> }
}

/** Queries without a transaction, each over a connection of its own, for `ms` at most. */
export const boundedQueries = (pool: SQL, ms: number): Queries => ({
  unsafe: (text, values) => ({
    values: () => onConnection(pool, ms, async (connection) => connection.unsafe(text, values).values()),
  }),
})
