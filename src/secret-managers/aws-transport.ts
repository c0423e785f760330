import { OutboundError, type OutboundResponse, type Transport } from '../outbound/transport.ts'
import { awsRefusal } from './aws-answer.ts'
import { type ManagerCall, ManagerError } from './manager.ts'
import { fromOutbound } from './outbound-failure.ts'

/** One fetch, in one region: hosts are built of it, so it is one that `isAwsRegion` knows. */
export interface AwsCall extends ManagerCall {
  region: string
}

export interface AwsRequest {
  step: 'login' | 'read'
  /** what to say where a login is refused */
  refused: string
  /** what the manager's words must not repeat */
  withheld: object
}

/** What clients of all its services take. */
export type AwsSettings = ReturnType<typeof settingsOf>

/**
 * Sends one request of an SDK client over our transport. The SDK's errors end here.
 *
 * @param send makes the client, of these settings and its credentials: one for each request, since it holds the call
 * @throws ManagerError
 */
export async function askAws<T>(
  transport: Transport,
  call: AwsCall,
  request: AwsRequest,
  send: (settings: AwsSettings) => Promise<T>,
): Promise<T> {
  const exchange: Exchange = { answer: undefined, failure: undefined }
  try {
    return await send(settingsOf(transport, call, exchange))
  } catch (error) {
    const { failure, answer } = exchange
    if (failure !== undefined) throw fromOutbound(failure, request.step)
    if (answer !== undefined) throw awsRefusal(error, answer, request)
    throw new ManagerError(request.step, 'manager_config', 'no request to AWS could be made of this auth_config')
  }
}

/** What came of a request, kept beside the SDK, which wraps and renames it. */
interface Exchange {
  answer: OutboundResponse | undefined
  failure: OutboundError | undefined
}

/** What an SDK client hands to its transport; secrets are posted, so there is no query. */
interface SdkRequest {
  protocol: string
  hostname: string
  path: string
  method: string
  headers: Record<string, string>
  body?: string | Uint8Array
}

/** All that the SDK would otherwise look for in the environment and in ~/.aws is written here. */
function settingsOf(transport: Transport, { region, signal }: AwsCall, exchange: Exchange) {
  return {
    region,
    // one deadline and one breaker of ours count; a wrong signature would be sent three times (P16)
    maxAttempts: 1,
    retryMode: 'standard',
    defaultsMode: 'legacy' as const,
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    ignoreConfiguredEndpointUrls: true,
    disableClockSkewCorrection: true,
    authSchemePreference: ['sigv4'],
    userAgentAppId: '',
    requestHandler: {
      async handle({ protocol, hostname, path, method, headers, body: sent }: SdkRequest) {
        const url = `${protocol}//${hostname}${path}`
        try {
          const answer = await transport.send({
            method,
            url,
            headers,
            ...(sent !== undefined && { body: sent }),
            signal,
            reach: 'private',
          })
          exchange.answer = answer
          // a copy: the SDK turns the bytes that it reads into another class
          const body = new Uint8Array(answer.body)
          return { response: { statusCode: answer.status, headers: answer.headers, body } }
        } catch (error) {
          if (error instanceof OutboundError) exchange.failure = error
          throw error
        }
      },
    },
  }
}
