import { and, eq, or } from 'drizzle-orm'
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
  const own = await findWorkspace(read, eq(read.tables.workspaces.id, id))
  if (own === undefined) throw notFound('workspace')
  if (named !== null && named !== undefined && named !== own.id && named !== own.slug)
    throw new GatehouseError(
      'forbidden',
      'this API key works in one workspace only, and workspace_id names another; leave it out',
    )
  return own
}

async function namedWorkspace(read: Reader, organisationId: string, named: string): Promise<Workspace> {
  const t = read.tables.workspaces
  const found = await findWorkspace(
    read,
    and(eq(t.organisationId, organisationId), eq(t.status, 'active'), or(eq(t.id, named), eq(t.slug, named))),
  )
  if (found === undefined) throw notFound('workspace')
  return found
}

async function defaultWorkspace(read: Reader, organisationId: string): Promise<Workspace> {
  const t = read.tables.workspaces
  const found = await findWorkspace(read, and(eq(t.organisationId, organisationId), eq(t.isDefault, true)))
  if (found === undefined) throw notFound('workspace')
  return found
}

async function findWorkspace(read: Reader, where: ReturnType<typeof and>): Promise<Workspace | undefined> {
  const t = read.tables.workspaces
  const [row] = await read.select({ id: t.id, slug: t.slug }).from(t).where(where).limit(1)
  return row
}
