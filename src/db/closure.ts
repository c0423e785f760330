import { GatehouseError } from '../errors.ts'

// The bounds that a change lives in, the same on both dialects.

/** Changes that may wait for their turn; the next one is refused with 503. */
export const QUEUE_BOUND = 1024

/** A closure that has not settled by then is undone, since every other writer waits for it (decision 2). */
export const CLOSURE_MS = 5_000

/** How long `/readyz` waits for the storage: it has answered before those who ask give up after two seconds. */
export const PROBE_MS = 1_500

export const overloaded = (): GatehouseError =>
  new GatehouseError('overloaded', 'too many changes are waiting to be stored; try again', { retryAfterSeconds: 1 })

/** The error of a `Tx` that is used after its transaction has ended: a forgotten `await`, or a closure that timed out. */
export function requireLife(life: { alive: boolean }): void {
  if (!life.alive) throw new Error('this transaction has ended')
}

/** @throws GatehouseError storage_unavailable when `work` has not settled after `ms`; what it does later is ignored */
export async function settledWithin<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(
      new GatehouseError('storage_unavailable', 'the change took too long and was undone; try again', {
        retryAfterSeconds: 5,
      }),
    )
  }, ms)
  try {
    return await Promise.race([work(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
