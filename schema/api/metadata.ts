import { type Static, Type } from '@sinclair/typebox'
import { Strict } from './common.ts'

/** Names and texts that a key or a workspace puts on what is done through it. */
export const Metadata = Type.Record(Type.String(), Type.String({ maxLength: 1000 }), { maxProperties: 64 })
export type Metadata = Static<typeof Metadata>

const Note = Type.Optional(Type.String({ maxLength: 1000 }))
const Length = Type.Optional(Type.Integer({ minimum: 0, maximum: 1000 }))

/** The part of JSON Schema that says something of a map of texts; other keywords are refused, not ignored. */
export const MetadataSchema = Strict(
  {
    $schema: Note,
    title: Note,
    description: Note,
    type: Type.Optional(Type.Literal('object')),
    properties: Type.Optional(
      Type.Record(
        Type.String(),
        Strict({
          title: Note,
          description: Note,
          type: Type.Optional(Type.Literal('string')),
          enum: Type.Optional(Type.Array(Type.String({ maxLength: 1000 }), { minItems: 1, maxItems: 500 })),
          minLength: Length,
          maxLength: Length,
        }),
        { maxProperties: 64 },
      ),
    ),
    required: Type.Optional(Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 64 })),
    additionalProperties: Type.Optional(Type.Boolean()),
  },
  { title: 'MetadataSchema' },
)
export type MetadataSchema = Static<typeof MetadataSchema>
