import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { IdOrSlug, Nullable, Strict, sendable, Uuid, ZeroOne, ZeroOneInput } from './common.ts'
import { MetadataSchema } from './metadata.ts'
import { SecuritySettings, SecuritySettingsUpdate } from './security-settings.ts'

/** Ten years. */
const MOST_SECONDS = 315_360_000
const seconds = (description: string) =>
  Type.Integer({ minimum: 0, maximum: MOST_SECONDS, description: `${description}, in seconds; 0: none` })
const Count = Type.Integer({
  minimum: 0,
  maximum: 100_000,
  description: 'live user keys of one person in one workspace; 0: as many as wanted',
})

/** What a workspace may override. */
const perWorkspace = <T extends TSchema>(zeroOne: T) => ({
  debug_log: zeroOne,
  user_api_key_ttl: seconds('life of a user key that is created without expires_at'),
  user_api_key_max_ttl: seconds('longest life of a user key'),
  user_api_key_count: Count,
  user_key_metadata: zeroOne,
  user_key_metadata_override: zeroOne,
})
const ofOrganisation = {
  user_api_key_rotation_period: Nullable(Type.Union([Type.Literal('weekly'), Type.Literal('monthly')])),
  user_api_key_auto_create: Type.Boolean({ description: 'new members of a workspace get a user key' }),
  default_workspace_user_api_key_auto_create: Type.Boolean({ description: 'the same for the default workspace' }),
  api_key_metadata_schema: Nullable(MetadataSchema),
  workspace_metadata_schema: Nullable(MetadataSchema),
  export_settings: Strict({
    deniedFields: Type.Array(Type.String({ maxLength: 100 }), {
      maxItems: 100,
      description: 'fields that are left out of log exports',
    }),
  }),
}

type Fields = Record<string, TSchema>
type Nullables<T extends Fields> = { [K in keyof T]: ReturnType<typeof Nullable<T[K]>> }
const nullable = <T extends Fields>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, Nullable(schema)])) as Nullables<T>

/** Absent keeps a setting, null sets it back to its default. */
export const OrganisationSettingsUpdate = Strict(
  {
    ...sendable(perWorkspace(ZeroOneInput)),
    ...sendable(ofOrganisation),
    security_settings: Type.Optional(Nullable(SecuritySettingsUpdate)),
  },
  { title: 'OrganisationSettingsUpdate' },
)
export type OrganisationSettingsUpdate = Static<typeof OrganisationSettingsUpdate>
export const OrganisationSettings = Strict(
  {
    ...perWorkspace(ZeroOne),
    ...ofOrganisation,
    security_settings: SecuritySettings,
    object: Type.Literal('organisation-settings'),
  },
  { title: 'OrganisationSettings' },
)
export type OrganisationSettings = Static<typeof OrganisationSettings>

/** Absent keeps a setting of the workspace, null hands it back to the organisation. */
export const WorkspaceSettingsUpdate = Strict(sendable(perWorkspace(ZeroOneInput)), {
  title: 'WorkspaceSettingsUpdate',
})
export type WorkspaceSettingsUpdate = Static<typeof WorkspaceSettingsUpdate>
/** Null: the organisation's setting counts. */
export const WorkspaceSettings = Strict(nullable(perWorkspace(ZeroOne)), { title: 'WorkspaceSettings' })
export type WorkspaceSettings = Static<typeof WorkspaceSettings>

const Guardrails = Type.Array(IdOrSlug, { maxItems: 100, description: 'ids or slugs; replaces the list' })
export const UpdateOrganisationDefaults = Strict(
  { input_guardrails: Type.Optional(Nullable(Guardrails)), output_guardrails: Type.Optional(Nullable(Guardrails)) },
  { title: 'UpdateOrganisationDefaults' },
)
export type UpdateOrganisationDefaults = Static<typeof UpdateOrganisationDefaults>
const GuardrailRefs = Type.Array(Strict({ id: Uuid, slug: Type.String() }))
export const OrganisationDefaults = Strict(
  { input_guardrails: GuardrailRefs, output_guardrails: GuardrailRefs },
  { title: 'OrganisationDefaults' },
)
export type OrganisationDefaults = Static<typeof OrganisationDefaults>

export const ExclusionsQuery = Strict({ organisation_id: Type.Optional(Uuid) })
export const UpdateExclusions = Strict(
  {
    organisation_id: Type.Optional(Nullable(Uuid)),
    workspaces: Type.Array(
      Strict({
        workspace_id: IdOrSlug,
        excluded: Type.Boolean({ description: 'false takes the workspace from the list' }),
      }),
      { maxItems: 1000 },
    ),
    override_existing: Type.Optional(
      Nullable(Type.Boolean({ description: 'the list is replaced; without it, it is added to' })),
    ),
  },
  { title: 'UpdateExclusions' },
)
export type UpdateExclusions = Static<typeof UpdateExclusions>
export const Exclusions = Strict(
  { workspaces: Type.Array(Strict({ workspace_id: Uuid, excluded: Type.Literal(true) })) },
  { title: 'Exclusions' },
)
export type Exclusions = Static<typeof Exclusions>
