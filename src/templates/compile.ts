import { GatehouseError, notFound } from '../errors.ts'
import { MAX_PARTIAL_DEPTH, type Node, type PartialNodes } from './fill.ts'
import { advance, atStart, escapeJson, type JsonPosition, type JsonState, stateOf } from './json-state.ts'
import { indentLines } from './lines.ts'
import {
  advanceMessages,
  atMessagesStart,
  isInArguments,
  isInMessages,
  type Key,
  MARK,
  type MessagesPosition,
  passTag,
} from './messages-state.ts'
import { type Name, type Part, parseTemplate, refuseAt, type Source } from './parse.ts'

/** A stored partial, as its published (or asked for) version has it. */
export interface PartialText {
  id: string
  slug: string
  version: number
  versionId: string
  text: string
}

/** By the reference as written in the tag: `slug`, `slug@3`, `slug@latest`. */
export type FindPartial = (reference: string) => PartialText | undefined

/** What compiling one template gathers over all its texts and partials. */
export interface Compiling {
  readonly findPartial: FindPartial
  /** at save an unknown partial is no error: it may be written later */
  readonly unknownPartials: 'refuse' | 'skip'
  readonly names: Set<string>
  /** by version id */
  readonly used: Map<string, PartialText>
  /** by reference, state and indentation */
  readonly bodies: Map<string, PartialNodes>
  /** partials that were met and are still to be compiled, nearest to the template first */
  readonly pending: (() => void)[]
  /** what the template's own texts hold, for variable_components */
  readonly texts: Part[][]
  /** UTF-16 units of partial texts compiled so far */
  partialSize: number
}

/** A partial is compiled anew for every indentation and JSON state; this bounds the time (about 1 s) and memory of all together. */
const MAX_PARTIAL_SIZE = 2 * 1024 * 1024
/** Counted for every compiled partial beside its text. */
const PARTIAL_OVERHEAD = 1_000

export const startCompiling = (findPartial: FindPartial, unknownPartials: Compiling['unknownPartials']): Compiling => ({
  findPartial,
  unknownPartials,
  names: new Set(),
  used: new Map(),
  bodies: new Map(),
  pending: [],
  texts: [],
  partialSize: 0,
})

/**
 * Compiles one of the template's texts; its partials wait for `compilePartials`.
 *
 * @param holds what the text becomes: in JSON every tag is compiled for its state (decision 21)
 * @param label what the text is, for messages
 * @throws GatehouseError `invalid` (path `string`, with line and column), `not_found` for an unknown partial
 */
export function compileText(
  text: string,
  holds: 'text' | 'arguments' | 'messages',
  label: string,
  compiling: Compiling,
): Node[] {
  const source: Source = { text, path: 'string', label }
  const parts = parseTemplate(source)
  compiling.texts.push(parts)
  const within = holds === 'text' ? 'text' : holds === 'messages' ? atMessagesStart() : atStart()
  const place: Place = { compiling, source, within, depth: 0 }
  const nodes = compileParts(parts, place, true)
  if (isLiteralOpen(place)) throw refuseAt(source, text.length, 'a JSON string literal is not closed')
  return nodes
}

/**
 * Compiles the partials of all texts, nearest first: so each is met at its least depth, and what lies below
 * `MAX_PARTIAL_DEPTH` can be left out, because no fill gets there.
 *
 * @throws as `compileText`, and `template_limit` for partials that are too large together
 */
export function compilePartials({ pending }: Compiling): void {
  for (const compileOne of pending) compileOne()
}

/** The text being compiled. */
interface Place {
  readonly compiling: Compiling
  readonly source: Source
  /** no JSON; all of it inside a JSON string literal; or JSON, where the position moves along with the literals */
  readonly within: 'text' | 'string' | JsonPosition | MessagesPosition
  /** partials around the text */
  readonly depth: number
}

/** @param whole whether nothing stands around the parts, so that the first and the last have no neighbours */
const compileParts = (parts: Part[], place: Place, whole = false): Node[] =>
  parts.flatMap((part, i) => {
    if (part.type === 'literal') return compileLiteral(part, place)
    const before = endsApart(parts[i - 1], whole) ? '' : ' '
    const after = startsApart(parts[i + 1], whole) ? '' : ' '
    return compileTag(part, { before, after }, place)
  })

// `1{{x}}2` must not become another number: a whole JSON value gets blanks where its neighbour may not be punctuation.

const endsApart = (previous: Part | undefined, whole: boolean): boolean =>
  previous === undefined ? whole : previous.type === 'literal' && /[\s[{,:"]$/.test(previous.text)

const startsApart = (next: Part | undefined, whole: boolean): boolean =>
  next === undefined ? whole : next.type === 'literal' && /^[\s\]},:"]/.test(next.text)

type PartOf<Type extends Part['type']> = Extract<Part, { type: Type }>

function compileLiteral({ text, start }: PartOf<'literal'>, { within, source }: Place): Node {
  if (typeof within === 'string') return { type: 'literal', text: within === 'string' ? escapeJson(text) : text }
  if (isInMessages(within)) {
    const early = advanceMessages(within, text)
    if (early !== undefined)
      throw refuseAt(source, start + early, 'the arguments end here, but a JSON string literal in them is not closed')
  } else advance(within, text)
  return { type: 'literal', text }
}

function compileTag(part: Exclude<Part, { type: 'literal' }>, blanks: Blanks, place: Place): Node[] {
  const { within } = place
  const state = stateAt(place)
  if (state === 'escape')
    throw refuseAt(
      place.source,
      part.start,
      'a tag must not follow a backslash or stand in a \\u escape; write \\\\ for a backslash',
    )
  if (typeof within !== 'string' && isInMessages(within)) passTag(within)
  if ('parts' in part) return [compileSection(part, place)]
  return fitInLiteral(
    part.type === 'partial' ? compilePartial(part, place) : compileVariable(part, state, blanks, place),
    place,
  )
}

interface Blanks {
  before: string
  after: string
}

function compileVariable(
  part: PartOf<'variable' | 'private'>,
  state: 'text' | JsonState,
  blanks: Blanks,
  place: Place,
): Node {
  const { name } = part
  note(name, place.compiling)
  const writing = state === 'text' ? 'text' : state === 'string' ? 'escaped' : 'value'
  if (part.type === 'variable')
    return { type: 'variable', name, writing, ...(writing === 'value' ? blanks : { before: '', after: '' }) }
  if (writing === 'value')
    throw refuseAt(place.source, part.start, 'a private partial stands only inside a JSON string literal')
  return { type: 'private', name, indent: part.indent, writing }
}

/** Makes what a tag writes fit the string literal around: arguments are JSON inside a literal, so it is escaped for both. */
function fitInLiteral(node: Node, { within }: Place): Node[] {
  if (typeof within === 'string' || !within.inString || !isInMessages(within) || within.owner === 'other') return [node]
  return within.owner === 'arguments' ? [{ type: 'escaped', node }] : [{ type: 'literal', text: MARK }, node]
}

function compileSection(part: PartOf<'section' | 'inverted'>, place: Place): Node {
  const { within, source } = place
  note(part.name, place.compiling)
  const before = describeState(place)
  const awaited = awaitedAt(place)
  const nodes = compileParts(part.parts, place)
  if (describeState(place) !== before)
    throw refuseAt(
      source,
      part.end,
      'the section must close where it opens: both inside a JSON string literal, or both outside',
    )
  if (leavesKey(place, awaited))
    throw refuseAt(source, part.end, 'the value of the last key must stand in the section too')
  if (typeof within !== 'string' && isInMessages(within)) {
    passTag(within)
    within.awaited = awaited
  }
  return { type: part.type, name: part.name, nodes }
}

function compilePartial({ reference, indent, start }: PartOf<'partial'>, place: Place): Node {
  const { compiling } = place
  const key = `${reference}\n${describeState(place)} ${awaitedAt(place)}\n${indent}`
  let partial = compiling.bodies.get(key)
  if (partial === undefined) {
    partial = { nodes: [] }
    compiling.bodies.set(key, partial)
    const found = compiling.findPartial(reference)
    if (found !== undefined) queueBody(partial, found, indent, start, place)
    else if (compiling.unknownPartials === 'refuse') throw notFound('partial')
  }
  return { type: 'partial', partial }
}

function queueBody(partial: PartialNodes, found: PartialText, indent: string, start: number, around: Place): void {
  const { compiling } = around
  compiling.used.set(found.versionId, found)
  if (around.depth === MAX_PARTIAL_DEPTH) return
  const within = withinPartial(around)
  const awaited = awaitedAt(around)
  compiling.pending.push(() => {
    const source: Source = { text: indentLines(found.text, indent), path: 'string', label: 'a partial' }
    countPartial(source.text, compiling)
    const place: Place = { compiling, source, within, depth: around.depth + 1 }
    partial.nodes = compileParts(parseTemplate(source), place)
    if (isLiteralOpen(place)) throw refuseAt(around.source, start, 'this partial leaves a JSON string literal open')
    if (leavesKey(place, awaited))
      throw refuseAt(around.source, start, 'this partial ends with a key without its value')
  })
}

/**
 * A partial is compiled for the state it is included in (decision 21). Inside a string literal it is text, as in a chat
 * template: its quotation marks and line breaks are escaped, so the same partial serves both.
 */
function withinPartial(around: Place): Place['within'] {
  const state = stateAt(around)
  if (state !== 'outside') return state === 'text' ? 'text' : 'string'
  return isOutsideInMessages(around.within) ? atMessagesStart(around.within.awaited) : atStart()
}

function countPartial(text: string, compiling: Compiling): void {
  compiling.partialSize += text.length + PARTIAL_OVERHEAD
  if (compiling.partialSize > MAX_PARTIAL_SIZE) {
    const limit = `${MAX_PARTIAL_SIZE / 1024 / 1024} MiB`
    throw new GatehouseError('template_limit', `the partials of the template exceed ${limit} together`)
  }
}

/** The state that a tag is compiled for: inside the arguments of a call, that of their own JSON. */
function stateAt({ within }: Place): 'text' | JsonState {
  if (typeof within === 'string') return within
  const state = stateOf(within)
  return state === 'string' && isInArguments(within) ? stateOf(within.inner) : state
}

/** The state and, in messages, whose string literal it is: where these are the same, text means the same. */
function describeState(place: Place): string {
  const { within } = place
  const state = stateAt(place)
  if (typeof within === 'string' || !isInMessages(within)) return state
  return within.inString ? `${state} of ${within.owner}` : `${state} in messages`
}

const isLiteralOpen = ({ within }: Place): boolean => typeof within !== 'string' && within.inString

const isOutsideInMessages = (within: Place['within']): within is MessagesPosition =>
  typeof within !== 'string' && isInMessages(within) && !within.inString

const awaitedAt = ({ within }: Place): Key => (isOutsideInMessages(within) ? within.awaited : 'other')

/** Whether a key that may be `arguments` waits for its value and did not so before. */
const leavesKey = (place: Place, before: Key): boolean => ![before, 'other'].includes(awaitedAt(place))

/** The first segment and the whole: a stored default may be saved under either. */
function note(name: Name, { names }: Compiling): void {
  if (name.path.length === 0) return
  names.add(name.path[0]!)
  names.add(name.text)
}
