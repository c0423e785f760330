import { networkOf } from '../audit/refusals.ts'
import { GatehouseError } from '../errors.ts'

/** Failed attempts that a network may make in a minute (AK-7). */
const MOST_A_MINUTE = 20
const MINUTE_MS = 60_000
/** Networks that are told apart in a minute; all beyond them count as one, so that a full table opens nothing (RL-2). */
const MOST_NETWORKS = 100_000

/** Bounds the guesses at a secret that a call without a key may make; what is right is never refused (decision 37). */
export interface Failures {
  /**
   * Counts a wrong guess.
   *
   * @param now milliseconds of a clock that never goes back
   * @throws GatehouseError `rate_limited` when this network has guessed wrong too often
   */
  note(clientIp: string | null, now: number): void
}

export function createFailures(): Failures {
  let counts = new Map<string, number>()
  let minute = 0
  return {
    note(clientIp, now) {
      const current = Math.floor(now / MINUTE_MS)
      if (current !== minute) {
        minute = current
        counts = new Map()
      }
      const network = networkOf(clientIp)
      const name = counts.has(network) || counts.size < MOST_NETWORKS ? network : 'all others'
      const count = (counts.get(name) ?? 0) + 1
      counts.set(name, count)
      if (count > MOST_A_MINUTE)
        throw new GatehouseError('rate_limited', 'too many attempts failed; try again later', {
          retryAfterSeconds: Math.ceil(((current + 1) * MINUTE_MS - now) / 1000),
        })
    },
  }
}
