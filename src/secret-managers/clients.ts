import { readFileSync } from 'node:fs'
import type { ManagerType } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import { GatehouseError } from '../errors.ts'
import type { Outbound } from '../outbound/outbound.ts'
import type { Transport } from '../outbound/transport.ts'
import {
  type FetchedSecret,
  type ManagerCall,
  type ManagerClient,
  ManagerError,
  type SecretManager,
  STEPS,
  type Step,
} from './manager.ts'
import { repeats } from './manager-message.ts'
import type { Reference } from './values.ts'

/** A client with connections of its own. It is closed when it is retired and no call is under way on it. */
export interface OpenClient {
  readonly client: ManagerClient
  readonly transport: Transport
  /** what the manager must not repeat as the name of a version */
  readonly withheld: object
  /** told of each step of every call under way; a connection serves them all */
  readonly watchers: Set<ManagerCall['passed']>
  users: number
  /** a read succeeded, so it has logged in */
  loggedIn: boolean
  retired: boolean
}

export interface Clients {
  /** @throws ManagerError where a setting stands in the way; GatehouseError where the seal does not open */
  open(reference: Reference): OpenClient
  /**
   * Reads within the one deadline, which counts from now.
   *
   * @param watch told of each step that is done
   * @throws ManagerError, and nothing else
   */
  read(open: OpenClient, secretPath: string, watch?: ManagerCall['passed']): Promise<FetchedSecret>
  retire(open: OpenClient): void
  counts(): { open: number; underWay: number }
  /** closes all, those with calls under way too */
  close(): void
}

export interface ClientOptions {
  settings: Config['secret_managers']
  outbound: Pick<Outbound, 'open'>
  managers: Record<ManagerType, SecretManager>
}

/** An aborted call may say for so long at which step it was; SDKs that ignore the signal are left behind after it. */
const GRACE_MS = 100

export function createClients({ settings, outbound, managers }: ClientOptions): Clients {
  const all = new Set<OpenClient>()
  let underWay = 0

  function shut(open: OpenClient): void {
    if (!all.delete(open)) return
    open.client.close()
    open.transport.close()
  }

  function retire(open: OpenClient): void {
    open.retired = true
    if (open.users === 0) shut(open)
  }

  return {
    open({ id, managerType, authConfig }) {
      const watchers: OpenClient['watchers'] = new Set()
      const transport = outbound.open({
        ...certificateAuthorities(settings, managerType),
        onStep: (step, ms) => {
          for (const passed of watchers) passed(step, ms)
        },
      })
      try {
        const withheld = authConfig()
        const client = managers[managerType].open(withheld, { transport, settings, referenceId: id })
        const open = { client, transport, withheld, watchers, users: 0, loggedIn: false, retired: false }
        all.add(open)
        return open
      } catch (error) {
        transport.close()
        throw error instanceof GatehouseError ? error : ours(error, 'address')
      }
    },

    async read(open, secretPath, watch) {
      const controller = new AbortController()
      let furthest = 0
      const passed: ManagerCall['passed'] = (step, ms) => {
        furthest = Math.max(furthest, STEPS.indexOf(step))
        watch?.(step, ms)
      }
      open.watchers.add(passed)
      open.users++
      underWay++
      const deadline = startDeadline(settings.timeout_seconds, controller)
      try {
        const secret = await Promise.race([
          Promise.try(() => open.client.fetchSecret(secretPath, { signal: controller.signal, passed })),
          deadline.missed,
        ])
        open.loggedIn = true
        return { ...secret, version: plainVersion(secret, open.withheld) }
      } catch (error) {
        const step = underWayAfter(furthest)
        // it may never settle, and would keep this client in use
        if (error === MISSED) open.retired = true
        throw error === MISSED ? tooSlow(step, settings.timeout_seconds) : ours(error, step)
      } finally {
        deadline.clear()
        open.watchers.delete(passed)
        open.users--
        underWay--
        if (open.retired) retire(open)
      }
    },

    retire,
    counts: () => ({ open: all.size, underWay }),
    close() {
      for (const open of all) {
        open.retired = true
        shut(open)
      }
    },
  }
}

/** Shorter ones say nothing, and may stand in a secret by chance. */
const TELLING = 12

/** A manager may name a version as it likes, and a test shows the name: not one that is a login, or the secret itself. */
function plainVersion({ content, version }: FetchedSecret, withheld: object): string | null {
  if (version === null || !/^[\w-]{1,64}$/.test(version) || repeats(version, withheld)) return null
  return version.length >= TELLING && typeof content === 'string' && content.includes(version) ? null : version
}

const CA_FILES = { aws_sm: 'aws_ca_file', azure_kv: 'azure_ca_file', hashicorp_vault: 'vault_ca_file' } as const

/** Read for each client, so that a file that was replaced counts from the next one on. */
function certificateAuthorities(settings: Config['secret_managers'], managerType: ManagerType): { ca?: string } {
  const setting = CA_FILES[managerType]
  const file = settings[setting]
  if (file === '') return {}
  try {
    return { ca: readFileSync(file, 'utf8') }
  } catch {
    throw new ManagerError('tls', 'manager_config', `the file that secret_managers.${setting} names cannot be read`)
  }
}

const MISSED = Symbol('missed')

/** One timer for both: the abort, and leaving behind what does not heed it. */
function startDeadline(timeoutSeconds: number, controller: AbortController) {
  const { promise: missed, reject } = Promise.withResolvers<never>()
  let timer = setTimeout(() => {
    timer = setTimeout(() => reject(MISSED), GRACE_MS)
    controller.abort(new DOMException('the deadline of this call has passed', 'TimeoutError'))
  }, timeoutSeconds * 1000)
  return { missed, clear: () => clearTimeout(timer) }
}

/** The step after the last one that was told; reading a secret ends with `parse`. */
const underWayAfter = (furthest: number): Step => STEPS[Math.min(furthest + 1, STEPS.indexOf('parse'))] ?? 'parse'

const tooSlow = (step: Step, seconds: number): ManagerError =>
  new ManagerError(step, 'manager_timeout', `the secret manager did not answer within ${seconds} s`)

/** Adapters throw ManagerErrors. Anything else may hold a token, so its name alone is kept. */
function ours(error: unknown, step: Step): ManagerError {
  if (error instanceof ManagerError) return error
  const name = error instanceof Error && /^[A-Za-z]{1,40}$/.test(error.name) ? error.name : 'no Error'
  return new ManagerError(step, 'manager_bad_response', `the call failed in a way that has no name here (${name})`)
}
