import type { AuthConfig, ManagerType } from '../../schema/api/secret-references.ts'
import { GatehouseError } from '../errors.ts'
import type { Redacted } from '../redacted.ts'
import { createBreaker } from './breaker.ts'
import { createEntries, type Entry, healthOf, noteFailure } from './cache.ts'
import { type ClientOptions, createClients } from './clients.ts'
import { createFetching, isFresh } from './fetching.ts'
import { pickField } from './field.ts'
import { missingGrant } from './grants.ts'
import { type FetchedSecret, ManagerError, type ManagerFailure, type Step } from './manager.ts'
import { regionOfArn } from './secret-path.ts'
import { createStepLog } from './steps.ts'
import { createTestLimit } from './test-limit.ts'

/** What is needed of a stored reference, or of one that is only tested, to read its secret. */
export interface Reference {
  /** of one that is not stored: any name that its tester is limited by */
  id: string
  organisationId: string
  /** grows with every change; a value, a login and a refusal belong to one revision */
  revision: number
  managerType: ManagerType
  /** opens the seal, on need: for a login, and once for each new object to check its grant */
  authConfig(): AuthConfig
  secretPath: string
  /** null: the setting counts */
  cacheSeconds: number | null
  /** who may use it */
  workspaces: 'all' | readonly ReachingWorkspace[]
}

export interface ReachingWorkspace {
  id: string
  slug: string
}

/** Times are UTC milliseconds. */
export interface SecretAnswer {
  secret: FetchedSecret
  fetchedAt: number
  expiresAt: number
  /** the manager could not be asked, so this is what it said before */
  stale: boolean
  /** why it could not; null unless stale */
  staleReason: ManagerFailure | null
  /** false for the one caller whose call went to the manager; those who waited with it got it from there, too */
  fromCache: boolean
}

export interface TestStep {
  step: Step
  /** null: `not_told_apart` from a later step, or `not_reached` */
  ok: boolean | null
  ms: number | null
  code: ManagerFailure | 'not_told_apart' | 'not_reached' | null
  message: string | null
  manager_message: string | null
}

export interface TestReport {
  ok: boolean
  failedStep: Step | null
  /** all of STEPS, in their order */
  steps: TestStep[]
  /** the field that was meant, for its fingerprint; null unless ok */
  value: Redacted<string> | null
  version: string | null
  usedCachedLogin: boolean
}

/** What this node knows of a reference since it last changed or was last forgotten; times are UTC milliseconds. */
export interface ReferenceHealth {
  lastSuccessAt: number | null
  lastError: { step: Step; code: ManagerFailure; at: number } | null
  /** of the last call that succeeded */
  latencyMs: number | null
  /** a value is held that has not expired */
  cached: boolean
  ageSeconds: number | null
  /** a value is held that has expired */
  stale: boolean
  /** when a fetch first gave another value than the one before it */
  valueChangedAt: number | null
  loginExpiresAt: number | null
}

/** Gauges; a reference that is not held counts nowhere. */
export interface SecretCounts {
  held: number
  /** whose last call succeeded, and failed */
  healthy: number
  failing: number
  /** logins that are open, those of tests included */
  logins: number
  /** calls to managers under way */
  underWay: number
  breakersOpen: number
}

export interface FetchOptions {
  /** asks the manager although a value is held, at most once in 5 s a reference */
  refresh?: boolean
  /** told when the call has ended, if this very fetch made one: neither for values in memory nor for who only waited */
  onCall?: (call: ManagerCallEnded) => void
}

export interface SecretValues {
  /**
   * The secret of a reference, from memory or from its manager.
   *
   * @throws ManagerError; GatehouseError where the seal does not open
   */
  fetch(reference: Reference, options?: FetchOptions): Promise<SecretAnswer>
  /** The same without a promise, where a value is held and this very object was granted before. */
  cached(reference: Reference): SecretAnswer | undefined
  /**
   * Goes to the manager step by step, past cache and breaker, and fills neither.
   *
   * @param options `fresh` logs in anew even where a login is held; `secretKey` is the field that is meant
   * @throws GatehouseError `rate_limited` after 10 in a minute for one reference id; a failing manager is no error
   */
  test(reference: Reference, options: { fresh?: boolean; secretKey: string | null }): Promise<TestReport>
  health(referenceId: string): ReferenceHealth
  /** Forgets value, login, refusal and health; a call under way still answers those who wait for it. */
  drop(referenceId: string): void
  clear(): void
  counts(): SecretCounts
  close(): void
}

/** One call to a manager that has ended, tests apart. */
export interface ManagerCallEnded {
  managerType: ManagerType
  outcome: 'ok' | ManagerFailure
  /** where it failed */
  step: Step | null
  seconds: number
}

export interface SecretValuesOptions extends ClientOptions {
  /** for metrics: told of each call, however many callers waited for it */
  onCall?: (call: ManagerCallEnded) => void
  /** UTC milliseconds; may step back, which ends what was held */
  now?: () => number
  random?: () => number
}

/**
 * Secrets of references over the port: held in memory by reference and revision, fetched once for all who wait, within
 * one deadline (decisions 45 and 46, SM-2, SM-7). Nothing of it is written anywhere.
 */
export function createSecretValues(options: SecretValuesOptions): SecretValues {
  const { settings, now = Date.now } = options
  const clients = createClients(options)
  const breaker = createBreaker()
  const entries = createEntries(settings.cache_entries, ({ client }) => {
    if (client !== undefined) clients.retire(client)
  })
  const fetchValue = createFetching({ ...options, clients, breaker, now })
  const countTest = createTestLimit()
  let closed = false

  /** The grant is looked at before anything is given out; for the object that was looked at last, from memory. */
  function requireGrant(entry: Entry, reference: Reference): void {
    if (entry.checked?.reference !== reference) {
      const authConfig = reference.authConfig()
      const missing = missingGrant(authConfig, reference, settings.machine_identity)
      entry.checked = { reference, missing, host: `${reference.organisationId} ${hostOf(authConfig, reference)}` }
    }
    if (entry.checked.missing === undefined) return
    const error = notGranted(entry.checked.missing)
    entry.value = undefined
    noteFailure(entry, error, now())
    throw error
  }

  function requireOpen(): void {
    if (closed) throw new GatehouseError('draining', 'this server is shutting down; try again')
  }

  return {
    async fetch(reference, options = {}) {
      requireOpen()
      const entry = entries.of(reference)
      requireGrant(entry, reference)
      return fetchValue(entry, reference, options)
    },

    cached(reference) {
      const entry = entries.find(reference)
      if (entry?.checked?.reference !== reference || entry.checked.missing !== undefined) return undefined
      return isFresh(entry.value, now()) ? entry.value : undefined
    },

    async test(reference, { fresh = false, secretKey }) {
      requireOpen()
      countTest(reference.id, now())
      const log = createStepLog()
      const entry = entries.peek(reference.id)
      const held = !fresh && entry?.revision === reference.revision ? loginOf(entry, now()) : undefined
      let client = held
      try {
        const missing = missingGrant(reference.authConfig(), reference, settings.machine_identity)
        if (missing !== undefined) return log.report(notGranted(missing), false)
        log.passedNow('grant')
        client ??= clients.open(reference)
        const secret = await clients.read(client, reference.secretPath, log.passed)
        const { value } = pickField(secret, secretKey)
        log.passedNow('field')
        return log.report({ secret, value }, held !== undefined)
      } catch (error) {
        if (!(error instanceof ManagerError)) throw error
        return log.report(error, held !== undefined)
      } finally {
        if (held === undefined && client !== undefined) clients.retire(client)
      }
    },

    health: (id) => healthOf(entries.peek(id), now()),
    drop: entries.drop,
    clear() {
      entries.clear()
      breaker.clear()
    },
    counts() {
      const held = entries.held()
      const { open, underWay } = clients.counts()
      return {
        held: held.length,
        healthy: held.filter(({ failing }) => failing === false).length,
        failing: held.filter(({ failing }) => failing === true).length,
        logins: open,
        underWay,
        breakersOpen: breaker.open(now()),
      }
    },
    close() {
      closed = true
      entries.clear()
      clients.close()
    },
  }
}

/** Whom the breaker watches: one manager, as far as the reference tells. */
function hostOf(authConfig: AuthConfig, { secretPath }: Reference): string {
  if ('aws_auth_type' in authConfig) return `aws ${authConfig.aws_region ?? regionOfArn(secretPath)}`
  const address = 'azure_auth_mode' in authConfig ? authConfig.azure_vault_url : authConfig.vault_addr
  return URL.parse(address)?.host ?? address
}

/** The client of an entry whose login still counts. */
function loginOf({ client }: Entry, now: number): Entry['client'] {
  if (client === undefined || client.retired || !client.loggedIn) return undefined
  return (client.client.loginExpiresAt() ?? Number.POSITIVE_INFINITY) > now ? client : undefined
}

const notGranted = (lines: string): ManagerError =>
  new ManagerError(
    'grant',
    'machine_identity_not_granted',
    `no grant lets this secret reference use this machine's own identity; the operator may add:\n${lines}`,
  )
