import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, ListOf, Nothing, Paging, Strict, Timestamp, Uuid } from './common.ts'

export const WorkspaceRole = Type.Union([Type.Literal('admin'), Type.Literal('manager'), Type.Literal('member')])
export type WorkspaceRole = Static<typeof WorkspaceRole>

/** One person, or a list of them. */
export const AddMembers = Type.Union(
  [
    Strict({
      users: Type.Array(Strict({ id: Uuid, role: WorkspaceRole }), { minItems: 1, maxItems: 500 }),
    }),
    Strict({ user_id: Uuid, role: WorkspaceRole }),
  ],
  { title: 'AddMembers' },
)
export type AddMembers = Static<typeof AddMembers>
export const UpdateMember = Strict({ role: WorkspaceRole }, { title: 'UpdateMember' })
export type UpdateMember = Static<typeof UpdateMember>

export const Member = Strict(
  {
    object: Type.Literal('workspace-user'),
    id: Uuid,
    first_name: Type.String(),
    last_name: Type.String(),
    org_role: Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('member')]),
    role: WorkspaceRole,
    created_at: Timestamp,
    last_updated_at: Timestamp,
    status: Type.Literal('active'),
    workspace_id: Uuid,
    email: Type.String(),
    scopes: Type.Array(Type.String(), { description: 'what a user key of this person may do here at most' }),
    settings: Type.Null(),
  },
  { title: 'Member' },
)
export type Member = Static<typeof Member>
export const MemberList = ListOf(Member)
/** A list of people is answered with an empty object. */
export const MembersAdded = Type.Union([Member, Nothing])
export type MembersAdded = Static<typeof MembersAdded>

export const ListMembersQuery = Strict({
  role: Type.Optional(WorkspaceRole),
  email: Type.Optional(Type.String({ maxLength: 320 })),
  // Some clients repeat the path here.
  workspace_id: Type.Optional(IdOrSlug),
  workspaceId: Type.Optional(IdOrSlug),
  ...Paging,
})
export type ListMembersQuery = Static<typeof ListMembersQuery>
