import { and, eq } from 'drizzle-orm'
import type { CreatePrompt, UpdatePrompt } from '../../schema/api/prompts.ts'
import type { KeyActor } from '../auth/caller.ts'
import { assertSameWorkspace } from '../auth/tenancy.ts'
import { resolveCollection } from '../collections/store.ts'
import { invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { withNewSlug } from '../slug.ts'
import { draftVersion, patched, type VersionContent } from './draft.ts'
import { getLatestVersion, getPrompt, getVersion, plainReference } from './lookup.ts'
import {
  findLabelledVersion,
  findVersionById,
  insertVersion,
  type PromptRow,
  takeNextVersion,
  updatePromptRow,
} from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'registry'>

/** Creates a prompt with its version 1, which is the default at once. */
export async function createPrompt({ audited, read, registry }: Deps, actor: KeyActor, body: CreatePrompt) {
  const collection = await resolveCollection(read, actor.caller, body.collection_id, body.workspace_id)
  const draft = draftVersion(body, registry.findPartial(collection.workspaceId))
  const id = Bun.randomUUIDv7()
  const versionId = Bun.randomUUIDv7()
  const what = {
    action: 'prompts.create',
    workspaceId: collection.workspaceId,
    resourceId: id,
    resourceName: body.name,
  }
  const event = { ...what, details: describe(draft.content, 1) }
  const write = (slug: string) =>
    audited(actor, event, async (tx) => {
      const prompt = {
        id,
        slug,
        name: body.name,
        workspaceId: collection.workspaceId,
        collectionId: collection.id,
        defaultVersion: 1,
        latestVersion: 1,
        createdAt: tx.now,
        lastUpdatedAt: tx.now,
      }
      await tx.insert(tx.tables.prompts).values(prompt).returning({ id: tx.tables.prompts.id })
      await insertVersion(
        tx,
        { id: versionId, promptId: id, number: 1, createdAt: tx.now, ...draft.content },
        draft.partialSlugs,
      )
      tx.changed('prompt', id)
      return { id, slug, version_id: versionId, object: 'prompt' as const }
    })
  return withNewSlug('pp', body.name, 'prompts_slug', write)
}

/** What belongs to the prompt itself. */
const PROMPT_FIELDS: readonly string[] = ['name', 'collection_id']
/** Fields that make no version when they come without others (file 01, PUT). */
const METADATA_FIELDS: readonly string[] = [...PROMPT_FIELDS, 'version_description', 'virtual_key']

/**
 * Updates a prompt: metadata only, a whole new version, or a patched one. A new version is not the default until
 * `makeDefault`.
 */
export async function updatePrompt(gatehouse: Deps, actor: KeyActor, reference: string, body: UpdatePrompt) {
  const prompt = await getPrompt(gatehouse.read, actor.caller, plainReference(reference))
  await assertSameWorkspace(gatehouse.read, actor.caller, body.workspace_id, prompt.workspaceId)
  const sent = Object.entries(body)
    .filter(([, value]) => value !== null)
    .map(([name]) => name)
  const changes = sent.filter((name) => name !== 'patch' && name !== 'workspace_id')
  if (changes.length === 0)
    throw invalidField('', 'nothing to update: send name, collection_id, or string with parameters and model')
  const collection = body.collection_id
    ? await resolveCollection(gatehouse.read, actor.caller, body.collection_id, undefined)
    : undefined
  if (collection !== undefined && collection.workspaceId !== prompt.workspaceId)
    throw invalidField('collection_id', 'is in another workspace; a prompt stays in its own')
  const row = { ...(body.name && { name: body.name }), ...(collection && { collectionId: collection.id }) }
  // With `patch`, description and virtual key are a version's like everything else.
  const metadata = body.patch === true ? PROMPT_FIELDS : METADATA_FIELDS
  const isMetadata = changes.every((name) => metadata.includes(name))
  const versionId = isMetadata
    ? await updateMetadata(gatehouse, actor, prompt, row, body)
    : await addVersion(gatehouse, actor, prompt, row, body)
  return { id: prompt.id, slug: prompt.slug, prompt_version_id: versionId, object: 'prompt' as const }
}

type PromptValues = Parameters<typeof updatePromptRow>[2]

async function updateMetadata(
  { audited }: Deps,
  actor: KeyActor,
  prompt: PromptRow,
  row: PromptValues,
  body: UpdatePrompt,
): Promise<string> {
  return audited(actor, promptEvent('prompts.update', prompt), async (tx) => {
    if (!(await updatePromptRow(tx, prompt.id, row))) throw notFound('prompt')
    const latest = await getLatestVersion(tx, prompt.id)
    const { promptVersions } = tx.tables
    const version = {
      ...(typeof body.version_description === 'string' && { description: body.version_description }),
      ...(typeof body.virtual_key === 'string' && { virtualKey: body.virtual_key }),
    }
    if (Object.keys(version).length > 0)
      await tx
        .update(promptVersions)
        .set(version)
        .where(eq(promptVersions.id, latest.id))
        .returning({ id: promptVersions.id })
    tx.event.details = changesOf({ ...prompt, ...latest }, { ...row, ...version })
    tx.changed('prompt', prompt.id)
    return latest.id
  })
}

async function addVersion(
  { audited, registry }: Deps,
  actor: KeyActor,
  prompt: PromptRow,
  row: PromptValues,
  body: UpdatePrompt,
): Promise<string> {
  if (body.patch !== true) requireWholeVersion(body)
  const findPartial = registry.findPartial(prompt.workspaceId)
  const drafted = body.patch === true ? undefined : draftVersion(body, findPartial)
  return audited(actor, promptEvent('prompts.update', prompt), async (tx) => {
    const number = await takeNextVersion(tx, prompt.id)
    if (number === undefined) throw notFound('prompt')
    // A patch builds on the latest version as it is now that no other writer can add one.
    const draft = drafted ?? draftVersion(patched(await getVersion(tx, prompt.id, number - 1), body), findPartial)
    const id = Bun.randomUUIDv7()
    await insertVersion(
      tx,
      { id, promptId: prompt.id, number, createdAt: tx.now, ...draft.content },
      draft.partialSlugs,
    )
    if (Object.keys(row).length > 0) await updatePromptRow(tx, prompt.id, row)
    tx.event.details = { ...changesOf(prompt, row), ...describe(draft.content, number) }
    tx.changed('prompt', prompt.id)
    return id
  })
}

/** Without `patch`, a version is written whole: half of one is a slip. */
function requireWholeVersion(body: UpdatePrompt): void {
  for (const name of ['string', 'parameters', 'model'] as const)
    if (body[name] === undefined || body[name] === null)
      throw invalidField(
        name,
        'string, parameters and model come together; send all three, or patch: true to keep what you leave out',
      )
}

export async function deletePrompt(
  { audited, read }: Deps,
  actor: KeyActor,
  reference: string,
): Promise<Record<string, never>> {
  const prompt = await getPrompt(read, actor.caller, plainReference(reference))
  await audited(actor, promptEvent('prompts.delete', prompt), async (tx) => {
    const { prompts } = tx.tables
    const [deleted] = await tx.delete(prompts).where(eq(prompts.id, prompt.id)).returning()
    if (deleted === undefined) throw notFound('prompt')
    const { slug, name, collectionId, defaultVersion, latestVersion } = deleted
    tx.event.details = { before: { slug, name, collectionId, defaultVersion, latestVersion } }
    tx.changed('prompt', prompt.id)
  })
  return {}
}

/** Publishes a version: the one that a reference without suffix means. */
export async function makeDefault(
  { audited, read }: Deps,
  actor: KeyActor,
  reference: string,
  number: number,
): Promise<Record<string, never>> {
  const prompt = await getPrompt(read, actor.caller, plainReference(reference))
  await audited(actor, promptEvent('prompts.publish', prompt), async (tx) => {
    await getVersion(tx, prompt.id, number)
    await updatePromptRow(tx, prompt.id, { defaultVersion: number })
    tx.event.details = changesOf(prompt, { defaultVersion: number })
    tx.changed('prompt', prompt.id)
  })
  return {}
}

/** Moves a label to a version, or takes all labels off it (`labelId` null). */
export async function labelVersion(
  { audited, read }: Deps,
  actor: KeyActor,
  reference: string,
  versionId: string,
  labelId: string | null,
): Promise<Record<string, never>> {
  const prompt = await getPrompt(read, actor.caller, plainReference(reference))
  await audited(actor, promptEvent('prompts.update', prompt), async (tx) => {
    const { promptLabels: t, labels } = tx.tables
    const version = await findVersionById(tx, prompt.id, versionId)
    if (version === undefined) throw notFound('prompt version')
    if (labelId === null) {
      const removed = await tx
        .delete(t)
        .where(and(eq(t.promptId, prompt.id), eq(t.versionId, versionId)))
        .returning({ labelId: t.labelId })
      const before = removed.map((each) => each.labelId)
      tx.event.details = { version: version.number, before: { label_ids: before }, after: { label_ids: [] } }
    } else {
      const [label] = await tx.select().from(labels).where(eq(labels.id, labelId)).limit(1)
      const isUsable =
        label !== undefined &&
        label.organisationId === actor.caller.organisationId &&
        (label.workspaceId === null || label.workspaceId === prompt.workspaceId)
      if (!isUsable) throw invalidField('label_id', 'is unknown in the workspace of this prompt')
      const before = await findLabelledVersion(tx, prompt.id, labelId)
      tx.event.details = { label_id: labelId, before: { version: before }, after: { version: version.number } }
      const moved = { versionId, assignedAt: tx.now }
      await tx
        .insert(t)
        .values({ promptId: prompt.id, labelId, ...moved })
        .onConflictDoUpdate({ target: [t.promptId, t.labelId], set: moved })
        .returning({ labelId: t.labelId })
    }
    tx.changed('prompt', prompt.id)
  })
  return {}
}

const promptEvent = (action: string, prompt: PromptRow) => ({
  action,
  workspaceId: prompt.workspaceId,
  resourceId: prompt.id,
  resourceName: prompt.name,
})

/** What an audit row says of a new version: its shape, not its text, which the version itself keeps. */
const describe = (content: VersionContent, number: number) => ({
  version: number,
  template_type: content.templateType,
  template_bytes: Buffer.byteLength(content.template),
  model: content.model,
})

/** Changed fields before and after. */
function changesOf<T extends object>(before: T, after: Partial<T>): Record<string, unknown> {
  const names = (Object.keys(after) as (keyof T)[]).filter((name) => before[name] !== after[name])
  return {
    before: Object.fromEntries(names.map((name) => [name, before[name]])),
    after: Object.fromEntries(names.map((name) => [name, after[name]])),
  }
}
