import type { Permission } from '../../schema/api/permissions.ts'
import { isWellFormedKey } from '../api-keys/key.ts'
import { maskedHeaders } from '../audit/mask.ts'
import { GatehouseError, invalidField, notFound, shown } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { readJson } from '../http/body.ts'
import { newRequestId } from '../http/request-id.ts'
import { isRawJson } from '../json.ts'
import type { Caller, KeyActor, RequestInfo } from './caller.ts'
import { type Once, onceOf } from './idempotency.ts'
import { assertNoKeyInBody, assertPlainUrl } from './misplaced.ts'
import { REPEATED, REPEATED_IN_RENDER, takeRepeatedParameters } from './repeated.ts'
import { createSystemPeerCheck } from './system-caller.ts'
import { assertOwnOrganisation } from './tenancy.ts'

/** What the guard notes of a request, for the answer's headers, the log and the counters. */
export interface Call {
  requestId: string
  /** `performance.now()` when the request was admitted */
  startedAt: number
  /** undefined until the key was proved */
  caller: Caller | undefined
  /** of the key that was sent, unless its checksum shows that it is none of ours (AK-1) */
  keyDigest: string | undefined
  /** one of them is what the route asks for; none: the key acts on itself */
  permissions: readonly Permission[]
  /** the body holds integers beyond ±(2⁵³−1), as `JSON.rawJSON` (decision 25) */
  hasBigIntegers: boolean
  /** of a POST with an Idempotency-Key */
  once: Once | undefined
  /** the audit row of its failure is stored: it is not counted among the refusals */
  isRecorded: boolean
}

/** The part of Elysia's context that the guard reads and fills. */
interface GuardedContext {
  request: Request
  call: Call
  caller: Caller
  params?: Record<string, string>
  body?: unknown
}

/** Types for `.decorate(guarded)`: the guard sets both before a handler runs. */
export const guarded = { call: undefined as unknown as Call, caller: undefined as unknown as Caller }

/** Which limit of the config bounds a route's body. */
export type BodyKind = 'admin_body_bytes' | 'prompt_body_bytes' | 'render_body_bytes'

/**
 * The guard of a route: `{ ...requires('prompts.create', 'Create a prompt'), body, … }`. Authenticates and authorises
 * before the body is read, so a stranger learns nothing about it and costs no parsing; then reads it strictly. The
 * order is 401, 403, 413 or 415, 400. Several permissions: one of them is enough.
 */
export type Requires = (
  permission: Permission | readonly Permission[],
  summary: string,
  body?: BodyKind,
  /** a key may do it to itself (`:apiKeyId`) without any of the permissions; its previous secret only gets answers again */
  mayActOnItself?: boolean,
) => {
  parse: (context: GuardedContext) => Promise<unknown>
  transform: (context: GuardedContext) => void
  beforeHandle?: (context: GuardedContext) => Promise<undefined>
  detail: { summary: string; security: { apiKey: string[] }[]; 'x-permissions': readonly Permission[] }
}

/**
 * Hides a function's source from Elysia, which reads it to guess what of the context to prepare: for a function that
 * passes its context on it parses query, headers and cookies of every request, and of minified sources it complains on
 * standard output. A bound function has no source, so nothing is prepared but what contracts ask for.
 */
export const opaque = <Hook extends (context: never) => unknown>(hook: Hook): Hook => hook.bind(undefined) as Hook

export function createRequires(gatehouse: Gatehouse): Requires {
  const admit = createAdmit(gatehouse)
  const answerAgain = createAnswerAgain(gatehouse)
  return (permission, summary, body = 'admin_body_bytes', mayActOnItself = false) => {
    const anyOf = typeof permission === 'string' ? [permission] : permission
    const limitBytes = gatehouse.config.limits[body]
    return {
      parse: opaque(async (context: GuardedContext) => {
        admit(context, anyOf, mayActOnItself)
        const { value, hasBigIntegers } = await readJson(context.request, limitBytes)
        context.call.hasBigIntegers = hasBigIntegers
        if (hasBigIntegers && body !== 'render_body_bytes') refuseBigIntegers(value)
        return value
      }),
      transform: opaque((context: GuardedContext) => {
        if (context.call === undefined) admit(context, anyOf, mayActOnItself)
        const isRender = body === 'render_body_bytes'
        assertNoKeyInBody(context.body, gatehouse.config.server.key_headers)
        if (context.params !== undefined) {
          assertDecoded(context.params)
          takeRepeatedParameters(context.params, context.body, isRender ? REPEATED_IN_RENDER : REPEATED)
        }
        if (!isRender) {
          assertOwnOrganisationInQuery(context)
          normaliseName(context.body)
        }
      }),
      ...(body !== 'render_body_bytes' && { beforeHandle: answerAgain }),
      detail: { summary, security: [{ apiKey: [] }], 'x-permissions': anyOf },
    }
  }
}

const replacedSecret = () =>
  new GatehouseError('forbidden', 'this secret of the API key has been replaced; send the new one')

/** Answers a POST that was answered before under its Idempotency-Key; what answers here keeps the handler from running. */
function createAnswerAgain(gatehouse: Gatehouse) {
  const hook = async (context: GuardedContext): Promise<undefined> => {
    const { request, call } = context
    const once = request.method === 'POST' ? onceOf(gatehouse, context) : undefined
    call.once = once
    const isKnown = (await once?.isKnown()) === true
    // An old secret that acts on its own key gets an answer of before, and nothing new.
    if (!isKnown && context.caller.isPreviousSecret && call.permissions.length === 0) throw replacedSecret()
    if (!isKnown) return undefined
    return gatehouse.audited(actorOf(gatehouse, context), { action: 'replay' }, async () => {
      throw new GatehouseError('stale', 'the answer to this Idempotency-Key has just expired; send the request again')
    })
  }
  // Elysia drops the answer of a hook in whose source it sees no `return`.
  return Object.assign(opaque(hook), { toString: () => 'async () => { return }' })
}

/** The guard of a route that needs no key: `{ ...open('Accept an invite'), body, … }`. Its body is read as any other. */
export type Open = (summary: string) => {
  parse: (context: GuardedContext) => Promise<unknown>
  transform: (context: GuardedContext) => void
  detail: { summary: string; security: [] }
}

export function createOpen(gatehouse: Gatehouse): Open {
  const limitBytes = gatehouse.config.limits.admin_body_bytes
  const admit = (context: GuardedContext) => {
    context.call = newCall([])
    gatehouse.assertServing()
  }
  return (summary) => ({
    parse: opaque(async (context: GuardedContext) => {
      admit(context)
      const { value, hasBigIntegers } = await readJson(context.request, limitBytes)
      if (hasBigIntegers) refuseBigIntegers(value)
      return value
    }),
    transform: opaque((context: GuardedContext) => {
      if (context.call === undefined) admit(context)
    }),
    detail: { summary, security: [] },
  })
}

/** The caller of a guarded request with what its audit row says of the request. */
export function actorOf(
  gatehouse: Pick<Gatehouse, 'clientIp' | 'config'>,
  { request, call, caller, body }: GuardedContext,
): KeyActor {
  const { permissions, once, requestId } = call
  const sent = { ...requestInfo(gatehouse, request, requestId), body }
  return { kind: 'key', caller, permissions, request: sent, ...(once && { once }) }
}

/** What an audit row says of any request, its body aside. */
export function requestInfo(
  gatehouse: Pick<Gatehouse, 'clientIp' | 'config'>,
  request: Request,
  requestId: string,
): RequestInfo {
  return {
    requestId,
    method: request.method,
    // A request without Host has a bare path.
    uri: request.url.startsWith('/') ? request.url : request.url.slice(request.url.indexOf('/', 8)),
    clientIp: gatehouse.clientIp(request),
    headers: maskedHeaders(request.headers, gatehouse.config.server.key_headers),
  }
}

/** Sets `context.call` and `context.caller`, or throws 401, 403, 400 (key in the URL, two keys) or 503. */
export function createAdmit(gatehouse: Gatehouse) {
  const { keys, lastUsed, metrics } = gatehouse
  const keyHeaders = gatehouse.config.server.key_headers
  const isSystemPeer = createSystemPeerCheck(gatehouse)

  return function admit(context: GuardedContext, anyOf: readonly Permission[], mayActOnItself = false): void {
    const { request } = context
    const call = newCall(anyOf)
    context.call = call
    gatehouse.assertServing()
    assertPlainUrl(request.url, keyHeaders)
    const clear = readKey(request.headers, keyHeaders)
    const now = Date.now()
    if (clear !== undefined && isWellFormedKey(clear)) call.keyDigest = gatehouse.digestKey(clear)
    const caller = call.keyDigest === undefined ? undefined : keys.find(call.keyDigest, now)
    if (caller === undefined || (caller.type === 'system' && !isSystemPeer(request))) {
      metrics.authentication('refused')
      const what =
        clear === undefined
          ? `send an API key in the header ${keyHeaders[0]}`
          : 'this API key is not valid: mistyped, deleted or expired'
      throw new GatehouseError('unauthenticated', what)
    }
    metrics.authentication('ok')
    call.caller = caller
    context.caller = caller
    lastUsed.note(caller.keyId, now)
    caller.limiter?.take(call.startedAt)
    const isItself = mayActOnItself && caller.type !== 'system' && context.params?.['apiKeyId'] === caller.keyId
    if (isItself) call.permissions = []
    else for (const permission of anyOf) if (caller.permissions.has(permission)) return
    // The answer that held the new secret may have got lost: it is asked for again with the old one.
    if (caller.isPreviousSecret && !(isItself && request.headers.has('idempotency-key'))) throw replacedSecret()
    if (!isItself) throw new GatehouseError('forbidden', `this API key lacks the scope ${anyOf.join(' or ')}`)
  }
}

function newCall(permissions: readonly Permission[]): Call {
  return {
    requestId: newRequestId(),
    startedAt: performance.now(),
    caller: undefined,
    keyDigest: undefined,
    permissions,
    hasBigIntegers: false,
    once: undefined,
    isRecorded: false,
  }
}

/** @throws GatehouseError `invalid` when two different keys are sent, or one header twice (Bun joins those with a comma) */
function readKey(headers: Headers, names: readonly string[]): string | undefined {
  let found: string | undefined
  for (const name of names) {
    const value = headers.get(name)
    if (value === null || value === found) continue
    if (found !== undefined || value.includes(','))
      throw invalidField('', `send one API key: the headers ${names.join(' and ')} hold more than one`)
    found = value
  }
  return found
}

/** No field of an administrative body takes one; contracts would see the object that carries its digits (HT-3). */
function refuseBigIntegers(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  for (const [name, value] of Object.entries(body))
    if (isRawJson(value)) throw invalidField(shown(name), 'must not be an integer beyond ±(2⁵³−1)')
}

/** Elysia hands over null for a parameter that it cannot decode. */
function assertDecoded(params: Record<string, string | null>): void {
  for (const name in params) {
    const value = params[name]
    if (value === null) throw invalidField('', 'the path must be percent-encoded UTF-8')
    // PostgreSQL cannot even be asked for it.
    if (value?.includes('\0')) throw notFound('resource')
  }
}

/** A query may name the caller's organisation where its route does not ask for it, and no other (decision 33). */
function assertOwnOrganisationInQuery({ request: { url }, caller }: GuardedContext): void {
  const start = url.indexOf('?')
  if (start === -1 || !url.includes('organi', start)) return
  const query = new URLSearchParams(url.slice(start))
  for (const name of ['organisation_id', 'organization_id']) assertOwnOrganisation(caller, query.get(name))
}

/** Names are stored in one Unicode form, so that what looks alike is found alike (HT-4). */
function normaliseName(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  const fields = body as Record<string, unknown>
  if (typeof fields['name'] === 'string') fields['name'] = fields['name'].normalize('NFC')
}
