import { PROBLEMS } from '../../schema/api/errors.ts'
import { CreateSecretReference, UpdateSecretReference } from '../../schema/api/secret-references.ts'
import { ResolveSecretReference, TestSecretReference } from '../../schema/api/secret-values.ts'
import { withoutKeys } from '../audit/mask.ts'
import type { Refusal } from '../audit/refusals.ts'
import { type Call, requestInfo } from '../auth/guard.ts'
import type { RefusedKey } from '../auth/refused-keys.ts'
import type { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

export interface RefusedContext {
  request: Request
  /** the template of the route that matched, if one did */
  route?: string
  call: Call | undefined
  /** of the path, decoded; null what could not be */
  params?: Record<string, string | null>
  /** as it was read, if it was */
  body?: unknown
}

/**
 * Hands a refused request to the audit trail (decision 39).
 *
 * @returns of a caller that is known, what has become of the row, where it is to have one of its own: the answer waits
 *          for it (AU-2). It never waits to learn whose key was refused.
 */
export function noteRefusal(
  gatehouse: Gatehouse,
  context: RefusedContext,
  error: GatehouseError,
  requestId: string,
): Promise<{ isStored: boolean }> | undefined {
  const { request, route, call } = context
  if (call?.isRecorded) return undefined
  const { status, type } = PROBLEMS[error.code]
  const resourceId = targetOf(context)
  const isUnauthenticated = error.code === 'unauthenticated'
  const digest = isUnauthenticated ? call?.keyDigest : undefined
  const whose = digest === undefined ? undefined : gatehouse.refusedKeys.find(digest, Date.now())
  const asked = () => ({ ...requestInfo(gatehouse, request, requestId), body: keptBody(context) })
  const refusal: Refusal = {
    caller: call?.caller,
    isKeyUnknown:
      isUnauthenticated &&
      call?.caller === undefined &&
      gatehouse.config.server.key_headers.some((name) => request.headers.has(name)),
    clientIp: gatehouse.clientIp(request),
    method: request.method,
    route: route || undefined,
    action: actionOf(gatehouse, context, resourceId),
    resourceId,
    status,
    type,
    step: error.step,
    request: asked,
  }
  if (whose === undefined) {
    const noted = gatehouse.refusals.note(refusal)
    return refusal.caller === undefined ? undefined : noted
  }
  // The request is gone when the key is found.
  const kept = asked()
  const of = (key: RefusedKey | undefined) => (key === undefined ? {} : { caller: key, isKeyUnknown: false })
  gatehouse.refusals.noteWhenFound(whose.then((key) => ({ ...refusal, ...of(key), request: () => kept })))
  return undefined
}

/** Verbs that the permission of their route does not have. */
const VERBS: Record<string, string> = {
  'POST /v1/admin/users/invites': 'invite',
  'POST /v1/admin/users/invites/accept': 'accept',
  'POST /v1/admin/users/invites/:inviteId/resend': 'resend',
  'POST /v1/api-keys/:apiKeyId/rotate': 'rotate',
  'POST /v1/secret-references/:secretReferenceId/resolve': 'resolve',
}

/** Resources that have no permissions of their own, by what their routes begin with. */
const RESOURCES = { '/v1/collections': 'collections', '/v1/labels': 'labels', '/v1/admin/users': 'organisation_users' }

/** What the row of the success would say, so that filters find both. */
function actionOf(
  gatehouse: Gatehouse,
  { request, route = '', call }: RefusedContext,
  resourceId: string | null,
): string | undefined {
  const { caller, permissions = [] } = call ?? {}
  const permission = permissions.find((each) => caller?.permissions.has(each)) ?? permissions[0]
  const [family, permitted] = permission?.split('.') ?? []
  const verb = VERBS[`${request.method} ${route}`] ?? permitted
  const resource = route.startsWith('/v1/api-keys/:apiKeyId')
    ? resourceOfKey(gatehouse, caller?.organisationId, resourceId)
    : Object.entries(RESOURCES).find(([prefix]) => route.startsWith(prefix))?.[1]
  const type = resource ?? family
  return type === undefined || verb === undefined ? undefined : `${type}.${verb}`
}

function resourceOfKey({ keys }: Gatehouse, organisationId: string | undefined, id: string | null): string | undefined {
  const type = organisationId === undefined || id === null ? undefined : keys.typeOf(id, organisationId)
  return type === undefined ? undefined : `${type.replaceAll('-', '_')}_api_keys`
}

const ID_LIKE = /^[\w.@-]{1,128}$/

/** The last thing that the path names; of a version, whose rows are those of its prompt, the prompt. */
function targetOf({ params = {} }: RefusedContext): string | null {
  const named = Object.entries(params).filter(([name]) => name !== 'versionId')
  const id = named.at(-1)?.[1] ?? null
  return id !== null && ID_LIKE.test(id) ? withoutKeys(id) : null
}

/** Of known callers alone, since a stranger could fill the trail with them; never the variables of a render. */
function keptBody({ call, body, route = '' }: RefusedContext): unknown {
  if (call?.caller === undefined || route.endsWith('/render') || typeof body !== 'object') return undefined
  return route.startsWith('/v1/secret-references') ? knownFields(body) : body
}

const SECRET_REFERENCE_FIELDS = new Set(
  [CreateSecretReference, UpdateSecretReference, TestSecretReference, ResolveSecretReference].flatMap((contract) =>
    Object.keys(contract.properties),
  ),
)

/** A field of another name is most likely a login under a wrong one: neither it nor its name is kept. */
function knownFields(body: object | null): unknown {
  if (body === null || Array.isArray(body)) return undefined
  return Object.fromEntries(Object.entries(body).filter(([name]) => SECRET_REFERENCE_FIELDS.has(name)))
}
