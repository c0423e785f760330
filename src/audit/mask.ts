import { SECRET_FIELDS } from '../../schema/api/secret-references.ts'
import { shown } from '../errors.ts'
import { isRawJson } from '../json.ts'

/** Gives the fingerprint of the value of a field, named in dotted form (`auth_config.vault_token`). */
export type Fingerprint = (field: string, value: string) => string

/**
 * Which fields hold secrets, in snake_case (`awsSecretAccessKey` is read as `aws_secret_access_key`). A name is secret
 * by its last word, so that one that nobody has thought of is more likely hidden than shown.
 */
const SECRET_LAST_WORD =
  /(?:^|_)(?:key|token|secret|secret_id|password|passphrase|authorization|credentials?|cookie|link)$/
/** Wherever they stand: a client may forget the auth_config around them. */
const SECRET_NAMES: ReadonlySet<string> = new Set(SECRET_FIELDS)
/** Every value below one of these is secret. */
const SECRET_CONTAINERS = new Set(['auth_config', 'configurations', 'custom_headers', 'key_material'])
/** Named like secrets, or among them, and none. */
const PLAIN = new Set([
  'virtual_key',
  'secret_key', // the member of a secret's JSON that is meant (file 04)
  'public_key',
  'idempotency_key',
  'key_id',
])
/** Shown among secrets where they hold what they are for: anything else may be a secret in the wrong field. */
const PLAIN_VALUES = new Map([
  ['aws_auth_type', /^(?:accessKey|assumedRole|serviceRole)$/],
  ['aws_region', /^[a-z]{2,4}(?:-[a-z]+){1,2}-\d{1,2}$/],
  ['azure_auth_mode', /^(?:entra|managed|default)$/],
  ['vault_auth_type', /^(?:token|approle|kubernetes)$/],
])

/** A longer text is kept by its hash: the thing itself has it, and a row stays small. */
const TEXT_LIMIT = 2048
/** JSON larger than this is kept by its member names and its hash. */
export const VALUE_LIMIT = 65_536

/** API keys of ours, wherever they stand, whole or cut short, any character of them percent-encoded, however often. */
const API_KEY =
  /(?:g|%(?:25)*[46]7)(?:t|%(?:25)*[57]4)(?:h|%(?:25)*[46]8)(?:_|%(?:25)*5f)(?:\w|%(?:25)*[3-7][\da-f])*/gi

/** Whether a text holds an API key of ours or the beginning of one. Cheap where nothing is percent-encoded. */
export const holdsKey = (text: string): boolean =>
  text.includes('%') ? text.search(API_KEY) !== -1 : text.includes('gth_')

/** A text without API keys of ours. */
export const withoutKeys = (text: string): string => text.replace(API_KEY, '[key]')

/**
 * A JSON value as an audit row may hold it: each secret replaced by `{"hmac": …}`, each long text by its size and hash.
 *
 * @param fingerprint decision 7
 */
export function masked(value: unknown, fingerprint: Fingerprint): unknown {
  return walk(value, '', false, fingerprint)
}

/** Whether a JSON value has a field that holds a secret. */
export function holdsSecret(value: unknown): boolean {
  let found = false
  walk(value, '', false, () => {
    found = true
    return ''
  })
  return found
}

function walk(value: unknown, path: string, isSecret: boolean, fingerprint: Fingerprint): unknown {
  if (Array.isArray(value)) return value.map((item, i) => walk(item, `${path}[${i}]`, isSecret, fingerprint))
  if (typeof value === 'object' && value !== null && !isRawJson(value)) {
    const members = Object.entries(value).map(([name, member]) => {
      const at = path === '' ? name : `${path}.${name}`
      // Where secrets are, one may stand in the place of a name.
      const told = isSecret ? shown(name) : withoutKeys(name)
      return [told, walk(member, at, isSecretField(name, isSecret, member), fingerprint)]
    })
    return Object.fromEntries(members)
  }
  if (value === null || value === undefined) return value
  if (isSecret) return { hmac: fingerprint(path, isRawJson(value) ? value.rawJSON : String(value)) }
  return typeof value === 'string' ? shortened(withoutKeys(value)) : value
}

/** @param name `auth_config[vault_token]` too, as queries and forms write what is below something */
function isSecretField(name: string, isBelowSecret: boolean, value?: unknown): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll('-', '_')
    .split(/[.[\]]+/)
    .filter((word) => word !== '')
    .map((word) => word.replace(/^masked_/, ''))
  if (typeof value === 'string' && PLAIN_VALUES.get(words.at(-1) ?? '')?.test(value)) return false
  // There, a plain name may stand for another one: secret_key for aws_secret_access_key.
  if (isBelowSecret) return true
  const isSecret = (word: string) =>
    SECRET_CONTAINERS.has(word) || SECRET_NAMES.has(word) || SECRET_LAST_WORD.test(word)
  return words.some((word) => !PLAIN.has(word) && isSecret(word))
}

const shortened = (text: string): unknown =>
  text.length <= TEXT_LIMIT ? text : { bytes: Buffer.byteLength(text), sha256: Bun.SHA256.hash(text, 'hex') }

/** What a URI may show: no key of ours, no value of a parameter that is named like a secret, at most 2,048 characters. */
export function maskedUri(uri: string): string {
  const [path = '', query] = uri.split(/\?(.*)/s)
  const parameters = query?.split('&').map((pair) => {
    const [name = ''] = pair.split('=')
    return isSecretField(decoded(name), false) ? `${name}=[masked]` : pair
  })
  return withoutKeys(parameters === undefined ? path : `${path}?${parameters.join('&')}`).slice(0, TEXT_LIMIT)
}

/** The parameters of a masked URI; of one that stands twice, the last. */
export function queryOf(uri: string): Record<string, string> {
  const at = uri.indexOf('?')
  return at === -1 ? {} : Object.fromEntries(new URLSearchParams(uri.slice(at + 1)))
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The headers that a row keeps; those that carry a key are only said to have been there. */
const KEPT_HEADERS = ['user-agent', 'content-type', 'content-length', 'accept', 'origin', 'idempotency-key']
const AUTH_HEADERS = ['authorization', 'proxy-authorization', 'cookie']
const HEADER_LIMIT = 256

/** @param keyHeaders `server.key_headers` */
export function maskedHeaders(headers: Headers, keyHeaders: readonly string[]): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = headers.get(name)
    if (value !== null) kept[name] = printable(withoutKeys(value)).slice(0, HEADER_LIMIT)
  }
  for (const name of [...AUTH_HEADERS, ...keyHeaders]) if (headers.has(name)) kept[name] = '*****'
  return kept
}

const printable = (text: string): string =>
  text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
