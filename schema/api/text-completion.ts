import { type Static, Type } from '@sinclair/typebox'
import { Int64, nullable, sharedHyperparameters } from './hyperparameters.ts'

const Tokens = Type.Array(Int64(), { minItems: 1 })

/** Spec 2.3. Open at the root: a field that the spec does not know passes unchanged. */
export const TextCompletionRequest = Type.Object(
  {
    model: Type.String({ description: 'Any string' }),
    prompt: Type.Union([Type.String(), Type.Array(Type.String()), Tokens, Type.Array(Tokens), Type.Null()], {
      default: '<|endoftext|>',
      description: 'One prompt or several, as text or as token ids; the default is the separator of documents',
    }),
    best_of: Type.Optional(
      nullable(Type.Integer({ minimum: 0, maximum: 20 }), {
        default: 1,
        description:
          'Candidates of which the best is returned; greater than n where both are given; not with stream = true',
      }),
    ),
    echo: Type.Optional(
      nullable(Type.Boolean(), { default: false, description: 'Repeat the prompt before the answer' }),
    ),
    logprobs: Type.Optional(
      nullable(Type.Integer({ minimum: 0, maximum: 5 }), {
        default: null,
        description: 'How many of the most likely tokens to list with their log probabilities',
      }),
    ),
    max_tokens: Type.Optional(
      nullable(Int64({ minimum: 0 }), {
        default: 16,
        description:
          "Upper bound on generated tokens; with the prompt's tokens not more than the model's context length",
      }),
    ),
    suffix: Type.Optional(
      nullable(Type.String(), {
        default: null,
        description: 'Text after the answer; one instruct-type model takes it',
      }),
    ),
    ...sharedHyperparameters,
  },
  { $id: 'TextCompletionRequest', title: 'TextCompletionRequest' },
)
export type TextCompletionRequest = Static<typeof TextCompletionRequest>
