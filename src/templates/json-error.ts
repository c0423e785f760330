/** Where a text stops being JSON and what should have stood there. */
export interface JsonError {
  offset: number
  message: string
}

const BLANKS = /[ \t\n\r]*/y
/** A piece of a string: matched whole, a long string would be more than the engine's pattern matching can take back. */
const PIECE = /[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** What may come next at a place. */
type Expectation = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma'

/**
 * Finds the first place where `text` is not JSON; undefined for JSON. The engine's own error holds no place, so this
 * second look is taken after `JSON.parse` has refused a text.
 */
export function findJsonError(text: string): JsonError | undefined {
  const open: ('[' | '{')[] = []
  let expected: Expectation = 'value'
  let offset = skip(BLANKS, text, 0)
  for (; offset < text.length; offset = skip(BLANKS, text, offset)) {
    const char = text[offset]!
    if ((char === ']' || char === '}') && mayClose(char, open.at(-1), expected)) {
      open.pop()
      expected = 'comma'
      offset++
    } else if (expected === 'colon') {
      if (char !== ':') return { offset, message: 'expected a colon after the key' }
      expected = 'value'
      offset++
    } else if (expected === 'comma') {
      if (open.length === 0) return { offset, message: 'nothing may follow the closing bracket' }
      if (char !== ',') return { offset, message: `expected a comma or ${open.at(-1) === '[' ? ']' : '}'}` }
      expected = open.at(-1) === '[' ? 'value' : 'key'
      offset++
    } else if (expected === 'key' || expected === 'key or }') {
      if (char !== '"') return { offset, message: 'expected a key in double quotes' }
      const end = skipString(text, offset)
      if (end === offset) return stringError(text, offset)
      expected = 'colon'
      offset = end
    } else if (char === '[' || char === '{') {
      open.push(char)
      expected = char === '[' ? 'value or ]' : 'key or }'
      offset++
    } else {
      const end = char === '"' ? skipString(text, offset) : skip(SCALAR, text, offset)
      if (end === offset) return char === '"' ? stringError(text, offset) : { offset, message: 'expected a value' }
      expected = 'comma'
      offset = end
    }
  }
  return expected === 'comma' && open.length === 0 ? undefined : { offset, message: 'the text ends too early' }
}

/** The end of what `pattern` (sticky) matches at `offset`; `offset` itself where it does not match. */
function skip(pattern: RegExp, text: string, offset: number): number {
  pattern.lastIndex = offset
  return pattern.test(text) ? pattern.lastIndex : offset
}

/** The end of the string that opens at `start`; `start` itself where it is none. */
function skipString(text: string, start: number): number {
  const end = skipPieces(text, start + 1)
  return text[end] === '"' ? end + 1 : start
}

function skipPieces(text: string, start: number): number {
  let end = start
  for (let next = skip(PIECE, text, end); next > end; next = skip(PIECE, text, end)) end = next
  return end
}

const mayClose = (char: ']' | '}', open: '[' | '{' | undefined, expected: Expectation): boolean =>
  char === ']'
    ? open === '[' && (expected === 'comma' || expected === 'value or ]')
    : open === '{' && (expected === 'comma' || expected === 'key or }')

function stringError(text: string, start: number): JsonError {
  const offset = skipPieces(text, start + 1)
  if (offset >= text.length) return { offset: start, message: 'the string is not closed' }
  return {
    offset,
    message:
      text[offset] === '\\'
        ? 'unknown escape in a string'
        : 'a line break or control character in a string must be escaped',
  }
}
