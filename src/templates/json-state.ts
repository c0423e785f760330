/** Where a character of a JSON text stands. `escape` is inside a literal, after a backslash or within `\uXXXX`. */
export type JsonState = 'outside' | 'string' | 'escape'

/** The state of a JSON text so far; `hexDigits` of a `\u` escape are still to come. */
export interface JsonPosition {
  inString: boolean
  backslash: boolean
  hexDigits: number
}

export const atStart = (): JsonPosition => ({ inString: false, backslash: false, hexDigits: 0 })

export const stateOf = (position: JsonPosition): JsonState =>
  !position.inString ? 'outside' : position.backslash || position.hexDigits > 0 ? 'escape' : 'string'

/** Moves the position over literal text. */
export function advance(position: JsonPosition, text: string): void {
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!
    if (position.hexDigits > 0) position.hexDigits--
    else if (position.backslash) {
      position.backslash = false
      if (char === 'u') position.hexDigits = 4
    } else if (char === '\\' && position.inString) position.backslash = true
    else if (char === '"') position.inString = !position.inString
  }
}

const NEEDS_ESCAPE = /["\\\u0000-\u001f]/

/** A text as it stands between the quotes of a JSON string literal. */
export const escapeJson = (text: string): string => (NEEDS_ESCAPE.test(text) ? JSON.stringify(text).slice(1, -1) : text)

/** Literals whole, so that what looks like a trailing comma inside one is never taken for one. */
const LITERAL_OR_TRAILING_COMMA = /"[^"\\]*(?:\\.[^"\\]*)*"|,(?=\s*[\]}])/g

/** Takes off commas before a closing bracket: a list section writes one after its last item too. */
export const stripTrailingCommas = (json: string): string =>
  json.replace(LITERAL_OR_TRAILING_COMMA, (match) => (match === ',' ? '' : match))
