import { and, eq, gt, isNull, or } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import type { Person } from '../auth/roles.ts'
import type { Reader, Tx } from '../db/database.ts'
import { GatehouseError, invalidField } from '../errors.ts'
import { lockOrganisation } from '../organisation/settings.ts'

export const organisationOf = (actor: Actor): string =>
  actor.kind === 'key' ? actor.caller.organisationId : actor.organisationId

/** Who answers for a new key: the caller's accountable person, or the owner for the command line (decision 29). */
export async function accountablePerson(read: Reader, actor: Actor): Promise<string> {
  if (actor.kind === 'key') return actor.caller.accountableUserId
  if (actor.kind === 'person') return actor.userId
  const { users: t } = read.tables
  const [owner] = await read
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.organisationId, actor.organisationId), eq(t.role, 'owner'), eq(t.status, 'active')))
    .limit(1)
  if (owner === undefined) throw new GatehouseError('internal', 'the organisation has no owner')
  return owner.id
}

/**
 * A person of a workspace: a member, or an owner or admin of the organisation, who belong to every workspace.
 *
 * @throws GatehouseError `invalid` for anybody else
 */
export async function getMember(tx: Tx, workspaceId: string, userId: string): Promise<Person & { id: string }> {
  const person = await findPerson(tx, workspaceId, userId)
  if (person === undefined || (person.organisationRole === 'member' && person.workspaceRole === null))
    throw invalidField('user_id', 'must be a person who belongs to the workspace')
  return person
}

/** Whom a user key acts as, with the roles that they have now. */
export async function findPerson(
  tx: Tx,
  workspaceId: string,
  userId: string,
): Promise<(Person & { id: string }) | undefined> {
  const { users, workspaceMembers, workspaces } = tx.tables
  const [row] = await tx
    .select({ organisationRole: users.role, workspaceRole: workspaceMembers.role })
    .from(users)
    .innerJoin(workspaces, and(eq(workspaces.id, workspaceId), eq(workspaces.organisationId, users.organisationId)))
    .leftJoin(
      workspaceMembers,
      and(eq(workspaceMembers.userId, users.id), eq(workspaceMembers.workspaceId, workspaceId)),
    )
    .where(and(eq(users.id, userId), eq(users.status, 'active')))
    .limit(1)
  return row === undefined ? undefined : { id: userId, ...(row as Person) }
}

/**
 * Counts a person's user keys of a workspace against `user_api_key_count`, under a lock that makes two creates at once
 * count one after the other.
 *
 * @throws GatehouseError `invalid` when there is no room for one more
 */
export async function assertRoomForKey(
  tx: Tx,
  whose: { organisationId: string; workspaceId: string; userId: string },
  maxCount: number,
): Promise<void> {
  await lockOrganisation(tx, whose.organisationId)
  const { apiKeys: t } = tx.tables
  const live = await tx
    .select({ id: t.id })
    .from(t)
    .where(
      and(
        eq(t.workspaceId, whose.workspaceId),
        eq(t.userId, whose.userId),
        isNull(t.deletedAt),
        or(isNull(t.expiresAt), gt(t.expiresAt, tx.now)),
      ),
    )
    .limit(maxCount)
  if (live.length >= maxCount)
    throw invalidField('user_id', 'this person has as many keys in the workspace as its settings allow; delete one')
}
