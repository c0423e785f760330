import { AUTH_SHAPES, SECRET_FIELDS } from '../../schema/api/secret-references.ts'

const MAX_CHARACTERS = 200

/** Fixed words of the contract, which managers use as well ("token"): no values that somebody brought. */
const DISCRIMINATORS = new Set(['aws_auth_type', 'azure_auth_mode', 'vault_auth_type'])

/**
 * A manager's own words, for `test` alone (decision 47): one line of at most 200 characters.
 *
 * @param text       of an error field of the manager's JSON answer
 * @param authConfig and whatever else must not be repeated, by name
 * @returns          undefined where there is no text, or it holds one of those values
 */
export function managerMessage(text: unknown, authConfig: object): string | undefined {
  if (typeof text !== 'string') return undefined
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  return line === '' || repeats(line, authConfig) ? undefined : [...line].slice(0, MAX_CHARACTERS).join('')
}

/** What is shown may have been unfolded from more: escapes of six characters, and the rest of a value that is cut. */
const LOOKED_AT = 8 * MAX_CHARACTERS

/** A piece of a login that helps whoever reads it; managers cut what they repeat. */
const PIECE = 12

/** In base64 and the like nearly everything can be read that is shorter. */
const SHORTEST_UNFOLDED = 8

/**
 * Whether a text repeats a value: as it is, or cut, spaced, in other letters, escaped, in base64 or in hex, as proxies and
 * servers print what they were sent.
 *
 * @param withheld strings by name; of what logs in, a piece is too much
 */
export function repeats(text: string, withheld: object): boolean {
  const looked = text.slice(0, LOOKED_AT)
  const readings = readingsOf(looked)
  const pieces = new Set(readings.flatMap(piecesOf))
  return Object.entries(withheld).some(([name, value]) => {
    if (typeof value !== 'string' || value === '' || DISCRIMINATORS.has(name)) return false
    if (text.includes(value)) return true
    const core = coreOf(value)
    if (core.length < SHORTEST_UNFOLDED) return false
    if (readings.some((reading) => reading.includes(core))) return true
    return !SHOWN_IN_PART.has(name) && piecesOf(core).some((piece) => pieces.has(piece))
  })
}

/** No secrets, or secrets whose parts are in most of what a manager says (the account in the ARN of a role). */
const SHOWN_IN_PART = new Set([
  ...Object.values(AUTH_SHAPES).flatMap((shapes) => shapes.flatMap((shape) => Object.keys(shape.properties))),
  ...['roleArn', 'tenantId', 'clientId'],
])
for (const name of SECRET_FIELDS) if (name !== 'aws_role_arn') SHOWN_IN_PART.delete(name)

/** What survives most of what is done to a text on its way. */
const coreOf = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, '')

const piecesOf = (core: string): string[] =>
  Array.from({ length: Math.max(0, core.length - PIECE + 1) }, (_, at) => core.slice(at, at + PIECE))

/** The text, and all that may have been written in it in another way. */
function readingsOf(text: string): string[] {
  const plain = unescaped(text)
  const texts = [text, plain].flatMap((each) => [
    each,
    ...matches(each, /[\da-f]{16,}/gi).flatMap((run) => [decoded(run, 'hex'), decoded(run.slice(1), 'hex')]),
    ...matches(each, /[\w+/-]{10,}/g).flatMap((run) => [0, 1, 2, 3].map((from) => decoded(run.slice(from), 'base64'))),
  ])
  return texts.map(coreOf)
}

const matches = (text: string, pattern: RegExp): string[] => text.match(pattern) ?? []
const decoded = (run: string, encoding: 'hex' | 'base64'): string => Buffer.from(run, encoding).toString('latin1')

/** Of URLs, JSON, and HTML. */
const unescaped = (text: string): string =>
  text.replace(/(?:%|\\+x|&#x)([\da-f]{2})|\\+u([\da-f]{4})|&#(\d{1,5});/gi, (_, byte, unit, decimal) =>
    String.fromCharCode(decimal === undefined ? Number.parseInt(byte ?? unit, 16) : Number(decimal)),
  )
