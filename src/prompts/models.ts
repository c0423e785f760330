/**
 * One row of the model table; the config's `render.models` has the same shape. `match` and `provider` are whole names,
 * or beginnings followed by `*`. A row without `provider` speaks for every provider, one with '' for calls that name
 * none. What a row leaves out it does not know.
 */
export interface ModelRow {
  match: string
  provider?: string
  /** takes messages of role developer (decision 17) */
  developer_role?: boolean
  /** takes `thinking` */
  thinking?: boolean
  /** takes `suffix` */
  suffix?: boolean
  /** tokens, prompt and answer together */
  context_length?: number
}

export type ModelFacts = Omit<ModelRow, 'match' | 'provider'>

/** Rows in the order in which they are asked: the first that knows a fact decides it. */
export type ModelTable = readonly ModelRow[]

/** Families that were trained with a developer role. Others take the same text as a system message. */
const DEVELOPER_FAMILIES = ['o1*', 'o3*', 'o4*', 'gpt-5*']

/** Early members of those families that refuse the role. */
const WITHOUT_DEVELOPER = ['o1-mini*', 'o1-preview*']

/** '' = no provider is named anywhere: the family alone decides (decision 17). */
const DEVELOPER_PROVIDERS = ['openai*', 'azure*', '']

/** Of `thinking` the table knows one vendor's models: others may have it mapped to a setting of their own. */
const SHIPPED: ModelRow[] = [
  ...DEVELOPER_PROVIDERS.flatMap((provider) =>
    DEVELOPER_FAMILIES.map((match): ModelRow => ({ match, provider, developer_role: true })),
  ),
  ...WITHOUT_DEVELOPER.map((match): ModelRow => ({ match, developer_role: false })),
  { match: 'claude-3*', thinking: false },
  { match: 'claude-3-7*', thinking: true },
  { match: 'claude-3.7*', thinking: true },
  { match: 'claude-2*', thinking: false },
  { match: 'claude-instant*', thinking: false },
  { match: 'gpt-3.5-turbo-instruct*', suffix: true, context_length: 4096 },
  { match: 'babbage-002', suffix: false, context_length: 16_384 },
  { match: 'davinci-002', suffix: false, context_length: 16_384 },
]

/**
 * The shipped table under the config's rows. The config's win; among rows of one origin the longer `match`, a whole
 * name before a beginning, then the row that names a provider.
 */
export function modelTable(configured: readonly ModelRow[] = []): ModelTable {
  return [...configured.toSorted(bySpecificity), ...SHIPPED.toSorted(bySpecificity)]
}

const bySpecificity = (a: ModelRow, b: ModelRow): number =>
  literalLength(b.match) - literalLength(a.match) ||
  a.match.length - b.match.length ||
  Number(b.provider !== undefined) - Number(a.provider !== undefined)

const literalLength = (pattern: string): number => pattern.length - Number(pattern.endsWith('*'))

/**
 * What the table knows of a model.
 *
 * @param model    `name`, `vendor/name` or `@provider/name`
 * @param provider the prompt's provider; the model's own `@provider` goes before it
 */
export function modelFacts(table: ModelTable, model: string, provider: string | null): ModelFacts {
  const [, named = provider ?? '', name = model] = /^@([^/]+)\/(.+)$/s.exec(model) ?? []
  const family = name.slice(name.lastIndexOf('/') + 1)
  const slug = named.replace(/^@/, '')
  const facts: ModelFacts = {}
  for (const row of table) {
    const isModel = matches(family, row.match) || matches(name, row.match)
    if (!isModel || (row.provider !== undefined && !matches(slug, row.provider))) continue
    const { match: _, provider: __, ...known } = row
    Object.assign(facts, { ...known, ...facts })
  }
  return facts
}

const matches = (name: string, pattern: string): boolean =>
  pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern

/**
 * Turns developer messages into system messages unless model and provider are known to take the role (decision 17).
 * Order and content stay; `data.messages` is replaced, never changed, as the template may share it.
 *
 * @param data a merged and checked chat request
 * @returns    how many messages were converted
 */
export function convertDeveloperRole(
  data: Record<string, unknown>,
  provider: string | null,
  table: ModelTable,
): number {
  const messages = data['messages'] as readonly { role: string }[]
  let converted = 0
  for (const message of messages) if (message.role === 'developer') converted++
  if (converted === 0) return 0
  if (modelFacts(table, data['model'] as string, provider).developer_role === true) return 0
  data['messages'] = messages.map((each) => (each.role === 'developer' ? { ...each, role: 'system' } : each))
  return converted
}
