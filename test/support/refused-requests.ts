import type { Canaries } from './canaries.ts'

/** What a caller may send by mistake, with a secret somewhere; none of it is to be accepted. */
export interface RefusedRequest {
  name: string
  method: string
  path: string
  body: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

const BASE = '/v1/secret-references'
const JSON_TYPE = { 'content-type': 'application/json' }

/** Names that nobody has, and names that are plain elsewhere: below an auth_config all of them are secret. */
const WRONG_NAMES = [
  'vault_tokne',
  'token1',
  'authconfig',
  'auth_config[vault_token]',
  'secretKey',
  'x',
  'vaultToken2',
  '__proto__',
]
const PLAIN_ELSEWHERE = ['secret_key', 'virtual_key', 'public_key', 'idempotency_key', 'key_id', 'name', 'description']

/**
 * @param id    of a stored reference, of the shape `token`
 * @param stray a text that stands in fields which are no secrets, where nobody can know that it is one
 */
export function refusedRequests(canaries: Canaries, id: string, stray: string): RefusedRequest[] {
  const secret = canaries.secret('refused')
  const operations = [
    { method: 'POST', path: BASE, body: { name: 'refused', ...canaries.shapes.token } },
    { method: 'PUT', path: `${BASE}/${id}`, body: { auth_config: canaries.shapes.token.auth_config } },
    { method: 'POST', path: `${BASE}/test`, body: { name: 'refused', ...canaries.shapes.token } },
    { method: 'POST', path: `${BASE}/${id}/test`, body: {} },
    { method: 'POST', path: `${BASE}/${id}/resolve`, body: { workspace_id: null } },
  ]
  return operations.flatMap(({ method, path, body }) => {
    const at = { method, path }
    const isWhole = 'auth_config' in body
    const valid = JSON.stringify(isWhole ? body : { ...body, vault_token: secret })
    return [
      ...WRONG_NAMES.map((name) => ({ name: `in ${name}`, ...at, body: withField(body, name, secret) })),
      { name: 'as a name', ...at, body: withField(body, secret, 1) },
      { name: 'as a name with a value', ...at, body: withField(body, secret, { [secret]: secret }) },
      ...['5f0c7f1e', 'AKIA'].map((start) => ({
        name: `as a name like a word (${start})`,
        ...at,
        body: withField(body, `${start}${canaries.marks.secret}`, secret),
      })),
      ...(isWhole ? authConfigs(at, body, canaries, secret) : []),
      ...strays(at, body, stray),
      ...texts(at, valid, secret),
    ]
  })
}

type Place = Pick<RefusedRequest, 'method' | 'path'>

/** As JSON text, since a literal cannot name `__proto__`. */
function withField(body: object, name: string, value: unknown): string {
  const fields = JSON.stringify(body).slice(1, -1)
  return `{${fields}${fields === '' ? '' : ','}${JSON.stringify(name)}:${JSON.stringify(value)}}`
}

function authConfigs(at: Place, body: object, { marks }: Canaries, secret: string): RefusedRequest[] {
  const stored = 'auth_config' in body ? (body.auth_config as Record<string, string>) : {}
  const wrong: [name: string, authConfig: unknown][] = [
    ['a text', secret],
    ['a list', [secret]],
    ['in a list', { ...stored, vault_token: [secret] }],
    ['as a member', { ...stored, vault_token: { [secret]: secret } }],
    ['as a name', { ...stored, [secret]: '' }],
    ['as a name like a word', { ...stored, [`x-${marks.secret}${marks.secret}`]: '' }],
    ['as the discriminator', { ...stored, vault_auth_type: secret }],
    ['with a line break', { ...stored, vault_token: `${secret}\n` }],
    ['of another manager', { ...stored, aws_secret_access_key: secret }],
    ['masked', { ...stored, masked_vault_token: secret, vault_token: 7 }],
    [
      'at a wrong address',
      { ...stored, vault_addr: `https://${encodeURIComponent(secret)}@${marks.secret}.example.com/` },
    ],
    ...[...WRONG_NAMES, ...PLAIN_ELSEWHERE].map((name): [string, unknown] => [
      `in ${name}`,
      { ...stored, [name]: secret },
    ]),
  ]
  return wrong.map(([name, auth_config]) => ({
    name: `auth_config: ${name}`,
    ...at,
    body: JSON.stringify({ ...body, auth_config }),
  }))
}

/** Fields that are shown elsewhere, and say what they want. */
function strays(at: Place, body: object, stray: string): RefusedRequest[] {
  const wrong: Record<string, unknown> = {
    name: [stray],
    manager_type: stray,
    slug: `${stray} `,
    secret_path: [stray],
    secret_key: { [stray]: stray },
    description: [stray],
    tags: stray,
    allow_all_workspaces: stray,
    allowed_workspaces: [stray],
    cache_seconds: stray,
    organisation_id: stray,
    workspace_id: [stray],
    fresh: stray,
    refresh: stray,
  }
  // an update takes these for things that it does not change
  const ignored = at.method === 'PUT' ? ['manager_type', 'slug'] : []
  return Object.entries(wrong)
    .filter(([name]) => !ignored.includes(name))
    .map(([name, value]) => ({ name: `stray in ${name}`, ...at, body: JSON.stringify({ ...body, [name]: value }) }))
}

/** What is no JSON, not JSON alone, not said to be JSON, or too much of it. */
function texts(at: Place, valid: string, secret: string): RefusedRequest[] {
  const quoted = JSON.stringify(secret)
  const bodies: [name: string, body: string | Uint8Array<ArrayBuffer>][] = [
    ['the secret itself', secret],
    ['a JSON text', quoted],
    ['a JSON list', `[${quoted}]`],
    ['cut off within the secret', valid.slice(0, valid.lastIndexOf('xyz'))],
    ['cut off at the end', valid.slice(0, -1)],
    ['with a comma too many', valid.replace(/\}$/, ',}')],
    ['with text behind it', `${valid} ${secret}`],
    ['with a key twice', `{${quoted}:1,${quoted}:2}`],
    ['with a NUL', valid.replace(/\}$/, `,${quoted}:"\\u0000"}`)],
    ['with a lone surrogate', `{"x":"${'\\ud800'}","y":${quoted}}`],
    ['nested too deep', `${'{"a":'.repeat(80)}${quoted}${'}'.repeat(80)}`],
    ['not UTF-8', Buffer.concat([Buffer.from(valid), Buffer.from([0xff])])],
    ['in UTF-16', Buffer.from(valid, 'utf16le')],
    ['too large', `{"x":${JSON.stringify(secret.repeat(8000))}}`],
  ]
  const types = ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16']
  const queries = [
    'vault_token',
    'token',
    'auth_config',
    'auth_config[vault_token]',
    'vault-secret-id',
    'aws_secret_access_key',
  ]
  return [
    ...bodies.map(([name, body]) => ({ name: `a body ${name}`, ...at, body, headers: JSON_TYPE })),
    ...types.map((type) => ({ name: `a body of type ${type}`, ...at, body: valid, headers: { 'content-type': type } })),
    ...queries.map((query) => ({
      name: `in the query ${query}`,
      ...at,
      path: `${at.path}?${encodeURIComponent(query)}=${encodeURIComponent(secret)}`,
      body: '[]',
    })),
  ]
}
