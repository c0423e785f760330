import mustache from 'mustache'
import { type GatehouseError, invalidField } from '../errors.ts'
import { type Cuts, cutLines, type Extent } from './lines.ts'
import { placeOf } from './place.ts'

/** A name as written and the keys that lead to its value; the path of `{{.}}` is empty. */
export interface Name {
  text: string
  path: string[]
}

/** What stands in a template, in order. `start` is the offset in the parsed text. */
export type Part =
  | { type: 'literal'; text: string; start: number }
  | { type: 'variable'; name: Name; start: number }
  | { type: 'section' | 'inverted'; name: Name; parts: Part[]; start: number; end: number }
  /** `indent` stands before every line of the partial; empty unless the tag has its line to itself */
  | { type: 'partial'; reference: string; indent: string; start: number }
  /** `{{>>name}}`: the caller's own text (decision 12), indented likewise */
  | { type: 'private'; name: Name; indent: string; start: number }

/** A text and what to call it in a message. */
export interface Source {
  text: string
  /** the refused field: `string` for what an author wrote, `variables` for what a caller sent */
  path: string
  /** 'the template', 'messages[0].content' */
  label: string
}

/** Decision 28; bytes of UTF-8, of a template, a partial, or a caller's text for a private one. */
export const TEMPLATE_LIMIT_BYTES = 512 * 1024

/** Sections inside sections; a person never comes near it, a recursion over the parts stays flat. */
const MAX_SECTION_DEPTH = 100
/** The parser backtracks over blanks inside a tag: 32,000 in a row cost 0.3 s, and 512,000 cost minutes. */
const MAX_BLANKS = 1_000
/** With other delimiters the parser searches the rest of the text at every tag: 100,000 characters cost 60 ms, four times as many a second. */
const MAX_DELIMITERS_TEXT = 128 * 1024

const TOO_MANY_BLANKS = new RegExp(`\\s{${MAX_BLANKS + 1}}`)
const SETS_DELIMITERS = /\{\{\s*=/
const REFERENCE = /^[^@\s]+(?:@(?:[1-9]\d{0,8}|latest))?$/

/**
 * Parses a Mustache text (decision 12).
 *
 * @throws GatehouseError `invalid` with line and column in the text: unclosed, unopened or empty tags, delimiters that
 *         are none, a partial reference with a label, more blanks or sections than the parser can take
 */
export function parseTemplate(source: Source): Part[] {
  const { text, path, label } = source
  if (!text.includes('{{')) return text === '' ? [] : [{ type: 'literal', text, start: 0 }]
  if (TOO_MANY_BLANKS.test(text))
    throw invalidField(path, `${label} has more than ${MAX_BLANKS} blanks in a row; shorten them`)
  if (text.length > MAX_DELIMITERS_TEXT && SETS_DELIMITERS.test(text))
    throw invalidField(path, `${label} changes its delimiters, so it must not exceed ${MAX_DELIMITERS_TEXT / 1024} KiB`)
  const tokens = parseTokens(source)
  const tags: Extent[] = []
  collectTags(source, tokens, text.length, tags, 0)
  return toParts({ source, cuts: cutLines(text, tags) }, tokens)
}

/** A refusal of something at an offset of the text. */
export const refuseAt = ({ text, path, label }: Source, offset: number, message: string): GatehouseError =>
  invalidField(path, `${label}, ${placeOf(text, offset)}: ${message}`)

/** A name as Mustache reads it: dots lead into objects, a single dot is the current value. */
export const nameOf = (text: string): Name => ({ text, path: text === '.' ? [] : text.split('.') })

/** The syntax tree of the package: kind, value, start, end; of a section also what is inside and where it is closed. */
type Token = ['text' | 'name' | '&' | '!' | '=' | '>', string, number, number] | SectionToken
type SectionToken = ['#' | '^', string, number, number, Token[], number]

const isSection = (token: Token): token is SectionToken => token[0] === '#' || token[0] === '^'

/** A blank that stands for line breaks while the package parses: of tags on one line it would take the blanks between. */
const LINE_BREAK = '\v'
/** Never part of a template (decision 28), and no blank, so that the package takes no line for empty. */
const END = '\0'

function parseTokens(source: Source): Token[] {
  // A writer keeps every text it has parsed unless its cache is taken away (394 MB for 20,000 texts).
  const writer: { templateCache?: unknown; parse(text: string): Token[] } = new mustache.Writer()
  writer.templateCache = undefined
  try {
    return writer.parse(source.text.replaceAll('\n', LINE_BREAK) + END)
  } catch (error) {
    throw explain(source, error instanceof Error ? error.message : '')
  }
}

/** @param end where the text of these tokens ends: at the tag that closes their section */
function collectTags(source: Source, tokens: Token[], end: number, tags: Extent[], depth: number): void {
  if (depth > MAX_SECTION_DEPTH)
    throw invalidField(source.path, `${source.label} nests sections deeper than ${MAX_SECTION_DEPTH} levels`)
  for (const [i, token] of tokens.entries()) {
    if (token[0] === 'text' || token[0] === 'name' || token[0] === '&') continue
    tags.push({ start: token[2], end: token[3] })
    if (!isSection(token)) continue
    const [, , , , inside, closing] = token
    collectTags(source, inside, closing, tags, depth + 1)
    tags.push({ start: closing, end: tokens[i + 1]?.[2] ?? end })
  }
}

interface Reading {
  source: Source
  cuts: Cuts
}

function toParts(reading: Reading, tokens: Token[]): Part[] {
  const parts: Part[] = []
  for (const token of tokens) {
    const part = toPart(reading, token)
    if (part !== undefined) parts.push(part)
  }
  return parts
}

function toPart(reading: Reading, token: Token): Part | undefined {
  if (isSection(token)) {
    const [kind, value, start, , inside, end] = token
    const name = named(reading, value, start)
    return { type: kind === '#' ? 'section' : 'inverted', name, parts: toParts(reading, inside), start, end }
  }
  const [kind, value, start, end] = token
  switch (kind) {
    case 'text':
      return toLiteral(reading, start, end)
    case 'name':
    case '&':
      return { type: 'variable', name: named(reading, value, start), start }
    case '>':
      return toPartial(reading, value, start)
    default:
      return undefined
  }
}

function toLiteral({ source, cuts }: Reading, from: number, to: number): Part | undefined {
  const start = cuts.after.get(from) ?? from
  const text = source.text.slice(start, cuts.before.get(to) ?? to)
  return text === '' ? undefined : { type: 'literal', text, start }
}

function toPartial(reading: Reading, value: string, start: number): Part {
  const { source, cuts } = reading
  const indent = source.text.slice(cuts.before.get(start) ?? start, start)
  if (value.startsWith('>'))
    return { type: 'private', name: named(reading, value.slice(1).trim(), start), indent, start }
  if (REFERENCE.test(value)) return { type: 'partial', reference: value, indent, start }
  throw refuseAt(
    source,
    start,
    'a partial is named {{>slug}}, {{>slug@3}} or {{>slug@latest}}; labels are not supported for partials',
  )
}

function named({ source }: Reading, value: string, start: number): Name {
  if (value === '')
    throw refuseAt(source, start, 'the tag is empty; to write literal braces, change the delimiters as in {{=<% %>=}}')
  return nameOf(value.replaceAll(LINE_BREAK, '\n'))
}

/** The package's own messages hold the author's text and often the wrong place. */
function explain(source: Source, message: string): GatehouseError {
  const { text } = source
  const [, name] = /^Unclosed section "(.*)" at \d+$/s.exec(message) ?? []
  const offset = Number(/ at (\d+)$/.exec(message)?.[1] ?? 0)
  if (name !== undefined)
    return refuseAt(
      source,
      unclosedSection(text.slice(0, offset), name) ?? offset,
      'the section that opens here is not closed',
    )
  if (message.startsWith('Unopened')) return refuseAt(source, offset, 'this tag closes a section that is not open')
  if (message.startsWith('Unclosed tag')) return refuseAt(source, unclosedTag(text), 'the tag is not closed')
  return refuseAt(source, Math.max(0, text.search(SETS_DELIMITERS)), 'new delimiters are two words, as in {{=<% %>=}}')
}

/** Where the first tag without an end opens; the end of the text where the delimiters were changed. */
function unclosedTag(text: string): number {
  let open = text.indexOf('{{')
  while (open !== -1) {
    const close = text.indexOf(text[open + 2] === '{' ? '}}}' : '}}', open)
    if (close === -1) return open
    open = text.indexOf('{{', close)
  }
  return text.length
}

/** The opening tag of a section that nothing closes; undefined where the delimiters were changed. */
function unclosedSection(text: string, name: string): number | undefined {
  const open: number[] = []
  for (const tag of text.matchAll(/\{\{\s*([#^/])\s*([^{}]*?)\s*\}\}/g)) {
    if (tag[2] !== name) continue
    if (tag[1] === '/') open.pop()
    else open.push(tag.index)
  }
  return open.at(-1)
}
