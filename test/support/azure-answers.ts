// Answers of Azure as it writes them, the refusals above all.

const isoSeconds = () => `${new Date().toISOString().replace('T', ' ').slice(0, 19)}Z`

/** An error of Entra's token endpoint, whose number is in its words. */
export function entraError(status: number, error: string, number: number, words: string): Response {
  const [trace_id, correlation_id, timestamp] = [crypto.randomUUID(), crypto.randomUUID(), isoSeconds()]
  const trace = `Trace ID: ${trace_id} Correlation ID: ${correlation_id} Timestamp: ${timestamp}`
  const error_description = `AADSTS${number}: ${words}. ${trace}`
  const error_uri = `https://login.microsoftonline.com/error?code=${number}`
  return Response.json(
    { error, error_description, error_codes: [number], timestamp, trace_id, correlation_id, error_uri },
    { status },
  )
}

export const noDirectory = (named: string): Response =>
  entraError(
    400,
    'invalid_request',
    90002,
    `Tenant '${named}' not found. Check to make sure you have the correct tenant ID`,
  )

export const noApplication = (clientId: string): Response =>
  entraError(
    400,
    'unauthorized_client',
    700016,
    `Application with identifier '${clientId}' was not found in the directory`,
  )

export const wrongSecret = (clientId: string): Response =>
  entraError(
    401,
    'invalid_client',
    7000215,
    `Invalid client secret provided. Ensure the secret being sent in the request is the client secret value, not the client secret ID, for a secret added to app '${clientId}'`,
  )

export const expiredSecret = (clientId: string): Response =>
  entraError(401, 'invalid_client', 7000222, `The provided client secret keys for app '${clientId}' are expired`)

export const noFederation = (): Response =>
  entraError(401, 'invalid_client', 700213, 'No matching federated identity record found for presented assertion')

export const metadataError = (error_description: string, status = 400): Response =>
  Response.json({ error: 'invalid_request', error_description }, { status })

export const keyVaultAnswer = (status: number, body: object, headers: Record<string, string> = {}): Response =>
  Response.json(body, { status, headers: { 'x-ms-keyvault-service-version': '1.9.2000.1', ...headers } })

export const keyVaultError = (status: number, code: string, message: string, inner?: string): Response =>
  keyVaultAnswer(status, { error: { code, message, ...(inner && { innererror: { code: inner } }) } })

export const noSecret = (name: string): Response =>
  keyVaultError(404, 'SecretNotFound', `A secret with (name/id) ${name} was not found in this key vault.`)

export const forbidden = (inner: string, clientId = ''): Response =>
  keyVaultError(403, 'Forbidden', `Caller is not authorized on this resource. Caller: appid=${clientId}`, inner)

/** What says which login a vault wants. */
export const challenge = (authorization: string, resource: string, message = NO_TOKEN): Response =>
  keyVaultAnswer(
    401,
    { error: { code: 'Unauthorized', message } },
    { 'www-authenticate': `Bearer authorization="${authorization}", resource="${resource}"` },
  )

const NO_TOKEN = 'AKV10000: Request is missing a Bearer or PoP token.'
