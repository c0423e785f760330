import { type Compiling, compileText } from './compile.ts'
import type { Run } from './context.ts'
import { filler, type Node } from './fill.ts'
import { findJsonError } from './json-error.ts'
import { stripTrailingCommas } from './json-state.ts'
import { joinTextParts, type Message } from './messages.ts'

/** Makes a part of the messages; undefined stands for a part without tags, which stays as it is. */
type Filler = ((run: Run) => unknown) | undefined

/** Their strings hold JSON themselves, so values are written by its rules (decision 21). */
const ARGUMENTS = /^messages\[\d+\]\.(?:tool_calls\[\d+\]\.function|function_call)\.arguments$/

/**
 * Compiles every string of the messages, at any depth.
 *
 * @param messages changed: parts without tags are frozen, because all fills share them
 * @returns a function that makes the array and its messages anew
 * @throws as `compileText`
 */
export function compileMessages(messages: Message[], compiling: Compiling): (run: Run) => Message[] {
  const fillers = messages.map((message, i) => compileMessage(message, `messages[${i}]`, compiling))
  return (run) => fillers.map((fill, i) => joinTextParts(fill(run), i))
}

function compileMessage(message: Message, path: string, compiling: Compiling): (run: Run) => Message {
  const { keys, fillers } = compileMembers(message, path, compiling)
  return (run) => withMembers(message, keys, fillers, run)
}

function compileValue(value: unknown, path: string, compiling: Compiling): Filler {
  if (typeof value === 'string') return compileString(value, path, compiling)
  if (typeof value !== 'object' || value === null) return undefined
  if (Array.isArray(value)) return compileItems(value, path, compiling)
  const holder = value as Record<string, unknown>
  const { keys, fillers } = compileMembers(holder, path, compiling)
  if (keys.length > 0) return (run) => withMembers(holder, keys, fillers, run)
  Object.freeze(value)
  return undefined
}

function compileString(text: string, path: string, compiling: Compiling): Filler {
  if (!text.includes('{{')) return undefined
  const json = ARGUMENTS.test(path)
  const nodes = compileText(text, json ? 'arguments' : 'text', path, compiling)
  const fill = filler(nodes)
  return json && nodes.some(mayRepeat) ? (run) => stripTrailingCommas(fill(run)) : fill
}

/**
 * Takes the commas that list sections left off the arguments of a message's calls, where that makes them JSON.
 *
 * @param message of a filled raw template, in whatever state of checking; changed and returned
 */
export function stripInArguments(message: Message): Message {
  const { tool_calls: calls, function_call: call } = message
  for (const holder of [call, ...(Array.isArray(calls) ? calls.map((one) => memberOf(one, 'function')) : [])]) {
    const text = memberOf(holder, 'arguments')
    if (typeof text !== 'string' || findJsonError(text) === undefined) continue
    const stripped = stripTrailingCommas(text)
    if (findJsonError(stripped) === undefined) (holder as Record<string, unknown>)['arguments'] = stripped
  }
  return message
}

const memberOf = (holder: unknown, key: string): unknown =>
  typeof holder === 'object' && holder !== null ? (holder as Record<string, unknown>)[key] : undefined

const mayRepeat = (node: Node): boolean => node.type === 'section' || node.type === 'partial'

function compileItems(items: unknown[], path: string, compiling: Compiling): Filler {
  const fillers = items.map((item, i) => compileValue(item, `${path}[${i}]`, compiling))
  if (fillers.some((fill) => fill !== undefined)) return (run) => items.map((item, i) => fillers[i]?.(run) ?? item)
  Object.freeze(items)
  return undefined
}

function compileMembers(holder: Record<string, unknown>, path: string, compiling: Compiling) {
  const keys: string[] = []
  const fillers: ((run: Run) => unknown)[] = []
  for (const [key, value] of Object.entries(holder)) {
    const fill = compileValue(value, `${path}.${key}`, compiling)
    if (fill === undefined) continue
    keys.push(key)
    fillers.push(fill)
  }
  return { keys, fillers }
}

function withMembers(
  holder: Record<string, unknown>,
  keys: string[],
  fillers: ((run: Run) => unknown)[],
  run: Run,
): Record<string, unknown> {
  const filled = { ...holder }
  for (let i = 0; i < keys.length; i++) filled[keys[i]!] = fillers[i]!(run)
  return filled
}
