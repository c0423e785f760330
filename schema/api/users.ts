import { type Static, Type } from '@sinclair/typebox'
import { ListOf, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'

/** As HTML's e-mail field takes it: ASCII, one @, no display name. */
export const Email = Type.String({
  maxLength: 254,
  pattern: "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9-]+(\\.[a-zA-Z0-9-]+)*$",
  description: 'e-mail address',
})
/** A first or last name; may be empty. */
export const PersonName = Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
/** Owners are made by `gatehouse owner transfer` alone (decision 32). */
export const GivenRole = Type.Union([Type.Literal('admin'), Type.Literal('member')])
export const OrganisationRole = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('member')])

export const userFields = {
  object: Type.Literal('user'),
  id: Uuid,
  first_name: Type.String(),
  last_name: Type.String(),
  role: OrganisationRole,
  email: Type.String(),
  status: Type.Literal('active'),
  workspace_ids: Type.Array(Type.String(), { description: 'slugs of the workspaces that the person is a member of' }),
  created_at: Timestamp,
  last_updated_at: Timestamp,
  updated_at: Timestamp,
}
export const User = Strict(userFields, { title: 'User' })
export type User = Static<typeof User>
export const UserList = ListOf(User)

export const UpdateUser = Strict(
  {
    role: Type.Optional(Nullable(GivenRole)),
    first_name: Type.Optional(Nullable(PersonName)),
    last_name: Type.Optional(Nullable(PersonName)),
  },
  { title: 'UpdateUser' },
)
export type UpdateUser = Static<typeof UpdateUser>

export const ListUsersQuery = Strict({
  role: Type.Optional(OrganisationRole),
  email: Type.Optional(Type.String({ maxLength: 254, description: 'the whole address, in upper or lower case' })),
  ...Paging,
})
