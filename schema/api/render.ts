import { type Static, Type } from '@sinclair/typebox'
import { ChatCompletionRequest } from './chat-completion.ts'
import { Nullable, Strict, Uuid } from './common.ts'
import { TextCompletionRequest } from './text-completion.ts'

/**
 * Spec 2.1, as documented: hyperparameters stand at the root, next to `variables`. Which of them a prompt takes is
 * known only once its kind is, so the merged `data` is what render checks, whole.
 */
export const RenderRequest = Type.Intersect(
  [
    Type.Object({
      variables: Type.Record(Type.String(), Type.Unknown(), { description: 'what fills the template, by name' }),
      strict_openai_compliance: Type.Optional(
        Type.Boolean({ description: 'false admits `thinking`; never part of `data`' }),
      ),
      prompt_id: Type.Optional(Type.String({ description: 'repeated by some clients; never part of `data`' })),
    }),
    Type.Union([
      Type.Partial(ChatCompletionRequest, { title: 'ChatCompletionOverrides' }),
      Type.Partial(TextCompletionRequest, { title: 'TextCompletionOverrides' }),
    ]),
  ],
  { $id: 'RenderRequest', title: 'RenderRequest' },
)

const strings = Type.Array(Type.String())
export const RenderExplanation = Strict(
  {
    prompt_id: Uuid,
    prompt_slug: Type.String(),
    version_id: Uuid,
    version: Type.Integer({ minimum: 1 }),
    label: Nullable(Type.String()),
    partials: Type.Array(Strict({ slug: Type.String(), version: Type.Integer(), version_id: Uuid })),
    used_variables: strings,
    missing_variables: strings,
    unused_variables: strings,
    overridden_parameters: strings,
    unknown_parameters: strings,
    converted_roles: Type.Integer({ minimum: 0 }),
  },
  { title: 'RenderExplanation' },
)
export type RenderExplanation = Static<typeof RenderExplanation>

/** Spec 2.4. */
export const RenderResponse = Type.Object(
  {
    success: Type.Literal(true),
    data: Type.Union([ChatCompletionRequest, TextCompletionRequest]),
    explain: Type.Optional(RenderExplanation),
  },
  { $id: 'RenderResponse', title: 'RenderResponse' },
)

const Flag = Type.Union([Type.Literal('true'), Type.Literal('false')])
export const RenderQuery = Strict({
  strict: Type.Optional(Flag),
  explain: Type.Optional(Flag),
})
