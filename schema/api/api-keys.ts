import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'

/** Some clients repeat their path parameters in the body (decision 4). */
const RepeatsPath = Type.String({ maxLength: 32, description: 'repeats the path, or is left out' })

/** Spec 2.7, and what file 08 adds that this version keeps: unknown fields are refused, never dropped. */
export const CreateApiKey = Strict(
  {
    name: Name,
    scopes: Type.Array(Type.String({ maxLength: 100 }), {
      minItems: 1,
      maxItems: 500,
      description: 'permissions: <resource>.<action>',
    }),
    description: Type.Optional(Nullable(Type.String({ maxLength: 200 }))),
    organisation_id: Type.Optional(Nullable(Uuid)),
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
    user_id: Type.Optional(Nullable(Uuid)),
    expires_at: Type.Optional(
      Nullable(Type.String({ maxLength: 64, description: 'RFC 3339 with a zone, in the future' })),
    ),
    type: Type.Optional(RepeatsPath),
    'sub-type': Type.Optional(RepeatsPath),
  },
  { title: 'CreateApiKey' },
)
export type CreateApiKey = Static<typeof CreateApiKey>
export const ApiKeyCreated = Strict(
  { id: Uuid, key: Type.String({ description: 'the clear key, shown only here' }), object: Type.Literal('api-key') },
  { title: 'ApiKeyCreated' },
)

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
    rate_limits: Type.Null(),
    usage_limits: Type.Null(),
    reset_usage: Type.Null(),
    scopes: Type.Array(Type.String()),
    defaults: Type.Null(),
    allow_config_override: Type.Null(),
    api_key_defaults_id: Type.Null(),
    alert_emails: Type.Null(),
    expires_at: Nullable(Timestamp),
    last_reset_at: Type.Null(),
    next_usage_reset_at: Type.Null(),
    expiry_enforced: Type.Literal(0),
    rotation_policy: Type.Null(),
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
