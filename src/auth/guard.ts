import type { Permission } from '../../schema/api/permissions.ts'
import { isWellFormedKey } from '../api-keys/key.ts'
import { GatehouseError, invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { readJson } from '../http/body.ts'
import { shown } from '../http/complaints.ts'
import { newRequestId } from '../http/request-id.ts'
import { isRawJson } from '../json.ts'
import type { Caller, KeyActor } from './caller.ts'
import { createSystemPeerCheck } from './system-caller.ts'

/** What the guard notes of a request, for the answer's headers, the log and the counters. */
export interface Call {
  requestId: string
  /** `performance.now()` when the request was admitted */
  startedAt: number
  /** undefined until the key was proved */
  caller: Caller | undefined
  /** the id that the client sent along, if it looks like one */
  clientRequestId: string | undefined
  /** the body holds integers beyond ±(2⁵³−1), as `JSON.rawJSON` (decision 25) */
  hasBigIntegers: boolean
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
) => {
  parse: (context: GuardedContext) => Promise<unknown>
  transform: (context: GuardedContext) => void
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
  return (permission, summary, body = 'admin_body_bytes') => {
    const anyOf = typeof permission === 'string' ? [permission] : permission
    const limitBytes = gatehouse.config.limits[body]
    return {
      parse: async (context) => {
        admit(context, anyOf)
        const { value, hasBigIntegers } = await readJson(context.request, limitBytes)
        context.call.hasBigIntegers = hasBigIntegers
        if (hasBigIntegers && body !== 'render_body_bytes') refuseBigIntegers(value)
        return value
      },
      transform: (context) => {
        if (context.call === undefined) admit(context, anyOf)
        const isRender = body === 'render_body_bytes'
        if (context.params !== undefined) {
          assertDecoded(context.params)
          takeRepeatedParameters(context.params, context.body, isRender ? REPEATED_IN_RENDER : REPEATED)
        }
        if (!isRender) normaliseName(context.body)
      },
      detail: { summary, security: [{ apiKey: [] }], 'x-permissions': anyOf },
    }
  }
}

/** The caller of a guarded request with what its audit row says of the request. */
export function actorOf(gatehouse: Pick<Gatehouse, 'clientIp'>, { request, call, caller }: GuardedContext): KeyActor {
  const uri = request.url.slice(request.url.indexOf('/', 8))
  const clientIp = gatehouse.clientIp(request)
  return { kind: 'key', caller, request: { requestId: call.requestId, method: request.method, uri, clientIp } }
}

/** Sets `context.call` and `context.caller`, or throws 401, 403, 400 (key in the URL, two keys) or 503. */
function createAdmit(gatehouse: Gatehouse) {
  const { keys, metrics } = gatehouse
  const keyHeaders = gatehouse.config.server.key_headers
  const isSystemPeer = createSystemPeerCheck(gatehouse.config)
  const idHeader = gatehouse.config.server.request_id_headers[0] ?? 'x-request-id'

  return function admit(context: GuardedContext, anyOf: readonly Permission[]): void {
    const { request } = context
    const call: Call = {
      requestId: newRequestId(),
      startedAt: performance.now(),
      caller: undefined,
      clientRequestId: undefined,
      hasBigIntegers: false,
    }
    context.call = call
    const sentId = request.headers.get(idHeader)
    if (sentId !== null && CLIENT_ID.test(sentId)) call.clientRequestId = sentId
    gatehouse.assertServing()
    if (request.url.includes('gth_'))
      throw new GatehouseError(
        'key_in_url',
        `send the API key in the header ${keyHeaders[0]}, never in the URL; revoke this one, it may be in logs now`,
      )
    const clear = readKey(request.headers, keyHeaders)
    const caller =
      clear !== undefined && isWellFormedKey(clear) ? keys.find(gatehouse.digestKey(clear), Date.now()) : undefined
    if (
      caller === undefined ||
      (caller.type === 'system' && !isSystemPeer(gatehouse.clientIp(request), request.headers))
    ) {
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
    for (const permission of anyOf) if (caller.permissions.has(permission)) return
    throw new GatehouseError('forbidden', `this API key lacks the scope ${anyOf.join(' or ')}`)
  }
}

const CLIENT_ID = /^[A-Za-z0-9._-]{1,64}$/

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
  for (const name in params) if (params[name] === null) throw invalidField('', 'the path must be percent-encoded UTF-8')
}

/** The path parameters that clients repeat in bodies, under these names (decision 4). */
const REPEATED: Record<string, readonly string[]> = {
  promptId: ['prompt_id', 'id', 'slug'],
  partialId: ['prompt_partial_id', 'id', 'slug'],
  collectionId: ['id', 'slug'],
  labelId: ['id'],
  apiKeyId: ['id'],
}

/** Any other key of a render body is the model's (spec 2.1). */
const REPEATED_IN_RENDER: typeof REPEATED = { promptId: ['prompt_id'] }

/** Names are stored in one Unicode form, so that what looks alike is found alike (HT-4). */
function normaliseName(body: unknown): void {
  if (typeof body !== 'object' || body === null) return
  const fields = body as Record<string, unknown>
  if (typeof fields['name'] === 'string') fields['name'] = fields['name'].normalize('NFC')
}

/** Removes path parameters that the body repeats, after checking that both say the same. */
function takeRepeatedParameters(params: Record<string, string>, body: unknown, repeated: typeof REPEATED): void {
  // The body of a version is the version itself, whose id is not the prompt's; its other keys are ignored anyway.
  if (typeof body !== 'object' || body === null || params['versionId'] !== undefined) return
  const fields = body as Record<string, unknown>
  for (const param in params) {
    for (const name of repeated[param] ?? []) {
      if (!Object.hasOwn(fields, name)) continue
      if (fields[name] !== params[param]) throw invalidField(name, 'differs from the path; leave it out')
      delete fields[name]
    }
  }
}
