import { type TObject, Type } from '@sinclair/typebox'

/**
 * Every way a call can fail: HTTP status, the ecosystem's AB code, and `error.type`.
 * One row a reason; the reason is what `GatehouseError.code` holds and what a client may branch on.
 */
export const PROBLEMS = {
  invalid: { status: 400, code: 'AB01', type: 'invalid_request_error' },
  key_in_url: { status: 400, code: 'AB01', type: 'key_in_url' },
  template_limit: { status: 400, code: 'AB01', type: 'template_limit' },
  unauthenticated: { status: 401, code: 'AB05', type: 'authentication_error' },
  forbidden: { status: 403, code: 'AB03', type: 'permission_error' },
  not_found: { status: 404, code: 'AB08', type: 'not_found_error' },
  route_unknown: { status: 404, code: 'AB02', type: 'route_unknown' },
  method_not_allowed: { status: 405, code: 'AB02', type: 'method_not_allowed' },
  conflict: { status: 409, code: 'AB07', type: 'conflict_error' },
  payload_too_large: { status: 413, code: 'AB01', type: 'payload_too_large' },
  unsupported_media_type: { status: 415, code: 'AB01', type: 'unsupported_media_type' },
  rate_limited: { status: 429, code: 'AB06', type: 'rate_limited' },
  internal: { status: 500, code: 'AB04', type: 'internal_error' },
  not_initialised: { status: 503, code: 'AB04', type: 'not_initialised' },
  storage_unavailable: { status: 503, code: 'AB04', type: 'storage_unavailable' },
  outcome_unknown: { status: 503, code: 'AB04', type: 'outcome_unknown' },
  overloaded: { status: 503, code: 'AB04', type: 'overloaded' },
  stale: { status: 503, code: 'AB04', type: 'cache_stale' },
  draining: { status: 503, code: 'AB04', type: 'draining' },
} as const

export type ProblemCode = keyof typeof PROBLEMS

/** One complaint of a validation: `path` in dotted form (`messages[0].role`), '' for the whole body. */
export const Complaint = Type.Object({ path: Type.String(), message: Type.String() })

/** The superset envelope that every known client can read (each looks at another part of it). */
export const Problem = Type.Object(
  {
    success: Type.Literal(false),
    status_code: Type.Integer(),
    errorCode: Type.String({ description: 'AB01 to AB09' }),
    message: Type.String(),
    request_id: Type.String(),
    error: Type.Object({
      code: Type.String(),
      errorCode: Type.String(),
      message: Type.String(),
      type: Type.String({ description: 'the finer reason, in snake_case' }),
      param: Type.Union([Type.String(), Type.Null()], { description: 'the field that was refused, if one was' }),
    }),
    errors: Type.Optional(Type.Array(Complaint)),
  },
  { $id: 'Problem', title: 'Problem' },
)

/** The documented failures of a route, by status: `response: { 200: X, ...problems('invalid', 'not_found') }`. */
export function problems(...codes: ProblemCode[]): Record<number, TObject> {
  return Object.fromEntries(codes.map((code) => [PROBLEMS[code].status, Problem]))
}
