import { type Static, Type } from '@sinclair/typebox'
import {
  Description,
  IdOrSlug,
  ListOf,
  Name,
  Nullable,
  Paging,
  Strict,
  Timestamp,
  Uuid,
  ZeroOne,
  ZeroOneInput,
} from './common.ts'
import { RateLimit, UsageLimits, UsageLimitsInput } from './limits.ts'
import { Metadata } from './metadata.ts'
import { WorkspaceSettings, WorkspaceSettingsUpdate } from './organisation-settings.ts'
import { OwnSecuritySettings, SecuritySettingsUpdate } from './security-settings.ts'

const sent = {
  icon: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 64,
        pattern: '^[^\\u0000-\\u001f\\u007f]*$',
        description: 'shown before the name; an empty text clears it',
      }),
    ),
  ),
  description: Type.Optional(Nullable(Description)),
  usage_limits: Type.Optional(
    Nullable(Type.Array(UsageLimitsInput, { maxItems: 1, description: 'an empty list or null clears them' })),
  ),
  rate_limits: Type.Optional(
    Nullable(Type.Array(RateLimit, { maxItems: 20, description: 'an empty list or null clears them' })),
  ),
}
const sentDefaults = {
  metadata: Type.Optional(Nullable(Metadata)),
  is_default: Type.Optional(
    Nullable({ ...ZeroOneInput, description: 'as it is: the default workspace stays the one of the first start' }),
  ),
}
const Guardrails = Type.Optional(Nullable(Type.Array(IdOrSlug, { maxItems: 100 })))

export const CreateWorkspace = Strict(
  {
    name: Name,
    slug: Type.Optional(
      Nullable(
        Type.String({ minLength: 1, maxLength: 255, pattern: '^[a-zA-Z0-9_-]+$', description: 'none: made up' }),
      ),
    ),
    ...sent,
    defaults: Type.Optional(Nullable(Strict(sentDefaults))),
    users: Type.Optional(
      Nullable(Type.Array(Uuid, { maxItems: 1000, description: 'people who become members, with the role member' })),
    ),
  },
  { title: 'CreateWorkspace' },
)
export type CreateWorkspace = Static<typeof CreateWorkspace>

export const UpdateWorkspace = Strict(
  {
    name: Type.Optional(Nullable(Name)),
    ...sent,
    defaults: Type.Optional(
      Nullable(
        Strict({
          ...sentDefaults,
          input_guardrails: Guardrails,
          output_guardrails: Guardrails,
          user_api_key_config: Type.Optional(Nullable(IdOrSlug)),
        }),
      ),
    ),
    settings: Type.Optional(Nullable(WorkspaceSettingsUpdate)),
    security_settings: Type.Optional(Nullable(SecuritySettingsUpdate)),
  },
  { title: 'UpdateWorkspace' },
)
export type UpdateWorkspace = Static<typeof UpdateWorkspace>

export const DeleteWorkspace = Strict(
  {
    name: Type.Optional(
      Nullable(Type.String({ maxLength: 400, description: "the workspace's name, as a confirmation" })),
    ),
    force_delete: Type.Optional(Nullable(Type.Boolean({ description: 'with all that is in it' }))),
  },
  { title: 'DeleteWorkspace' },
)
export type DeleteWorkspace = Static<typeof DeleteWorkspace>

const fields = {
  id: Uuid,
  slug: Type.String(),
  name: Type.String(),
  icon: Nullable(Type.String()),
  description: Nullable(Type.String()),
  status: Type.Union([Type.Literal('active'), Type.Literal('archived')]),
  is_default: ZeroOne,
  usage_limits: Nullable(Type.Array(UsageLimits)),
  rate_limits: Nullable(Type.Array(RateLimit)),
  security_settings: OwnSecuritySettings,
  scim_source_id: Type.Null(),
  created_at: Timestamp,
  last_updated_at: Timestamp,
  object: Type.Literal('workspace'),
}
const defaults = {
  metadata: Type.Optional(Metadata),
  is_default: ZeroOne,
  object: Type.Literal('workspace'),
}
export const Workspace = Strict({ ...fields, defaults: Strict(defaults) }, { title: 'Workspace' })
export type Workspace = Static<typeof Workspace>
export const WorkspaceList = ListOf(Workspace)

const NoGuardrails = Type.Array(Strict({ id: Uuid, slug: Type.String() }))
export const WorkspaceDetail = Strict(
  {
    ...fields,
    defaults: Strict({
      ...defaults,
      input_guardrails: NoGuardrails,
      output_guardrails: NoGuardrails,
      user_api_key_config: Nullable(Type.String()),
    }),
    organisation_id: Uuid,
    users: Type.Array(
      Strict({
        id: Uuid,
        role: Type.String(),
        email: Type.String(),
        first_name: Type.String(),
        last_name: Type.String(),
      }),
    ),
    settings: WorkspaceSettings,
    last_reset_at: Nullable(Timestamp),
    created_by: Nullable(Uuid),
    creation_source: Type.String(),
  },
  { title: 'WorkspaceDetail' },
)
export type WorkspaceDetail = Static<typeof WorkspaceDetail>

const NameFormat = Type.Optional(
  Type.Union([Type.Literal('display'), Type.Literal('plain')], { description: 'with the icon before it, or without' }),
)
export const GetWorkspaceQuery = Strict({ name_format: NameFormat })
export const ListWorkspacesQuery = Strict({
  name: Type.Optional(Type.String({ maxLength: 255, description: 'part of the name, in its own case' })),
  exact_name: Type.Optional(Type.String({ maxLength: 400 })),
  status: Type.Optional(
    Type.String({
      pattern: '^(?:active|archived)(?:,(?:active|archived))*$',
      description:
        'active, archived, or both separated by a comma; active without it; archived ones for admin keys alone',
    }),
  ),
  name_format: NameFormat,
  ...Paging,
})
export type ListWorkspacesQuery = Static<typeof ListWorkspacesQuery>
