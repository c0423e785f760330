import { type Static, Type } from '@sinclair/typebox'
import { IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'
import { Metadata } from './metadata.ts'
import { Email, GivenRole, PersonName, userFields } from './users.ts'

const WorkspaceRole = Type.Union([Type.Literal('admin'), Type.Literal('manager'), Type.Literal('member')])

export const CreateInvite = Strict(
  {
    email: Email,
    role: GivenRole,
    workspaces: Type.Optional(
      Nullable(
        Type.Array(Strict({ id: IdOrSlug, role: WorkspaceRole }), {
          maxItems: 100,
          description: 'the workspaces that the person becomes a member of',
        }),
      ),
    ),
    workspace_api_key_details: Type.Optional(
      Nullable(
        Strict({
          scopes: Type.Array(Type.String({ maxLength: 100 }), {
            minItems: 1,
            maxItems: 500,
            description: 'permissions of the user key that the person gets for each workspace',
          }),
          name: Type.Optional(Nullable(Name)),
          expiry: Type.Optional(
            Nullable(Type.String({ maxLength: 64, description: 'RFC 3339 with a zone, in the future' })),
          ),
          metadata: Type.Optional(Nullable(Metadata)),
        }),
      ),
    ),
    first_name: Type.Optional(Nullable(PersonName)),
    last_name: Type.Optional(Nullable(PersonName)),
  },
  { title: 'CreateInvite' },
)
export type CreateInvite = Static<typeof CreateInvite>
export type KeyDetails = NonNullable<CreateInvite['workspace_api_key_details']>

const InviteStatus = Type.Union([
  Type.Literal('pending'),
  Type.Literal('accepted'),
  Type.Literal('expired'),
  Type.Literal('cancelled'),
])
const inviteFields = {
  object: Type.Literal('invite'),
  id: Uuid,
  email: Type.String(),
  role: GivenRole,
  status: InviteStatus,
  workspaces: Type.Array(
    Strict({
      id: Type.String({ description: 'as it was written when the invite was made' }),
      workspace_id: Uuid,
      role: WorkspaceRole,
    }),
  ),
  invited_by: Type.String({ description: 'the person who answers for the invite' }),
  created_at: Timestamp,
  expires_at: Timestamp,
  accepted_at: Nullable(Timestamp),
}
export const Invite = Strict(inviteFields, { title: 'Invite' })
export type Invite = Static<typeof Invite>
export const InviteList = ListOf(Invite)

const InviteLink = Type.String({ description: 'where the invite is accepted; shown only here' })
export const InviteCreated = Strict({ ...inviteFields, invite_link: InviteLink }, { title: 'InviteCreated' })
export type InviteCreated = Static<typeof InviteCreated>
/** Known clients read one spelling or the other. */
export const InviteResent = Strict({ inviteLink: InviteLink, invite_link: InviteLink }, { title: 'InviteResent' })
export type InviteResent = Static<typeof InviteResent>

export const ListInvitesQuery = Strict({
  role: Type.Optional(GivenRole),
  email: Type.Optional(Type.String({ maxLength: 254, description: 'the whole address, in upper or lower case' })),
  status: Type.Optional(InviteStatus),
  ...Paging,
})

export const AcceptInvite = Strict(
  {
    token: Type.String({ maxLength: 255, description: 'what follows the # of the link' }),
    first_name: Type.Optional(Nullable(PersonName)),
    last_name: Type.Optional(Nullable(PersonName)),
  },
  { title: 'AcceptInvite' },
)
export type AcceptInvite = Static<typeof AcceptInvite>
export const InviteAccepted = Strict(
  {
    ...userFields,
    api_keys: Type.Array(
      Strict({ workspace_id: Uuid, id: Uuid, key: Type.String({ description: 'the clear key, shown only here' }) }),
    ),
  },
  { title: 'InviteAccepted' },
)
export type InviteAccepted = Static<typeof InviteAccepted>
