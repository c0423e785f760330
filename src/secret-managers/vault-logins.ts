import { type ManagerCall, ManagerError } from './manager.ts'
import { logIn, renew, type VaultDoor, type VaultLogin } from './vault-login.ts'

/** The login of one client: made on need, kept, renewed or made again when it is due. No timers. */
export interface VaultLogins {
  /** @throws ManagerError at the step `login` */
  current(call: ManagerCall): Promise<VaultLogin>
  /** drops a login that Vault refuses; false where there is no making another: a token is all there is */
  drop(login: VaultLogin): boolean
  endsAt(): number | null
  close(): void
}

export function createVaultLogins(door: VaultDoor): VaultLogins {
  const isToken = door.authConfig.vault_auth_type === 'token'
  let login: VaultLogin | undefined
  let isClosed = false

  const oneAtATime = sharing(async (call) => {
    const old = login
    return old === undefined ? logIn(door, call) : next(old, call)
  })
  /** A token that is not prolonged is used to its end; Vault says when that has come. */
  async function next(old: VaultLogin, call: ManagerCall): Promise<VaultLogin> {
    return (await renew(door, old, call)) ?? (isToken ? { ...old, dueAt: null } : logIn(door, call))
  }

  return {
    async current(call) {
      if (login !== undefined && (login.dueAt === null || Date.now() < login.dueAt)) return login
      const made = await oneAtATime(call)
      if (!isClosed) login = made
      return made
    },
    drop(refused) {
      if (isToken) return false
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

/**
 * Does one piece of work at a time. Who asks meanwhile gets the same result, or the same failure, but waits no longer
 * than their own deadline, and is not hurt by an end of the first one's. What comes after its deadline is dropped.
 */
function sharing<T>(work: (call: ManagerCall) => Promise<T>): (call: ManagerCall) => Promise<T> {
  let underWay: { signal: AbortSignal; result: Promise<T> } | undefined

  function start(call: ManagerCall) {
    const started = { signal: call.signal, result: within(call.signal, work(call)) }
    const end = () => {
      if (underWay === started) underWay = undefined
    }
    started.result.then(end, end)
    underWay = started
    return started
  }
  return async function join(call) {
    const joined = underWay ?? start(call)
    try {
      return await within(call.signal, joined.result)
    } catch (error) {
      if (call.signal.aborted || !joined.signal.aborted) throw error
      return join(call)
    }
  }
}

async function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const end = () => reject(new ManagerError('login', 'manager_timeout', 'the login at Vault did not end in time'))
  if (signal.aborted) end()
  signal.addEventListener('abort', end)
  try {
    return await Promise.race([work, ended])
  } finally {
    signal.removeEventListener('abort', end)
  }
}
