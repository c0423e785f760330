import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, Nullable, Strict, Timestamp, Uuid } from './common.ts'
import { SecretKey } from './secret-references.ts'

// What is done with a secret reference beside keeping it: test, health, resolve (file 04).

/** Of a stored reference; the body of one that is only tested is `CreateSecretReference`. */
export const TestSecretReference = Strict({
  fresh: Type.Optional(Nullable(Type.Boolean({ description: 'log in anew, even where a login is at hand' }))),
})
const Step = Type.Union([
  Type.Literal('grant'),
  Type.Literal('address'),
  Type.Literal('connect'),
  Type.Literal('tls'),
  Type.Literal('login'),
  Type.Literal('read'),
  Type.Literal('parse'),
  Type.Literal('field'),
])
export const SecretReferenceTest = Strict(
  {
    object: Type.Literal('secret-reference-test'),
    ok: Type.Boolean(),
    failed_step: Nullable(Step),
    steps: Type.Array(
      Strict({
        step: Step,
        ok: Nullable(Type.Boolean({ description: 'null: not_told_apart from a later step, or not_reached' })),
        ms: Nullable(Type.Number({ minimum: 0 })),
        code: Nullable(Type.String({ description: '`error.type` of the failure, not_told_apart or not_reached' })),
        message: Nullable(Type.String()),
        manager_message: Nullable(Type.String({ maxLength: 200, description: "the manager's own words" })),
      }),
    ),
    fingerprint: Nullable(Type.String({ description: 'the same for the same value of this reference' })),
    version: Nullable(Type.String()),
    used_cached_login: Type.Boolean(),
  },
  { title: 'SecretReferenceTest' },
)
export type SecretReferenceTest = Static<typeof SecretReferenceTest>

export const SecretReferenceHealth = Strict(
  {
    object: Type.Literal('secret-reference-health'),
    last_success_at: Nullable(Timestamp),
    last_error: Nullable(Strict({ step: Step, code: Type.String(), at: Timestamp })),
    latency_ms: Nullable(Type.Number({ minimum: 0, description: 'of the last call that succeeded' })),
    cached: Type.Boolean(),
    age_seconds: Nullable(Type.Number({ minimum: 0 })),
    stale: Type.Boolean(),
    value_changed_at: Nullable(Timestamp),
    login_expires_at: Nullable(Timestamp),
    granted: Type.Boolean({
      description: "whether the machine's own identity may be used for it, where it needs that",
    }),
    used_by: Type.Array(Strict({ kind: Type.String(), id: Uuid, target_field: Type.String() })),
  },
  { title: 'SecretReferenceHealth' },
)
export type SecretReferenceHealth = Static<typeof SecretReferenceHealth>

export const ResolveSecretReference = Strict({
  workspace_id: Type.Union([IdOrSlug, Type.Null()], {
    description: 'who the value is for; null: the organisation itself, where the reference names no workspace',
  }),
  secret_key: Type.Optional(Nullable(SecretKey)),
  refresh: Type.Optional(Nullable(Type.Boolean({ description: 'ask the manager, at most once in 5 s a reference' }))),
})
export type ResolveSecretReference = Static<typeof ResolveSecretReference>

export const SecretValue = Strict(
  {
    object: Type.Literal('secret-value'),
    id: Uuid,
    slug: Type.String(),
    value: Type.String(),
    encoding: Type.Union([Type.Literal('utf-8'), Type.Literal('base64')]),
    version: Nullable(Type.String()),
    fetched_at: Timestamp,
    expires_at: Timestamp,
    stale: Type.Boolean(),
    stale_reason: Nullable(Type.String()),
  },
  { title: 'SecretValue' },
)
export type SecretValue = Static<typeof SecretValue>
