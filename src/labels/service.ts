import { and, eq, or, type SQL } from 'drizzle-orm'
import type { CreateLabel, UpdateLabel } from '../../schema/api/labels.ts'
import type { Tables } from '../../schema/db/tables.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { assertOwnOrganisation, workspaceForCreate } from '../auth/tenancy.ts'
import { compiledInsert, compiledSelect, placeholders } from '../db/compiled.ts'
import type { Reader } from '../db/database.ts'
import { isUniqueViolation } from '../db/errors.ts'
import { difference } from '../difference.ts'
import { conflict, GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read'>
export type LabelRow = Tables['labels']['$inferSelect']

/** An admin key that names its organisation and no workspace makes a label of the whole organisation. */
export async function createLabel(
  { audited, read }: Deps,
  actor: KeyActor,
  body: CreateLabel,
): Promise<{ id: string }> {
  const { caller } = actor
  const organisation = body.organisation_id ?? body.organization_id ?? undefined
  assertOwnOrganisation(caller, organisation)
  const isOfOrganisation = organisation !== undefined && !body.workspace_id && caller.workspaceId === null
  const workspaceId = isOfOrganisation ? null : (await workspaceForCreate(read, caller, body.workspace_id)).id
  const id = Bun.randomUUIDv7()
  return audited(
    actor,
    { action: 'labels.create', workspaceId, resourceId: id, resourceName: body.name },
    async (tx) => {
      await refuseTakenName(tx, caller.organisationId, workspaceId, body.name)
      const row = {
        id,
        organisationId: caller.organisationId,
        workspaceId,
        scopeId: workspaceId ?? caller.organisationId,
        name: body.name,
        description: body.description ?? null,
        colorCode: body.color_code ?? null,
        isUniversal: false,
        createdAt: tx.now,
        lastUpdatedAt: tx.now,
      }
      await insertLabel(tx, row)
      tx.event.details = { after: told(row) }
      tx.changed('label', id)
      return { id }
    },
  ).catch(rethrowTaken)
}

export async function updateLabel(
  { audited, read }: Deps,
  actor: KeyActor,
  id: string,
  body: UpdateLabel,
): Promise<Record<string, never>> {
  const label = await getEditableLabel(read, actor.caller, id)
  const values = {
    ...(body.name && { name: body.name }),
    ...(body.description !== undefined && { description: body.description }),
    ...(body.color_code !== undefined && { colorCode: body.color_code }),
  }
  if (Object.keys(values).length === 0)
    throw invalidField('', 'nothing to update: send name, description or color_code')
  const { labels } = read.tables
  await audited(actor, event('labels.update', label), async (tx) => {
    if (body.name && body.name !== label.name)
      await refuseTakenName(tx, label.organisationId, label.workspaceId, body.name)
    // From here on nobody else changes it.
    const [before] = await tx.update(labels).set({ id }).where(eq(labels.id, id)).returning()
    if (before === undefined) throw notFound('label')
    const after = { ...before, ...values, lastUpdatedAt: tx.now }
    await tx.update(labels).set(after).where(eq(labels.id, id)).returning({ id: labels.id })
    tx.event.details = difference(told(before), told(after))
    tx.changed('label', id)
  }).catch(rethrowTaken)
  return {}
}

/** Versions lose the label with it: `id@label` is then unknown. */
export async function deleteLabel(
  { audited, read }: Deps,
  actor: KeyActor,
  id: string,
): Promise<Record<string, never>> {
  const label = await getEditableLabel(read, actor.caller, id)
  const { labels } = read.tables
  await audited(actor, event('labels.delete', label), async (tx) => {
    const [deleted] = await tx.delete(labels).where(eq(labels.id, id)).returning()
    if (deleted === undefined) throw notFound('label')
    tx.event.details = { before: told(deleted) }
    tx.changed('label', id)
  })
  return {}
}

/** @throws GatehouseError `not_found`, also for a label out of the caller's reach */
export async function getLabel(read: Reader, caller: Caller, id: string): Promise<LabelRow> {
  const { labels: t } = read.tables
  const [label] = await read
    .select()
    .from(t)
    .where(and(eq(t.id, id), eq(t.organisationId, caller.organisationId)))
    .limit(1)
  const isReached =
    label !== undefined &&
    (caller.workspaceId === null || label.workspaceId === null || label.workspaceId === caller.workspaceId)
  if (!isReached) throw notFound('label')
  return label
}

async function getEditableLabel(read: Reader, caller: Caller, id: string): Promise<LabelRow> {
  const label = await getLabel(read, caller, id)
  if (label.isUniversal)
    throw new GatehouseError(
      'forbidden',
      'production, staging and development belong to every workspace and cannot be changed',
    )
  if (label.workspaceId === null && caller.workspaceId !== null)
    throw new GatehouseError('forbidden', 'this label belongs to the organisation; change it with an admin key')
  return label
}

/**
 * In a workspace a name is taken by its own labels, those of the organisation, and the universal ones; for the
 * organisation by every label it has. So `id@label` means one label in each workspace.
 */
async function refuseTakenName(
  db: Reader,
  organisationId: string,
  workspaceId: string | null,
  name: string,
): Promise<void> {
  const values = { organisationId, scopeId: workspaceId, name }
  const [taken] = await (workspaceId === null ? labelOfOrganisation : labelOfWorkspace)(db, values)
  if (taken !== undefined) throw nameTaken()
}

const { organisationId, scopeId, name } = placeholders('organisationId', 'scopeId', 'name')

const labelOfOrganisation = labelWhere((t) => and(eq(t.name, name), eq(t.organisationId, organisationId)))
const labelOfWorkspace = labelWhere((t) =>
  and(eq(t.name, name), or(eq(t.scopeId, organisationId), eq(t.scopeId, scopeId))),
)

function labelWhere(condition: (t: Tables['labels']) => SQL | undefined) {
  return compiledSelect((db) => {
    const t = db.tables.labels
    return db.select({ id: t.id }).from(t).where(condition(t)).limit(1)
  })
}

const insertLabel = compiledInsert((tables) => tables.labels)

const nameTaken = () => conflict('a label of this name exists here already; choose another name')

/** Two creates at the same time on PostgreSQL: the index decides. */
function rethrowTaken(error: unknown): never {
  throw isUniqueViolation(error, 'labels_name') ? nameTaken() : error
}

/** What an audit row says of a label. */
const told = ({ name, description, colorCode }: Pick<LabelRow, 'name' | 'description' | 'colorCode'>) => ({
  name,
  description,
  color_code: colorCode,
})

const event = (action: string, { workspaceId, id, name }: LabelRow) => ({
  action,
  workspaceId,
  resourceId: id,
  resourceName: name,
})
