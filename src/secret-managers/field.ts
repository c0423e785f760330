import { isRawJson, parseStored } from '../json.ts'
import { type FetchedSecret, ManagerError } from './manager.ts'

export interface PickedValue {
  value: string
  /** bytes that are not said to be text come in base64 */
  encoding: 'utf-8' | 'base64'
}

/**
 * The part of a secret that is meant (file 04). Without a key: text as it is, bytes in base64, the data map of a Vault
 * path as JSON text. With one: an own property at the top level of a JSON object; string, number and boolean as text,
 * objects and arrays as JSON text. Integers of any length keep their digits. A field that is null counts as missing;
 * of a key that stands twice in the JSON the last one counts, as it does for the managers' own tools.
 *
 * @param secret parsed once, on the first call with a key
 * @throws ManagerError at `field`: manager_field_missing, manager_not_json, manager_binary
 */
export function pickField(secret: FetchedSecret, secretKey: string | null): PickedValue {
  if (secretKey === null) return whole(secret)
  const fields = fieldsOf(secret)
  const value = Object.hasOwn(fields, secretKey) ? fields[secretKey] : undefined
  if (value === undefined || value === null)
    throw at('manager_field_missing', 'the secret has no value at the field that secret_key names; check its spelling')
  return { value: textOf(value), encoding: 'utf-8' }
}

function whole({ content }: FetchedSecret): PickedValue {
  if (typeof content === 'string') return { value: content, encoding: 'utf-8' }
  if (content instanceof Uint8Array) return { value: Buffer.from(content).toString('base64'), encoding: 'base64' }
  return { value: textOf(content), encoding: 'utf-8' }
}

/** A secret's own object → what its text was parsed to; goes when the secret goes. */
const parsed = new WeakMap<FetchedSecret, Record<string, unknown>>()

function fieldsOf(secret: FetchedSecret): Record<string, unknown> {
  const { content } = secret
  if (content instanceof Uint8Array)
    throw at('manager_binary', 'the secret is binary, so it has no fields; leave secret_key out to get it as base64')
  if (typeof content !== 'string') return content
  const known = parsed.get(secret)
  if (known !== undefined) return known
  const fields = parseObject(content)
  parsed.set(secret, fields)
  return fields
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = parseStored(text)
  } catch {
    // its message would hold some of the secret
    throw at('manager_not_json', 'the secret is not JSON, so it has no fields; leave secret_key out to get its text')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawJson(value))
    throw at('manager_not_json', 'the secret is JSON but no object, so it has no fields; leave secret_key out')
  return value as Record<string, unknown>
}

/** As deep as any JSON from outside may be nested (HT-2). Writing 150,000 levels took 1.4 s, and then failed. */
const MAX_DEPTH = 64

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (isDeeper(value, MAX_DEPTH))
    throw at('manager_not_json', `what is meant is nested deeper than ${MAX_DEPTH} levels`)
  return JSON.stringify(value)
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || isRawJson(value)) return false
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1))
}

const at = (failure: 'manager_field_missing' | 'manager_not_json' | 'manager_binary', message: string) =>
  new ManagerError('field', failure, message)
