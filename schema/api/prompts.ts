import { type Static, Type } from '@sinclair/typebox'
import {
  Description,
  FreeObject,
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
import { PROMPT_TOOLS } from './tools.ts'

const Template = Type.String({
  minLength: 1,
  description: 'the template, returned to the letter; chat templates are the JSON text of a messages array',
})
const VirtualKey = Type.String({ maxLength: 255, description: 'provider slug or id; kept and echoed' })
const Model = Type.String({ maxLength: 255 })

const versionFields = {
  string: Template,
  parameters: Type.Record(Type.String(), Type.Unknown(), {
    description: 'hyperparameters and defaults of variables, by name',
  }),
  virtual_key: Nullable(VirtualKey),
  model: Nullable(Model),
  ai_model_id: Nullable(Type.String({ maxLength: 255 })),
  finetune_id: Nullable(Type.String({ maxLength: 255 })),
  ...PROMPT_TOOLS,
  version_description: Nullable(Description),
  template_metadata: Nullable(FreeObject),
  prompt_metadata: Nullable(FreeObject),
  is_raw_template: Nullable(ZeroOneInput),
}

export const CreatePrompt = Strict(
  {
    name: Name,
    collection_id: Type.Optional(Nullable(IdOrSlug)),
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
    ...Type.Partial(Type.Object(versionFields)).properties,
    string: Template,
    parameters: versionFields.parameters,
  },
  { title: 'CreatePrompt' },
)
export type CreatePrompt = Static<typeof CreatePrompt>

export const PromptCreated = Strict({ id: Uuid, slug: Type.String(), version_id: Uuid, object: Type.Literal('prompt') })

/** Which mode a body means (metadata only, strict version, patch) is decided by the service: file 01, PUT. */
export const UpdatePrompt = Strict(
  {
    name: Type.Optional(Nullable(Name)),
    collection_id: Type.Optional(Nullable(IdOrSlug)),
    workspace_id: Type.Optional(Nullable(IdOrSlug)),
    patch: Type.Optional(Nullable(Type.Boolean({ description: 'copy what is missing from the latest version' }))),
    ...Type.Partial(Type.Object(versionFields)).properties,
    string: Type.Optional(Nullable(Template)),
    parameters: Type.Optional(Nullable(versionFields.parameters)),
  },
  { title: 'UpdatePrompt' },
)
export type UpdatePrompt = Static<typeof UpdatePrompt>

export const PromptUpdated = Strict({
  id: Uuid,
  slug: Type.String(),
  prompt_version_id: Uuid,
  object: Type.Literal('prompt'),
})

const summaryFields = {
  id: Uuid,
  slug: Type.String(),
  name: Type.String(),
  collection_id: Uuid,
  workspace_id: Uuid,
  model: Type.String(),
  status: Type.Literal('active'),
  access_level: Type.Literal('workspace'),
  share_organisation_id: Type.Null(),
  shared_at: Type.Null(),
  shared_by_user_id: Type.Null(),
  shared_from_version_id: Type.Null(),
  allow_all_workspaces: Type.Literal(0),
  forked_from_prompt_id: Type.Null(),
  forked_from_prompt_version_id: Type.Null(),
  prompt_owning_workspace_id: Uuid,
  created_at: Timestamp,
  last_updated_at: Timestamp,
  object: Type.Literal('prompt'),
}
export const PromptSummary = Strict(summaryFields, { title: 'PromptSummary' })
export type PromptSummary = Static<typeof PromptSummary>
export const PromptList = ListOf(PromptSummary)

export const VersionStatus = Type.Union([Type.Literal('active'), Type.Literal('archived')], {
  description: 'active: the default (published) version',
})
const LabelRef = Strict({ id: Uuid, name: Type.String() })
const strings = Type.Array(Type.String())

export const Prompt = Strict(
  {
    ...summaryFields,
    prompt_version_id: Uuid,
    prompt_version: Type.Integer({ minimum: 1 }),
    prompt_version_description: Nullable(Type.String()),
    prompt_version_status: VersionStatus,
    prompt_version_label_id: Nullable(Uuid),
    prompt_version_label_name: Nullable(Type.String()),
    prompt_version_labels: Type.Array(LabelRef),
    string: Type.String(),
    variable_components: Strict({
      partials: strings,
      sections: strings,
      variables: strings,
      sectionVariables: Type.Record(Type.String(), strings),
      variablePartials: strings,
    }),
    parameters: FreeObject,
    functions: Nullable(Type.Array(FreeObject)),
    tools: Nullable(Type.Array(FreeObject)),
    tool_choice: Nullable(Type.Union([Type.String(), FreeObject])),
    template_metadata: FreeObject,
    is_raw_template: ZeroOne,
    virtual_key: Nullable(Type.String()),
    template_type: Type.Union([Type.Literal('chat'), Type.Literal('text')]),
  },
  { title: 'Prompt' },
)
export type Prompt = Static<typeof Prompt>

export const PromptVersion = Strict(
  {
    id: Uuid,
    prompt_id: Uuid,
    prompt_template: Type.String(),
    prompt_version: Type.Integer({ minimum: 1 }),
    prompt_description: Type.Optional(Type.String()),
    label_id: Type.Optional(Uuid),
    created_at: Timestamp,
    status: VersionStatus,
    object: Type.Literal('prompt'),
  },
  { title: 'PromptVersion' },
)
export type PromptVersion = Static<typeof PromptVersion>
export const PromptVersionList = ListOf(PromptVersion)

/** Other keys are ignored, as clients send the whole version back; a missing label_id is 400 (file 01). */
export const UpdatePromptVersion = Type.Object(
  { label_id: Nullable(Uuid) },
  { title: 'UpdatePromptVersion', additionalProperties: true },
)
export const MakeDefault = Strict(
  { version: Type.Integer({ minimum: 1, description: 'number of the version' }) },
  { title: 'MakeDefault' },
)

export const ListPromptsQuery = Strict({
  collection_id: Type.Optional(IdOrSlug),
  workspace_id: Type.Optional(IdOrSlug),
  search: Type.Optional(Type.String({ maxLength: 255, description: 'part of the name, upper or lower case' })),
  type: Type.Optional(Type.Literal('shared', { description: 'prompts shared from elsewhere: none here' })),
  show_prompt_share: Type.Optional(Type.String({ maxLength: 32 })),
  ...Paging,
})
export const VersionQuery = Strict({
  version: Type.Optional(
    Type.String({ pattern: '^(?:\\d{1,15}|latest|default)$', description: 'a number, latest or default' }),
  ),
})
