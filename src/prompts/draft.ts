import type { CreatePrompt, UpdatePrompt } from '../../schema/api/prompts.ts'
import { invalidField } from '../errors.ts'
import { parseNullable, parseStored } from '../json.ts'
import { checkTemplate, type FindPartial } from '../templates/template.ts'
import { checkSavedParameters, splitParameters } from './hyperparameters.ts'
import type { VersionRow } from './store.ts'

/** The columns of a version that its author decides. */
export type VersionContent = Omit<VersionRow, 'id' | 'promptId' | 'number' | 'createdAt'>

export interface Draft {
  content: VersionContent
  /** the partials that the template names, as slugs */
  partialSlugs: string[]
}

type Fields = Partial<CreatePrompt> & Pick<UpdatePrompt, 'patch'>

/**
 * A version from the fields of a body, checked as render will check it (decisions 20, 22).
 *
 * @param body null counts as absent; `string` and `parameters` are there
 * @throws GatehouseError `invalid` with the field's path
 */
export function draftVersion(body: Fields | UpdatePrompt, findPartial: FindPartial): Draft {
  const template = body.string ?? ''
  const isRaw = body.is_raw_template === 1 || body.is_raw_template === true
  const { kind, components, variableNames } = checkTemplate(template, isRaw, findPartial)
  const tools = {
    functions: listOrNull(body.functions),
    tools: listOrNull(body.tools),
    tool_choice: body.tool_choice || null,
  }
  checkSavedParameters(kind, withoutNulls(tools), '')
  const parameters = coerceParameters(kind, body.parameters ?? {}, variableNames)
  const metadata = readMetadata(body) ?? {}
  return {
    content: {
      template,
      templateType: kind,
      isRaw,
      parameters: JSON.stringify(parameters),
      functions: textOf(tools.functions),
      tools: textOf(tools.tools),
      toolChoice: textOf(tools.tool_choice),
      templateMetadata: JSON.stringify(metadata),
      model: body.model || modelIn(parameters),
      virtualKey: body.virtual_key ?? null,
      aiModelId: body.ai_model_id ?? null,
      finetuneId: body.finetune_id ?? null,
      description: body.version_description ?? null,
    },
    partialSlugs: components.partials.map((reference) => reference.split('@', 1)[0] ?? reference),
  }
}

/** A patch laid over the latest version: null counts as absent. */
export function patched(version: VersionRow, patch: UpdatePrompt): UpdatePrompt {
  const sent = Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== null)) as UpdatePrompt
  const metadata = readMetadata(patch)
  const { prompt_metadata: _, ...rest } = { ...bodyOf(version), ...sent }
  return metadata === undefined ? rest : { ...rest, template_metadata: metadata }
}

/** A version in the shape of a body. */
function bodyOf(version: VersionRow): UpdatePrompt {
  const stored = {
    string: version.template,
    parameters: parseStored(version.parameters) as Record<string, unknown>,
    functions: parseNullable(version.functions),
    tools: parseNullable(version.tools),
    tool_choice: parseNullable(version.toolChoice),
    template_metadata: parseStored(version.templateMetadata) as Record<string, unknown>,
    model: version.model,
    virtual_key: version.virtualKey,
    ai_model_id: version.aiModelId,
    finetune_id: version.finetuneId,
    is_raw_template: version.isRaw ? 1 : 0,
    version_description: version.description,
  }
  // What is stored went through the contract before.
  return stored as UpdatePrompt
}

/** Clients save an unset list as []. */
const listOrNull = <T>(list: T[] | null | undefined): T[] | null => (list && list.length > 0 ? list : null)

/** Two names of one thing (D-48); undefined when neither is sent. */
function readMetadata({
  template_metadata: one,
  prompt_metadata: other,
}: Fields | UpdatePrompt): Record<string, unknown> | undefined {
  if (one && other && !Bun.deepEquals(one, other))
    throw invalidField('prompt_metadata', 'differs from template_metadata, its other name; send one of them')
  const metadata = one ?? other ?? undefined
  if (metadata !== undefined && typeof (metadata['strict_variables'] ?? false) !== 'boolean')
    throw invalidField('template_metadata.strict_variables', 'must be true or false')
  return metadata
}

/** Numbers that old interfaces saved as text become numbers, but for those that are (also) defaults of variables. */
function coerceParameters(
  kind: 'chat' | 'text',
  parameters: Record<string, unknown>,
  variableNames: ReadonlySet<string>,
): Record<string, unknown> {
  const model = parameters['model'] ?? null
  if (model !== null && typeof model !== 'string') throw invalidField('parameters.model', 'must be a string')
  const { hyperparameters, defaults } = splitParameters(kind, parameters, variableNames)
  return { ...parameters, ...checkSavedParameters(kind, hyperparameters), ...defaults }
}

const modelIn = (parameters: Record<string, unknown>): string =>
  typeof parameters['model'] === 'string' ? parameters['model'] : ''

const textOf = (value: unknown): string | null => (value === null ? null : JSON.stringify(value))

const withoutNulls = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
