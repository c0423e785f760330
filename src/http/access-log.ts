import { PROBLEMS } from '../../schema/api/errors.ts'
import { withoutKeys } from '../audit/mask.ts'
import type { Call } from '../auth/guard.ts'
import type { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { describeError } from '../log.ts'

interface LoggedContext {
  request: Request
  /** the template of the route that matched, if one did */
  route?: string
  call: Call | undefined
}

export interface AccessLog {
  /** an answered administrative request: counted and written */
  answered(context: LoggedContext, status: number): void
  /** any failed request: counted and written, with the cause where it is ours to know */
  failed(context: LoggedContext, error: GatehouseError, requestId: string): void
  /** a successful render, which the hot path has counted: written if the config and the sampling say so */
  rendered(context: LoggedContext): void
}

/** One line of JSON a request: ids, route, status, duration; never a key, a header, a body or rendered text. */
export function createAccessLog(gatehouse: Pick<Gatehouse, 'config' | 'log' | 'metrics' | 'clientIp'>): AccessLog {
  const { log, metrics } = gatehouse
  const { renders, renders_sample_rate: sampleRate } = gatehouse.config.log
  const [idHeader = 'x-request-id'] = gatehouse.config.server.request_id_headers

  /** The id that the client sent along, if it looks like one. */
  function sentRequestId(request: Request): string | undefined {
    const sent = request.headers.get(idHeader)
    return sent !== null && CLIENT_ID.test(sent) ? withoutKeys(sent) : undefined
  }

  function fields({ request, route, call }: LoggedContext, status: number) {
    const seconds = call === undefined ? 0 : (performance.now() - call.startedAt) / 1000
    return {
      request_id: call?.requestId,
      client_request_id: sentRequestId(request),
      method: request.method,
      route: route || undefined,
      path: pathOf(request.url),
      status,
      duration_ms: Math.round(seconds * 1e5) / 100,
      key_id: call?.caller?.keyId,
      client_ip: gatehouse.clientIp(request) ?? undefined,
    }
  }

  const count = ({ request, route, call }: LoggedContext, status: number) =>
    metrics.request(
      request.method,
      route || 'none',
      status,
      call === undefined ? 0 : (performance.now() - call.startedAt) / 1000,
    )

  return {
    answered(context, status) {
      count(context, status)
      log.info('request', fields(context, status))
    },
    failed(context, error, requestId) {
      const { status, type } = PROBLEMS[error.code]
      count(context, status)
      const line = { ...fields(context, status), request_id: requestId, error: type }
      if (status < 500) log.info('request_refused', line)
      else
        log.error('request_failed', {
          ...line,
          cause: error.cause === undefined ? undefined : describeError(error.cause),
        })
    },
    rendered(context) {
      if (renders === 'all' || Math.random() < sampleRate) log.info('render', fields(context, 200))
    },
  }
}

/** The path alone: a query may hold what does not belong in a log, and so may a path that someone put a key into. */
function pathOf(url: string): string {
  const start = url.indexOf('/', 8)
  const query = url.indexOf('?', start)
  return withoutKeys(url.slice(start, query === -1 ? undefined : query)).slice(0, 300)
}

const CLIENT_ID = /^[A-Za-z0-9._-]{1,64}$/
