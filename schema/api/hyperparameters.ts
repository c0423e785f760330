import { type TSchema, Type } from '@sinclair/typebox'

/** `null` beside the value: the spec's "nullable". */
export const nullable = <T extends TSchema>(schema: T, options: { description?: string; default?: unknown } = {}) =>
  Type.Union([schema, Type.Null()], options)

/** An integer to which the spec gives no upper bound: whatever 64 bits hold (decision 25). */
export const Int64 = (options: { minimum?: number } = {}) =>
  Type.Integer({ minimum: -(2 ** 63), exclusiveMaximum: 2 ** 63, ...options })

/** The hyperparameters that spec 2.2 and 2.3 describe alike. */
export const sharedHyperparameters = {
  frequency_penalty: Type.Optional(
    nullable(Type.Number({ minimum: -2, maximum: 2 }), {
      default: 0,
      description: 'Above 0 makes the model repeat its own lines less',
    }),
  ),
  presence_penalty: Type.Optional(
    nullable(Type.Number({ minimum: -2, maximum: 2 }), {
      default: 0,
      description: 'Above 0 makes the model turn to new topics',
    }),
  ),
  logit_bias: Type.Optional(
    nullable(Type.Object({}, { additionalProperties: Type.Integer({ minimum: -100, maximum: 100 }) }), {
      default: null,
      description: 'Token id to bias',
    }),
  ),
  n: Type.Optional(
    nullable(Type.Integer({ minimum: 1, maximum: 128 }), { default: 1, description: 'How many answers to generate' }),
  ),
  seed: Type.Optional(
    nullable(Int64(), {
      description: 'Best-effort deterministic sampling, not guaranteed; 64-bit integers are kept exactly',
    }),
  ),
  stop: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: 4 }), Type.Null()], {
      default: null,
      description: 'Up to 4 sequences at which the model stops',
    }),
  ),
  stream: Type.Optional(
    nullable(Type.Boolean(), {
      default: false,
      description: 'Partial deltas as data-only server-sent events; the last data line holds [DONE]',
    }),
  ),
  stream_options: Type.Optional(
    nullable(
      Type.Object({
        include_usage: Type.Optional(
          Type.Boolean({
            description: 'A last chunk before [DONE] holds usage and no choices; the others have usage null',
          }),
        ),
      }),
      { default: null, description: 'Only with stream = true' },
    ),
  ),
  temperature: Type.Optional(
    nullable(Type.Number({ minimum: 0, maximum: 2 }), { default: 1, description: 'Sampling temperature' }),
  ),
  top_p: Type.Optional(
    nullable(Type.Number({ minimum: 0, maximum: 1 }), { default: 1, description: 'Nucleus sampling' }),
  ),
  user: Type.Optional(Type.String({ description: 'End-user identifier' })),
}
