import { and, eq, or, type SQL } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import { compiledSelect, placeholders } from '../db/compiled.ts'
import type { Reader } from '../db/database.ts'
import { GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Caller } from './caller.ts'

export interface Workspace {
  id: string
  slug: string
}

/**
 * The workspace of a create. A workspace key works in its own; an admin key names one, or gets the default one.
 *
 * @throws GatehouseError `forbidden` for a workspace key that names another one (without looking it up),
 *         `not_found` for an admin key that names an unknown one (decision 33)
 */
export async function workspaceForCreate(
  read: Reader,
  caller: Caller,
  named: string | null | undefined,
): Promise<Workspace> {
  if (caller.workspaceId !== null) return ownWorkspace(read, caller.workspaceId, named)
  if (named === null || named === undefined) return defaultWorkspace(read, caller.organisationId)
  return namedWorkspace(read, caller.organisationId, named)
}

/** The workspace that a list is narrowed to; undefined: all of the organisation. Errors as `workspaceForCreate`. */
export async function workspaceForList(
  read: Reader,
  caller: Caller,
  named: string | undefined,
): Promise<string | undefined> {
  if (caller.workspaceId !== null) return (await ownWorkspace(read, caller.workspaceId, named)).id
  return named === undefined ? undefined : (await namedWorkspace(read, caller.organisationId, named)).id
}

/**
 * Checks the `workspace_id` that an update names although the thing itself decides it.
 *
 * @throws GatehouseError `invalid` when it is another workspace; as `workspaceForCreate` when it is unknown or out of reach
 */
export async function assertSameWorkspace(
  read: Reader,
  caller: Caller,
  named: string | null | undefined,
  workspaceId: string,
): Promise<void> {
  if (named === null || named === undefined) return
  const { id } = await workspaceForCreate(read, caller, named)
  if (id !== workspaceId) throw invalidField('workspace_id', 'is another workspace; things stay in their own')
}

/** Whether a row of a workspace lies within the caller's reach; outside of it, it does not exist for the caller. */
export const reaches = (caller: Caller, row: { organisationId: string; workspaceId: string | null }): boolean =>
  row.organisationId === caller.organisationId &&
  (caller.workspaceId === null || row.workspaceId === caller.workspaceId)

/** @throws GatehouseError `forbidden` when another organisation than the caller's is named */
export function assertOwnOrganisation(caller: Caller, named: string | null | undefined): void {
  if (named !== null && named !== undefined && named !== caller.organisationId)
    throw new GatehouseError('forbidden', 'organisation_id is not the one of this API key; leave it out')
}

async function ownWorkspace(read: Reader, id: string, named: string | null | undefined): Promise<Workspace> {
  const [own] = await workspaceById(read, { id })
  if (own === undefined) throw notFound('workspace')
  if (named !== null && named !== undefined && named !== own.id && named !== own.slug)
    throw new GatehouseError(
      'forbidden',
      'this API key works in one workspace only, and workspace_id names another; leave it out',
    )
  return own
}

async function namedWorkspace(read: Reader, organisationId: string, named: string): Promise<Workspace> {
  const [found] = await activeWorkspaceByName(read, { organisationId, named })
  if (found === undefined) throw notFound('workspace')
  return found
}

async function defaultWorkspace(read: Reader, organisationId: string): Promise<Workspace> {
  const [found] = await defaultWorkspaceOf(read, { organisationId })
  if (found === undefined) throw notFound('workspace')
  return found
}

const { id, organisationId, named } = placeholders('id', 'organisationId', 'named')

const workspaceById = workspaceWhere((t) => eq(t.id, id))
const activeWorkspaceByName = workspaceWhere((t) =>
  and(eq(t.organisationId, organisationId), eq(t.status, 'active'), or(eq(t.id, named), eq(t.slug, named))),
)
const defaultWorkspaceOf = workspaceWhere((t) => and(eq(t.organisationId, organisationId), eq(t.isDefault, true)))

function workspaceWhere(condition: (t: Tables['workspaces']) => SQL | undefined) {
  return compiledSelect((db) => {
    const t = db.tables.workspaces
    return db.select({ id: t.id, slug: t.slug }).from(t).where(condition(t)).limit(1)
  })
}
