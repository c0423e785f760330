import { parseStored } from '../json.ts'
import type { OutboundResponse } from '../outbound/transport.ts'
import { ManagerError, type ManagerFailure, type Step } from './manager.ts'
import { managerMessage, repeats } from './manager-message.ts'

/** An answer of Vault's, or of something at Vault's address. */
export interface VaultAnswer {
  status: number
  /** names in lower case */
  headers: Record<string, string>
  /** undefined where the answer holds no JSON object; big integers keep their digits */
  json: Record<string, unknown> | undefined
}

export function vaultAnswer({ status, headers, body }: OutboundResponse): VaultAnswer {
  const isJson = /^application\/json\b/i.test(headers['content-type'] ?? '')
  return { status, headers, json: isJson ? objectIn(body.toString('utf8')) : undefined }
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseStored(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Vault says it in words alone: the token is none, has ended or was revoked. Without them, it may not do this. */
export const refusesToken = (answer: VaultAnswer): boolean =>
  answer.status === 403 && /\b(?:invalid|bad) token\b/.test(wordsOf(answer, 'errors'))

/** A mount that has been given versions since we asked for its type. */
export const wantsVersionedPath = (answer: VaultAnswer): boolean =>
  wordsOf(answer, 'warnings').includes('Invalid path for a versioned K/V')

function wordsOf({ json }: VaultAnswer, member: 'errors' | 'warnings'): string {
  const words = json?.[member]
  return Array.isArray(words) ? words.filter((each) => typeof each === 'string').join('; ') : ''
}

/**
 * What a 200 holds.
 *
 * @param step what the answer was to; `parse` once it is the secret itself
 * @throws ManagerError for any other answer
 */
export function jsonIn(answer: VaultAnswer, step: 'login' | 'read' | 'parse', withheld: object) {
  if (answer.status !== 200) throw refusal(answer, step === 'parse' ? 'read' : step, withheld)
  if (answer.json === undefined) throw unexpected(step)
  return answer.json
}

/** A success that does not look like Vault's. */
export const unexpected = (step: Step): ManagerError => new ManagerError(step, 'manager_bad_response', NOT_VAULT)

const NOT_VAULT = 'what answers at vault_addr does not answer as Vault does, or not to the end: look at vault_addr'

/**
 * What an answer other than 200 means (decision 47).
 *
 * @param step     what was asked for: a login, or the secret (its mount included)
 * @param withheld what must not be repeated of the manager's words
 */
export function refusal(answer: VaultAnswer, step: 'login' | 'read', withheld: object): ManagerError {
  const [failure, message, at = step] = meaningOf(answer, step, withheld)
  return new ManagerError(at, failure, message, {
    managerMessage: managerMessage(wordsOf(answer, 'errors'), withheld),
    retryAfterSeconds: retryAfterSeconds(answer),
  })
}

type Meaning = [failure: ManagerFailure, message: string, step?: Step]

function meaningOf(answer: VaultAnswer, step: 'login' | 'read', withheld: object): Meaning {
  const { status, json } = answer
  if (status === 307) return ['manager_standby', `this node of Vault is a standby${activeNode(answer, withheld)}`]
  if (status === 429) return ['manager_throttled', 'Vault, or a proxy before it, limits the rate of calls']
  if (json === undefined) return foreign(status)
  const anywhere = MEANINGS[status]
  if (anywhere !== undefined) return anywhere
  if (status >= 400 && status < 500) return step === 'login' ? LOGIN_REFUSED : readRefused(answer)
  if (wordsOf(answer, 'errors').includes('local node not active')) return NO_ACTIVE_NODE
  return ['manager_bad_response', 'Vault answered that something went wrong inside it: see its log']
}

const MEANINGS: Record<number, Meaning> = {
  412: ['manager_standby', 'this node of Vault has not caught up with the active one'],
  501: ['manager_sealed', 'Vault is not initialised'],
  503: ['manager_sealed', 'Vault is sealed, or has no active node'],
}

/** A node between an unseal and an election says so with status 500. */
const NO_ACTIVE_NODE: Meaning = ['manager_standby', 'this node of Vault is a standby, and knows of no active one']

const LOGIN_REFUSED: Meaning = [
  'manager_auth_failed',
  'Vault refuses the login: look at the credentials in auth_config, vault_auth_mount and vault_namespace',
]

function readRefused(answer: VaultAnswer): Meaning {
  if (refusesToken(answer))
    return ['manager_auth_expired', 'Vault no longer accepts the token: it has ended or was revoked', 'login']
  if (answer.status === 403)
    return ['manager_denied', 'no permission, or no such mount: Vault does not say which (secret_path, policies)']
  if (answer.status === 404) return ['manager_secret_missing', 'Vault has nothing at this secret_path']
  return ['manager_config', 'Vault cannot read this secret_path: look at it, and at vault_namespace']
}

/** Proxies and load balancers answer for a Vault that is away; anything else is not Vault. */
function foreign(status: number): Meaning {
  if (status === 502 || status === 503 || status === 504)
    return ['manager_unreachable', 'a proxy answers at vault_addr, and has no Vault behind it']
  if (status >= 300 && status < 400)
    return ['manager_bad_response', 'vault_addr redirects elsewhere, which is not followed: write the final address']
  return ['manager_bad_response', NOT_VAULT]
}

function activeNode({ headers }: VaultAnswer, withheld: object): string {
  const host = URL.parse(headers['location'] ?? '')?.host ?? ''
  return host === '' || !isHarmless(host) || repeats(host, withheld) ? '' : `: the active one is at ${host}`
}

/** Clients take these words in a message for an answer of our own (decision 47). */
export const isHarmless = (text: string): boolean => !/404|not found/i.test(text)

const MOST_RETRY_AFTER_SECONDS = 3_600

/** Seconds are all that Vault sends, not dates. */
function retryAfterSeconds({ headers }: VaultAnswer): number | undefined {
  const text = headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), MOST_RETRY_AFTER_SECONDS) : undefined
}
