import { readFile } from 'node:fs/promises'
import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { type ManagerCall, ManagerError } from './manager.ts'
import { isObject, jsonIn, refusesToken, unexpected, type VaultAnswer } from './vault-answer.ts'
import { loginPath } from './vault-path.ts'

/** Vault as one token sees it, or as nobody does. Every answer comes back whole, refusals too. */
export interface VaultSession {
  /** empty: nobody's */
  readonly token: string
  /** @throws ManagerError where no whole answer came */
  read(path: string, request: VaultRequest): Promise<VaultAnswer>
  write(path: string, data: object, request: VaultRequest): Promise<VaultAnswer>
}

export interface VaultRequest {
  signal: AbortSignal
  /** what it belongs to, should it fail */
  step: 'login' | 'read'
}

export interface VaultDoor {
  authConfig: VaultAuthConfig
  /** the service account's token of Kubernetes logins */
  jwtFile: string
  openSession(token: string): Promise<VaultSession>
}

/** Times are UTC milliseconds; null where the token does not end, or nobody may know when. */
export interface VaultLogin {
  session: VaultSession
  endsAt: number | null
  /** when it is renewed or made again: at 80 % of its lease */
  dueAt: number | null
  isRenewable: boolean
}

/**
 * Logs in (SM-11). A token is used as it is.
 *
 * @throws ManagerError at the step `login`
 */
export function logIn(door: VaultDoor, { signal }: ManagerCall): Promise<VaultLogin> {
  const { authConfig } = door
  if (authConfig.vault_auth_type === 'token') return lookUp(door, authConfig.vault_token, signal)
  if (authConfig.vault_auth_type === 'approle') return logInByRole(door, authConfig, signal)
  return logInFromKubernetes(door, authConfig, signal)
}

/** A token that may not ask about itself can still read secrets. */
async function lookUp({ authConfig, openSession }: VaultDoor, token: string, signal: AbortSignal): Promise<VaultLogin> {
  if (!isHeaderText(token)) throw unfit('auth_config.vault_token: must not contain spaces, line breaks or the like')
  const session = await openSession(token)
  const answer = await session.read('auth/token/lookup-self', { signal, step: 'login' })
  if (answer.status === 403 && !refusesToken(answer)) return { session, endsAt: null, dueAt: null, isRenewable: false }
  const { data } = jsonIn(answer, 'login', authConfig)
  if (!isObject(data)) throw unexpected('login')
  return { session, ...leaseOf(data['ttl'], data['renewable']) }
}

type AppRole = Extract<VaultAuthConfig, { vault_auth_type: 'approle' }>
type Kubernetes = Extract<VaultAuthConfig, { vault_auth_type: 'kubernetes' }>

/** What wraps a secret id looks like any token of Vault's: `hvs.…`, and `s.…` before 1.10. */
const LIKE_A_TOKEN = /^(?:hv[sb]|[sb])\.[\w.-]{20,}$/

async function logInByRole(door: VaultDoor, authConfig: AppRole, signal: AbortSignal): Promise<VaultLogin> {
  const { vault_role_id: role_id, vault_secret_id: secret_id, vault_auth_mount: mount = 'approle' } = authConfig
  const answer = await askForToken(door, mount, { role_id, secret_id }, signal)
  if (answer.status === 400 && LIKE_A_TOKEN.test(secret_id))
    throw unfit('auth_config.vault_secret_id: this is a wrapping token: unwrap it first, and send the secret id')
  return loginFrom(door, answer, authConfig)
}

/** Kubernetes replaces the file while it is in use, so it is read each time. */
async function logInFromKubernetes(door: VaultDoor, authConfig: Kubernetes, signal: AbortSignal): Promise<VaultLogin> {
  const jwt = await readJwt(door.jwtFile)
  const { vault_role: role, vault_auth_mount: mount = 'kubernetes' } = authConfig
  const answer = await askForToken(door, mount, { role, jwt }, signal)
  return loginFrom(door, answer, { ...authConfig, jwt })
}

async function readJwt(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text.trim() === '')
    throw unfit('this machine has no service account token: [secret_managers] vault_jwt_file is missing, or empty')
  return text.trim()
}

async function askForToken({ openSession }: VaultDoor, mount: string, credentials: object, signal: AbortSignal) {
  const path = loginPath(mount)
  if (path === undefined) throw unfit('auth_config.vault_auth_mount: must be a path such as "kubernetes-prod"')
  const nobody = await openSession('')
  return nobody.write(path, credentials, { signal, step: 'login' })
}

async function loginFrom({ openSession }: VaultDoor, answer: VaultAnswer, withheld: object): Promise<VaultLogin> {
  const { auth } = jsonIn(answer, 'login', withheld)
  if (!isObject(auth)) throw unexpected('login')
  const token = auth['client_token']
  if (typeof token !== 'string' || !isHeaderText(token)) throw unexpected('login')
  return { session: await openSession(token), ...leaseOf(auth['lease_duration'], auth['renewable']) }
}

/**
 * @returns the same token with a later end; undefined where Vault does not prolong it: it may not, or it has come to the
 *          greatest age of its kind
 */
export async function renew(door: VaultDoor, login: VaultLogin, { signal }: ManagerCall) {
  const { session, endsAt, isRenewable } = login
  if (!isRenewable || endsAt === null || endsAt <= Date.now()) return undefined
  const answer = await session.write('auth/token/renew-self', {}, { signal, step: 'login' })
  if (answer.json !== undefined && NOT_PROLONGED.has(answer.status)) return undefined
  const { auth } = jsonIn(answer, 'login', { ...door.authConfig, token: session.token })
  if (!isObject(auth)) throw unexpected('login')
  const lease = leaseOf(auth['lease_duration'], auth['renewable'])
  // whole seconds are counted from when the answer comes, so an end that stays may seem to move a little
  return lease.endsAt === null || lease.endsAt > endsAt + 1_000 ? { session, ...lease } : undefined
}

const NOT_PROLONGED = new Set([400, 403, 404, 405])

/** The part of its life that a login is used for without asking anew (SM-11). */
const USED_SHARE = 0.8

function leaseOf(seconds: unknown, renewable: unknown): Omit<VaultLogin, 'session'> {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0) throw unexpected('login')
  const isRenewable = renewable === true
  if (seconds === 0) return { endsAt: null, dueAt: null, isRenewable }
  const now = Date.now()
  return { endsAt: now + seconds * 1_000, dueAt: now + seconds * 1_000 * USED_SHARE, isRenewable }
}

const unfit = (message: string): ManagerError => new ManagerError('login', 'manager_config', message)

const isHeaderText = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)
