import { and, eq, inArray, or } from 'drizzle-orm'
import type { Reader } from '../db/database.ts'

/** The queries behind the registry: what renders need of prompts, and no more. */
export function liveRows(read: Reader) {
  const { prompts, promptVersions, promptLabels, workspaces } = read.tables
  const versionColumns = {
    promptId: promptVersions.promptId,
    id: promptVersions.id,
    number: promptVersions.number,
    template: promptVersions.template,
    templateType: promptVersions.templateType,
    isRaw: promptVersions.isRaw,
    parameters: promptVersions.parameters,
    functions: promptVersions.functions,
    tools: promptVersions.tools,
    toolChoice: promptVersions.toolChoice,
    templateMetadata: promptVersions.templateMetadata,
    model: promptVersions.model,
    virtualKey: promptVersions.virtualKey,
  }
  const isShown = or(
    eq(promptVersions.number, prompts.defaultVersion),
    eq(promptVersions.number, prompts.latestVersion),
    inArray(promptVersions.id, read.select({ id: promptLabels.versionId }).from(promptLabels)),
  )

  return {
    prompts: () =>
      read
        .select({
          id: prompts.id,
          slug: prompts.slug,
          organisationId: workspaces.organisationId,
          workspaceId: prompts.workspaceId,
          defaultVersion: prompts.defaultVersion,
          latestVersion: prompts.latestVersion,
        })
        .from(prompts)
        .innerJoin(workspaces, eq(workspaces.id, prompts.workspaceId)),
    versions: () => read.select(versionColumns).from(promptVersions),
    /** default, latest and labelled versions, of all prompts or of one */
    shownVersions: (promptId?: string) =>
      read
        .select(versionColumns)
        .from(promptVersions)
        .innerJoin(prompts, eq(prompts.id, promptVersions.promptId))
        .where(promptId === undefined ? isShown : and(eq(prompts.id, promptId), isShown)),
    promptLabels: () =>
      read
        .select({ promptId: promptLabels.promptId, labelId: promptLabels.labelId, number: promptVersions.number })
        .from(promptLabels)
        .innerJoin(promptVersions, eq(promptVersions.id, promptLabels.versionId)),
  }
}
