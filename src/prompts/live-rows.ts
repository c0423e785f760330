import { and, eq, inArray, is, or, type SQL, sql } from 'drizzle-orm'
import { PgTable } from 'drizzle-orm/pg-core'
import type { Reader } from '../db/database.ts'
import type { TemplateKind } from '../templates/template.ts'
import type { LivePrompt, LiveVersion } from './registry.ts'

/** A prompt and one of its versions as the database packs them: the JSON text of an array, without a line break. */
export interface PackedRow {
  id: string
  slug: string
  packed: string
}

/** The query behind the registry: what renders need of prompts, and no more. */
export function liveRows(read: Reader) {
  const { prompts, promptVersions, promptLabels, workspaces } = read.tables
  // In the order of `PackedFields`.
  const columns = [
    prompts.id,
    prompts.slug,
    workspaces.organisationId,
    prompts.workspaceId,
    prompts.defaultVersion,
    prompts.latestVersion,
    promptVersions.id,
    promptVersions.number,
    promptVersions.template,
    promptVersions.templateType,
    promptVersions.isRaw,
    promptVersions.parameters,
    promptVersions.functions,
    promptVersions.tools,
    promptVersions.toolChoice,
    promptVersions.templateMetadata,
    promptVersions.model,
    promptVersions.virtualKey,
  ]
  const jsonArray = is(prompts, PgTable) ? sql`json_build_array` : sql`json_array`
  const packed = sql<string>`cast(${jsonArray}(${sql.join(columns, sql`, `)}) as text)`
  const select = (where: SQL | undefined): PromiseLike<PackedRow[]> =>
    read
      .select({ id: prompts.id, slug: prompts.slug, packed })
      .from(prompts)
      .innerJoin(workspaces, eq(workspaces.id, prompts.workspaceId))
      .innerJoin(promptVersions, eq(promptVersions.promptId, prompts.id))
      .where(where)
  const isShown = or(
    eq(promptVersions.number, prompts.defaultVersion),
    eq(promptVersions.number, prompts.latestVersion),
    inArray(promptVersions.id, read.select({ id: promptLabels.versionId }).from(promptLabels)),
  )

  return {
    /** a row for each default, latest and labelled version, of all prompts or of one */
    shown: (promptId?: string) => select(promptId === undefined ? isShown : and(eq(prompts.id, promptId), isShown)),
    version: (promptId: string, number: number) =>
      select(and(eq(prompts.id, promptId), eq(promptVersions.number, number))),
    labels: () =>
      read
        .select({ promptId: promptLabels.promptId, labelId: promptLabels.labelId, number: promptVersions.number })
        .from(promptLabels)
        .innerJoin(promptVersions, eq(promptVersions.id, promptLabels.versionId)),
  }
}

type PackedFields = [
  id: string,
  slug: string,
  organisationId: string,
  workspaceId: string,
  defaultVersion: number,
  latestVersion: number,
  versionId: string,
  number: number,
  template: string,
  templateType: TemplateKind,
  /** 0 or 1 from SQLite */
  isRaw: boolean | 0 | 1,
  parameters: string,
  functions: string | null,
  tools: string | null,
  toolChoice: string | null,
  templateMetadata: string,
  model: string,
  virtualKey: string | null,
]

/** @param packed rows of one prompt, one a line */
export function unpack(packed: string): LivePrompt {
  const rows = packed.split('\n').map((line) => JSON.parse(line) as PackedFields)
  const [id, slug, organisationId, workspaceId, defaultVersion, latestVersion] = rows[0]!
  const versions = rows.map(toLiveVersion)
  return { id, slug, organisationId, workspaceId, defaultVersion, latestVersion, versions }
}

function toLiveVersion(fields: PackedFields): LiveVersion {
  const [, , , , , , id, number, template, templateType, isRaw, parameters, ...rest] = fields
  const [functions, tools, toolChoice, templateMetadata, model, virtualKey] = rest
  return {
    id,
    number,
    template,
    templateType,
    isRaw: isRaw === true || isRaw === 1,
    parameters,
    functions,
    tools,
    toolChoice,
    templateMetadata,
    model,
    virtualKey,
    ready: undefined,
  }
}
