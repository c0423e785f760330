import type { RenderExplanation } from '../../schema/api/render.ts'
import type { Caller } from '../auth/caller.ts'
import { reaches } from '../auth/tenancy.ts'
import { GatehouseError, invalid, invalidField, notFound, shown } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import type { Lookups } from '../templates/template.ts'
import { checkCompletion, strictCompliance } from './completion-rules.ts'
import { explainMerge, mergeCompletion } from './hyperparameters.ts'
import { convertDeveloperRole } from './models.ts'
import { type Found, getFound, type LiveVersion } from './registry.ts'

/** A render as the route read it. */
export interface RenderInput {
  /** the whole body; the root is open (spec 2.1) */
  body: Record<string, unknown>
  /** see `Call.hasBigIntegers` */
  hasBigIntegers: boolean
  /** the header that sets strict OpenAI compliance, undefined when it was not sent; asked for only where it matters */
  complianceHeader: () => string | undefined
  strict: boolean
  explain: boolean
}

export interface Rendered {
  promptId: string
  version: number
  data: Record<string, unknown>
  explain: RenderExplanation | undefined
}

type Deps = Pick<Gatehouse, 'registry' | 'models' | 'config'>

/**
 * Renders a prompt into a ready-to-send request (spec 2.1 to 2.4). Default, latest and labelled versions are in
 * memory, so nothing is awaited for them.
 *
 * @param reference id or slug, with an optional `@N`, `@latest`, `@default` or `@label`
 * @throws GatehouseError `not_found` for an unknown prompt, version, label or partial, also out of the caller's reach;
 *         `invalid`, `template_limit`
 */
export function renderPrompt(
  deps: Deps,
  caller: Caller,
  reference: string,
  input: RenderInput,
): Rendered | Promise<Rendered> {
  const found = getFound(deps.registry, reference)
  if (!reaches(caller, found.prompt)) throw notFound(reference.includes('@') ? 'prompt, version or label' : 'prompt')
  if (found.version !== undefined) return renderNamed(deps, found, found.version, input)
  return deps.registry.loadVersion(found.prompt, found.number).then((version) => {
    if (version === undefined) throw notFound('prompt, version or label')
    return renderNamed(deps, found, version, input)
  })
}

/** A refusal too says which version it is about (decision 27). */
function renderNamed(deps: Deps, found: Found, version: LiveVersion, input: RenderInput): Rendered {
  try {
    return renderVersion(deps, found, version, input)
  } catch (error) {
    if (error instanceof GatehouseError) Object.assign(error.headers, versionHeaders(found.prompt.id, version.number))
    throw error
  }
}

/** What every answer of a render says of the version that it took. */
export const versionHeaders = (promptId: string, version: number): Record<string, string> => ({
  'x-gatehouse-prompt-id': promptId,
  'x-gatehouse-prompt-version': `${version}`,
})

function renderVersion(
  { registry, models, config }: Deps,
  found: Found,
  version: LiveVersion,
  input: RenderInput,
): Rendered {
  const { body } = input
  const variables = readVariables(body)
  const ready = registry.compiled(found.prompt, version)
  const { template, prepared } = ready
  const strict = input.strict || ready.strictVariables
  const lookups: Lookups | undefined = strict || input.explain ? { used: new Set(), missing: new Set() } : undefined
  const filled = template.fill(variables, prepared.defaults, lookups)
  if (strict && lookups !== undefined && lookups.missing.size > 0) throw missingVariables(lookups.missing)
  const data = mergeCompletion(prepared, filled, body)
  const strictHeader = config.render.strict_compliance_headers[0] ?? ''
  const provider = version.virtualKey
  checkCompletion(prepared.kind, data, {
    strictOpenAiCompliance:
      (data['thinking'] ?? body['strict_openai_compliance'] ?? null) === null ||
      strictCompliance(body, input.complianceHeader(), strictHeader, config.render.strict_openai_compliance),
    strictHeader,
    models,
    provider,
    hasLiterals: input.hasBigIntegers || ready.mayHoldBigIntegers,
  })
  const converted = prepared.kind === 'chat' ? convertDeveloperRole(data, provider, models) : 0
  return {
    promptId: found.prompt.id,
    version: version.number,
    data,
    explain:
      lookups === undefined || !input.explain
        ? undefined
        : {
            prompt_id: found.prompt.id,
            prompt_slug: found.prompt.slug,
            version_id: version.id,
            version: version.number,
            label: found.label,
            partials: template.partials.map((partial) => ({
              slug: partial.slug,
              version: partial.version,
              version_id: partial.versionId,
            })),
            used_variables: [...lookups.used],
            missing_variables: [...lookups.missing],
            unused_variables: Object.keys(variables).filter(
              (name) => !lookups.used.has(name) && !template.variableNames.has(name),
            ),
            ...explainMerge(prepared, body, data),
            converted_roles: converted,
          },
  }
}

function readVariables(body: Record<string, unknown>): Record<string, unknown> {
  const { variables } = body
  if (variables === undefined || variables === null)
    throw invalidField('variables', 'is required; send {} when the template has none')
  if (typeof variables !== 'object' || Array.isArray(variables) || JSON.isRawJSON(variables))
    throw invalidField('variables', 'must be an object of values by name')
  return variables as Record<string, unknown>
}

function missingVariables(names: ReadonlySet<string>) {
  return invalid(
    [...names].map((name) => ({
      path: `variables.${name.split('.').map(shown).join('.')}`,
      message: 'is missing and strict variables are on; send it, or save a default',
    })),
  )
}
