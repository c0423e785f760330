import type { AwsCall } from './aws-transport.ts'
import { ManagerError } from './manager.ts'
import { oneAtATime } from './one-at-a-time.ts'

export interface AwsCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

/** Times are UTC milliseconds; null where the credentials do not end. */
export interface AwsLogin {
  credentials: AwsCredentials
  endsAt: number | null
  /** when it is made again */
  dueAt: number | null
}

/** Where credentials come from: made on need, kept, and made again when they are due. No timers. */
export interface AwsLogins {
  /** @throws ManagerError at the step `login` */
  current(call: AwsCall): Promise<AwsLogin>
  /** Drops a login that AWS refuses; false where there is no making another. */
  drop(login: AwsLogin): boolean
  endsAt(): number | null
  close(): void
}

/** Credentials that somebody typed: nobody is asked for them, and there are no others. */
export function staticLogins(credentials: AwsCredentials): AwsLogins {
  const login: AwsLogin = { credentials, endsAt: null, dueAt: null }
  return { current: async () => login, drop: () => false, endsAt: () => null, close() {} }
}

/** @param logIn makes a new login */
export function keptLogins(logIn: (call: AwsCall) => Promise<AwsLogin>): AwsLogins {
  let login: AwsLogin | undefined
  let isClosed = false
  const another = oneAtATime(
    logIn,
    () => new ManagerError('login', 'manager_timeout', 'the login at AWS did not end in time'),
  )

  return {
    async current(call) {
      if (login !== undefined && (login.dueAt === null || Date.now() < login.dueAt)) return login
      const made = await another(call)
      if (!isClosed) login = made
      return made
    },
    drop(refused) {
      if (login === refused) login = undefined
      return true
    },
    endsAt: () => login?.endsAt ?? null,
    close() {
      isClosed = true
      login = undefined
    },
  }
}

const USED_SHARE = 0.8

/** EC2 and container hosts have the next credentials ready this long before the end of the old, and no sooner. */
const NEXT_READY_MS = 300_000

/**
 * A login that ends. It is used to 80 % of its life (SM-8), or to five minutes before its end, whichever is later.
 *
 * @param endsAt UTC milliseconds, by the clock of AWS
 */
export function endingLogin(credentials: AwsCredentials, endsAt: number): AwsLogin {
  const now = Date.now()
  return { credentials, endsAt, dueAt: Math.max(now + (endsAt - now) * USED_SHARE, endsAt - NEXT_READY_MS) }
}

/** Works with the login at hand; where AWS says that it has ended, once more with a new one. */
export async function withLogin<T>(
  logins: AwsLogins,
  call: AwsCall,
  work: (credentials: AwsCredentials) => Promise<T>,
): Promise<T> {
  const login = await logins.current(call)
  try {
    return await work(login.credentials)
  } catch (error) {
    if (!(error instanceof ManagerError) || !REFUSED.has(error.failure) || !logins.drop(login)) throw error
    if (error.failure !== 'manager_auth_expired') throw error
  }
  const another = await logins.current(call)
  return work(another.credentials)
}

/** What AWS refuses is not sent again, so that the next call begins with a new login. */
const REFUSED = new Set<string>(['manager_auth_expired', 'manager_auth_failed'])
