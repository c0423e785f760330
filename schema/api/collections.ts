import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid, ZeroOne } from './common.ts'

export const CreateCollection = Strict(
  {
    name: Name,
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
    parent_collection_id: Type.Optional(Nullable(IdOrSlug)),
  },
  { title: 'CreateCollection' },
)
export type CreateCollection = Static<typeof CreateCollection>
export const CollectionCreated = Strict({ id: Uuid, slug: Type.String() })
export const UpdateCollection = Strict(
  { name: Name, workspace_id: Type.Optional(Nullable(IdOrSlug)) },
  { title: 'UpdateCollection' },
)
export type UpdateCollection = Static<typeof UpdateCollection>

const Details = Strict({
  child_collections_count: Type.Integer({ minimum: 0 }),
  prompts_count: Type.Integer({ minimum: 0 }),
  child_collections_last_updated_at: Nullable(Timestamp),
  prompts_last_updated_at: Nullable(Timestamp),
})
const fields = {
  id: Uuid,
  name: Type.String(),
  workspace_id: Uuid,
  slug: Type.String(),
  parent_collection_id: Nullable(Uuid),
  is_default: ZeroOne,
  status: Type.Literal('active'),
  created_at: Timestamp,
  last_updated_at: Timestamp,
  object: Type.Literal('collection'),
}
export const CollectionRow = Strict({ ...fields, collection_details: Details }, { title: 'CollectionRow' })
export type CollectionRow = Static<typeof CollectionRow>
export const CollectionList = ListOf(CollectionRow)
export const Collection = Strict(
  {
    ...fields,
    child_collections: Type.Array(
      Strict({ id: Uuid, name: Type.String(), last_updated_at: Timestamp, collection_details: Details }),
    ),
  },
  { title: 'Collection' },
)
export type Collection = Static<typeof Collection>
export const ListCollectionsQuery = Strict({
  workspace_id: Type.Optional(IdOrSlug),
  search: Type.Optional(Type.String({ maxLength: 255 })),
  ...Paging,
})
