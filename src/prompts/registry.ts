import { eq, sql } from 'drizzle-orm'
import { compiledSelect } from '../db/compiled.ts'
import type { Reader } from '../db/database.ts'
import { notFound } from '../errors.ts'
import { mayHoldBigInteger, parseNullable, parseStored } from '../json.ts'
import { type CompiledTemplate, compileTemplate, type PartialText, type TemplateKind } from '../templates/template.ts'
import { type PreparedVersion, prepareVersion } from './hyperparameters.ts'
import { createLivePartials } from './live-partials.ts'
import { liveRows, type PackedRow, unpack } from './live-rows.ts'

/**
 * What renders need of every prompt, in memory: the texts of default, latest and labelled versions, all partials, and
 * a bounded set of compiled templates (decision 13). A commit that touches one of them reloads it before the writer is
 * answered, so reading one's own writes is immediate. Older versions are read when they are asked for.
 *
 * A prompt is one string until it is asked for: as objects it gave the garbage collector 20 things to look at, not 4.
 */
export interface Registry {
  /** @param reference id or slug, with an optional `@N`, `@latest`, `@default` or `@label` */
  find(reference: string): Found | undefined
  /** reads a version that `find` named by number but does not hold */
  loadVersion(prompt: LivePrompt, number: number): Promise<LiveVersion | undefined>
  /** the compiled form of a version; @throws GatehouseError `not_found` for an unknown partial */
  compiled(prompt: LivePrompt, version: LiveVersion): ReadyVersion
  findPartial(workspaceId: string): (reference: string) => PartialText | undefined
  counts(): { prompts: number; partials: number; compiled: number }
  load(): Promise<void>
  reloadPrompt(id: string): Promise<void>
  reloadPartial(id: string): Promise<void>
  reloadLabel(id: string): Promise<void>
  reloadWorkspace(id: string): Promise<void>
}

export interface LivePrompt {
  id: string
  slug: string
  organisationId: string
  workspaceId: string
  defaultVersion: number
  latestVersion: number
  /** few: default, latest, labelled */
  versions: LiveVersion[]
}

/** Immutable, so that it may be compiled once. */
export interface LiveVersion {
  id: string
  number: number
  template: string
  templateType: TemplateKind
  isRaw: boolean
  parameters: string
  functions: string | null
  tools: string | null
  toolChoice: string | null
  templateMetadata: string
  model: string
  virtualKey: string | null
  ready: ReadyVersion | undefined
}

export interface ReadyVersion {
  template: CompiledTemplate
  prepared: PreparedVersion
  /** saved parameters may hold integers beyond ±(2⁵³−1) */
  mayHoldBigIntegers: boolean
  /** `template_metadata.strict_variables` */
  strictVariables: boolean
}

/** `version` is undefined when the number exists, or may exist, only in the database. */
export interface Found {
  prompt: LivePrompt
  number: number
  version: LiveVersion | undefined
  label: string | null
}

export function createRegistry(read: Reader, maxCompiled: number): Registry {
  /** every prompt, packed, by id and by slug */
  const prompts = new Map<string, string>()
  /** those that were asked for, by id and by slug, oldest first; no more than may hold a compiled form */
  const unpacked = new Map<string, LivePrompt>()
  /** prompt id → label id → version number */
  const labelled = new Map<string, ReadonlyMap<string, number>>()
  const partials = createLivePartials(read)
  /** `<scope id>:<name>` → label id; the scope is a workspace or the organisation */
  const labels = new Map<string, string>()
  const labelNames = new Map<string, string>()
  /** versions that hold a compiled form, oldest first */
  const ready = new Set<LiveVersion>()
  /** ids; what they hold is kept, but out of everybody's reach */
  const archived = new Set<string>()
  const t = read.tables
  const select = liveRows(read)

  function find(reference: string): Found | undefined {
    const at = reference.indexOf('@')
    const prompt = findPrompt(at === -1 ? reference : reference.slice(0, at))
    if (prompt === undefined || archived.has(prompt.workspaceId)) return undefined
    if (at === -1) return located(prompt, prompt.defaultVersion, null)
    const selector = reference.slice(at + 1)
    if (selector === 'default') return located(prompt, prompt.defaultVersion, null)
    if (selector === 'latest') return located(prompt, prompt.latestVersion, null)
    // A number is always a version, a name always a label: the two never meet (lessons C6).
    if (/^\d+$/.test(selector))
      return Number(selector) > prompt.latestVersion ? undefined : located(prompt, Number(selector), null)
    const labelId =
      labels.get(`${prompt.workspaceId}:${selector}`) ?? labels.get(`${prompt.organisationId}:${selector}`)
    const number = labelId === undefined ? undefined : labelled.get(prompt.id)?.get(labelId)
    return number === undefined ? undefined : located(prompt, number, selector)
  }

  function findPrompt(idOrSlug: string): LivePrompt | undefined {
    const known = unpacked.get(idOrSlug)
    if (known !== undefined) return known
    const packed = prompts.get(idOrSlug)
    return packed === undefined ? undefined : keepUnpacked(unpack(packed))
  }

  function keepUnpacked(prompt: LivePrompt): LivePrompt {
    unpacked.set(prompt.id, prompt).set(prompt.slug, prompt)
    for (const oldest of unpacked.values()) {
      if (unpacked.size <= 2 * maxCompiled) break
      pack(oldest)
    }
    return prompt
  }

  function pack(prompt: LivePrompt): void {
    unpacked.delete(prompt.id)
    unpacked.delete(prompt.slug)
    for (const version of prompt.versions) ready.delete(version)
  }

  const located = (prompt: LivePrompt, number: number, label: string | null): Found => ({
    prompt,
    number,
    version: prompt.versions.find((version) => version.number === number),
    label,
  })

  function compiled(prompt: LivePrompt, version: LiveVersion): ReadyVersion {
    if (version.ready !== undefined) return version.ready
    const template = compileTemplate(
      version.template,
      version.isRaw,
      version.templateType,
      partials.inWorkspace(prompt.workspaceId),
    )
    const saved = {
      model: version.model,
      functions: parseNullable(version.functions),
      tools: parseNullable(version.tools),
      toolChoice: parseNullable(version.toolChoice),
      parameters: parseStored(version.parameters) as Record<string, unknown>,
    }
    version.ready = {
      template,
      prepared: prepareVersion(version.templateType, saved, template.variableNames),
      mayHoldBigIntegers: mayHoldBigInteger(version.parameters),
      strictVariables:
        (JSON.parse(version.templateMetadata) as { strict_variables?: unknown }).strict_variables === true,
    }
    ready.add(version)
    for (const oldest of ready) {
      if (ready.size <= maxCompiled) break
      forget(oldest)
    }
    return version.ready
  }

  function forget(version: LiveVersion): void {
    version.ready = undefined
    ready.delete(version)
  }

  function putPrompt({ id, slug, packed }: PackedRow): void {
    const others = prompts.get(id)
    const all = others === undefined ? packed : `${others}\n${packed}`
    prompts.set(id, all).set(slug, all)
  }

  /** Answers what was unpacked of it. */
  function removePrompt(id: string): LivePrompt | undefined {
    const packed = prompts.get(id)
    if (packed === undefined) return undefined
    const before = unpacked.get(id)
    if (before !== undefined) pack(before)
    prompts.delete(id)
    prompts.delete((before ?? unpack(packed)).slug)
    labelled.delete(id)
    return before
  }

  const addLabel = (row: { promptId: string; labelId: string; number: number }): void =>
    void labelled.set(row.promptId, new Map(labelled.get(row.promptId)).set(row.labelId, row.number))

  function putLabel(row: typeof t.labels.$inferSelect): void {
    labels.set(`${row.scopeId}:${row.name}`, row.id)
    labelNames.set(row.id, `${row.scopeId}:${row.name}`)
  }

  return {
    find,
    async loadVersion(prompt, number) {
      const [row] = await select.version(prompt.id, number)
      return row && unpack(row.packed).versions[0]
    },
    compiled,
    findPartial: partials.inWorkspace,
    counts: () => ({ prompts: prompts.size / 2, partials: partials.count(), compiled: ready.size }),
    async load() {
      const [rows, promptLabels, labelRows, workspaceRows] = await Promise.all([
        select.shown(),
        select.labels(),
        read.select().from(t.labels),
        read.select({ id: t.workspaces.id }).from(t.workspaces).where(eq(t.workspaces.status, 'archived')),
        partials.load(),
      ])
      for (const map of [prompts, unpacked, labelled, labels, labelNames, ready, archived]) map.clear()
      for (const row of rows) putPrompt(row)
      for (const row of promptLabels) addLabel(row)
      for (const row of labelRows) putLabel(row)
      for (const { id } of workspaceRows) archived.add(id)
    },
    async reloadPrompt(id) {
      const [rows, promptLabels] = await Promise.all([
        select.shown(id),
        select.labels().where(eq(t.promptLabels.promptId, id)),
      ])
      const before = removePrompt(id)
      for (const row of rows) putPrompt(row)
      for (const label of promptLabels) addLabel(label)
      if (before === undefined) return
      for (const version of findPrompt(id)?.versions ?? []) {
        // A version never changes but for its virtual key, which its compiled form does not hold.
        version.ready = before.versions.find((each) => each.id === version.id)?.ready
        if (version.ready !== undefined) ready.add(version)
      }
    },
    async reloadPartial(id) {
      const slug = await partials.reload(id)
      for (const version of [...ready])
        if (version.ready?.template.partials.some((partial) => partial.slug === slug)) forget(version)
    },
    async reloadLabel(id) {
      const [row] = await selectLabel(read, { id })
      labels.delete(labelNames.get(id) ?? '')
      labelNames.delete(id)
      if (row !== undefined) putLabel(row)
    },
    async reloadWorkspace(id) {
      const [row] = await read.select({ status: t.workspaces.status }).from(t.workspaces).where(eq(t.workspaces.id, id))
      if (row?.status === 'archived') archived.add(id)
      else archived.delete(id)
    },
  }
}

const selectLabel = compiledSelect((db) => {
  const { labels } = db.tables
  return db
    .select()
    .from(labels)
    .where(eq(labels.id, sql.placeholder('id')))
})

/** @throws GatehouseError `not_found`; "prompt" also where a version or label is unknown, so that nothing is told of it */
export function getFound(registry: Registry, reference: string): Found {
  const found = registry.find(reference)
  if (found === undefined) throw notFound(reference.includes('@') ? 'prompt, version or label' : 'prompt')
  return found
}
