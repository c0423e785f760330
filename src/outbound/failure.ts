import type { Endpoint } from './endpoint.ts'
import { named } from './rules.ts'
import { OutboundError, type OutboundFailure, type OutboundStep } from './transport.ts'

/**
 * What went wrong, in our own words: errors of sockets and parsers hold pieces of what was sent and received.
 *
 * @param error what a socket, a parser or a signal gave; a failure of ours is handed back as it is
 * @param step  the one under way
 */
export function failureOf(error: unknown, step: OutboundStep, endpoint: Endpoint, signal: AbortSignal): OutboundError {
  if (error instanceof OutboundError) return error
  if (signal.aborted) return signal.reason instanceof OutboundError ? signal.reason : tooLate(step, endpoint)
  const code = String((error as { code?: unknown } | null)?.code ?? '')
  if (code.startsWith('HPE_')) return badResponse(endpoint, 'answered with something that is not HTTP')
  if (REQUEST_CODES.has(code))
    return failed(
      'address',
      'address_refused',
      endpoint,
      'was sent nothing: a header or the path holds a character that HTTP does not carry',
    )
  const words = CERTIFICATES[code]
  if (words !== undefined || TLS_CODES.test(code))
    return failed('tls', 'tls', endpoint, words ?? 'does not speak TLS 1.2 or newer here')
  return failed(step, 'unreachable', endpoint, CONNECTIONS[code] ?? 'closed the connection')
}

export const badResponse = (endpoint: Endpoint, words: string): OutboundError =>
  failed('read', 'bad_response', endpoint, words)

export const failed = (
  step: OutboundStep,
  failure: OutboundFailure,
  endpoint: Endpoint,
  words: string,
): OutboundError => new OutboundError(step, failure, `${named(endpoint)} ${words}`)

const WAITED_FOR: Record<OutboundStep, string> = {
  address: 'got no answer from DNS',
  connect: 'did not take the connection',
  tls: 'did not finish the TLS handshake',
  read: 'did not answer',
}

export const tooLate = (step: OutboundStep, endpoint: Endpoint): OutboundError =>
  failed(step, 'timeout', endpoint, `${WAITED_FOR[step]} in time`)

/** Before anything is sent; sockets and TLS have no such codes. */
const REQUEST_CODES = new Set(['ERR_INVALID_CHAR', 'ERR_INVALID_HTTP_TOKEN', 'ERR_UNESCAPED_CHARACTERS'])

const UNTRUSTED =
  'shows a certificate of an authority that is not trusted: name the authority in the ca_file of this manager in [secret_managers]'

const CERTIFICATES: Record<string, string> = {
  CERT_HAS_EXPIRED: 'shows an expired certificate',
  CERT_NOT_YET_VALID: 'shows a certificate that is not valid yet: compare the clocks',
  ERR_TLS_CERT_ALTNAME_INVALID: 'shows the certificate of another host: use the name that stands in it',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
}

const TLS_CODES =
  /^(?:CERT_|CRL_|ERR_TLS_|ERR_SSL_|ERR_BORINGSSL|UNABLE_TO_|ERROR_IN_CERT|INVALID_|PATH_LENGTH_|EPROTO$|HOSTNAME_MISMATCH$)/

const CONNECTIONS: Record<string, string> = {
  ECONNREFUSED: 'refuses connections: nothing listens there',
  EHOSTUNREACH: 'has no route from here',
  ENETUNREACH: 'has no route from here',
  ETIMEDOUT: 'did not take the connection',
}
