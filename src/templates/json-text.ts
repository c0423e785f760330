import { GatehouseError, invalidField } from '../errors.ts'
import { parseStrict } from '../json.ts'
import { findJsonError } from './json-error.ts'
import { findRefusal } from './json-refusal.ts'
import { stripTrailingCommas } from './json-state.ts'
import { refuseAt, TEMPLATE_LIMIT_BYTES } from './parse.ts'

/**
 * The JSON of a chat template, whose tags stand inside its strings (decision 20).
 *
 * @throws GatehouseError `invalid` (path `string`) with line and column
 */
export function parseMessagesText(text: string): unknown {
  try {
    return parseStrict(text).value
  } catch (error) {
    throw explain(error, text, 'the chat template')
  }
}

/**
 * The JSON that a raw template was filled to. Commas that a list section left behind its last item are taken off; big
 * integers keep their digits (decision 25).
 *
 * @throws GatehouseError `invalid` (path `string`); the message holds nothing of the filled text
 */
export function parseFilledText(text: string): unknown {
  try {
    return parseStrict(text).value
  } catch (error) {
    const json = stripTrailingCommas(text)
    if (json.length < text.length) return parseFilledText(json)
    throw explain(error, text, 'the filled template')
  }
}

function explain(error: unknown, text: string, label: string): unknown {
  const found = findJsonError(text)
  if (found === undefined) return explainRefusal(error, text, label)
  const tag = tagAround(text, found.offset)
  const source = { text, path: 'string', label: `${label} is not JSON` }
  return tag === undefined
    ? refuseAt(source, found.offset, found.message)
    : refuseAt(source, tag, 'a tag outside a string needs is_raw_template: 1')
}

/** A refusal of JSON. What a template was filled to can be so long that looking for the place would hold up others. */
function explainRefusal(error: unknown, text: string, label: string): unknown {
  const refusal = text.length > TEMPLATE_LIMIT_BYTES ? undefined : findRefusal(text)
  if (refusal !== undefined)
    return refuseAt({ text, path: 'string', label }, refusal.offset, refusal.message.replace('the body', 'it'))
  const reason = error instanceof GatehouseError ? error.complaints[0]?.message : undefined
  return reason === undefined ? error : invalidField('string', `${label}: ${reason.replace('the body', 'it')}`)
}

/** A tag in place of a value fails at its second brace, where an object lacks its key. */
const tagAround = (text: string, offset: number): number | undefined =>
  [offset, offset - 1].find((at) => text.startsWith('{{', at))
