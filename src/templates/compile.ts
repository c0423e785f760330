import { GatehouseError, notFound } from '../errors.ts'
import { MAX_PARTIAL_DEPTH, type Node, type PartialNodes, type Writing } from './fill.ts'
import { advance, atStart, escapeJson, type JsonPosition, type JsonState, stateOf } from './json-state.ts'
import { indentLines } from './lines.ts'
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
 * @param json  whether the text becomes JSON, so that every tag is compiled for its state (decision 21)
 * @param label what the text is, for messages
 * @throws GatehouseError `invalid` (path `string`, with line and column), `not_found` for an unknown partial
 */
export function compileText(text: string, json: boolean, label: string, compiling: Compiling): Node[] {
  const source: Source = { text, path: 'string', label }
  const parts = parseTemplate(source)
  compiling.texts.push(parts)
  const place: Place = { compiling, source, within: json ? atStart() : 'text', depth: 0 }
  const nodes = compileParts(parts, place, true)
  if (json && stateAt(place) !== 'outside') throw refuseAt(source, text.length, 'a JSON string literal is not closed')
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
  readonly within: 'text' | 'string' | JsonPosition
  /** partials around the text */
  readonly depth: number
}

/** @param whole whether nothing stands around the parts, so that the first and the last have no neighbours */
function compileParts(parts: Part[], place: Place, whole = false): Node[] {
  const nodes = parts.map((part) => compilePart(part, place))
  if (typeof place.within === 'string') return nodes
  return nodes.map((node, i) => {
    if (node.type !== 'variable' || node.writing !== 'value') return node
    const before = endsApart(nodes[i - 1], whole) ? '' : ' '
    const after = startsApart(nodes[i + 1], whole) ? '' : ' '
    return { ...node, before, after }
  })
}

// `1{{x}}2` must not become another number: a whole JSON value gets blanks where its neighbour may not be punctuation.

const endsApart = (previous: Node | undefined, whole: boolean): boolean =>
  previous === undefined ? whole : previous.type === 'literal' && /[\s[{,:]$/.test(previous.text)

const startsApart = (next: Node | undefined, whole: boolean): boolean =>
  next === undefined ? whole : next.type === 'literal' && /^[\s\]},:]/.test(next.text)

function compilePart(part: Part, place: Place): Node {
  if (part.type === 'literal') return compileLiteral(part.text, place)
  const writing = writingAt(part.start, place)
  if (part.type === 'partial') return compilePartial(part.reference, part.indent, part.start, place)
  note(part.name, place.compiling)
  switch (part.type) {
    case 'variable':
      return { type: 'variable', name: part.name, writing, before: '', after: '' }
    case 'private':
      if (writing === 'value')
        throw refuseAt(place.source, part.start, 'a private partial stands only inside a JSON string literal')
      return { type: 'private', name: part.name, indent: part.indent, writing }
    default: {
      const before = stateAt(place)
      const nodes = compileParts(part.parts, place)
      if (stateAt(place) !== before)
        throw refuseAt(
          place.source,
          part.end,
          'the section must close where it opens: both inside a JSON string literal, or both outside',
        )
      return { type: part.type, name: part.name, nodes }
    }
  }
}

function compileLiteral(text: string, { within }: Place): Node {
  if (typeof within !== 'string') advance(within, text)
  return { type: 'literal', text: within === 'string' ? escapeJson(text) : text }
}

function compilePartial(reference: string, indent: string, start: number, place: Place): Node {
  const { compiling } = place
  const key = `${reference}\n${stateAt(place)}\n${indent}`
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
  compiling.pending.push(() => {
    const source: Source = { text: indentLines(found.text, indent), path: 'string', label: 'a partial' }
    countPartial(source.text, compiling)
    const place: Place = { compiling, source, within, depth: around.depth + 1 }
    partial.nodes = compileParts(parseTemplate(source), place)
    if (typeof within !== 'string' && stateAt(place) !== 'outside')
      throw refuseAt(around.source, start, 'this partial leaves a JSON string literal open')
  })
}

/**
 * A partial is compiled for the state it is included in (decision 21). Inside a string literal it is text, as in a chat
 * template: its quotation marks and line breaks are escaped, so the same partial serves both.
 */
function withinPartial(around: Place): Place['within'] {
  const state = stateAt(around)
  if (state === 'outside') return atStart()
  return state === 'text' ? 'text' : 'string'
}

function countPartial(text: string, compiling: Compiling): void {
  compiling.partialSize += text.length + PARTIAL_OVERHEAD
  if (compiling.partialSize > MAX_PARTIAL_SIZE) {
    const limit = `${MAX_PARTIAL_SIZE / 1024 / 1024} MiB`
    throw new GatehouseError('template_limit', `the partials of the template exceed ${limit} together`)
  }
}

const stateAt = ({ within }: Place): 'text' | JsonState => (typeof within === 'string' ? within : stateOf(within))

function writingAt(start: number, place: Place): Writing {
  const state = stateAt(place)
  if (state === 'escape')
    throw refuseAt(
      place.source,
      start,
      'a tag must not follow a backslash or stand in a \\u escape; write \\\\ for a backslash',
    )
  return state === 'text' ? 'text' : state === 'string' ? 'escaped' : 'value'
}

/** The first segment and the whole: a stored default may be saved under either. */
function note(name: Name, { names }: Compiling): void {
  if (name.path.length === 0) return
  names.add(name.path[0]!)
  names.add(name.text)
}
