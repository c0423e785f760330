import type { OutboundResponse } from '../outbound/transport.ts'
import { ManagerError, type ManagerFailure, type Step } from './manager.ts'
import { managerMessage } from './manager-message.ts'
import { retryAfterSeconds } from './retry-after.ts'

// What the three services of Azure mean with an answer that is no success, or no success of theirs (SM-5, decision 47).

type Meaning = [failure: ManagerFailure, message: string, step?: Step]

/** The JSON object of an answer; an empty one where it holds none. */
export function objectIn({ body }: OutboundResponse): Record<string, unknown> {
  try {
    return Object(JSON.parse(body.toString('utf8')))
  } catch {
    return {}
  }
}

/**
 * An answer of a vault.
 *
 * @param wasAuthorized whether the request had a token; the first one has none, and its 401 says what the login is for
 * @param withheld      what the manager's words must not repeat
 */
export function readRefusal(answer: OutboundResponse, wasAuthorized: boolean, withheld: object): ManagerError {
  const { code, innererror, message } = Object(objectIn(answer)['error']) as Record<string, unknown>
  const inner = (Object(innererror) as Record<string, unknown>)['code']
  const [failure, words, step = 'read'] = meaningOfRead(answer.status, wasAuthorized, code, inner, message)
  return refused(answer, step, failure, words, message, withheld)
}

function meaningOfRead(
  status: number,
  wasAuthorized: boolean,
  code: unknown,
  inner: unknown,
  message: unknown,
): Meaning {
  const anywhere = meaningAnywhere(status, 'Azure Key Vault')
  if (anywhere !== undefined) return anywhere
  if (status < 300) return ['manager_bad_response', NOT_A_VAULT, 'parse']
  if (status === 401 && !wasAuthorized) return ['manager_bad_response', FOREIGN_CHALLENGE, 'login']
  if (status === 401) return OF_ANOTHER_DIRECTORY.test(String(message)) ? WRONG_DIRECTORY : LOGIN_ENDED
  if (typeof code !== 'string') return ['manager_bad_response', NOT_A_VAULT]
  if (status === 403) return FORBIDDEN[String(inner)] ?? DENIED
  return READ[status] ?? ['manager_bad_response', 'Azure Key Vault refuses this in a way that has no name here']
}

const NOT_A_VAULT = 'what answers at azure_vault_url does not answer as Azure Key Vault does, or not to the end'

const FOREIGN_CHALLENGE =
  'what answers at azure_vault_url does not ask for a login as Azure Key Vault does, or asks for that of another service'

/** A token of an issuer whom the vault does not know. */
const OF_ANOTHER_DIRECTORY = /\bAKV10032\b/

const WRONG_DIRECTORY: Meaning = [
  'manager_auth_failed',
  'the vault belongs to another directory than the one of this login',
  'login',
]
const LOGIN_ENDED: Meaning = ['manager_auth_expired', 'Azure Key Vault does not accept the login any more', 'login']

const DENIED: Meaning = ['manager_denied', 'no permission to read this secret (Get on secrets)']

const FORBIDDEN: Record<string, Meaning> = {
  SecretDisabled: ['manager_secret_disabled', 'this version of the secret is disabled: see its attributes in Azure'],
  ForbiddenByPolicy: ['manager_denied', 'no access policy of the vault gives this login Get on secrets'],
  AccessDenied: ['manager_denied', 'no access policy of the vault gives this login Get on secrets'],
  ForbiddenByRbac: [
    'manager_denied',
    'this login has no role that reads secrets of this vault, such as Key Vault Secrets User; a new one takes minutes',
  ],
  ForbiddenByFirewall: ['manager_denied', 'the firewall of the vault does not let the address of this machine through'],
  ForbiddenByConnection: ['manager_denied', 'the vault can be reached through its private endpoints alone'],
}

const READ: Record<number, Meaning> = {
  400: ['manager_config', 'Azure Key Vault cannot read this secret_path'],
  404: ['manager_secret_missing', 'the vault has no such secret, or no such version of it: look at secret_path'],
}

/** Where the credentials of an application stand, for messages. */
export interface ApplicationFields {
  tenant: string
  client: string
  credential: string
}

/** An answer of Entra. */
export function entraRefusal(answer: OutboundResponse, fields: ApplicationFields, withheld: object): ManagerError {
  const { error, error_description: description } = objectIn(answer)
  const [failure, words] = meaningOfLogin(answer.status, 'Entra', error, () => complaintOf(description, fields))
  return refused(answer, 'login', failure, words, description, withheld)
}

/** The numbers are all that tells them apart: the rest is the same for most (P17). */
function complaintOf(description: unknown, { tenant, client, credential }: ApplicationFields): string {
  const [, number = ''] = /\bAADSTS(\d+)/.exec(String(description)) ?? []
  const complaints: Record<string, string> = {
    7000215: `the client secret is wrong: ${credential} must be its value, not its id`,
    7000222: `the client secret has expired: put a new one into ${credential}`,
    90002: `there is no such directory: look at ${tenant}`,
    900023: `there is no such directory: look at ${tenant}`,
    700016: `there is no such application in this directory: look at ${client} and ${tenant}`,
    7000112: `the application is disabled in Entra: look at ${client}`,
    500011: `the directory has no Azure Key Vault: look at ${tenant}`,
    53003: 'a Conditional Access policy of the directory blocks this login',
    70021: FEDERATION,
    700211: FEDERATION,
    700212: FEDERATION,
    700213: FEDERATION,
    700024: `the token of this workload has expired: look at ${credential}`,
  }
  return complaints[number] ?? `Entra refuses the login: look at ${client}, ${tenant} and ${credential}`
}

const FEDERATION =
  'no federated credential of the application fits the token of this workload: compare issuer, subject and audience'

/** An answer of the metadata service, asked for the managed identity of this machine. */
export function identityRefusal(answer: OutboundResponse, withheld: object): ManagerError {
  const { error, error_description: description } = objectIn(answer)
  const [failure, words] =
    IDENTITY[answer.status] ?? meaningOfLogin(answer.status, METADATA, error, () => lacking(description))
  return refused(answer, 'login', failure, `managed identity of this machine: ${words}`, description, withheld)
}

const METADATA = 'the metadata service'

/** So it answers for minutes while it is updated, and so others of its address answer in other clouds. */
const IDENTITY: Record<number, Meaning> = {
  404: ['manager_unreachable', 'the metadata service has none to give now, or this machine is not one of Azure'],
  410: ['manager_unreachable', 'the metadata service is being updated, which takes about a minute'],
}

function lacking(description: unknown): string {
  const text = String(description)
  if (/multiple user.assigned/i.test(text))
    return 'it has several: set azure_managed_client_id, with azure_auth_mode = "managed"'
  if (/identity not found/i.test(text)) return 'it has none, or not the one of azure_managed_client_id'
  return 'the metadata service gives out no login: look at the identities of this machine'
}

/** A success that holds nothing of what was asked for. */
export const unexpectedSecret = (): ManagerError => new ManagerError('parse', 'manager_bad_response', NOT_A_VAULT)

export const unexpectedLogin = (): ManagerError =>
  new ManagerError('login', 'manager_bad_response', notAsAzure('what answers to the login'))

function meaningOfLogin(status: number, who: string, error: unknown, complaint: () => string): Meaning {
  const anywhere = meaningAnywhere(status, who)
  if (anywhere !== undefined) return anywhere
  if (status < 300 || typeof error !== 'string') return ['manager_bad_response', notAsAzure(`what answers as ${who}`)]
  return ['manager_auth_failed', complaint()]
}

function meaningAnywhere(status: number, who: string): Meaning | undefined {
  if (status === 429) return ['manager_throttled', `${who} limits the rate of calls`]
  if (status >= 500) return ['manager_unreachable', `${who}, or a proxy before it, is out of order at the moment`]
  if (status >= 300 && status < 400)
    return ['manager_bad_response', `${who}, or what answers for it, redirects elsewhere: not followed`]
  return undefined
}

const notAsAzure = (what: string): string => `${what} does not answer as Azure does, or not to the end`

function refused(
  answer: OutboundResponse,
  step: Step,
  failure: ManagerFailure,
  message: string,
  words: unknown,
  withheld: object,
): ManagerError {
  return new ManagerError(step, failure, message, {
    managerMessage: managerMessage(words, withheld),
    retryAfterSeconds: retryAfterSeconds(answer),
  })
}
