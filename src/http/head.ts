import type { Config } from '../../schema/config.ts'
import { newRequestId } from './request-id.ts'

/** Makes the headers that every answer has, whatever it answers (HT-9): a mutable object of its own each time. */
export type Head = (requestId?: string, contentType?: string) => Record<string, string>

export function createHead({ server }: Pick<Config, 'server'>): Head {
  const idHeaders = server.request_id_headers
  const isTls = server.tls_cert_file !== ''

  return (requestId = newRequestId(), contentType = 'application/json; charset=utf-8') => {
    const headers: Record<string, string> = {
      'content-type': contentType,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    }
    for (const name of idHeaders) headers[name] = requestId
    if (isTls) headers['strict-transport-security'] = 'max-age=31536000'
    return headers
  }
}
