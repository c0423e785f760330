import { and, eq } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'
import { notFound } from '../errors.ts'
import { mayHoldBigInteger, parseStored } from '../json.ts'
import { type CompiledTemplate, compileTemplate, type PartialText, type TemplateKind } from '../templates/template.ts'
import { type PreparedVersion, prepareVersion } from './hyperparameters.ts'
import { createLivePartials } from './live-partials.ts'
import { liveRows } from './live-rows.ts'

/**
 * What renders need of every prompt, in memory: the texts of default, latest and labelled versions, all partials, and
 * a bounded set of compiled templates (decision 13). A commit that touches one of them reloads it before the writer
 * is answered, so reading one's own writes is immediate. Older versions are read when they are asked for.
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
  /** label id → version number */
  labels: ReadonlyMap<string, number>
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
  const prompts = new Map<string, LivePrompt>()
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
    const prompt = prompts.get(at === -1 ? reference : reference.slice(0, at))
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
    const number = labelId === undefined ? undefined : prompt.labels.get(labelId)
    return number === undefined ? undefined : located(prompt, number, selector)
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

  function putPrompt(row: Awaited<ReturnType<typeof select.prompts>>[number]): LivePrompt {
    const prompt: LivePrompt = { ...row, versions: [], labels: NO_LABELS }
    prompts.set(prompt.id, prompt)
    prompts.set(prompt.slug, prompt)
    return prompt
  }

  function removePrompt(id: string): LivePrompt | undefined {
    const prompt = prompts.get(id)
    if (prompt === undefined) return undefined
    prompts.delete(prompt.id)
    prompts.delete(prompt.slug)
    for (const version of prompt.versions) ready.delete(version)
    return prompt
  }

  function addLabel(row: { promptId: string; labelId: string; number: number }): void {
    const prompt = prompts.get(row.promptId)
    if (prompt !== undefined) prompt.labels = new Map(prompt.labels).set(row.labelId, row.number)
  }

  function putLabel(row: typeof t.labels.$inferSelect): void {
    labels.set(`${row.scopeId}:${row.name}`, row.id)
    labelNames.set(row.id, `${row.scopeId}:${row.name}`)
  }

  return {
    find,
    async loadVersion(prompt, number) {
      const where = and(eq(t.promptVersions.promptId, prompt.id), eq(t.promptVersions.number, number))
      const [row] = await select.versions().where(where).limit(1)
      return row && toLiveVersion(row)
    },
    compiled,
    findPartial: partials.inWorkspace,
    counts: () => ({ prompts: prompts.size / 2, partials: partials.count(), compiled: ready.size }),
    async load() {
      const [promptRows, versionRows, promptLabels, labelRows, workspaceRows] = await Promise.all([
        select.prompts(),
        select.shownVersions(),
        select.promptLabels(),
        read.select().from(t.labels),
        read.select({ id: t.workspaces.id }).from(t.workspaces).where(eq(t.workspaces.status, 'archived')),
        partials.load(),
      ])
      for (const map of [prompts, labels, labelNames, ready, archived]) map.clear()
      for (const row of promptRows) putPrompt(row)
      for (const row of versionRows) prompts.get(row.promptId)?.versions.push(toLiveVersion(row))
      for (const row of promptLabels) addLabel(row)
      for (const row of labelRows) putLabel(row)
      for (const { id } of workspaceRows) archived.add(id)
    },
    async reloadPrompt(id) {
      const [[row], versionRows, promptLabels] = await Promise.all([
        select.prompts().where(eq(t.prompts.id, id)),
        select.shownVersions(id),
        select.promptLabels().where(eq(t.promptLabels.promptId, id)),
      ])
      const before = removePrompt(id)
      if (row === undefined) return
      const prompt = putPrompt(row)
      prompt.versions = versionRows.map((version) => keepCompiled(before, toLiveVersion(version)))
      for (const version of prompt.versions) if (version.ready !== undefined) ready.add(version)
      for (const label of promptLabels) addLabel(label)
    },
    async reloadPartial(id) {
      const slug = await partials.reload(id)
      for (const version of [...ready])
        if (version.ready?.template.partials.some((partial) => partial.slug === slug)) forget(version)
    },
    async reloadLabel(id) {
      const [row] = await read.select().from(t.labels).where(eq(t.labels.id, id))
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

const NO_LABELS: ReadonlyMap<string, number> = new Map()

const parseNullable = (text: string | null): unknown => (text === null ? null : parseStored(text))

function toLiveVersion(
  row: Omit<LiveVersion, 'ready' | 'templateType'> & { templateType: string; promptId: string },
): LiveVersion {
  const { promptId: _, templateType, ...rest } = row
  return { ...rest, templateType: templateType as TemplateKind, ready: undefined }
}

/** A version never changes but for its virtual key, which its compiled form does not hold. */
function keepCompiled(before: LivePrompt | undefined, version: LiveVersion): LiveVersion {
  version.ready = before?.versions.find((each) => each.id === version.id)?.ready
  return version
}

/** @throws GatehouseError `not_found`; "prompt" also where a version or label is unknown, so that nothing is told of it */
export function getFound(registry: Registry, reference: string): Found {
  const found = registry.find(reference)
  if (found === undefined) throw notFound(reference.includes('@') ? 'prompt, version or label' : 'prompt')
  return found
}
