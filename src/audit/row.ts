import type { Actor, KeyActor, PersonActor, RequestInfo, SystemActor } from '../auth/caller.ts'
import type { AuditDraft } from '../db/database.ts'
import { canonicalJson } from './chain.ts'
import type { AuditKeys } from './keys.ts'
import { masked, maskedUri, queryOf, VALUE_LIMIT, withoutKeys } from './mask.ts'

/** What a row's text holds; the names are those of the wire (file 12) where it has one. */
export interface AuditRow {
  /** RFC 3339, UTC, milliseconds */
  timestamp: string
  /** how often the clock had been set back before this row */
  clock: number
  organisation_id: string
  workspace_id: string | null
  user_type: 'api_key' | 'user' | 'cli' | 'system'
  /** id of the key, of a person who has none yet (`user`), `cli:<uid>` or `system` */
  user_id: string
  /** the person who answers for it (decision 29) */
  accountable_user_id: string | null
  resource_type: string
  action: string
  resource_id: string | null
  resource_name: string | null
  method: string | null
  uri: string | null
  request_id: string | null
  client_ip: string | null
  request_headers: Record<string, string>
  query_params: Record<string, string>
  /** the body as it was sent, masked */
  request_body: unknown
  response_status_code: number
  /** what changed, before and after, masked; of a refusal, why and how often */
  details: Record<string, unknown>
}

/** A row without what only its place in the trail decides. */
export type UnplacedRow = Omit<AuditRow, 'timestamp' | 'clock'>

/** Who did something; of a key, perhaps without a request: what stands for many of them has none. */
type Doer = Exclude<Actor, KeyActor> | (Pick<KeyActor, 'kind' | 'caller'> & Partial<Pick<KeyActor, 'request'>>)

/** The row that a change leaves. */
export function rowOfChange(actor: Doer, event: AuditDraft, keys: AuditKeys): UnplacedRow {
  const { action, workspaceId, resourceId = null, resourceName = null, status = 200, details = {} } = event
  const by = byActor(actor)
  const [resourceType, verb] = splitAction(action)
  const mask = maskingFor(keys, resourceType, resourceId)
  const told = actor.kind === 'cli' ? { ...details, command: actor.command } : details
  const request = 'request' in actor ? actor.request : undefined
  return {
    ...by,
    workspace_id: workspaceId === undefined ? by.workspace_id : workspaceId,
    resource_type: resourceType,
    action: verb,
    resource_id: resourceId,
    resource_name: resourceName === null ? null : withoutKeys(resourceName),
    ...ofRequest(request, mask),
    response_status_code: status,
    details: mask(told) as Record<string, unknown>,
  }
}

/** Makes JSON fit for a row about this resource: secrets become fingerprints of its own, and what is too large a hash. */
export const maskingFor =
  (keys: Pick<AuditKeys, 'fingerprint'>, resourceType: string, resourceId: string | null) =>
  (value: unknown): unknown =>
    bounded(masked(value, (field, secret) => keys.fingerprint(resourceType, resourceId ?? '', field, secret)))

/** What a row says of the request that led to it. */
export function ofRequest(request: RequestInfo | undefined, mask: ReturnType<typeof maskingFor>) {
  const uri = request === undefined ? null : maskedUri(request.uri)
  return {
    method: request?.method ?? null,
    uri,
    request_id: request?.requestId ?? null,
    client_ip: request?.clientIp ?? null,
    request_headers: request?.headers ?? {},
    query_params: uri === null ? {} : queryOf(uri),
    request_body: mask(request?.body ?? {}),
  }
}

function byActor(actor: Doer) {
  if (actor.kind === 'key') return byKey(actor)
  if (actor.kind === 'person') return byPerson(actor)
  return actor.kind === 'system' ? bySystem(actor) : byCommand(actor)
}

const byKey = ({ caller }: Pick<KeyActor, 'caller'>) =>
  ({
    organisation_id: caller.organisationId,
    workspace_id: caller.workspaceId,
    user_type: caller.type === 'system' ? 'system' : 'api_key',
    user_id: caller.keyId,
    accountable_user_id: caller.accountableUserId,
  }) as const

const byPerson = ({ organisationId, userId }: PersonActor) =>
  ({
    organisation_id: organisationId,
    workspace_id: null,
    user_type: 'user',
    user_id: userId,
    accountable_user_id: userId,
  }) as const

const bySystem = ({ organisationId }: SystemActor) =>
  ({
    organisation_id: organisationId,
    workspace_id: null,
    user_type: 'system',
    user_id: 'system',
    accountable_user_id: null,
  }) as const

const byCommand = ({ organisationId, uid }: Extract<Actor, { kind: 'cli' }>) =>
  ({
    organisation_id: organisationId,
    workspace_id: null,
    user_type: 'cli',
    user_id: `cli:${uid}`,
    accountable_user_id: null,
  }) as const

/** `prompts.create` is what is done to which kind of resource. */
function splitAction(action: string): [resourceType: string, verb: string] {
  const dot = action.lastIndexOf('.')
  return dot === -1 ? ['system', action] : [action.slice(0, dot), action.slice(dot + 1)]
}

/** A value too large for a row is kept by its member names and its hash. */
function bounded(value: unknown): unknown {
  const text = canonicalJson(value ?? {})
  if (text.length <= VALUE_LIMIT) return value
  const fields = typeof value === 'object' && value !== null ? Object.keys(value).slice(0, 100) : []
  return { bytes: Buffer.byteLength(text), sha256: Bun.SHA256.hash(text, 'hex'), fields }
}

/** The columns that rows are found by, written from the row's text and compared with it by `audit verify`. */
export function columnsOf(row: AuditRow, ownOrganisationId: string) {
  return {
    organisationId: row.organisation_id,
    isForeign: row.organisation_id !== ownOrganisationId,
    createdAt: Date.parse(row.timestamp),
    clock: row.clock,
    method: row.method,
    uri: row.uri,
    requestId: row.request_id,
    userType: row.user_type,
    userId: row.user_id,
    workspaceId: row.workspace_id,
    status: row.response_status_code,
    resourceType: row.resource_type,
    action: row.action,
    resourceId: row.resource_id,
    clientIp: row.client_ip,
  }
}
