import { and, eq, inArray } from 'drizzle-orm'
import type { Actor } from '../auth/caller.ts'
import { conflict, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { findUserByEmail } from '../users/store.ts'
import { lockOrganisation } from './settings.ts'

/**
 * Makes a person the owner of the organisation, and the owner before an admin of it: the only way to make an owner
 * (decision 32).
 *
 * @returns the ids of the new owner and of those before
 * @throws GatehouseError `not_found` for an address that no active person has, `conflict` when it is the owner's
 */
export async function transferOwnership(
  { audited, read }: Pick<Gatehouse, 'audited' | 'read'>,
  actor: Extract<Actor, { kind: 'cli' }>,
  email: string,
): Promise<{ owner_id: string; previous_owner_ids: string[] }> {
  const { organisationId } = actor
  const found = await findUserByEmail(read, organisationId, email)
  if (found === undefined) throw notFound('person')
  const { id } = found
  const what = { action: 'organisation_users.transfer', workspaceId: null, resourceId: id, resourceName: found.email }
  return audited(actor, what, async (tx) => {
    await lockOrganisation(tx, organisationId)
    const { users: t } = tx.tables
    const active = and(eq(t.organisationId, organisationId), eq(t.status, 'active'))
    const people = await tx.select({ id: t.id, role: t.role }).from(t).where(active)
    const person = people.find((each) => each.id === id)
    if (person === undefined) throw notFound('person')
    if (person.role === 'owner') throw conflict('this person is the owner already')
    const owners = people.filter(({ role }) => role === 'owner').map((each) => each.id)
    const setRole = (ids: string[], role: string) =>
      tx.update(t).set({ role, lastUpdatedAt: tx.now }).where(inArray(t.id, ids)).returning({ id: t.id })
    if (owners.length > 0) await setRole(owners, 'admin')
    await setRole([id], 'owner')
    for (const changed of [id, ...owners]) tx.changed('user', changed)
    tx.event.details = {
      before: { role: person.role, owners },
      after: { role: 'owner', owners: [id] },
    }
    return { owner_id: id, previous_owner_ids: owners }
  })
}
