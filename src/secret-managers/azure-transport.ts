import type { SecretClientOptions } from '@azure/keyvault-secrets'
import { OutboundError, type OutboundResponse, type Transport } from '../outbound/transport.ts'
import { type ManagerCall, ManagerError } from './manager.ts'
import { fromOutbound } from './outbound-failure.ts'

export interface AzureRequest {
  step: 'login' | 'read'
  /** what an answer means of which the SDK made an error */
  refusal(answer: OutboundResponse, wasAuthorized: boolean): ManagerError
}

/** What the clients of both SDKs take. */
export type AzureSettings = ReturnType<typeof settingsOf>

/**
 * Sends requests of an SDK client over our transport. The SDK's errors end here.
 *
 * @param send makes the client, of these settings: one for each call, since they hold its signal (MSAL takes none, P17)
 * @throws ManagerError
 */
export async function askAzure<T>(
  transport: Transport,
  { signal }: ManagerCall,
  { step, refusal }: AzureRequest,
  send: (settings: AzureSettings) => Promise<T>,
): Promise<T> {
  const exchange: Exchange = { answer: undefined, failure: undefined, wasAuthorized: false }
  try {
    return await send(settingsOf(transport, signal, exchange))
  } catch (error) {
    // of the login, which the SDK asks for while it reads
    if (error instanceof ManagerError) throw error
    const { failure, answer, wasAuthorized } = exchange
    if (failure !== undefined) throw fromOutbound(failure, step)
    if (answer !== undefined) throw refusal(answer, wasAuthorized)
    throw new ManagerError(step, 'manager_config', NO_REQUEST)
  }
}

const NO_REQUEST =
  'no request to Azure could be made of this auth_config: look at its directory, and at azure_vault_url'

/** What came of the last request, kept beside the SDK, which wraps and renames it. */
interface Exchange {
  answer: OutboundResponse | undefined
  failure: OutboundError | undefined
  wasAuthorized: boolean
}

type HttpClient = NonNullable<SecretClientOptions['httpClient']>
type HttpHeaders = Awaited<ReturnType<HttpClient['sendRequest']>>['headers']

function settingsOf(transport: Transport, signal: AbortSignal, exchange: Exchange) {
  const httpClient: HttpClient = {
    async sendRequest(request) {
      const headers = request.headers.toJSON()
      const body = typeof request.body === 'string' ? { body: request.body } : {}
      exchange.wasAuthorized = 'authorization' in headers
      try {
        const sent = { method: request.method, url: request.url, headers, ...body, signal, reach: 'listed' } as const
        const answer = await transport.send(sent)
        exchange.answer = answer
        const { status } = answer
        return { request, status, headers: headersOf(answer.headers), bodyAsText: answer.body.toString('utf8') }
      } catch (error) {
        if (error instanceof OutboundError) exchange.failure = error
        throw error
      }
    },
  }
  // One deadline and one breaker of ours count; to the same host the SDK would follow redirects (decision 43).
  return { httpClient, retryOptions: { maxRetries: 0 }, redirectOptions: { maxRetries: 0 } }
}

function headersOf(received: Record<string, string>): HttpHeaders {
  const values = new Map(Object.entries(received))
  return {
    get: (name) => values.get(name.toLowerCase()),
    has: (name) => values.has(name.toLowerCase()),
    set: (name, value) => void values.set(name.toLowerCase(), String(value)),
    delete: (name) => void values.delete(name.toLowerCase()),
    toJSON: () => Object.fromEntries(values),
    [Symbol.iterator]: () => values.entries(),
  }
}
