import { invalid, invalidField } from '../errors.ts'
import { spell } from './place.ts'

/** A chat message of spec 2.2, in whatever state of checking. */
export type Message = Record<string, unknown>

/**
 * Checks the messages of a template at save (spec 2.2): roles, required fields and types. A string that holds a tag is
 * checked for being a string; what it says is checked when it is filled. A list of text parts is taken for every role
 * (decision 22).
 *
 * @throws GatehouseError `invalid` with all complaints (path `string`)
 */
export function checkMessages(messages: unknown): asserts messages is Message[] {
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalidField('string', 'a chat template is a JSON array with at least one message')
  const complaints = messages.flatMap((message, i) => ofMessage(message, `messages[${spell(i)}]`))
  if (complaints.length > 0) throw invalid(complaints.map((message) => ({ path: 'string', message })))
}

/**
 * Joins a list of text parts into one string, for every role but user (decision 22). A list of anything else is left to
 * the check of the filled request.
 *
 * @param message changed and returned
 * @throws GatehouseError `invalid` for an image in it
 */
export function joinTextParts(message: Message, index: number): Message {
  const { content, role } = message
  if (!Array.isArray(content) || role === 'user') return message
  if (content.some((part) => isObject(part) && part['type'] === 'image_url'))
    throw invalidField('string', `messages[${spell(index)}].content ${NO_IMAGES}`)
  if (content.length > 0 && content.every(isTextPart)) message['content'] = content.map((part) => part.text).join('\n')
  return message
}

const NO_IMAGES = 'must hold no image: only user messages can'
const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

// Each check returns its complaints, every one with the path of what it complains of.

function ofMessage(message: unknown, path: string): string[] {
  if (!isObject(message)) return [`${path} must be an object`]
  const { role, tool_calls, function_call } = message
  if (!isOneOf(role, ROLES)) return [`${path}.role must be one of ${ROLES.join(', ')}`]
  return [
    ...ofContent(message, `${path}.content`),
    ...('name' in message || role === 'function' ? ofString(message, 'name', path) : []),
    ...(role === 'tool' ? ofString(message, 'tool_call_id', path) : []),
    ...(tool_calls === undefined ? [] : ofToolCalls(tool_calls, `${path}.tool_calls`)),
    ...(isGiven(function_call) ? ofCall(function_call, `${path}.function_call`) : []),
  ]
}

function ofContent({ content, role, tool_calls, function_call }: Message, path: string): string[] {
  const optional = isTagged(role) || (role === 'assistant' && (isGiven(tool_calls) || isGiven(function_call)))
  if (typeof content === 'string' || (content === undefined && optional)) return []
  if (content === null)
    return optional || role === 'assistant' || role === 'function' ? [] : [`${path} must not be null`]
  if (!Array.isArray(content) || content.length === 0) return [`${path} must be a string or a list of parts`]
  return content.flatMap((part, i) => ofPart(part, isTagged(role) || role === 'user', `${path}[${spell(i)}]`))
}

function ofPart(part: unknown, mayBeImage: boolean, path: string): string[] {
  if (!isObject(part)) return [`${path} must be an object`]
  const { type, image_url: image } = part
  if (!isOneOf(type, ['text', 'image_url'])) return [`${path}.type must be text or image_url`]
  if (type === 'text') return ofString(part, 'text', path)
  if (type !== 'image_url') return []
  if (!mayBeImage) return [`${path} ${NO_IMAGES}`]
  if (!isObject(image)) return [`${path}.image_url must be an object with a url`]
  const isKnownDetail = !('detail' in image) || isOneOf(image['detail'], ['auto', 'low', 'high'])
  return [
    ...ofString(image, 'url', `${path}.image_url`),
    ...(isKnownDetail ? [] : [`${path}.image_url.detail must be auto, low or high`]),
  ]
}

function ofToolCalls(calls: unknown, path: string): string[] {
  if (!Array.isArray(calls)) return [`${path} must be a list`]
  return calls.flatMap((call, i) => ofToolCall(call, `${path}[${spell(i)}]`))
}

function ofToolCall(call: unknown, path: string): string[] {
  if (!isObject(call)) return [`${path} must be an object`]
  return [
    ...ofString(call, 'id', path),
    ...(isOneOf(call['type'], ['function']) ? [] : [`${path}.type must be function`]),
    ...ofCall(call['function'], `${path}.function`),
  ]
}

const ofCall = (call: unknown, path: string): string[] =>
  isObject(call)
    ? [...ofString(call, 'name', path), ...ofString(call, 'arguments', path)]
    : [`${path} must be an object with name and arguments`]

const ofString = (holder: Message, key: string, path: string): string[] =>
  typeof holder[key] === 'string' ? [] : [`${path}.${key} must be a string`]

const isTagged = (value: unknown): boolean => typeof value === 'string' && value.includes('{{')
const isOneOf = (value: unknown, values: string[]): boolean =>
  typeof value === 'string' && (values.includes(value) || isTagged(value))
const isGiven = (value: unknown): boolean => value !== undefined && value !== null
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isTextPart = (part: unknown): part is { text: string } =>
  isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string'
