import { type Static, Type } from '@sinclair/typebox'
import { Description, IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'
import { VersionStatus } from './prompts.ts'

const Text = Type.String({ description: 'the text that {{>slug}} inserts' })
const Status = Type.Union([Type.Literal('active'), Type.Literal('archived')])

export const CreatePartial = Strict(
  {
    name: Name,
    string: Text,
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
    collection_id: Type.Optional(Nullable(IdOrSlug)),
    version_description: Type.Optional(Nullable(Description)),
  },
  { title: 'CreatePartial' },
)
export type CreatePartial = Static<typeof CreatePartial>
export const PartialCreated = Strict({ id: Uuid, slug: Type.String(), version_id: Uuid })

export const UpdatePartial = Strict(
  {
    name: Type.Optional(Nullable(Name)),
    string: Type.Optional(Nullable(Text)),
    version_description: Type.Optional(Nullable(Description)),
    description: Type.Optional(Nullable(Description)),
    status: Type.Optional(Nullable(Status)),
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
  },
  { title: 'UpdatePartial' },
)
export type UpdatePartial = Static<typeof UpdatePartial>
export const PartialUpdated = Strict({ prompt_partial_version_id: Uuid })

const summaryFields = {
  id: Uuid,
  slug: Type.String(),
  name: Type.String(),
  collection_id: Uuid,
  created_at: Timestamp,
  last_updated_at: Timestamp,
  status: Status,
  object: Type.Literal('partial'),
}
export const PartialSummary = Strict(summaryFields, { title: 'PartialSummary' })
export type PartialSummary = Static<typeof PartialSummary>
export const PartialList = ListOf(PartialSummary)

export const Partial = Strict(
  {
    ...summaryFields,
    workspace_id: Uuid,
    string: Type.String(),
    version: Type.Integer({ minimum: 1 }),
    version_description: Nullable(Type.String()),
    prompt_partial_version_id: Uuid,
    prompt_partial_version_status: VersionStatus,
  },
  { title: 'Partial' },
)
export type Partial = Static<typeof Partial>

export const PartialVersion = Strict(
  {
    prompt_partial_id: Uuid,
    prompt_partial_version_id: Uuid,
    slug: Type.String(),
    version: Type.Integer({ minimum: 1 }),
    string: Type.String(),
    description: Nullable(Type.String()),
    created_at: Timestamp,
    prompt_version_status: VersionStatus,
    object: Type.Literal('partial'),
  },
  { title: 'PartialVersion' },
)
export type PartialVersion = Static<typeof PartialVersion>
export const PartialVersionList = ListOf(PartialVersion)

export const ListPartialsQuery = Strict({
  collection_id: Type.Optional(IdOrSlug),
  workspace_id: Type.Optional(IdOrSlug),
  search: Type.Optional(Type.String({ maxLength: 255 })),
  ...Paging,
})
export const DeletePartialQuery = Strict({
  force: Type.Optional(
    Type.Union([Type.Literal('true'), Type.Literal('false')], { description: 'delete although prompts use it' }),
  ),
})
