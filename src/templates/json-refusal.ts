import { GatehouseError } from '../errors.ts'
import { parseStrict } from '../json.ts'
import type { JsonError } from './json-error.ts'

/**
 * Finds the first place in a text that is JSON but that `parseStrict` refuses: a key that stands twice, a bracket too
 * deep, a number too large. Its refusal holds no place, so this looks for the shortest beginning that it refuses.
 */
export function findRefusal(text: string): JsonError | undefined {
  const tokens = [...text.matchAll(TOKEN)]
  let found: JsonError | undefined
  let from = 0
  let to = tokens.length
  while (from < to) {
    const middle = (from + to) >> 1
    const message = refusalOf(closed(text, tokens.slice(0, middle + 1)))
    if (message === undefined) from = middle + 1
    else {
      found = { offset: tokens[middle]!.index, message }
      to = middle
    }
  }
  return found
}

/** Keys with their colons, values, and brackets; what stands between says nothing. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?|[[\]{}]|[^\s"[\]{}:,]+/g

/** The text up to the last token, made JSON again: a key gets a value, and what is open is closed. */
function closed(text: string, tokens: RegExpExecArray[]): string {
  const open: string[] = []
  for (const [token] of tokens) {
    if (token === '[') open.push(']')
    else if (token === '{') open.push('}')
    else if (token === ']' || token === '}') open.pop()
  }
  const last = tokens.at(-1)!
  return `${text.slice(0, last.index + last[0].length)}${last[0].endsWith(':') ? '0' : ''}${open.reverse().join('')}`
}

function refusalOf(text: string): string | undefined {
  try {
    parseStrict(text)
    return undefined
  } catch (error) {
    if (error instanceof GatehouseError) return error.complaints[0]?.message
    throw error
  }
}
