import type { ManagerCall, ManagerError } from './manager.ts'
import { oneAtATime } from './one-at-a-time.ts'

/** Times are UTC milliseconds. */
export interface Login {
  endsAt: number
  /** when it is made again */
  dueAt: number
}

const USED_SHARE = 0.8

/** A service that keeps logins itself has no next one ready much sooner. */
const LEAST_LEFT_MS = 300_000

/** A login is used to 80 % of its life, or to five minutes before its end, whichever is later. */
export function endingAt(endsAt: number): Login {
  const now = Date.now()
  return { endsAt, dueAt: Math.max(now + (endsAt - now) * USED_SHARE, endsAt - LEAST_LEFT_MS) }
}

/** A login that is made on need, kept, and made again when it is due. No timers. */
export interface KeptLogin<Call, L extends Login> {
  /** @throws ManagerError at the step `login` */
  current(call: Call): Promise<L>
  /** forgets a login that the manager refuses */
  drop(login: L | undefined): void
  endsAt(): number | null
  close(): void
}

/**
 * @param logIn   makes a new login
 * @param tooLate what to say to whom the deadline leaves without one
 */
export function keepLogin<Call extends ManagerCall, L extends Login>(
  logIn: (call: Call) => Promise<L>,
  tooLate: () => ManagerError,
): KeptLogin<Call, L> {
  const another = oneAtATime(logIn, tooLate)
  let login: L | undefined
  let isClosed = false

  return {
    async current(call) {
      if (login !== undefined && Date.now() < login.dueAt) return login
      const made = await another(call)
      if (!isClosed) login = made
      return made
    },
    drop(refused) {
      if (login === refused) login = undefined
    },
    endsAt: () => login?.endsAt ?? null,
    close() {
      isClosed = true
      login = undefined
    },
  }
}
