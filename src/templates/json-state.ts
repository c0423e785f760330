/** Where a character of a JSON text stands. `escape` is inside a literal, after a backslash or within `\uXXXX`. */
export type JsonState = 'outside' | 'string' | 'escape'

/** The state of a JSON text so far; `unfinished` is an escape that is still to end, as `\` or `\u00`. */
export interface JsonPosition {
  inString: boolean
  unfinished: string
}

export const atStart = (): JsonPosition => ({ inString: false, unfinished: '' })

export const stateOf = ({ inString, unfinished }: JsonPosition): JsonState =>
  !inString ? 'outside' : unfinished === '' ? 'string' : 'escape'

/** Moves the position over one UTF-16 unit. @returns what it adds to the text of a string literal; empty for nothing */
export function step(position: JsonPosition, char: string): string {
  if (!position.inString) {
    position.inString = char === '"'
    return ''
  }
  if (position.unfinished !== '') {
    const sequence = position.unfinished + char
    const ends = sequence[1] !== 'u' || sequence.length === UNICODE_ESCAPE_LENGTH
    position.unfinished = ends ? '' : sequence
    return ends ? unescapeOne(sequence) : ''
  }
  if (char === '\\') position.unfinished = char
  else if (char === '"') position.inString = false
  else return char
  return ''
}

/** Moves the position over literal text. */
export function advance(position: JsonPosition, text: string): void {
  for (let i = 0; i < text.length; i++) step(position, text[i]!)
}

const UNICODE_ESCAPE_LENGTH = '\\u0000'.length
const CONTROLS = new Map(Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }))

const unescapeOne = (sequence: string): string => {
  const name = sequence[1]!
  return name === 'u' ? String.fromCharCode(Number.parseInt(sequence.slice(2), 16)) : (CONTROLS.get(name) ?? name)
}

const NEEDS_ESCAPE = /["\\\u0000-\u001f]/

/** A text as it stands between the quotes of a JSON string literal. */
export const escapeJson = (text: string): string => (NEEDS_ESCAPE.test(text) ? JSON.stringify(text).slice(1, -1) : text)

/** Literals whole, so that what looks like a trailing comma inside one is never taken for one. */
const LITERAL_OR_TRAILING_COMMA = /"[^"\\]*(?:\\.[^"\\]*)*"|,(?=\s*[\]}])/g

/** Takes off commas before a closing bracket: a list section writes one after its last item too. */
export const stripTrailingCommas = (json: string): string =>
  json.replace(LITERAL_OR_TRAILING_COMMA, (match) => (match === ',' ? '' : match))
