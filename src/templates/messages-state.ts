import { invalidField } from '../errors.ts'
import { atStart, type JsonPosition, step } from './json-state.ts'

/** What is known of a key: it is `arguments`, it is another, or only a fill can tell. */
export type Key = 'arguments' | 'other' | 'unknown'

/**
 * The state of the JSON of messages so far. A string literal under a key `arguments` holds JSON itself (decision 21),
 * wherever the key stands: what is no call loses nothing but the freedom to hold half a string.
 */
export interface MessagesPosition extends JsonPosition {
  /** what the string literal just closed says, should a colon follow */
  closed: Key
  /** the key whose value comes next */
  awaited: Key
  /** the key whose value the present string literal is */
  owner: Key
  /** how much of `arguments` the present literal spells so far; NaN if it is another text, undefined if it holds tags */
  spelled: number | undefined
  /** where the text of the present literal stands in the JSON that it is, under `arguments` */
  readonly inner: JsonPosition
}

/** @param awaited the key in front of a partial, whose text may end with a key as well */
export const atMessagesStart = (awaited: Key = 'other'): MessagesPosition => ({
  ...atStart(),
  closed: 'unknown',
  awaited,
  owner: 'other',
  spelled: 0,
  inner: atStart(),
})

/** Whether a position stands in a string literal that is the arguments of a call. */
export const isInArguments = (position: JsonPosition): position is MessagesPosition =>
  position.inString && isInMessages(position) && position.owner === 'arguments'

export const isInMessages = (position: JsonPosition): position is MessagesPosition => 'owner' in position

/**
 * Moves the position over literal text.
 *
 * @returns the offset where arguments with tags end inside a string literal of theirs; undefined if none do
 */
export function advanceMessages(position: MessagesPosition, text: string): number | undefined {
  for (let i = 0; i < text.length; i++) {
    if (isIndifferent(position)) i = endOfPlain(text, i)
    if (i === text.length) break
    const wasInString = position.inString
    const added = step(position, text[i]!)
    if (!wasInString) passOutside(position, text[i]!)
    else if (!position.inString) {
      position.closed = keyOf(position.spelled)
      if (position.owner === 'arguments' && position.spelled === undefined && position.inner.inString) return i
    } else if (added !== '') addToLiteral(position, added)
  }
  return undefined
}

/** Moves the position over a tag, or over the start or the end of a section: what it writes is known by no one yet. */
export function passTag(position: MessagesPosition): void {
  if (position.inString) position.spelled = undefined
  else position.closed = 'unknown'
}

/** Whether nothing but an escape or the end of the literal matters (a quotation mark in arguments is escaped): the way over long texts. */
const isIndifferent = ({ inString, unfinished, inner, spelled }: MessagesPosition): boolean =>
  inString && unfinished === '' && inner.unfinished === '' && !(spelled !== undefined && spelled >= 0)

function endOfPlain(text: string, start: number): number {
  PLAIN.lastIndex = start
  PLAIN.test(text)
  return PLAIN.lastIndex
}

const PLAIN = /[^"\\]*/y

function passOutside(position: MessagesPosition, char: string): void {
  if (char === ' ' || char === '\n' || char === '\t' || char === '\r') return
  if (char === '"') {
    position.owner = position.awaited
    position.spelled = 0
    Object.assign(position.inner, atStart())
  }
  position.awaited = char === ':' ? position.closed : 'other'
  position.closed = 'other'
}

function addToLiteral(position: MessagesPosition, char: string): void {
  if (position.owner === 'arguments') step(position.inner, char)
  if (position.spelled !== undefined)
    position.spelled = ARGUMENTS[position.spelled] === char ? position.spelled + 1 : Number.NaN
}

const ARGUMENTS = 'arguments'

const keyOf = (spelled: number | undefined): Key =>
  spelled === undefined ? 'unknown' : spelled === ARGUMENTS.length ? 'arguments' : 'other'

/** Stands before every tag in a string literal whose key only a fill can tell. No template and no written value holds it. */
export const MARK = '\0'

/**
 * Takes the marks out of a filled template.
 *
 * @throws GatehouseError `invalid` if a key came to be `arguments` that was not compiled as such
 */
export function takeMarks(filled: string): string {
  const pieces = filled.split(MARK)
  const position = atMessagesStart()
  for (const piece of pieces.slice(0, -1)) {
    advanceMessages(position, piece)
    if (isInArguments(position))
      throw invalidField('string', 'a key with a tag became arguments, whose value has tags too; write this key out')
  }
  return pieces.join('')
}
