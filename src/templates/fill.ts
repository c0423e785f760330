import { GatehouseError, invalidField } from '../errors.ts'
import { type Frame, isTruthy, jsonOf, lookUp, lookUpRoot, type Run, spend, textOf } from './context.ts'
import { escapeJson } from './json-state.ts'
import { indentLines } from './lines.ts'
import { type Name, type Part, parseTemplate, TEMPLATE_LIMIT_BYTES } from './parse.ts'

/**
 * How a value is written (decision 21): as text, as text inside a JSON string literal, or as one whole JSON value.
 */
export type Writing = 'text' | 'escaped' | 'value'

/** A template compiled for the place it stands in. */
export type Node =
  | { type: 'literal'; text: string }
  /** `before` and `after`: a blank that keeps a whole JSON value apart from its neighbours, else empty */
  | { type: 'variable'; name: Name; writing: Writing; before: string; after: string }
  | { type: 'section' | 'inverted'; name: Name; nodes: Node[] }
  | { type: 'partial'; partial: PartialNodes }
  | { type: 'private'; name: Name; indent: string; writing: Writing }
  /** what `node` writes, escaped once more: it stands in JSON inside a JSON string literal */
  | { type: 'escaped'; node: Node }

/** Filled in after it was made, so that a partial can include itself. */
export interface PartialNodes {
  nodes: Node[]
}

/** Decision 28; in UTF-16 units, of all leaves of a template together. */
export const MAX_OUTPUT = 8 * 1024 * 1024

/** Partials inside partials (decision 28). */
export const MAX_PARTIAL_DEPTH = 20

/**
 * Makes the function that fills one text.
 *
 * @returns a function that throws GatehouseError `template_limit`, and `invalid` for a caller's own text that is no template
 */
export function filler(nodes: Node[]): (run: Run) => string {
  const plain = plainSegments(nodes)
  if (plain === undefined) return (run) => finish(fillNodes(nodes, undefined, run), run)
  return (run) => finish(run.lookups === undefined ? fillPlain(plain, run) : fillNodes(nodes, undefined, run), run)
}

/** Nodes in the context of a frame. Also bounds the work done before an output is finished. */
export function fillNodes(nodes: Node[], frame: Frame | undefined, run: Run): string {
  let out = ''
  for (const node of nodes) {
    spend(run, 1)
    out += fillNode(node, frame, run)
    if (out.length > MAX_OUTPUT) throw outputLimit()
  }
  return out
}

function fillNode(node: Node, frame: Frame | undefined, run: Run): string {
  switch (node.type) {
    case 'literal':
      return node.text
    case 'variable':
      return node.before + write(lookUp(node.name, frame, run), node.writing) + node.after
    case 'section':
      return fillSection(node.nodes, lookUp(node.name, frame, run), frame, run)
    case 'inverted':
      return isTruthy(lookUp(node.name, frame, run)) ? '' : fillNodes(node.nodes, frame, run)
    case 'partial':
      return fillPartial(node.partial, frame, run)
    case 'private': {
      const text = fillPrivate(indentLines(textOf(lookUp(node.name, frame, run)), node.indent), frame, run)
      return node.writing === 'escaped' ? escapeJson(text) : text
    }
    case 'escaped':
      return escapeJson(fillNode(node.node, frame, run))
  }
}

function write(value: unknown, writing: Writing): string {
  if (writing === 'value') return jsonOf(value)
  return writing === 'text' ? textOf(value) : escapeJson(textOf(value))
}

function fillSection(nodes: Node[], value: unknown, parent: Frame | undefined, run: Run): string {
  if (!isTruthy(value)) return ''
  if (!Array.isArray(value)) return fillNodes(nodes, { value, parent }, run)
  let out = ''
  for (const item of value) {
    spend(run, 1)
    out += fillNodes(nodes, { value: item, parent }, run)
    if (out.length > MAX_OUTPUT) throw outputLimit()
  }
  return out
}

function fillPartial(partial: PartialNodes, frame: Frame | undefined, run: Run): string {
  if (++run.depth > MAX_PARTIAL_DEPTH)
    throw new GatehouseError('template_limit', `partials include partials more than ${MAX_PARTIAL_DEPTH} levels deep`)
  const out = fillNodes(partial.nodes, frame, run)
  run.depth--
  return out
}

/**
 * Fills a text that the caller sent for `{{>>name}}` (decision 12): parsed once, no partials in it, and the values put
 * into it are not parsed. Parsing counts as work, one step a character.
 */
function fillPrivate(text: string, frame: Frame | undefined, run: Run): string {
  if (Buffer.byteLength(text) > TEMPLATE_LIMIT_BYTES)
    throw new GatehouseError(
      'template_limit',
      `the text for a private partial exceeds ${TEMPLATE_LIMIT_BYTES / 1024} KiB`,
    )
  if (!text.includes('{{')) return text
  let nodes = run.callerTexts?.get(text)
  if (nodes === undefined) {
    spend(run, text.length)
    nodes = callerNodes(parseTemplate({ text, path: 'variables', label: 'the text for a private partial' }))
    run.callerTexts ??= new Map()
    run.callerTexts.set(text, nodes)
  }
  return fillNodes(nodes, frame, run)
}

const callerNodes = (parts: Part[]): Node[] => parts.map(callerNode)

function callerNode(part: Part): Node {
  switch (part.type) {
    case 'literal':
      return { type: 'literal', text: part.text }
    case 'variable':
      return { type: 'variable', name: part.name, writing: 'text', before: '', after: '' }
    case 'section':
    case 'inverted':
      return { type: part.type, name: part.name, nodes: callerNodes(part.parts) }
    default:
      throw invalidField('variables', 'the text for a private partial must not include partials')
  }
}

/** Literals and root variables in turn: the usual text, filled without looking at nodes. */
interface PlainSegments {
  first: string
  names: string[]
  /** the literal after each name */
  literals: string[]
}

/** Undefined unless the nodes are few, literals and dotless names in plain text. */
function plainSegments(nodes: Node[]): PlainSegments | undefined {
  const plain: PlainSegments = { first: '', names: [], literals: [] }
  for (const node of nodes) {
    if (node.type === 'variable' && node.writing === 'text' && node.name.path.length === 1) {
      plain.names.push(node.name.text)
      plain.literals.push('')
    } else if (node.type !== 'literal') return undefined
    else if (plain.names.length === 0) plain.first += node.text
    else plain.literals[plain.literals.length - 1] += node.text
  }
  return plain.names.length <= MAX_PLAIN_NAMES ? plain : undefined
}

/** The plain way looks at the size of its output at the end only. */
const MAX_PLAIN_NAMES = 64

function fillPlain({ first, names, literals }: PlainSegments, run: Run): string {
  let out = first
  for (let i = 0; i < names.length; i++) out += textOf(lookUpRoot(names[i]!, run)) + literals[i]!
  return out
}

function finish(text: string, run: Run): string {
  run.size += text.length
  if (run.size > MAX_OUTPUT) throw outputLimit()
  return text
}

const outputLimit = () =>
  new GatehouseError('template_limit', `the filled template exceeds ${MAX_OUTPUT / 1024 / 1024} MiB`)
