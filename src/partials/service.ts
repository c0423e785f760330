import { eq } from 'drizzle-orm'
import type { CreatePartial, UpdatePartial } from '../../schema/api/partials.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { assertSameWorkspace } from '../auth/tenancy.ts'
import { resolveCollection } from '../collections/store.ts'
import { difference } from '../difference.ts'
import { conflict, invalidField, notFound, shownSlug } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { withNewSlug } from '../slug.ts'
import { checkPartial } from '../templates/template.ts'
import { findPartial, findPartialVersion, type PartialRow, takeNextPartialVersion } from './store.ts'
import { promptsUsingPartial } from './uses.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read'>

/** Creates a partial with its version 1, which is the default at once. */
export async function createPartial({ audited, read }: Deps, actor: KeyActor, body: CreatePartial) {
  const collection = await resolveCollection(read, actor.caller, body.collection_id, body.workspace_id)
  checkPartial(body.string)
  const id = Bun.randomUUIDv7()
  const versionId = Bun.randomUUIDv7()
  const { workspaceId } = collection
  const details = { kind: 'partial', version: 1, template_bytes: Buffer.byteLength(body.string) }
  const event = { action: 'prompts.create', workspaceId, resourceId: id, resourceName: body.name, details }
  const write = (slug: string) =>
    audited(actor, event, async (tx) => {
      const { partials, partialVersions } = tx.tables
      const row = {
        id,
        slug,
        name: body.name,
        workspaceId,
        collectionId: collection.id,
        status: 'active',
        defaultVersion: 1,
        latestVersion: 1,
        createdAt: tx.now,
        lastUpdatedAt: tx.now,
      }
      const version = {
        id: versionId,
        partialId: id,
        number: 1,
        template: body.string,
        description: body.version_description ?? null,
      }
      await tx.insert(partials).values(row).returning({ id: partials.id })
      await tx
        .insert(partialVersions)
        .values({ ...version, createdAt: tx.now })
        .returning({ id: partialVersions.id })
      tx.changed('partial', id)
      return { id, slug, version_id: versionId }
    })
  return withNewSlug('pp', body.name, 'partials_slug', write)
}

/** New text makes a new version, which is not the default until `makeDefault`; name and status change at once. */
export async function updatePartial({ audited, read }: Deps, actor: KeyActor, idOrSlug: string, body: UpdatePartial) {
  const partial = await getPartial(read, actor.caller, idOrSlug)
  await assertSameWorkspace(read, actor.caller, body.workspace_id, partial.workspaceId)
  const { string: text, name, status } = body
  const description = body.version_description ?? body.description ?? null
  if (!text && text !== '' && !name && !status && description === null)
    throw invalidField('', 'nothing to update: send name, string, version_description or status')
  if (typeof text === 'string') checkPartial(text)
  const row = { ...(name && { name }), ...(status && { status }) }
  const { partials, partialVersions } = read.tables
  const versionId = await audited(actor, eventOf('prompts.update', partial), async (tx) => {
    const [updated] = await tx
      .update(partials)
      .set({ ...row, lastUpdatedAt: tx.now })
      .where(eq(partials.id, partial.id))
      .returning()
    if (updated === undefined) throw notFound('partial')
    tx.event.details = { kind: 'partial', ...difference(told(partial), told({ ...partial, ...row })) }
    tx.changed('partial', partial.id)
    if (typeof text !== 'string') {
      const latest = await findPartialVersion(tx, partial.id, updated.latestVersion)
      if (latest === undefined) throw notFound('partial')
      if (description === null) return latest.id
      await tx
        .update(partialVersions)
        .set({ description })
        .where(eq(partialVersions.id, latest.id))
        .returning({ id: partialVersions.id })
      const before = { ...told(partial), version_description: latest.description }
      const after = { ...told({ ...partial, ...row }), version_description: description }
      tx.event.details = { kind: 'partial', version: latest.number, ...difference(before, after) }
      return latest.id
    }
    const number = await takeNextPartialVersion(tx, partial.id)
    if (number === undefined) throw notFound('partial')
    const version = {
      id: Bun.randomUUIDv7(),
      partialId: partial.id,
      number,
      template: text,
      description,
      createdAt: tx.now,
    }
    await tx.insert(partialVersions).values(version).returning({ id: partialVersions.id })
    Object.assign(tx.event.details, { version: number, template_bytes: Buffer.byteLength(text) })
    return version.id
  })
  return { prompt_partial_version_id: versionId }
}

/** Publishes a version: the one that `{{>slug}}` means. */
export async function makePartialDefault(
  { audited, read }: Deps,
  actor: KeyActor,
  idOrSlug: string,
  number: number,
): Promise<Record<string, never>> {
  const partial = await getPartial(read, actor.caller, idOrSlug)
  const { partials } = read.tables
  await audited(actor, eventOf('prompts.publish', partial), async (tx) => {
    if ((await findPartialVersion(tx, partial.id, number)) === undefined) throw notFound('partial version')
    const values = { defaultVersion: number, lastUpdatedAt: tx.now }
    await tx.update(partials).set(values).where(eq(partials.id, partial.id)).returning({ id: partials.id })
    tx.event.details = { kind: 'partial', before: { version: partial.defaultVersion }, after: { version: number } }
    tx.changed('partial', partial.id)
  })
  return {}
}

/** A conflict names this many prompts. */
const MOST_NAMED = 20

/** @throws GatehouseError `conflict` that lists the prompts whose default or labelled version uses it, unless forced */
export async function deletePartial(
  { audited, read, registry }: Pick<Gatehouse, 'audited' | 'read' | 'registry'>,
  actor: KeyActor,
  idOrSlug: string,
  force: boolean,
): Promise<Record<string, never>> {
  const partial = await getPartial(read, actor.caller, idOrSlug)
  const { partials } = read.tables
  await audited(actor, eventOf('prompts.delete', partial), async (tx) => {
    const users = await promptsUsingPartial(tx, partial, registry.findPartial(partial.workspaceId))
    if (users.length > 0 && !force)
      throw conflict(
        `the partial is used by the prompts ${users.slice(0, MOST_NAMED).map(shownSlug).join(', ')}; change them first, or delete with ?force=true`,
      )
    const [deleted] = await tx.delete(partials).where(eq(partials.id, partial.id)).returning()
    if (deleted === undefined) throw notFound('partial')
    const forced = users.length > 0 && { forced_although_used_by: users }
    tx.event.details = { kind: 'partial', before: told(deleted), ...forced }
    tx.changed('partial', partial.id)
  })
  return {}
}

/** @throws GatehouseError `not_found`, also for a partial out of the caller's reach */
export async function getPartial(read: Gatehouse['read'], caller: Caller, idOrSlug: string): Promise<PartialRow> {
  const partial = await findPartial(read, caller, idOrSlug)
  if (partial === undefined) throw notFound('partial')
  return partial
}

/** @param selector a number, `latest` or `default` */
export async function getPartialVersion(read: Gatehouse['read'], partial: PartialRow, selector: string) {
  const number =
    selector === 'default' ? partial.defaultVersion : selector === 'latest' ? partial.latestVersion : Number(selector)
  const version = await findPartialVersion(read, partial.id, number)
  if (version === undefined) throw notFound('partial version')
  return version
}

/** What an audit row says of a partial; its texts are in its versions. */
const told = (row: PartialRow) => ({
  slug: row.slug,
  name: row.name,
  status: row.status,
  collection_id: row.collectionId,
  default_version: row.defaultVersion,
  latest_version: row.latestVersion,
})

const eventOf = (action: string, { workspaceId, id, name }: PartialRow) => ({
  action,
  workspaceId,
  resourceId: id,
  resourceName: name,
  details: { kind: 'partial' },
})
