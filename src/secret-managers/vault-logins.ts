import { type ManagerCall, ManagerError } from './manager.ts'
import { oneAtATime } from './one-at-a-time.ts'
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

  const another = oneAtATime(
    async (call: ManagerCall) => {
      const old = login
      return old === undefined ? logIn(door, call) : next(old, call)
    },
    () => new ManagerError('login', 'manager_timeout', 'the login at Vault did not end in time'),
  )
  /** A token that is not prolonged is used to its end; Vault says when that has come. */
  async function next(old: VaultLogin, call: ManagerCall): Promise<VaultLogin> {
    return (await renew(door, old, call)) ?? (isToken ? { ...old, dueAt: null } : logIn(door, call))
  }

  return {
    async current(call) {
      if (login !== undefined && (login.dueAt === null || Date.now() < login.dueAt)) return login
      const made = await another(call)
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
