import type { Canaries } from './canaries.ts'
import { startTlsFront } from './tls-front.ts'

// AWS, Azure and Vault as far as reading one secret needs them, played by somebody who tells on: whatever fails, fails
// with an answer that holds what was sent, what was lent, and the secret itself, wherever an answer can hold a text.

export interface HostileManager {
  /** for `[outbound] connect` */
  connect: Record<string, string>
  caFile: string
  plan: Plan
  /** how many pieces the last answer had to choose from */
  pieces: number
  /** stages that were asked, in the order of their coming */
  asked: Stage[]
  stop(): void
}

export interface Plan {
  /** what fails; nothing when absent */
  at?: Stage | undefined
  how: Manner
  /** which of the pieces it tells */
  piece: number
  /** how it writes it */
  form: (piece: string) => string
}

/** `identity` is this machine's own, `mount` Vault's answer to where a path is, `challenge` that of Key Vault. */
export type Stage = 'identity' | 'login' | 'challenge' | 'mount' | 'read'

export const MANNERS = [
  'refuses',
  'forbids',
  'misses',
  'throttles',
  'is out of order',
  'is sealed',
  'redirects',
  'answers in HTML',
  'answers something else',
  'names the error so',
  'breaks off',
] as const
export type Manner = (typeof MANNERS)[number]

interface Asked {
  stage: Stage
  family: 'aws' | 'azure' | 'vault'
  host: string
  path: string
  query: URLSearchParams
  headers: Headers
  body: string
}

const AWS_HOSTS = ['secretsmanager.eu-west-1.amazonaws.com', 'sts.eu-west-1.amazonaws.com']
const LOGIN_HOST = 'login.microsoftonline.com'
const LINK_LOCAL = ['169.254.169.254', '169.254.170.23']

export async function startHostileManager(canaries: Canaries): Promise<HostileManager> {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
  const names = [...AWS_HOSTS, LOGIN_HOST, canaries.hosts.azure]
  const front = await startTlsFront({ names: [...names, canaries.hosts.vault], to: server.port! })
  const manager: HostileManager = {
    connect: {
      ...Object.fromEntries(names.map((name) => [`${name}:443`, `127.0.0.1:${front.port}`])),
      [`${canaries.hosts.vault}:8200`]: `127.0.0.1:${front.port}`,
      ...Object.fromEntries(LINK_LOCAL.map((host) => [`${host}:80`, `127.0.0.1:${server.port}`])),
    },
    caFile: front.caFile,
    plan: { how: 'refuses', piece: 0, form: (piece) => piece },
    pieces: 0,
    asked: [],
    stop() {
      front.stop()
      void server.stop(true)
    },
  }

  async function answer(raw: Request): Promise<Response> {
    const { pathname: path, searchParams: query } = new URL(raw.url)
    const host = raw.headers.get('host') ?? ''
    const body = await raw.text()
    const asked = { host, path, query, headers: raw.headers, body, ...placeOf(host, path, raw.headers) }
    const { plan } = manager
    manager.asked.push(asked.stage)
    if (plan.at !== asked.stage) return kept(asked, canaries)
    const pieces = piecesOf(asked, canaries)
    manager.pieces = pieces.length
    return told(asked, plan, plan.form(pieces[plan.piece % pieces.length]!))
  }

  return manager
}

function placeOf(host: string, path: string, headers: Headers): Pick<Asked, 'family' | 'stage'> {
  if (LINK_LOCAL.includes(host)) return { family: path.startsWith('/metadata') ? 'azure' : 'aws', stage: 'identity' }
  if (host.endsWith('.amazonaws.com')) return { family: 'aws', stage: host.startsWith('sts') ? 'login' : 'read' }
  if (host === LOGIN_HOST) return { family: 'azure', stage: 'login' }
  if (host.endsWith('.azure.net'))
    return { family: 'azure', stage: headers.has('authorization') ? 'read' : 'challenge' }
  if (path.startsWith('/v1/auth/')) return { family: 'vault', stage: 'login' }
  return { family: 'vault', stage: path.startsWith('/v1/sys/') ? 'mount' : 'read' }
}

const CREDENTIAL_HEADERS = [
  'authorization',
  'x-vault-token',
  'x-vault-namespace',
  'x-amz-security-token',
  'x-aws-ec2-metadata-token',
]

/** All that it knows: headers, query, body, its fields; where it is asked for the secret, that too. */
function piecesOf({ stage, headers, query, body }: Asked, { value }: Canaries): string[] {
  const sent = CREDENTIAL_HEADERS.flatMap((name) => headers.get(name) ?? [])
  const fields = body.startsWith('{') ? Object.values<unknown>(JSON.parse(body)) : new URLSearchParams(body).values()
  const known = [
    ...sent,
    ...[...fields, ...query.values()].filter((field) => typeof field === 'string'),
    ...(body === '' ? [] : [body]),
    ...(stage === 'read' ? [value] : []),
  ]
  return known.length === 0 ? ['nothing'] : known
}

/** Answers as it should. */
function kept({ family, stage, host, path, headers, body }: Asked, { lent, value }: Canaries): Response {
  const login = { access_key_id: lent.session, secret: lent.session, token: lent.session }
  if (family === 'vault') {
    if (stage === 'mount') return Response.json({ data: { path: 'secret/', type: 'kv', options: { version: '2' } } })
    if (stage === 'read') return Response.json({ data: { data: JSON.parse(value), metadata: { version: 3 } } })
    return path.endsWith('/lookup-self')
      ? Response.json({ data: { ttl: 3600, renewable: false } })
      : Response.json({ auth: { client_token: lent.token, lease_duration: 3600, renewable: false } })
  }
  if (family === 'azure') {
    if (stage === 'challenge')
      return new Response('', {
        status: 401,
        headers: {
          'www-authenticate': `Bearer authorization="https://${LOGIN_HOST}/contoso.example", resource="https://vault.azure.net"`,
        },
      })
    if (stage === 'read') {
      const id = `https://${host}/secrets/app/0123456789abcdef0123456789abcdef`
      return Response.json({ value, id, attributes: { enabled: true } })
    }
    if (path.endsWith('/openid-configuration')) return Response.json(configurationOf(host, path))
    return Response.json({ token_type: 'Bearer', expires_in: 3599, access_token: lent.token })
  }
  if (stage === 'read')
    return Response.json({ Name: 'prod/app', SecretString: value, VersionId: '0b0a1c2e-0000-4000-8000-000000000001' })
  if (stage === 'login') return lentInXml(new URLSearchParams(body).get('Action') ?? '', login)
  if (path === '/latest/api/token') return new Response(lent.imds)
  if (path.endsWith('/security-credentials/')) return new Response('role-of-the-machine')
  if (!headers.has('x-aws-ec2-metadata-token') && !headers.has('authorization'))
    return new Response('', { status: 401 })
  return Response.json({
    Code: 'Success',
    AccessKeyId: login.access_key_id,
    SecretAccessKey: login.secret,
    Token: login.token,
    Expiration: inAnHour(),
  })
}

const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString()

function configurationOf(host: string, path: string): object {
  const base = `https://${host}${path.replace(/\/v2\.0\/.*$/, '')}`
  return {
    issuer: `${base}/v2.0`,
    authorization_endpoint: `${base}/oauth2/v2.0/authorize`,
    token_endpoint: `${base}/oauth2/v2.0/token`,
    jwks_uri: `${base}/discovery/v2.0/keys`,
  }
}

function lentInXml(action: string, login: { access_key_id: string; secret: string; token: string }): Response {
  const text = (name: string, value: string) => `<${name}>${escapedXml(value)}</${name}>`
  const credentials = [
    text('AccessKeyId', login.access_key_id),
    text('SecretAccessKey', login.secret),
    text('SessionToken', login.token),
    text('Expiration', inAnHour()),
  ].join('')
  return xml(
    200,
    `<${action}Response><${action}Result><Credentials>${credentials}</Credentials></${action}Result></${action}Response>`,
  )
}

const xml = (status: number, body: string, headers: Record<string, string> = {}): Response =>
  new Response(body, { status, headers: { ...headers, 'content-type': 'text/xml' } })

const escapedXml = (text: string): string => text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)

const STATUSES: Record<Manner, number> = {
  refuses: 400,
  forbids: 403,
  misses: 404,
  throttles: 429,
  'is out of order': 500,
  'is sealed': 503,
  redirects: 307,
  'answers in HTML': 200,
  'answers something else': 200,
  'names the error so': 403,
  'breaks off': 200,
}

/** Fails, and tells. */
function told(asked: Asked, { how }: Plan, text: string): Response {
  const status = STATUSES[how]
  const headers = headersWith(text)
  if (how === 'answers in HTML')
    return new Response(`<html><title>${text}</title></html>`, {
      status,
      headers: { ...headers, 'content-type': 'text/html' },
    })
  if (how === 'breaks off')
    return new Response(JSON.stringify({ message: text, error: text }).slice(0, -4), { status, headers })
  if (how === 'answers something else') return Response.json(strange(text), { status, headers })
  const code = how === 'names the error so' ? text : (CODES[asked.family][how] ?? 'Strange')
  if (asked.family === 'aws' && asked.stage === 'login') return xml(status, errorInXml(code, text), headers)
  return Response.json(errorOf(asked, code, text), { status, headers })
}

const CODES: Record<Asked['family'], Partial<Record<Manner, string>>> = {
  aws: {
    refuses: 'InvalidParameterException',
    forbids: 'AccessDeniedException',
    misses: 'ResourceNotFoundException',
    throttles: 'ThrottlingException',
    'is out of order': 'InternalServiceError',
  },
  azure: { refuses: 'BadParameter', forbids: 'Forbidden', misses: 'SecretNotFound', throttles: 'Throttled' },
  vault: {},
}

function errorOf({ family, stage }: Asked, code: string, text: string): object {
  if (family === 'vault')
    return { errors: [text, `1 error occurred: ${text}`], warnings: [text], data: { [text]: text } }
  if (family === 'aws') return { __type: code, Code: code, code, message: text, Message: text, [text]: text }
  return stage === 'read' || stage === 'challenge'
    ? { error: { code, message: text, innererror: { code: text, message: text } } }
    : { error: code === text ? text : 'invalid_client', error_description: text, error_uri: text, [text]: text }
}

const errorInXml = (code: string, text: string): string =>
  `<ErrorResponse><Error><Type>Sender</Type><Code>${escapedXml(code)}</Code><Message>${escapedXml(text)}</Message></Error><RequestId>${escapedXml(text)}</RequestId></ErrorResponse>`

/** A success of another kind, with the text wherever an adapter may look. */
const strange = (text: string): object => ({
  data: { path: text, type: text, data: [text], metadata: { version: text }, ttl: text },
  auth: { client_token: `\n${text}`, lease_duration: text },
  value: [text],
  id: text,
  SecretString: { text },
  VersionId: text,
  Code: text,
  access_token: [text],
  token_type: text,
})

/** In every header that is read or that some library might print; a header takes visible ASCII alone. */
function headersWith(text: string): Record<string, string> {
  const value = text.replace(/[^\x20-\x7e]/g, '?')
  return {
    'retry-after': value,
    location: `https://${text.replace(/[^\w.-]/g, '-').slice(0, 200)}/v1/${encodeURIComponent(value)}`,
    'www-authenticate': `Bearer authorization="https://${LOGIN_HOST}/${value}", resource="https://vault.azure.net", error="${value}"`,
    'x-amzn-errortype': value,
    'x-amzn-requestid': value,
    'x-ms-request-id': value,
    'x-ms-keyvault-region': value,
    'set-cookie': value,
    server: value,
  }
}
