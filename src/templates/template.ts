import { GatehouseError, invalidField } from '../errors.ts'
import {
  type Compiling,
  compilePartials,
  compileText,
  type FindPartial,
  type PartialText,
  startCompiling,
} from './compile.ts'
import { listComponents, type VariableComponents } from './components.ts'
import { type Lookups, type Run, startRun } from './context.ts'
import { filler } from './fill.ts'
import { parseFilledText, parseMessagesText } from './json-text.ts'
import { checkMessages, joinTextParts } from './messages.ts'
import { takeMarks } from './messages-state.ts'
import { type Part, parseTemplate, TEMPLATE_LIMIT_BYTES } from './parse.ts'
import { compileMessages, stripInArguments } from './shape.ts'

export type { FindPartial, Lookups, PartialText, VariableComponents }

export type TemplateKind = 'chat' | 'text'

/** A template ready to be filled; holds nothing of any fill, so one serves all requests. */
export interface CompiledTemplate {
  kind: TemplateKind
  /** first segments and dotted names that the template or its partials look up: what a stored default may be for (decision 22) */
  variableNames: ReadonlySet<string>
  partials: { slug: string; version: number; versionId: string }[]
  /**
   * Fills the template with JSON values: the request's, else the default, else nothing.
   *
   * @param lookups collects names for strict and explain; without it nothing is collected
   * @returns chat: a fresh array of fresh messages, whose deeper parts without tags are shared and frozen; text: a string
   * @throws GatehouseError `invalid` for a raw template that is not filled to messages, an image outside a user message,
   *         or a caller's text that is no template; `template_limit` for too much work or output
   */
  fill(variables: Record<string, unknown>, defaults: Record<string, unknown>, lookups?: Lookups): unknown
}

/** What saving a template tells about it. */
export interface CheckedTemplate {
  kind: TemplateKind
  components: VariableComponents
  /** as in `CompiledTemplate`, with the partials that are known by now */
  variableNames: ReadonlySet<string>
}

/**
 * Checks a template at save and tells its kind (decision 20). A partial that is unknown yet is no error.
 *
 * @throws GatehouseError `invalid` (path `string`), with line and column where there is a place; `template_limit` for
 *         partials that are too large together
 */
export function checkTemplate(text: string, raw: boolean, findPartial: FindPartial): CheckedTemplate {
  refuseLarge(text)
  const compiling = startCompiling(findPartial, 'skip')
  const kind = kindOf(text, raw)
  makeFill(text, raw, kind, compiling)
  // Without tags every fill is the same, so what it would be refused for is known now.
  if (kind === 'chat' && raw) checkConstant(compiling.texts.flat())
  return { kind, components: listComponents(compiling.texts), variableNames: compiling.names }
}

/**
 * Checks a partial at save: its tags alone, because its text means different things where it is included.
 *
 * @throws GatehouseError `invalid` (path `string`) with line and column
 */
export function checkPartial(text: string): VariableComponents {
  refuseLarge(text)
  return listComponents([parseTemplate({ text, path: 'string', label: 'the partial' })])
}

/**
 * Compiles a stored template together with its partials as they are now.
 *
 * @throws GatehouseError `not_found` for an unknown partial; `invalid` and `template_limit` where a partial has changed so
 *         that it no longer fits
 */
export function compileTemplate(
  text: string,
  raw: boolean,
  kind: TemplateKind,
  findPartial: FindPartial,
): CompiledTemplate {
  const compiling = startCompiling(findPartial, 'refuse')
  const fill = makeFill(text, raw, kind, compiling)
  return {
    kind,
    variableNames: compiling.names,
    partials: [...compiling.used.values()].map(({ slug, version, versionId }) => ({ slug, version, versionId })),
    fill: (variables, defaults, lookups) => withinStack(() => fill(startRun(variables, defaults, lookups))),
  }
}

/** Not raw: a list that opens with an object, or nothing in a list. Raw: what the first literal character says. */
function kindOf(text: string, raw: boolean): TemplateKind {
  if (!raw) return /^\s*\[\s*(?:\{(?!\{)|\]\s*$)/.test(text) ? 'chat' : 'text'
  const first = firstLiteral(parseTemplate({ text, path: 'string', label: THE_TEMPLATE }))
  return first === undefined || first === '[' ? 'chat' : 'text'
}

function makeFill(text: string, raw: boolean, kind: TemplateKind, compiling: Compiling): (run: Run) => unknown {
  const fill =
    kind === 'text'
      ? filler(compileText(text, 'text', THE_TEMPLATE, compiling))
      : raw
        ? rawMessages(text, compiling)
        : messages(text, compiling)
  compilePartials(compiling)
  return fill
}

function messages(text: string, compiling: Compiling): (run: Run) => unknown {
  const messages = parseMessagesText(text)
  checkMessages(messages)
  return compileMessages(messages, compiling)
}

function rawMessages(text: string, compiling: Compiling): (run: Run) => unknown {
  const fill = filler(compileText(text, 'messages', THE_TEMPLATE, compiling))
  return (run) => {
    const messages = parseFilledText(takeMarks(fill(run)))
    if (!Array.isArray(messages) || messages.length === 0)
      throw invalidField('string', 'the filled template must be a JSON array with at least one message')
    if (!messages.every((message) => typeof message === 'object' && message !== null && !Array.isArray(message)))
      throw invalidField('string', 'every message of the filled template must be an object')
    return messages.map((message, i) => joinTextParts(stripInArguments(message), i))
  }
}

const THE_TEMPLATE = 'the template'

function refuseLarge(text: string): void {
  if (Buffer.byteLength(text) > TEMPLATE_LIMIT_BYTES)
    throw invalidField('string', `must not exceed ${TEMPLATE_LIMIT_BYTES / 1024} KiB`)
}

function firstLiteral(parts: Part[]): string | undefined {
  for (const part of parts) {
    const first =
      part.type === 'literal' ? part.text.trimStart()[0] : 'parts' in part ? firstLiteral(part.parts) : undefined
    if (first !== undefined) return first
  }
  return undefined
}

function checkConstant(parts: Part[]): void {
  const texts = parts.map((part) => (part.type === 'literal' ? part.text : undefined))
  if (!texts.includes(undefined)) checkMessages(parseFilledText(texts.join('')))
}

/** Values nested so deeply that they cannot be written out are refused, not reported as our failure. */
function withinStack<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof RangeError)
      throw new GatehouseError('template_limit', 'a value is nested too deeply or the filled template is too long')
    throw error
  }
}
