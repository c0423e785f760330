import { and, eq, isNull } from 'drizzle-orm'
import type { UpdateUser, User } from '../../schema/api/users.ts'
import type { KeyActor } from '../auth/caller.ts'
import { assertNoUpwardMove } from '../auth/ceiling.ts'
import type { Person } from '../auth/roles.ts'
import type { Reader, Tx } from '../db/database.ts'
import { difference } from '../difference.ts'
import { invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { lockOrganisation } from '../organisation/settings.ts'
import { presentUser } from './present.ts'
import { findUser, type UserRow, workspaceSlugsOf } from './store.ts'

type Deps = Pick<Gatehouse, 'audited'>

/**
 * Changes a person's organisation role or name. There is always an owner: nobody who calls the API stands high enough
 * to change one (decision 32).
 *
 * @throws GatehouseError `not_found`, `invalid` for the role that the person has, `forbidden` for an upward move
 */
export async function updateUser({ audited }: Deps, actor: KeyActor, id: string, body: UpdateUser): Promise<User> {
  const { organisationId } = actor.caller
  const role = body.role ?? undefined
  const names = {
    ...(typeof body.first_name === 'string' && { firstName: body.first_name }),
    ...(typeof body.last_name === 'string' && { lastName: body.last_name }),
  }
  if (role === undefined && Object.keys(names).length === 0)
    throw invalidField('', 'nothing to update: send role, first_name or last_name')
  const what = { action: 'organisation_users.update', workspaceId: null, resourceId: id }
  return audited(actor, what, async (tx) => {
    await lockOrganisation(tx, organisationId)
    const before = await getUser(tx, organisationId, id)
    if (role !== undefined) {
      if (role === before.role) throw invalidField('role', 'is the role that this person has already')
      assertNoUpwardMove(actor.caller, personOf(before), role)
    }
    const { users: t } = tx.tables
    const values = { ...names, ...(role !== undefined && { role }), lastUpdatedAt: tx.now }
    const [after] = await tx.update(t).set(values).where(eq(t.id, id)).returning()
    if (after === undefined) throw notFound('user')
    tx.event.resourceName = before.email
    tx.event.details = difference(told(before), told(after))
    tx.changed('user', id)
    return presentUser(after, (await workspaceSlugsOf(tx, [id]))(id))
  })
}

/**
 * Removes a person: their memberships go, and their user keys are refused from now on. Admin and service keys go on,
 * since they are the organisation's; the audit row names those that the person answers for.
 *
 * @throws GatehouseError `not_found`, `forbidden` for a person above the caller
 */
export async function deleteUser({ audited }: Deps, actor: KeyActor, id: string): Promise<Record<string, never>> {
  const { organisationId } = actor.caller
  const what = { action: 'organisation_users.delete', workspaceId: null, resourceId: id }
  return audited(actor, what, async (tx) => {
    await lockOrganisation(tx, organisationId)
    const user = await getUser(tx, organisationId, id)
    assertNoUpwardMove(actor.caller, personOf(user), null)
    const { users, workspaceMembers } = tx.tables
    const removed = { status: 'removed', lastUpdatedAt: tx.now }
    await tx.update(users).set(removed).where(eq(users.id, id)).returning({ id: users.id })
    const memberships = await tx
      .delete(workspaceMembers)
      .where(eq(workspaceMembers.userId, id))
      .returning({ workspaceId: workspaceMembers.workspaceId })
    tx.event.resourceName = user.email
    tx.event.details = {
      before: told(user),
      workspaces: memberships.map(({ workspaceId }) => workspaceId),
      revoked_keys: await revokeUserKeys(tx, id),
      still_accountable_for: await keysOf(tx, id),
    }
    tx.changed('user', id)
    return {}
  })
}

/** @throws GatehouseError `not_found`, also for a person who was removed */
export async function getUser(db: Reader, organisationId: string, id: string): Promise<UserRow> {
  const user = await findUser(db, organisationId, id)
  if (user === undefined) throw notFound('user')
  return user
}

const personOf = ({ id, role }: UserRow) => ({ id, organisationRole: role as Person['organisationRole'] })

/** What an audit row says of a person. */
const told = ({ email, role, firstName, lastName }: UserRow) => ({
  email,
  role,
  first_name: firstName,
  last_name: lastName,
})

async function revokeUserKeys(tx: Tx, userId: string): Promise<string[]> {
  const { apiKeys: t } = tx.tables
  const revoked = await tx
    .update(t)
    .set({ deletedAt: tx.now, lastUpdatedAt: tx.now })
    .where(and(eq(t.userId, userId), isNull(t.deletedAt)))
    .returning({ id: t.id })
  for (const { id } of revoked) tx.changed('api_key', id)
  return revoked.map(({ id }) => id)
}

/** The live keys of the organisation and its workspaces that a person answers for. */
async function keysOf(tx: Tx, accountableUserId: string): Promise<{ id: string; type: string; name: string }[]> {
  const { apiKeys: t } = tx.tables
  return tx
    .select({ id: t.id, type: t.type, name: t.name })
    .from(t)
    .where(and(eq(t.accountableUserId, accountableUserId), isNull(t.userId), isNull(t.deletedAt)))
}
