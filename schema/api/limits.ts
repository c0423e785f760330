import { type Static, type TLiteral, type TSchema, type TUnion, Type } from '@sinclair/typebox'
import { Nullable, Strict } from './common.ts'

const one = <const T extends string[]>(...values: T) =>
  Type.Union(values.map((value) => Type.Literal(value))) as unknown as TUnion<{ [I in keyof T]: TLiteral<T[I]> }>
const WrittenTime = Type.String({ maxLength: 64, description: 'RFC 3339 with a zone, echoed as it was written' })
const Period = one('monthly', 'weekly')

/** What a key, a workspace or a policy may use up, as it is sent (file 00 section 7). */
export const UsageLimitsInput = Strict(
  {
    type: Type.Optional(one('cost', 'tokens')),
    credit_limit: Type.Number({ minimum: 1, maximum: 1e15, description: 'dollars, or tokens' }),
    alert_threshold: Type.Optional(
      Nullable(Type.Number({ minimum: 1, description: 'an amount in the same unit, below credit_limit' })),
    ),
    periodic_reset: Type.Optional(Nullable(Type.Union([Period, Type.Literal('')]))),
    periodic_reset_days: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: 365 }))),
    next_usage_reset_at: Type.Optional(Nullable(WrittenTime)),
  },
  { title: 'UsageLimitsInput' },
)
export type UsageLimitsInput = Static<typeof UsageLimitsInput>

/** As it is kept and read: every field, the next reset computed where a period is set. */
export const UsageLimits = Strict(
  {
    type: one('cost', 'tokens'),
    credit_limit: Type.Number(),
    alert_threshold: Nullable(Type.Number()),
    periodic_reset: Nullable(Period),
    periodic_reset_days: Nullable(Type.Integer()),
    next_usage_reset_at: Nullable(WrittenTime),
  },
  { title: 'UsageLimits' },
)
export type UsageLimits = Static<typeof UsageLimits>

const rateLimit = <T extends TSchema>(unit: T) =>
  Strict({
    type: one('requests', 'tokens'),
    unit,
    value: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
  })

/** Per day, hour or minute; of a workspace, a provider or a policy. */
export const RateLimit = rateLimit(one('rpd', 'rph', 'rpm'))
export type RateLimit = Static<typeof RateLimit>
/** API keys may be bound per second and per week as well. */
export const KeyRateLimit = rateLimit(one('rpd', 'rph', 'rpm', 'rps', 'rpw'))
export type KeyRateLimit = Static<typeof KeyRateLimit>
