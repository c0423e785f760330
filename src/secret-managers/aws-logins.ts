import type { AwsCall } from './aws-transport.ts'
import { endingAt, type KeptLogin, keepLogin, type Login } from './kept-login.ts'
import { ManagerError } from './manager.ts'

export interface AwsCredentials {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

export interface AwsLogin extends Login {
  credentials: AwsCredentials
}

export type AwsLogins = KeptLogin<AwsCall, AwsLogin>

/** @param logIn makes a new login */
export const keepAwsLogin = (logIn: (call: AwsCall) => Promise<AwsLogin>): AwsLogins =>
  keepLogin(logIn, () => new ManagerError('login', 'manager_timeout', 'the login at AWS did not end in time'))

/** @param endsAt UTC milliseconds, by the clock of AWS */
export const endingLogin = (credentials: AwsCredentials, endsAt: number): AwsLogin => ({
  credentials,
  ...endingAt(endsAt),
})

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
    if (!(error instanceof ManagerError) || !REFUSED.has(error.failure)) throw error
    logins.drop(login)
    if (error.failure !== 'manager_auth_expired') throw error
  }
  const another = await logins.current(call)
  return work(another.credentials)
}

/** What AWS refuses is not sent again, so that the next call begins with a new login. */
const REFUSED = new Set<string>(['manager_auth_expired', 'manager_auth_failed'])
