import { GatehouseError } from '../errors.ts'

const TESTS = 10
const WINDOW_MS = 60_000

/**
 * At most 10 tests in any minute of one reference: each goes to the manager, past cache and breaker.
 *
 * @returns counts one test; @throws GatehouseError `rate_limited`, and counts nothing
 */
export function createTestLimit(): (referenceId: string, now: number) => void {
  /** times of the tests that were let through, by reference, least recently tested first */
  const tested = new Map<string, number[]>()
  return (referenceId, now) => {
    const times = (tested.get(referenceId) ?? []).filter((time) => time <= now && now - time < WINDOW_MS)
    const [oldest] = times
    if (oldest !== undefined && times.length >= TESTS) throw tooMany(oldest + WINDOW_MS - now)
    tested.delete(referenceId)
    tested.set(referenceId, [...times, now])
    for (const [id, [...past]] of tested) {
      if (now - (past.at(-1) ?? 0) < WINDOW_MS) break
      tested.delete(id)
    }
  }
}

const tooMany = (waitMs: number): GatehouseError =>
  new GatehouseError('rate_limited', 'this secret reference was tested too often within a minute; try later', {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  })
