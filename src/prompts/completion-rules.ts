import type { TObject } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { invalid, invalidField, shown } from '../errors.ts'
import { complaints } from '../http/complaints.ts'
import { isRawJson } from '../json.ts'
import { CONTRACTS, type CompletionKind, FOREIGN_FIELDS, foreignMessage } from './completion-fields.ts'
import { type ModelTable, modelFacts } from './models.ts'

type Root = Readonly<Record<string, unknown>>

export interface CompletionCall {
  /** see `strictCompliance` */
  strictOpenAiCompliance: boolean
  /** the header that a complaint of `thinking` names */
  strictHeader: string
  models: ModelTable
  /** the prompt's provider, null when it has none */
  provider: string | null
  /** the body held integers beyond ±(2⁵³−1), which now stand as `JSON.rawJSON` */
  hasLiterals: boolean
}

/**
 * Checks a merged request whole, wherever a value came from (decision 22): the contract of its kind, fields of the
 * other kind, and the rules between fields (decisions 23, 24). In the latter null counts as not given, and what the
 * model table does not know passes.
 *
 * @throws GatehouseError `invalid` with every complaint
 */
export function checkCompletion(kind: CompletionKind, data: Root, call: CompletionCall): void {
  // The compiled check takes the object that holds a big integer for an object of the contract.
  const isShaped = !call.hasLiterals && compiled(kind).Check(data)
  const found = isShaped ? [] : complaints(CONTRACTS[kind], data)
  const refuse: Refuse = (path, message) => void found.push({ path, message })
  for (const key of FOREIGN_FIELDS[kind]) if (isGiven(data[key])) refuse(key, foreignMessage(kind))
  if (isGiven(data['stream_options']) && data['stream'] !== true) refuse('stream_options', 'needs stream = true')
  if (kind === 'chat') checkChat(data, call, refuse)
  else checkText(data, call, refuse)
  if (found.length > 0) throw invalid(found)
}

const checks: Partial<Record<CompletionKind, TypeCheck<TObject>>> = {}

/** Compiling takes milliseconds that a command without a server need not spend. */
function compiled(kind: CompletionKind): TypeCheck<TObject> {
  checks[kind] ??= TypeCompiler.Compile(CONTRACTS[kind])
  return checks[kind]
}

type Refuse = (path: string, message: string) => void

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

function checkChat(data: Root, call: CompletionCall, refuse: Refuse): void {
  if (isGiven(data['top_logprobs']) && data['logprobs'] !== true) refuse('top_logprobs', 'needs logprobs = true')
  if (isGiven(data['thinking'])) checkThinking(data, call, refuse)
  if (isGiven(data['tool_choice'])) checkToolChoice(data, refuse)
  if (Array.isArray(data['messages'])) {
    for (const [index, message] of data['messages'].entries()) checkMessage(message, index, refuse)
  }
}

function checkThinking(data: Root, call: CompletionCall, refuse: Refuse): void {
  if (call.strictOpenAiCompliance) {
    refuse('thinking', `is no OpenAI field: send the header ${call.strictHeader}: false, or leave it out`)
  }
  const isEnabled = field(data['thinking'], 'type') === 'enabled'
  if (isEnabled && factsOf(data, call).thinking === false) {
    refuse('thinking', 'is not supported by this model; leave it out or choose another model')
  }
}

function checkToolChoice({ tool_choice: choice, tools }: Root, refuse: Refuse): void {
  const name = field(field(choice, 'function'), 'name')
  if (typeof name !== 'string' || !Array.isArray(tools) || tools.length === 0) return
  const isAmongTools = tools.some((tool) => field(field(tool, 'function'), 'name') === name)
  if (!isAmongTools) refuse('tool_choice.function.name', 'must name one of the tools')
}

function checkMessage(message: unknown, index: number, refuse: Refuse): void {
  if (field(message, 'role') !== 'assistant' || field(message, 'content') !== undefined) return
  if (isGiven(field(message, 'tool_calls')) || isGiven(field(message, 'function_call'))) return
  refuse(`messages[${shown(String(index))}].content`, 'is required unless tool_calls or function_call is present')
}

function checkText(data: Root, call: CompletionCall, refuse: Refuse): void {
  const { best_of: bestOf, n } = data
  if (typeof bestOf === 'number' && typeof n === 'number' && bestOf <= n) refuse('best_of', 'must be greater than n')
  if (isGiven(bestOf) && data['stream'] === true) refuse('best_of', 'cannot be streamed; leave out best_of or stream')
  if (isGiven(data['suffix']) && factsOf(data, call).suffix === false) {
    refuse('suffix', 'is not supported by this model; leave it out or choose another model')
  }
  const { max_tokens: maxTokens } = data
  const tokens = isRawJson(maxTokens) ? Number(maxTokens.rawJSON) : maxTokens
  if (typeof tokens !== 'number') return
  const { context_length: contextLength } = factsOf(data, call)
  if (contextLength !== undefined && tokens > contextLength) {
    refuse('max_tokens', `must be at most ${contextLength}, the context length of this model`)
  }
}

const factsOf = ({ model }: Root, { models, provider }: CompletionCall) =>
  typeof model === 'string' ? modelFacts(models, model, provider) : {}

const field = (value: unknown, key: string): unknown =>
  typeof value === 'object' && value !== null ? (value as Root)[key] : undefined

/**
 * Whether strict OpenAI compliance holds for a call (decision 23). The body says it before the header, because
 * clients send the header of their own accord, and both before the config.
 *
 * @param header     the header's text, undefined when it was not sent
 * @param headerName named in complaints
 */
export function strictCompliance(
  body: Root,
  header: string | undefined,
  headerName: string,
  configured: boolean,
): boolean {
  const sent = body['strict_openai_compliance'] ?? null
  if (typeof sent === 'boolean') return sent
  if (sent !== null) throw invalidField('strict_openai_compliance', 'must be a boolean')
  if (header === undefined || header === '') return configured
  const said = header.trim().toLowerCase()
  if (said !== 'true' && said !== 'false') throw invalidField('', `the header ${headerName} must be true or false`)
  return said === 'true'
}
