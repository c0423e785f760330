import type { PromptSummary, PromptVersion, Prompt as PromptWire } from '../../schema/api/prompts.ts'
import { parseNullable, parseStored } from '../json.ts'
import { checkTemplate } from '../templates/template.ts'
import type { PromptRow, VersionLabel, VersionRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()
const statusOf = (prompt: PromptRow, number: number) => (prompt.defaultVersion === number ? 'active' : 'archived')

export const presentPromptSummary = (row: PromptRow, model: string): PromptSummary => ({
  id: row.id,
  slug: row.slug,
  name: row.name,
  collection_id: row.collectionId,
  workspace_id: row.workspaceId,
  model,
  status: 'active',
  // Sharing and forking are not offered; clients expect the keys.
  access_level: 'workspace',
  share_organisation_id: null,
  shared_at: null,
  shared_by_user_id: null,
  shared_from_version_id: null,
  allow_all_workspaces: 0,
  forked_from_prompt_id: null,
  forked_from_prompt_version_id: null,
  prompt_owning_workspace_id: row.workspaceId,
  created_at: iso(row.createdAt),
  last_updated_at: iso(row.lastUpdatedAt),
  object: 'prompt',
})

/** @param labels every label of the version, first assigned first */
export function presentPrompt(row: PromptRow, version: VersionRow, labels: VersionLabel[]): PromptWire {
  const parameters = parseStored(version.parameters) as Record<string, unknown>
  return {
    ...presentPromptSummary(row, version.model),
    prompt_version_id: version.id,
    prompt_version: version.number,
    prompt_version_description: version.description,
    prompt_version_status: statusOf(row, version.number),
    prompt_version_label_id: labels[0]?.id ?? null,
    prompt_version_label_name: labels[0]?.name ?? null,
    prompt_version_labels: labels,
    string: version.template,
    variable_components: checkTemplate(version.template, version.isRaw, () => undefined).components,
    // Clients read the model from either place.
    parameters: version.model === '' ? parameters : { ...parameters, model: version.model },
    functions: parseNullable(version.functions),
    tools: parseNullable(version.tools),
    tool_choice: parseNullable(version.toolChoice),
    template_metadata: parseStored(version.templateMetadata) as Record<string, unknown>,
    is_raw_template: version.isRaw ? 1 : 0,
    virtual_key: version.virtualKey,
    template_type: version.templateType as 'chat' | 'text',
  }
}

/** Unset description and label are left out: a client's contract takes no null there. */
export const presentVersion = (prompt: PromptRow, version: VersionRow, labelId: string | undefined): PromptVersion => ({
  id: version.id,
  prompt_id: prompt.id,
  prompt_template: version.template,
  prompt_version: version.number,
  ...(version.description !== null && { prompt_description: version.description }),
  ...(labelId !== undefined && { label_id: labelId }),
  created_at: iso(version.createdAt),
  status: statusOf(prompt, version.number),
  object: 'prompt',
})
