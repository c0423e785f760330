import { PROBLEMS } from '../../schema/api/errors.ts'
import { type Call, requestInfo } from '../auth/guard.ts'
import type { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

interface RefusedContext {
  request: Request
  /** the template of the route that matched, if one did */
  route?: string
  call: Call | undefined
}

/** Hands a refused request to the audit trail (decision 39); the answer does not wait for it. */
export function noteRefusal(
  gatehouse: Gatehouse,
  { request, route, call }: RefusedContext,
  error: GatehouseError,
  requestId: string,
): void {
  const { status, type } = PROBLEMS[error.code]
  gatehouse.refusals.note({
    caller: call?.caller,
    isKeyUnknown:
      error.code === 'unauthenticated' && gatehouse.config.server.key_headers.some((name) => request.headers.has(name)),
    clientIp: gatehouse.clientIp(request),
    method: request.method,
    route: route || undefined,
    permission: call?.permissions[0],
    status,
    type,
    request: () => requestInfo(gatehouse, request, requestId),
  })
}
