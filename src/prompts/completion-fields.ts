import { Kind, type TObject, type TSchema } from '@sinclair/typebox'
import { ChatCompletionRequest } from '../../schema/api/chat-completion.ts'
import { TextCompletionRequest } from '../../schema/api/text-completion.ts'
import { alternativesOf } from '../http/describe.ts'

export type CompletionKind = 'chat' | 'text'

export const CONTRACTS: Record<CompletionKind, TObject> = { chat: ChatCompletionRequest, text: TextCompletionRequest }

const otherKind = (kind: CompletionKind): CompletionKind => (kind === 'chat' ? 'text' : 'chat')

/**
 * What becomes of a root key of a body or of saved parameters. `nullable` and `plain` are known to the kind, `foreign`
 * only to the other kind; `addressed` keys speak to us and never reach the model; `nested` is the old habit of
 * wrapping hyperparameters. A key without a row is unknown and passes unchanged.
 */
export type Fate = 'nullable' | 'plain' | 'foreign' | 'addressed' | 'nested'

export const FATES: Record<CompletionKind, ReadonlyMap<string, Fate>> = { chat: fatesOf('chat'), text: fatesOf('text') }

function fatesOf(kind: CompletionKind): ReadonlyMap<string, Fate> {
  const fates = new Map<string, Fate>()
  for (const key of Object.keys(CONTRACTS[otherKind(kind)].properties)) fates.set(key, 'foreign')
  for (const [key, schema] of Object.entries(CONTRACTS[kind].properties)) {
    fates.set(key, alternativesOf(schema).some((each) => each[Kind] === 'Null') ? 'nullable' : 'plain')
  }
  for (const key of ['variables', 'prompt_id', 'virtual_key', 'strict_openai_compliance']) fates.set(key, 'addressed')
  return fates.set('hyperparameters', 'nested')
}

/** The fields that only the other kind has. */
export const FOREIGN_FIELDS: Record<CompletionKind, readonly string[]> = {
  chat: foreignTo('chat'),
  text: foreignTo('text'),
}

function foreignTo(kind: CompletionKind): string[] {
  return Object.keys(CONTRACTS[otherKind(kind)].properties).filter((key) => FATES[kind].get(key) === 'foreign')
}

export const foreignMessage = (kind: CompletionKind): string =>
  `is a field of ${otherKind(kind)} prompts and this is a ${kind} prompt; remove it`

/** The field that the template itself fills. */
export const templateField = (kind: CompletionKind): 'messages' | 'prompt' => (kind === 'chat' ? 'messages' : 'prompt')

/** Whether a field takes numbers and no text, so that text can only be a number written as one. */
export function isNumeric(schema: TSchema): boolean {
  const kinds = alternativesOf(schema).map((each) => each[Kind])
  return kinds.some((each) => each === 'Number' || each === 'Integer') && !kinds.includes('String')
}
