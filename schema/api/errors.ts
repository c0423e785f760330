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
  // What a secret manager's answer, or none, means (SM-6, decision 47); the manager's own status is never passed on.
  manager_config: { status: 400, code: 'AB01', type: 'manager_config' },
  manager_address_refused: { status: 400, code: 'AB01', type: 'manager_address_refused' },
  machine_identity_not_granted: { status: 403, code: 'AB03', type: 'machine_identity_not_granted' },
  manager_auth_failed: { status: 502, code: 'AB04', type: 'manager_auth_failed' },
  manager_auth_expired: { status: 502, code: 'AB04', type: 'manager_auth_expired' },
  manager_denied: { status: 502, code: 'AB04', type: 'manager_denied' },
  manager_secret_missing: { status: 502, code: 'AB04', type: 'manager_secret_missing' },
  manager_secret_disabled: { status: 502, code: 'AB04', type: 'manager_secret_disabled' },
  manager_field_missing: { status: 502, code: 'AB04', type: 'manager_field_missing' },
  manager_not_json: { status: 502, code: 'AB04', type: 'manager_not_json' },
  manager_binary: { status: 502, code: 'AB04', type: 'manager_binary' },
  manager_tls: { status: 502, code: 'AB04', type: 'manager_tls' },
  manager_bad_response: { status: 502, code: 'AB04', type: 'manager_bad_response' },
  manager_throttled: { status: 503, code: 'AB04', type: 'manager_throttled' },
  manager_sealed: { status: 503, code: 'AB04', type: 'manager_sealed' },
  manager_standby: { status: 503, code: 'AB04', type: 'manager_standby' },
  manager_unreachable: { status: 503, code: 'AB04', type: 'manager_unreachable' },
  manager_timeout: { status: 504, code: 'AB04', type: 'manager_timeout' },
  payload_too_large: { status: 413, code: 'AB01', type: 'payload_too_large' },
  unsupported_media_type: { status: 415, code: 'AB01', type: 'unsupported_media_type' },
  rate_limited: { status: 429, code: 'AB06', type: 'rate_limited' },
  internal: { status: 500, code: 'AB04', type: 'internal_error' },
  not_initialised: { status: 503, code: 'AB04', type: 'not_initialised' },
  storage_unavailable: { status: 503, code: 'AB04', type: 'storage_unavailable' },
  audit_unavailable: { status: 503, code: 'AB04', type: 'audit_unavailable' },
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

/** Failures of the few calls that go to a secret manager; every other one may happen anywhere. */
export const isOfManager = (code: string): boolean => code.startsWith('manager_') || code.startsWith('machine_')

export const MANAGER_PROBLEMS = (Object.keys(PROBLEMS) as ProblemCode[]).filter(isOfManager)

/** The documented failures of a route, by status: `response: { 200: X, ...problems('invalid', 'not_found') }`. */
export function problems(...codes: ProblemCode[]): Record<number, TObject> {
  const ofManager = codes.filter(isOfManager).map((code) => PROBLEMS[code])
  return Object.fromEntries(
    codes.map((code) => {
      const { status } = PROBLEMS[code]
      const reasons = ofManager.filter((each) => each.status === status).map(({ type }) => type)
      return [status, reasons.length === 0 ? Problem : { ...Problem, 'x-reasons': reasons }]
    }),
  )
}
