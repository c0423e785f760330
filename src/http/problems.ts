import { ElysiaCustomStatusResponse, ValidationError } from 'elysia'
import { PROBLEMS } from '../../schema/api/errors.ts'
import { storageFailure } from '../db/errors.ts'
import { GatehouseError, invalid } from '../errors.ts'
import { complaints } from './complaints.ts'

/**
 * Any thrown value as one of our errors. Elysia's own messages never get out: they hold the whole request, keys and
 * all. What is not ours is `internal`, with the original as its cause for the log.
 */
export function toGatehouseError(thrown: unknown): GatehouseError {
  if (thrown instanceof GatehouseError) return thrown
  if (thrown instanceof ValidationError) return fromValidation(thrown)
  // Elysia wraps what a body parser throws
  if (thrown instanceof Error && thrown.cause instanceof GatehouseError) return thrown.cause
  if (thrown instanceof Error && 'code' in thrown && thrown.code === 'NOT_FOUND')
    return new GatehouseError('route_unknown', 'no such path; see /openapi.json for the paths there are')
  if (thrown instanceof ElysiaCustomStatusResponse)
    return new GatehouseError('internal', 'internal error', { cause: thrown })
  return (
    storageFailure(thrown) ??
    new GatehouseError('internal', 'internal error; the log has it under this request id', { cause: thrown })
  )
}

function fromValidation(error: ValidationError): GatehouseError {
  if (error.type === 'response')
    return new GatehouseError('internal', 'the answer broke its own contract; the log has it under this request id', {
      cause: new Error(
        `response contract broken at ${error.valueError?.path ?? '?'}: ${error.valueError?.message ?? ''}`,
      ),
    })
  const schema = (error.validator as { schema?: Parameters<typeof complaints>[0] }).schema
  const found = schema === undefined ? [] : complaints(schema, error.value)
  return invalid(found.length > 0 ? found : [{ path: error.type, message: 'does not fit its contract' }])
}

/** The superset envelope (decision 3, file 00 section 4) as JSON text. */
export function problemBody(error: GatehouseError, requestId: string): string {
  const { status, code, type } = PROBLEMS[error.code]
  const param = error.complaints[0]?.path || null
  return JSON.stringify({
    success: false,
    status_code: status,
    errorCode: code,
    message: error.message,
    request_id: requestId,
    error: { code, errorCode: code, message: error.message, type, param },
    ...(error.complaints.length > 0 && { errors: error.complaints }),
  })
}

/** Status and extra headers of a problem. */
export function problemHead(error: GatehouseError): { status: number; headers: Record<string, string> } {
  const headers: Record<string, string> = { ...error.headers }
  const { status } = PROBLEMS[error.code]
  if (error.retryAfterSeconds !== undefined || status === 503)
    headers['retry-after'] = String(error.retryAfterSeconds ?? 5)
  if (error.allow !== undefined) headers['allow'] = error.allow.join(', ')
  return { status, headers }
}
