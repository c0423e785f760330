import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'
import { KeyRateLimit, UsageLimits, UsageLimitsInput } from './limits.ts'
import { Metadata } from './metadata.ts'

/** Some clients repeat their path parameters in the body (decision 4). */
const RepeatsPath = Type.String({ maxLength: 32, description: 'repeats the path, or is left out' })
const Scopes = Type.Array(Type.String({ maxLength: 100 }), {
  minItems: 1,
  maxItems: 500,
  description: 'permissions: <resource>.<action>',
})
const WrittenTime = Type.String({ maxLength: 64, description: 'RFC 3339 with a zone, echoed as it was written' })
const Email = Type.String({ maxLength: 254, pattern: '^[^\\s@<>,;"]+@[^\\s@<>,;"]+$', description: 'e-mail address' })
const Period = Type.Union([Type.Literal('weekly'), Type.Literal('monthly')])
const TransitionPeriod = Type.Integer({
  minimum: 1_800_000,
  maximum: 2_678_400_000,
  description: 'milliseconds for which the old secret stays valid: 30 minutes to 31 days',
})
export const RotationPolicyInput = Strict(
  {
    rotation_period: Type.Optional(Nullable(Period)),
    next_rotation_at: Type.Optional(Nullable(WrittenTime)),
    key_transition_period_ms: Type.Optional(Nullable(TransitionPeriod)),
  },
  { title: 'RotationPolicyInput', description: 'a period or one date, 00:00 UTC' },
)
export type RotationPolicyInput = Static<typeof RotationPolicyInput>

const DefaultsInput = Strict({
  metadata: Type.Optional(Nullable(Metadata)),
  config_id: Type.Optional(Nullable(IdOrSlug)),
  allow_config_override: Type.Optional(Nullable(Type.Boolean({ default: true }))),
})
export type DefaultsInput = Static<typeof DefaultsInput>

const OPTIONS = {
  description: Type.Optional(Nullable(Type.String({ maxLength: 200 }))),
  organisation_id: Type.Optional(Nullable(Uuid)),
  workspace_id: Type.Optional(Nullable(IdOrSlug)),
  user_id: Type.Optional(Nullable(Uuid)),
  rate_limits: Type.Optional(Nullable(Type.Array(KeyRateLimit, { maxItems: 10 }))),
  usage_limits: Type.Optional(Nullable(UsageLimitsInput)),
  defaults: Type.Optional(Nullable(DefaultsInput)),
  alert_emails: Type.Optional(Nullable(Type.Array(Email, { maxItems: 100 }))),
  expires_at: Type.Optional(Nullable(WrittenTime)),
  rotation_policy: Type.Optional(Nullable(RotationPolicyInput)),
  type: Type.Optional(RepeatsPath),
  'sub-type': Type.Optional(RepeatsPath),
}

/** Spec 2.7, and what file 08 adds. */
export const CreateApiKey = Strict({ name: Name, scopes: Scopes, ...OPTIONS }, { title: 'CreateApiKey' })
export type CreateApiKey = Static<typeof CreateApiKey>

/** A field that is absent keeps its value; null clears what can be cleared (file 08). */
export const UpdateApiKey = Strict(
  {
    name: Type.Optional(Nullable(Name)),
    scopes: Type.Optional(Nullable(Scopes)),
    ...OPTIONS,
    reset_usage: Type.Optional(Nullable(Type.Boolean({ description: 'true: what was used counts no more' }))),
  },
  { title: 'UpdateApiKey', description: 'what a key is, and for whom, never changes' },
)
export type UpdateApiKey = Static<typeof UpdateApiKey>

export const RotateApiKey = Strict(
  { key_transition_period_ms: Type.Optional(Nullable(TransitionPeriod)) },
  { title: 'RotateApiKey' },
)
export type RotateApiKey = Static<typeof RotateApiKey>

export const ApiKeyCreated = Strict(
  { id: Uuid, key: Type.String({ description: 'the clear key, shown only here' }), object: Type.Literal('api-key') },
  { title: 'ApiKeyCreated' },
)
export type ApiKeyCreated = Static<typeof ApiKeyCreated>
export const ApiKeyRotated = Strict(
  {
    id: Uuid,
    key: Type.String({ description: 'the new clear key, shown only here' }),
    key_transition_expires_at: Timestamp,
  },
  { title: 'ApiKeyRotated' },
)
export type ApiKeyRotated = Static<typeof ApiKeyRotated>

export const RotationPolicy = Strict(
  {
    rotation_period: Nullable(Period),
    next_rotation_at: WrittenTime,
    key_transition_period_ms: Type.Integer(),
    status: Type.Union([Type.Literal('active'), Type.Literal('due')]),
  },
  { title: 'RotationPolicy' },
)
export type RotationPolicy = Static<typeof RotationPolicy>

const KeyDefaults = Strict({
  metadata: Nullable(Metadata),
  config_id: Nullable(Type.String()),
  allow_config_override: Type.Boolean(),
})
export type KeyDefaults = Static<typeof KeyDefaults>

export const ApiKey = Strict(
  {
    id: Uuid,
    key: Type.String({ description: 'masked' }),
    name: Type.String(),
    description: Nullable(Type.String()),
    type: Type.Union([
      Type.Literal('organisation-service'),
      Type.Literal('workspace-service'),
      Type.Literal('workspace-user'),
    ]),
    organisation_id: Uuid,
    workspace_id: Nullable(Uuid),
    user_id: Nullable(Uuid),
    status: Type.Union([Type.Literal('active'), Type.Literal('exhausted'), Type.Literal('expired')]),
    creation_mode: Type.Union([Type.Literal('ui'), Type.Literal('api'), Type.Literal('auto')]),
    rate_limits: Nullable(Type.Array(KeyRateLimit)),
    usage_limits: Nullable(UsageLimits),
    reset_usage: Type.Null(),
    scopes: Type.Array(Type.String()),
    defaults: Nullable(KeyDefaults),
    allow_config_override: Nullable(Type.Union([Type.Literal(0), Type.Literal(1)])),
    api_key_defaults_id: Type.Null(),
    alert_emails: Nullable(Type.Array(Type.String())),
    expires_at: Nullable(WrittenTime),
    last_reset_at: Nullable(Timestamp),
    next_usage_reset_at: Nullable(WrittenTime),
    last_used_at: Nullable(Type.String({ description: 'RFC 3339, to the minute; null: never used' })),
    expiry_enforced: Type.Literal(0),
    rotation_policy: Nullable(RotationPolicy),
    created_at: Timestamp,
    last_updated_at: Timestamp,
    object: Type.Literal('api-key'),
  },
  { title: 'ApiKey' },
)
export type ApiKey = Static<typeof ApiKey>
export const ApiKeyList = ListOf(ApiKey)
export const ListApiKeysQuery = Strict({
  workspace_id: Type.Optional(IdOrSlug),
  ids: Type.Optional(Type.String({ maxLength: 4000, description: 'UUIDs, separated by commas' })),
  ...Paging,
})
