import { invalidField, shown } from './errors.ts'

/** A JSON number kept as its text: what `JSON.rawJSON('9223372036854775807')` gives. Prints as that text. */
export interface RawJson {
  readonly rawJSON: string
}

export const rawJson = (text: string): RawJson => JSON.rawJSON(text) as RawJson

export const isRawJson = (value: unknown): value is RawJson => JSON.isRawJSON(value)

/** Bounds of any JSON that comes from outside (appliance HT-2): nesting, members of one object, items of one array. */
const MAX_DEPTH = 64
const MAX_MEMBERS = 10_000
const MAX_ITEMS = 100_000

const QUOTE = 34
const BACKSLASH = 92
const MINUS = 45
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/**
 * Parses JSON from outside, strictly: no duplicate keys, no `__proto__`, no NUL or lone surrogate, bounded depth and
 * size, finite numbers. An integer literal beyond ±(2⁵³−1) becomes `JSON.rawJSON(literal)`, so no digit is lost
 * (decision 25); contracts that want a plain number refuse it there.
 *
 * @throws GatehouseError `invalid`; the message never holds any of the text
 */
export function parseStrict(text: string): StrictJson {
  const facts = scan(text)
  let value: unknown
  try {
    value = facts.bigInteger ? JSON.parse(text, keepBigInteger) : JSON.parse(text)
  } catch {
    throw invalidField('', 'the body is not valid JSON')
  }
  if (countMembers(value) !== facts.members)
    throw invalidField('', 'a key stands twice in the same object; send each key once')
  if (UNSAFE_ESCAPE.test(text)) refuseUnsafeStrings(value, '')
  return { value, hasBigIntegers: facts.bigInteger }
}

export interface StrictJson {
  value: unknown
  /** the value holds `JSON.rawJSON` somewhere */
  hasBigIntegers: boolean
}

/** Parses JSON that we stored ourselves, keeping big integer literals as `parseStrict` does. */
export function parseStored(text: string): unknown {
  return mayHoldBigInteger(text) ? JSON.parse(text, keepBigInteger) : JSON.parse(text)
}

/** The same for a column that may be null. */
export const parseNullable = <T = unknown>(text: string | null): T | null =>
  text === null ? null : (parseStored(text) as T)

/** False for certain, or true perhaps: a hit costs only the slower parse. */
export const mayHoldBigInteger = (text: string): boolean => /\d{16}/.test(text)

/** `\u0000` or half a surrogate pair; a false hit (`\\u0000`) is sorted out on the parsed value. */
const UNSAFE_ESCAPE = /\\u(?:0000|[dD][89abAB])/
const INTEGER = /^-?\d+$/

function keepBigInteger(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const source = context?.source
  return source !== undefined && INTEGER.test(source) ? JSON.rawJSON(source) : value
}

/**
 * One pass over the text, jumping over strings: counts members (colons), checks depth, looks for big integers and
 * numbers that are not finite. It need not be a validator: JSON.parse is one.
 */
function scan(text: string): { members: number; bigInteger: boolean } {
  const length = text.length
  let members = 0
  let depth = 0
  let bigInteger = false
  let i = 0
  while (i < length) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) {
      i = endOfString(text, i) + 1
    } else if (code === 58) {
      members++
      i++
    } else if (code === 123 || code === 91) {
      if (++depth > MAX_DEPTH) throw invalidField('', `the body is nested deeper than ${MAX_DEPTH} levels`)
      i++
    } else if (code === 125 || code === 93) {
      depth--
      i++
    } else if (isDigit(code) || code === MINUS) {
      const end = endOfNumber(text, i)
      if (end - i >= 16 || text.charCodeAt(end - 1) > 57 || hasExponent(text, i, end)) {
        const literal = text.slice(i, end)
        const number = Number(literal)
        if (number === Number.POSITIVE_INFINITY || number === Number.NEGATIVE_INFINITY)
          throw invalidField('', 'a number is too large to be represented')
        if (INTEGER.test(literal) && !Number.isSafeInteger(number)) bigInteger = true
      }
      i = end
    } else {
      i++
    }
  }
  return { members, bigInteger }
}

/** index of the closing quote of the string that opens at `start`; the text's length where there is none */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return text.length
}

function endOfNumber(text: string, start: number): number {
  let i = start + 1
  while (i < text.length) {
    const code = text.charCodeAt(i)
    // digits, '.', 'e', 'E', '+', '-'
    if (!isDigit(code) && code !== 46 && code !== 101 && code !== 69 && code !== 43 && code !== MINUS) break
    i++
  }
  return i
}

function hasExponent(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code === 101 || code === 69) return true
  }
  return false
}

/** Members of all objects, to be compared with the colons of the text: fewer means that a key stood twice. */
function countMembers(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    if (value.length > MAX_ITEMS) throw invalidField('', `an array has more than ${MAX_ITEMS} items`)
    for (const item of value) count += countMembers(item)
    return count
  }
  if (JSON.isRawJSON(value)) return 0
  let own = 0
  for (const key in value) {
    if (key === '__proto__') throw invalidField('', 'the key __proto__ is not accepted')
    own++
    const member = (value as Record<string, unknown>)[key]
    if (typeof member === 'object' && member !== null) count += countMembers(member)
  }
  if (own > MAX_MEMBERS) throw invalidField('', `an object has more than ${MAX_MEMBERS} keys`)
  return count + own
}

const isSafeText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

function refuseUnsafeStrings(value: unknown, path: string): void {
  if (typeof value === 'string') {
    if (!isSafeText(value)) throw invalidField(path, 'must not contain NUL or half a surrogate pair')
  } else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) refuseUnsafeStrings(item, `${path}[${shown(String(i))}]`)
  } else if (typeof value === 'object' && value !== null && !JSON.isRawJSON(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (!isSafeText(key)) throw invalidField(path, 'a key must not contain NUL or half a surrogate pair')
      refuseUnsafeStrings(member, path === '' ? shown(key) : `${path}.${shown(key)}`)
    }
  }
}
