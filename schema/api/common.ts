import { type TOptional, type TProperties, type TSchema, Type } from '@sinclair/typebox'

/** Contracts use patterns, not formats: TypeBox refuses every value of an unregistered format. */
export const Uuid = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
  description: 'UUID',
})
export const Timestamp = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
  description: 'RFC 3339, UTC, milliseconds',
})
/** An id or slug in a body; looked up, so any short text is taken and an unknown one gets its own message. */
export const IdOrSlug = Type.String({ minLength: 1, maxLength: 255, description: 'id or slug' })
/** NFC is applied by the service; control characters are refused here. */
export const Name = Type.String({ minLength: 1, maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$' })
export const Description = Type.String({
  maxLength: 1000,
  pattern: '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$',
})
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()])
/** A 0/1 integer on the wire; booleans are taken too on the way in (file 00 section 5). */
export const ZeroOne = Type.Union([Type.Literal(0), Type.Literal(1)])
export const ZeroOneInput = Type.Union([Type.Literal(0), Type.Literal(1), Type.Boolean()])
export const FreeObject = Type.Record(Type.String(), Type.Unknown())
export const Nothing = Type.Object({}, { additionalProperties: false, description: 'an empty object' })

/** An object that refuses unknown fields (decision 4). */
export const Strict = <T extends TProperties>(properties: T, options: { title?: string; description?: string } = {}) =>
  Type.Object(properties, { ...options, additionalProperties: false })

/** Fields of an update: each may be left out, and each may be null. */
export const sendable = <T extends TProperties>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Type.Optional(Nullable(schema))])) as {
    [K in keyof T]: TOptional<ReturnType<typeof Nullable<T[K]>>>
  }

/** The list envelope: `total` counts all rows over all pages. */
export const ListOf = <T extends TSchema>(item: T) =>
  Strict({ object: Type.Literal('list'), total: Type.Integer({ minimum: 0 }), data: Type.Array(item) })

const Digits = Type.String({ pattern: '^\\d{1,15}$', description: 'a whole number' })
/** Paging of every list: 0-based page; both spellings are taken (file 00 section 6). Without them all rows are returned. */
export const Paging = {
  current_page: Type.Optional(Digits),
  currentPage: Type.Optional(Digits),
  page_size: Type.Optional(Digits),
  pageSize: Type.Optional(Digits),
}
