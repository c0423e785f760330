import {
  challenge,
  entraError,
  expiredSecret,
  forbidden,
  keyVaultAnswer,
  keyVaultError,
  metadataError,
  noApplication,
  noDirectory,
  noFederation,
  noSecret,
  wrongSecret,
} from './azure-answers.ts'
import { startTlsFront } from './tls-front.ts'

// As much of Azure as reading secrets needs, by Microsoft's documentation: Entra's token endpoint, the secrets of Key
// Vault with their challenge, and the metadata service of a virtual machine. Microsoft's own SDKs prove it in
// test/secret-managers/azure-double.test.ts.

export interface AzureDouble {
  /** for `[outbound] connect`: every host of Azure that is used here leads to the double */
  connect: Record<string, string>
  /** PEM text of the authority that its certificate is of, and a file with it */
  ca: string
  caFile: string
  /** id and domain name one and the same */
  directory: { id: string; domain: string }
  /** by client id */
  applications: Record<string, AzureApplication>
  /** of `t1.vault.azure.net`, and all others */
  secrets: Record<string, AzureVersion[]>
  /** client ids that may read them; everybody when undefined */
  readers: string[] | undefined
  /** client ids of this machine's managed identities; the only one need not be named */
  identities: string[]
  tokenSeconds: number
  /** answers in the place of an endpoint; undefined: the endpoint answers */
  instead: Partial<Record<AzureEndpoint, Instead>>
  /** in the order of their coming */
  requests: AzureRequest[]
  /** `token`, `challenge 401`, …: what was answered, with its status unless that is 200 */
  asked: string[]
  /** no token is valid any more */
  revokeTokens(): void
  stop(): void
}

export type AzureEndpoint = 'discovery' | 'token' | 'metadata' | 'challenge' | 'secret'

type Instead = (request: AzureRequest) => Response | undefined | Promise<Response | undefined>

export interface AzureRequest {
  method: string
  host: string
  path: string
  query: URLSearchParams
  headers: Headers
  form: URLSearchParams
}

export interface AzureApplication {
  secrets?: { value: string; isExpired?: boolean }[]
  /** the tokens that its federated credentials trust */
  assertions?: string[]
}

/** The newest one is the last. Times are seconds since 1970. */
export interface AzureVersion {
  version: string
  value: string
  enabled?: boolean
  nbf?: number
  exp?: number
}

/** A vault of each cloud, and where one logs in there. */
export const CLOUDS: [vault: string, login: string][] = [
  ['t1.vault.azure.net', 'login.microsoftonline.com'],
  ['t1.vault.azure.cn', 'login.chinacloudapi.cn'],
  ['t1.vault.usgovcloudapi.net', 'login.microsoftonline.us'],
]

const METADATA_HOST = '169.254.169.254'

/** With a directory, but without applications, identities and secrets. */
export async function startAzureDouble(): Promise<AzureDouble> {
  const tokens: Tokens = new Map()
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
  const front = await startTlsFront({ names: CLOUDS.flat(), to: server.port! })
  const double: AzureDouble = {
    connect: {
      ...Object.fromEntries(CLOUDS.flat().map((host) => [`${host}:443`, `127.0.0.1:${front.port}`])),
      [`${METADATA_HOST}:80`]: `127.0.0.1:${server.port}`,
    },
    ca: front.ca,
    caFile: front.caFile,
    directory: { id: crypto.randomUUID(), domain: 'contoso.example' },
    applications: {},
    secrets: {},
    readers: undefined,
    identities: [],
    tokenSeconds: 3_599,
    instead: {},
    requests: [],
    asked: [],
    revokeTokens: () => tokens.clear(),
    stop() {
      front.stop()
      void server.stop(true)
    },
  }

  async function answer(raw: Request): Promise<Response> {
    const { pathname: path, searchParams: query } = new URL(raw.url)
    const host = raw.headers.get('host') ?? ''
    const form = new URLSearchParams(await raw.text())
    const request: AzureRequest = { method: raw.method, host, path, query, headers: raw.headers, form }
    double.requests.push(request)
    const endpoint = endpointOf(request)
    const response =
      (await double.instead[endpoint]?.(request)) ?? ENDPOINTS[endpoint](request, { double, tokens, isNamed })
    double.asked.push(response.status === 200 ? endpoint : `${endpoint} ${response.status}`)
    return response
  }

  const isNamed = (named: string) => named === double.directory.id || named === double.directory.domain

  return double
}

interface IssuedToken {
  clientId: string
  audience: string
}

type Tokens = Map<string, IssuedToken>

interface Surroundings {
  double: AzureDouble
  tokens: Tokens
  /** whether it names the directory */
  isNamed(directory: string): boolean
}

function endpointOf({ host, path, headers }: AzureRequest): AzureEndpoint {
  if (host === METADATA_HOST) return 'metadata'
  if (host.includes('.vault.')) return headers.has('authorization') ? 'secret' : 'challenge'
  return path.endsWith('/oauth2/v2.0/token') ? 'token' : 'discovery'
}

const ENDPOINTS: Record<AzureEndpoint, (request: AzureRequest, surroundings: Surroundings) => Response> = {
  discovery({ host, path, query }, { isNamed }) {
    const [, named = ''] = path.split('/')
    if (path === '/common/discovery/instance') return Response.json(instanceOf(host, query))
    return isNamed(named) ? Response.json(configurationOf(host, named)) : noDirectory(named)
  },

  token({ path, form }, { double, tokens, isNamed }) {
    const [, named = ''] = path.split('/')
    const clientId = form.get('client_id') ?? ''
    const application = double.applications[clientId]
    const [, audience] = /^(https:\/\/.+)\/\.default$/.exec(form.get('scope')?.split(' ')[0] ?? '') ?? []
    if (!isNamed(named)) return noDirectory(named)
    if (application === undefined) return noApplication(clientId)
    const refusal = refusalOf(application, clientId, form)
    if (refusal !== undefined) return refusal
    if (form.get('grant_type') !== 'client_credentials' || audience === undefined)
      return entraError(400, 'invalid_scope', 1002012, 'The provided value for scope is not valid')
    const { tokenSeconds: seconds } = double
    const access_token = issued(tokens, { clientId, audience })
    return Response.json({ token_type: 'Bearer', expires_in: seconds, ext_expires_in: seconds, access_token })
  },

  metadata({ headers, query }, { double, tokens }) {
    const { identities, tokenSeconds } = double
    const clientId = query.get('client_id') ?? identities[0]
    const resource = query.get('resource') ?? ''
    if (headers.get('metadata') !== 'true') return metadataError('Required metadata header not specified')
    if (query.get('api-version') !== '2018-02-01') return metadataError('Bad request. api-version is invalid')
    if (!query.has('client_id') && identities.length > 1) return metadataError(SEVERAL_IDENTITIES)
    if (clientId === undefined || !identities.includes(clientId)) return metadataError('Identity not found')
    return Response.json({
      access_token: issued(tokens, { clientId, audience: resource }),
      client_id: clientId,
      expires_in: `${tokenSeconds}`,
      expires_on: `${Math.floor(Date.now() / 1_000) + tokenSeconds}`,
      ext_expires_in: `${tokenSeconds}`,
      not_before: `${Math.floor(Date.now() / 1_000)}`,
      resource,
      token_type: 'Bearer',
    })
  },

  challenge: ({ host }, { double }) => challenged(host, double),

  secret({ host, path, query, headers }, { double, tokens }) {
    const token = tokens.get(headers.get('authorization')?.replace(/^Bearer /, '') ?? '')
    if (token === undefined) return challenged(host, double, '[TokenExpired] Error validating token: IDX10223')
    if (token.audience !== resourceOf(host))
      return challenged(host, double, `AKV10022: Invalid audience. Expected ${resourceOf(host)}`)
    if (double.readers?.includes(token.clientId) === false) return forbidden('ForbiddenByRbac', token.clientId)
    if (!KNOWN_VERSIONS.test(query.get('api-version') ?? ''))
      return keyVaultError(400, 'BadParameter', 'The specified version is not recognized')
    const [, collection, name = '', wanted = ''] = path.split('/')
    const versions = collection === 'secrets' ? double.secrets[name] : undefined
    const found = wanted === '' ? versions?.at(-1) : versions?.find(({ version }) => version === wanted)
    if (found === undefined) return noSecret(name)
    if (found.enabled === false) return forbidden('SecretDisabled')
    const { version, value, nbf, exp } = found
    const times = { created: 1_700_000_000, updated: 1_700_000_000, ...(nbf && { nbf }), ...(exp && { exp }) }
    const attributes = { enabled: true, ...times, recoveryLevel: 'Recoverable+Purgeable', recoverableDays: 90 }
    return keyVaultAnswer(200, { value, id: `https://${host}/secrets/${name}/${version}`, attributes, tags: {} })
  },
}

const SEVERAL_IDENTITIES =
  'Multiple user assigned identities exist, please specify the clientId / resourceId of the identity in the token request'

const KNOWN_VERSIONS = /^(?:7\.[0-6]|20\d\d-\d\d-\d\d)$/

const resourceOf = (vault: string): string => `https://${vault.replace(/^[^.]+\./, '')}`

function challenged(host: string, { directory }: AzureDouble, message?: string): Response {
  const login = CLOUDS.find(([vault]) => vault === host)?.[1] ?? ''
  return challenge(`https://${login}/${directory.id}`, resourceOf(host), message)
}

function issued(tokens: Tokens, token: IssuedToken): string {
  const text = `eyJ0eXAiOiJKV1QifQ.${crypto.randomUUID()}.c2ln`
  tokens.set(text, token)
  return text
}

/** Whether the credential that an application shows is good. */
function refusalOf(application: AzureApplication, clientId: string, form: URLSearchParams): Response | undefined {
  const { secrets = [], assertions = [] } = application
  const assertion = form.get('client_assertion')
  if (assertion !== null) {
    const isToken = form.get('client_assertion_type') === 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
    return isToken && assertions.includes(assertion) ? undefined : noFederation()
  }
  const secret = secrets.find(({ value }) => value === form.get('client_secret'))
  if (secret === undefined) return wrongSecret(clientId)
  return secret.isExpired ? expiredSecret(clientId) : undefined
}

function instanceOf(host: string, query: URLSearchParams): object {
  const endpoint = query.get('authorization_endpoint') ?? ''
  return {
    tenant_discovery_endpoint: endpoint.replace('/oauth2/v2.0/authorize', '/v2.0/.well-known/openid-configuration'),
    'api-version': '1.1',
    metadata: [{ preferred_network: host, preferred_cache: host, aliases: [host] }],
  }
}

function configurationOf(host: string, named: string): object {
  const base = `https://${host}/${named}`
  return {
    issuer: `${base}/v2.0`,
    authorization_endpoint: `${base}/oauth2/v2.0/authorize`,
    token_endpoint: `${base}/oauth2/v2.0/token`,
    jwks_uri: `${base}/discovery/v2.0/keys`,
    response_types_supported: ['code'],
    subject_types_supported: ['pairwise'],
    id_token_signing_alg_values_supported: ['RS256'],
  }
}
