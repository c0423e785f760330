import type { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { AccessLog } from './access-log.ts'
import { createHead } from './head.ts'
import { methodNotAllowed } from './methods.ts'
import { problemBody, problemHead, toGatehouseError } from './problems.ts'
import { noteRefusal, type RefusedContext } from './refused.ts'
import { newRequestId } from './request-id.ts'

/** Turns what handlers return, and what they throw, into responses: one envelope, the same headers everywhere (HT-9). */
export function createAnswers(gatehouse: Gatehouse, accessLog: AccessLog, allowedMethods: (path: string) => string[]) {
  const head = createHead(gatehouse.config)

  return {
    success(context: RefusedContext, value: unknown): Response {
      accessLog.answered(context, 200)
      const headers = { ...head(context.call?.requestId), ...limitsOf(context) }
      if (context.call?.once?.isReplay) headers['idempotent-replayed'] = 'true'
      return new Response(JSON.stringify(value), { headers })
    },
    failure(context: RefusedContext, thrown: unknown): Response {
      let error = toGatehouseError(thrown)
      if (error.code === 'route_unknown') error = refusedMethod(context.request, allowedMethods) ?? error
      const requestId = context.call?.requestId ?? newRequestId()
      accessLog.failed(context, error, requestId)
      noteRefusal(gatehouse, context, error, requestId)
      const { status, headers } = problemHead(error)
      return new Response(problemBody(error, requestId), {
        status,
        headers: { ...head(requestId), ...limitsOf(context), ...headers },
      })
    },
  }
}

/** What is left of the caller's rate limits, if it has any. */
const limitsOf = ({ call }: RefusedContext): Record<string, string> | undefined =>
  call?.caller?.limiter?.headers(performance.now())

/** A path that takes other methods; and methods that no path takes (HT-6). */
function refusedMethod(
  { method, url }: Request,
  allowedMethods: (path: string) => string[],
): GatehouseError | undefined {
  const allowed = allowedMethods(URL.parse(url)?.pathname ?? '')
  return methodNotAllowed(
    allowed.length > 0 || (method !== 'TRACE' && method !== 'CONNECT') ? allowed : ['GET', 'POST'],
  )
}
