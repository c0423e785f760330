import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, Nullable, Strict, Timestamp, Uuid } from './common.ts'

const Text = Type.String({ minLength: 1, maxLength: 2048 })
const Time = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}(T\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:\\d{2}))?$',
  description: 'ISO 8601: 2026-01-31 or 2026-01-31T12:00:00Z',
})
const Digits = Type.String({ pattern: '^\\d{1,9}$', description: 'a whole number' })
const oneOf = <const T extends string>(values: readonly T[]) =>
  Type.Unsafe<T>(Type.Union(values.map((value) => Type.Literal(value))))

export const USER_TYPES = ['api_key', 'user', 'cli', 'system'] as const

/** The filters of file 12; all of them together narrow the list. */
export const ListAuditLogsQuery = Strict({
  start_time: Type.Optional({ ...Time, description: `${Time.description}; without it and end_time: the last 30 days` }),
  end_time: Type.Optional(Time),
  organisation_id: Type.Optional(Uuid),
  organization_id: Type.Optional(Uuid),
  method: Type.Optional(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'])),
  uri: Type.Optional({ ...Text, description: 'path and query, or their beginning' }),
  request_id: Type.Optional(Text),
  user_id: Type.Optional({
    ...Text,
    description: 'id of a key, or of the person who answers for it; cli:<uid>, system or anonymous',
  }),
  actor_id: Type.Optional({ ...Text, description: 'another name of user_id' }),
  user_type: Type.Optional(oneOf(USER_TYPES)),
  workspace_id: Type.Optional(IdOrSlug),
  response_status_code: Type.Optional(Type.String({ pattern: '^\\d{3}$', description: 'an HTTP status' })),
  resource_type: Type.Optional(Text),
  resource_id: Type.Optional(Text),
  action: Type.Optional(Text),
  client_ip: Type.Optional(Text),
  country: Type.Optional(
    Type.String({ maxLength: 255, description: 'never known here: only an empty one finds rows' }),
  ),
  current_page: Type.Optional(Digits),
  currentPage: Type.Optional(Digits),
  page_size: Type.Optional({ ...Digits, description: '0 to 100, 20 without it; 0 answers the total alone' }),
  pageSize: Type.Optional(Digits),
})
export type ListAuditLogsQuery = Static<typeof ListAuditLogsQuery>

/** The superset of what the known clients read; several fields stand twice, under the names of either. */
export const AuditLog = Strict(
  {
    id: Type.String(),
    seq: Type.Integer({ minimum: 1, description: 'number in the trail' }),
    hash: Type.String({ description: 'SHA-256 of the row and the one before it; `gatehouse audit verify` checks it' }),
    timestamp: Timestamp,
    created_at: Timestamp,
    method: Type.String({ description: 'empty where there was no request' }),
    uri: Type.String(),
    request_id: Type.String(),
    request_body: Type.String({ description: 'JSON text, secrets replaced by fingerprints' }),
    query_params: Type.String({ description: 'JSON text' }),
    request_headers: Type.String({ description: 'JSON text, auth headers masked' }),
    user_id: Type.String(),
    actor_id: Type.String(),
    user_type: oneOf(USER_TYPES),
    accountable_user_id: Nullable(Uuid),
    actor_email: Type.String({ description: 'of the accountable person' }),
    actor_name: Type.String({ description: 'of the accountable person' }),
    organisation_id: Uuid,
    workspace_id: Nullable(Type.String()),
    response_status_code: Type.Integer(),
    resource_type: Type.String(),
    resource_id: Nullable(Type.String()),
    resource_name: Nullable(Type.String()),
    action: Type.String(),
    client_ip: Type.String(),
    ip_address: Type.String(),
    country: Type.Literal(''),
    user_agent: Type.String(),
    metadata: Type.Record(Type.String(), Type.Unknown(), {
      description: 'what changed, before and after; of a refusal, why and how often',
    }),
  },
  { title: 'AuditLog' },
)
export type AuditLog = Static<typeof AuditLog>

export const AuditLogList = Strict({
  object: Type.Literal('list'),
  total: Type.Integer({ minimum: 0 }),
  records: Type.Array(AuditLog),
  data: Type.Array(AuditLog, { description: 'the same rows as records' }),
})
export type AuditLogList = Static<typeof AuditLogList>
