import { type Static, Type } from '@sinclair/typebox'
import { Description, IdOrSlug, ListOf, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'

/**
 * Letters, digits, `_` and `-`, with at most one other character that is neither blank nor `@`; never `latest`,
 * `default` or digits alone, which mean versions in `id@…` (file 03).
 */
const LabelName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^(?!latest$)(?!default$)(?!\\d+$)[A-Za-z0-9_-]*(?:[^\\s@\\u0000-\\u001f\\u007f-\\u009f])?[A-Za-z0-9_-]*$',
  description: 'letters, digits, _ and -, at most one other character; not latest, default or a number',
})
const Color = Type.String({ maxLength: 32, description: '#rrggbb' })

export const CreateLabel = Strict(
  {
    name: LabelName,
    description: Type.Optional(Nullable(Description)),
    color_code: Type.Optional(Nullable(Color)),
    organisation_id: Type.Optional(Nullable(Uuid)),
    organization_id: Type.Optional(Nullable(Uuid)),
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
  },
  { title: 'CreateLabel' },
)
export type CreateLabel = Static<typeof CreateLabel>
export const LabelCreated = Strict({ id: Uuid })
export const UpdateLabel = Strict(
  {
    name: Type.Optional(Nullable(LabelName)),
    description: Type.Optional(Nullable(Description)),
    color_code: Type.Optional(Nullable(Color)),
  },
  { title: 'UpdateLabel' },
)
export type UpdateLabel = Static<typeof UpdateLabel>

export const Label = Strict(
  {
    id: Uuid,
    name: Type.String(),
    description: Nullable(Type.String()),
    color_code: Nullable(Type.String()),
    organisation_id: Uuid,
    workspace_id: Nullable(Uuid),
    is_universal: Type.Boolean(),
    created_at: Timestamp,
    last_updated_at: Timestamp,
    status: Type.Literal('active'),
    object: Type.Literal('label'),
  },
  { title: 'Label' },
)
export type Label = Static<typeof Label>
export const LabelList = ListOf(Label)
export const ListLabelsQuery = Strict({
  organisation_id: Type.Optional(Uuid),
  organization_id: Type.Optional(Uuid),
  workspace_id: Type.Optional(IdOrSlug),
  search: Type.Optional(Type.String({ maxLength: 255 })),
  ...Paging,
})
export const LabelScopeQuery = Strict({ organisation_id: Type.Optional(Uuid), workspace_id: Type.Optional(IdOrSlug) })
