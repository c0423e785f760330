import { createHmac, randomBytes } from 'node:crypto'
import type { Config } from '../../schema/config.ts'
import { type Breaker, FAILURES_TO_OPEN } from './breaker.ts'
import { type Entry, noteFailure } from './cache.ts'
import type { Clients, OpenClient } from './clients.ts'
import { pickField } from './field.ts'
import { type FetchedSecret, ManagerError, type ManagerFailure } from './manager.ts'
import type { FetchOptions, ManagerCallEnded, Reference, SecretAnswer, SecretValuesOptions } from './values.ts'

const REFRESH_EVERY_MS = 5000

/** How long a failure answers callers. Repeated wrong logins lock accounts; the rest only spares the manager a crowd. */
const REFUSED_MS = 1000
const LOGIN_REFUSED_MS = 5000
const MAX_REFUSED_MS = 60_000

/** The manager is not at fault, or not there: what it said before may still be used (decision 46). */
const OUTAGES: ReadonlySet<ManagerFailure> = new Set<ManagerFailure>([
  'manager_throttled',
  'manager_unreachable',
  'manager_timeout',
  'manager_sealed',
  'manager_standby',
])

/** Failures of ours, before anybody was asked. */
const UNASKED: ReadonlySet<ManagerFailure> = new Set<ManagerFailure>(['manager_config', 'manager_address_refused'])

interface Options extends Pick<SecretValuesOptions, 'onCall' | 'random'> {
  settings: Config['secret_managers']
  clients: Clients
  breaker: Breaker
  now: () => number
}

/**
 * The value of an entry, from memory, from the call that is under way, or from its manager.
 *
 * @returns a function of the entry of the reference's revision, its grant looked at; it throws ManagerError, or
 *          GatehouseError where the seal does not open
 */
export function createFetching({ settings, clients, breaker, onCall, now, random = Math.random }: Options) {
  const digestOf = createDigests()

  /** What the entry still holds, where this failure lets it be used; else the failure. */
  function staleOr(entry: Entry, error: ManagerError): SecretAnswer {
    const { value } = entry
    if (value !== undefined && OUTAGES.has(error.failure)) {
      const usable = { ...value, expiresAt: value.expiresAt + settings.serve_stale_seconds * 1000 }
      if (isFresh(usable, now())) return { ...value, stale: true, staleReason: error.failure }
    }
    entry.value = undefined
    throw error
  }

  function fail(entry: Entry, error: ManagerError): void {
    const at = now()
    noteFailure(entry, error, at)
    entry.refusal = { error, from: at, until: at + refusedMs(error) }
    if (!OUTAGES.has(error.failure)) entry.value = undefined
    // the file of certificate authorities is read for each client, and may be the one at fault
    if (error.failure === 'manager_tls' && entry.client !== undefined) clients.retire(entry.client)
  }

  function clientOf(entry: Entry, reference: Reference): OpenClient {
    if (entry.client !== undefined && !entry.client.retired) return entry.client
    try {
      entry.client = clients.open(reference)
      return entry.client
    } catch (error) {
      if (error instanceof ManagerError) fail(entry, error)
      throw error
    }
  }

  function keep(entry: Entry, reference: Reference, secret: FetchedSecret, startedAt: number): SecretAnswer {
    const fetchedAt = now()
    const digest = digestOf(secret)
    if (entry.digest !== undefined && entry.digest !== digest) entry.valueChangedAt = fetchedAt
    entry.digest = digest
    entry.failing = false
    entry.lastSuccessAt = fetchedAt
    entry.latencyMs = Math.max(0, fetchedAt - startedAt)
    const ttlSeconds = reference.cacheSeconds ?? settings.cache_seconds
    // up to a tenth earlier, so that what was fetched together is not fetched together again
    const expiresAt = fetchedAt + Math.floor(ttlSeconds * 1000 * (1 - 0.1 * random()))
    const answer: SecretAnswer = { secret, fetchedAt, expiresAt, stale: false, staleReason: null, fromCache: true }
    entry.value = ttlSeconds > 0 ? answer : undefined
    return { ...answer, fromCache: false }
  }

  async function call(
    entry: Entry,
    reference: Reference,
    client: OpenClient,
    host: string,
    told: FetchOptions['onCall'],
  ): Promise<SecretAnswer> {
    const startedAt = now()
    const begun = performance.now()
    let failure: ManagerError | undefined
    try {
      const secret = await clients.read(client, reference.secretPath)
      return keep(entry, reference, secret, startedAt)
    } catch (error) {
      if (!(error instanceof ManagerError)) throw error
      failure = error
      fail(entry, error)
      return staleOr(entry, error)
    } finally {
      const ended: ManagerCallEnded = {
        managerType: reference.managerType,
        outcome: failure?.failure ?? 'ok',
        step: failure?.step ?? null,
        seconds: (performance.now() - begun) / 1000,
      }
      breaker.leave(host, hasAnswered(ended.outcome), now())
      onCall?.(ended)
      told?.(ended)
      entry.flight = undefined
      if (entry.outdated) clients.retire(client)
    }
  }

  return async (
    entry: Entry,
    reference: Reference,
    { refresh = false, onCall: told }: FetchOptions,
  ): Promise<SecretAnswer> => {
    const asked = refresh && !isWithin(entry.refreshedAt, entry.refreshedAt + REFRESH_EVERY_MS, now())
    if (!asked && isFresh(entry.value, now())) return entry.value
    if (entry.flight !== undefined) return { ...(await entry.flight), fromCache: true }
    const { refusal } = entry
    if (refusal !== undefined && isWithin(refusal.from, refusal.until, now())) return staleOr(entry, refusal.error)
    const client = clientOf(entry, reference)
    const host = entry.checked?.host ?? ''
    const waitSeconds = breaker.enter(host, now())
    if (waitSeconds !== undefined) return staleOr(entry, leftAlone(waitSeconds))
    if (refresh) entry.refreshedAt = now()
    entry.flight = call(entry, reference, client, host, told)
    return entry.flight
  }
}

/** Whether a value counts now; one that was fetched after now does not, since the clock was set back. */
export const isFresh = (value: SecretAnswer | undefined, now: number): value is SecretAnswer =>
  value !== undefined && isWithin(value.fetchedAt, value.expiresAt, now)

const isWithin = (from: number, until: number, now: number): boolean => from <= now && now < until

function hasAnswered(outcome: 'ok' | ManagerFailure): boolean | undefined {
  if (outcome === 'manager_unreachable' || outcome === 'manager_timeout') return false
  return outcome !== 'ok' && UNASKED.has(outcome) ? undefined : true
}

function refusedMs({ failure, retryAfterSeconds }: ManagerError): number {
  if (failure === 'manager_auth_failed' || failure === 'manager_auth_expired') return LOGIN_REFUSED_MS
  if (failure !== 'manager_throttled' || retryAfterSeconds === undefined) return REFUSED_MS
  return Math.min(MAX_REFUSED_MS, Math.max(REFUSED_MS, retryAfterSeconds * 1000))
}

const leftAlone = (waitSeconds: number): ManagerError =>
  new ManagerError(
    'connect',
    'manager_unreachable',
    `the secret manager did not answer ${FAILURES_TO_OPEN} calls in a row; it is left alone for ${waitSeconds} s`,
    { retryAfterSeconds: waitSeconds },
  )

/** Of this process alone, so that a digest says nothing elsewhere. */
function createDigests(): (secret: FetchedSecret) => string {
  const key = randomBytes(32)
  return (secret) => createHmac('sha256', key).update(pickField(secret, null).value).digest('base64url')
}
