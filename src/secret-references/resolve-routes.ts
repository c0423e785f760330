import { Type } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { Elysia } from 'elysia'
import { MANAGER_PROBLEMS, problems } from '../../schema/api/errors.ts'
import { ResolveSecretReference, SecretValue } from '../../schema/api/secret-values.ts'
import { actorOf, createAdmit, guarded, opaque, type Requires } from '../auth/guard.ts'
import { GatehouseError, invalid } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { readJson } from '../http/body.ts'
import { complaints } from '../http/complaints.ts'
import { createHead } from '../http/head.ts'
import { resolveSecret } from './resolve.ts'

const PERMISSION = ['secret_references.read'] as const

export const RESOLVE_PATH = '/v1/secret-references/:secretReferenceId/resolve'

export interface ResolveContext {
  request: Request
  route?: string
  body: unknown
  params: { secretReferenceId: string }
  call: typeof guarded.call
  caller: typeof guarded.caller
}

export type ResolveRoute = (context: ResolveContext) => Promise<Response>

/**
 * Resolve, for the system caller alone. It answers with a finished Response, as a render does: the gateway asks for its
 * secrets again and again, and nearly always they are in memory.
 *
 * @param logResolve for those that asked a manager; a line for each of the others would say nothing new
 */
export function createResolve(
  gatehouse: Gatehouse,
  requires: Requires,
  logResolve: (context: ResolveContext) => void,
): ResolveRoute {
  const { metrics, config } = gatehouse
  const { admin_body_bytes: limitBytes } = config.limits
  const head = createHead(config)
  const admit = createAdmit(gatehouse)
  const { transform } = guardOf(requires)

  return async (context) => {
    const { request, params } = context
    admit(context, PERMISSION)
    const { call, caller } = context
    if (caller.type !== 'system') throw new GatehouseError('forbidden', 'resolve takes a system key (see the README)')
    const { value: body } = await readJson(request, limitBytes)
    context.body = body
    transform(context)
    const { value, isFetched } = await resolveSecret(gatehouse, {
      caller,
      idOrSlug: params.secretReferenceId,
      body: checked(body),
      actor: () => actorOf(gatehouse, context),
      waiting: () => gatehouse.mayTakeLong(request),
      recorded: () => {
        call.isRecorded = true
      },
    })
    const headers = head(call.requestId)
    if (caller.limiter !== undefined) Object.assign(headers, caller.limiter.headers(call.startedAt))
    if (isFetched) logResolve(context)
    else metrics.request('POST', RESOLVE_PATH, 200, (performance.now() - call.startedAt) / 1000)
    return new Response(JSON.stringify(value), { headers })
  }
}

let check: TypeCheck<typeof ResolveSecretReference> | undefined

/** @throws GatehouseError `invalid` with all complaints */
function checked(body: unknown): ResolveSecretReference {
  // Compiling takes milliseconds that nobody else needs to spend.
  check ??= TypeCompiler.Compile(ResolveSecretReference)
  if (check.Check(body)) return body
  throw invalid(complaints(ResolveSecretReference, body))
}

const guardOf = (requires: Requires) => requires(PERMISSION, "A secret reference's value, for the gateway")

export function resolveRoutes(requires: Requires, resolve: ResolveRoute) {
  const { detail } = guardOf(requires)
  return new Elysia({ normalize: false }).decorate(guarded).post(RESOLVE_PATH, opaque(resolve), {
    // The body is read, and checked, above.
    parse: 'none',
    detail: {
      ...detail,
      'x-contract': { body: ResolveSecretReference, query: Type.Object({}), response: SecretValue },
    },
    response: problems(
      ...([
        'invalid',
        'unauthenticated',
        'forbidden',
        'not_found',
        'payload_too_large',
        'unsupported_media_type',
      ] as const),
      ...MANAGER_PROBLEMS,
    ),
  })
}

/**
 * The id or slug of the plainest kind of resolve URL, which is nearly every one; undefined for all others.
 *
 * @param url as Bun gives it: with scheme and host
 */
export function resolveTarget(url: string): string | undefined {
  if (!url.endsWith(END) || url.includes('%')) return undefined
  const path = url.indexOf('/', 'https://'.length)
  if (!url.startsWith(START, path)) return undefined
  const id = url.slice(path + START.length, -END.length)
  return id === '' || id.includes('/') || id.includes('?') ? undefined : id
}

const [START = '', END = ''] = RESOLVE_PATH.split(':secretReferenceId')
