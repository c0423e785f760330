import { PROBLEMS } from '../../schema/api/errors.ts'
import { GatehouseError } from '../errors.ts'
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
    async failure(context: RefusedContext, thrown: unknown): Promise<Response> {
      let error = toGatehouseError(thrown)
      if (error.code === 'route_unknown') error = refusedMethod(context.request, allowedMethods) ?? error
      const requestId = context.call?.requestId ?? newRequestId()
      const noted = noteRefusal(gatehouse, context, error, requestId)
      if (noted !== undefined && waitsForItsRow(context, error) && !(await isStoredSoon(noted)))
        error = refusalNotStored()
      accessLog.failed(context, error, requestId)
      const { status, headers } = problemHead(error)
      return new Response(problemBody(error, requestId), {
        status,
        headers: { ...head(requestId), ...limitsOf(context), ...headers },
      })
    },
  }
}

/** Like a change, a refusal of an administrative call is not answered as one before its row is stored (AU-2). */
const waitsForItsRow = ({ route }: RefusedContext, { code }: GatehouseError): boolean =>
  PROBLEMS[code].status < 500 && route?.endsWith('/render') !== true

const STORED_WITHIN_MS = 2000

/** Storage that does not say may hold a refusal up no longer than this. */
const isStoredSoon = (noted: Promise<{ isStored: boolean }>): Promise<boolean> =>
  Promise.race([noted.then(({ isStored }) => isStored), Bun.sleep(STORED_WITHIN_MS).then(() => false)])

const refusalNotStored = (): GatehouseError =>
  new GatehouseError('audit_unavailable', 'the audit trail cannot be written now; nothing was done', {
    retryAfterSeconds: 5,
  })

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
