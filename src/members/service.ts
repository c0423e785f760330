import type { AddMembers, MembersAdded, WorkspaceRole } from '../../schema/api/members.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { ranksAbove } from '../auth/ceiling.ts'
import { rankOf } from '../auth/roles.ts'
import type { Tx } from '../db/database.ts'
import { GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { workspaceSecurity } from '../organisation/settings.ts'
import { getWorkspace, lockWorkspace, type WorkspaceRow } from '../workspaces/store.ts'
import { makeFirstKey } from './first-key.ts'
import { presentMember } from './present.ts'
import {
  deleteMember,
  findMember,
  findPeople,
  listServiceKeys,
  type MemberRow,
  putMember,
  revokeUserKeys,
} from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read'>

/**
 * Adds people to a workspace; who is a member already gets the role that is sent.
 *
 * @returns the member of the single form (D-21); nothing for a list
 * @throws GatehouseError `not_found` for a workspace out of reach and for people outside the organisation, `forbidden`
 *         for a role above the caller's, `invalid` for a person who is named twice
 */
export async function addMembers(
  { audited, read }: Deps,
  actor: KeyActor,
  workspaceId: string,
  body: AddMembers,
): Promise<MembersAdded> {
  const workspace = await getWorkspace(read, actor.caller, workspaceId)
  const wanted = 'users' in body ? body.users : [{ id: body.user_id, role: body.role }]
  const ids = wanted.map(({ id }) => id)
  const repeated = ids.findIndex((id, i) => ids.indexOf(id) < i)
  if (repeated !== -1) throw invalidField(`users[${repeated}].id`, 'names a person a second time')
  for (const { role } of wanted) assertMayGiveRole(actor.caller, role)
  const [only] = ids.length === 1 ? ids : []
  const what = { ...event('workspace_users.create', workspace), resourceId: only ?? workspace.id }
  return audited(actor, what, async (tx) => {
    await lockWorkspace(tx, workspace.id)
    const known = await findPeople(tx, actor.caller.organisationId, ids)
    if (known.size < ids.length) throw notFound('user')
    const changes = []
    for (const { id, role } of wanted) {
      const before = await findMember(tx, workspace.id, id)
      await giveRole(tx, workspace.id, id, role)
      if (before === undefined) await makeFirstKey(tx, actor.caller, workspace, id)
      changes.push({ user_id: id, before: before?.role ?? null, after: role })
    }
    tx.event.details = { members: changes }
    if ('users' in body) return {}
    const security = await workspaceSecurity(tx, workspace.organisationId, workspace.securitySettings)
    return presentMember(await getMember(tx, workspace, body.user_id), security)
  })
}

/** @throws GatehouseError `not_found`, `forbidden` for a role above the caller's */
export async function updateMember(
  { audited, read }: Deps,
  actor: KeyActor,
  workspaceId: string,
  userId: string,
  role: WorkspaceRole,
): Promise<MemberRow> {
  const workspace = await getWorkspace(read, actor.caller, workspaceId)
  const { email } = await getMember(read, workspace, userId)
  assertMayGiveRole(actor.caller, role)
  const what = { ...event('workspace_users.update', workspace), resourceId: userId, resourceName: email }
  return audited(actor, what, async (tx) => {
    await lockWorkspace(tx, workspace.id)
    const before = await getMember(tx, workspace, userId)
    await giveRole(tx, workspace.id, userId, role)
    tx.event.details = { before: { role: before.role }, after: { role } }
    return getMember(tx, workspace, userId)
  })
}

/**
 * Ends a membership and with it the person's user keys there; owners and admins of the organisation stay admins of
 * the workspace and keep theirs (decision 32). Who is added again gets no old key back.
 *
 * @throws GatehouseError `not_found`
 */
export async function removeMember(
  { audited, read }: Deps,
  actor: KeyActor,
  workspaceId: string,
  userId: string,
): Promise<Record<string, never>> {
  const workspace = await getWorkspace(read, actor.caller, workspaceId)
  const { email } = await getMember(read, workspace, userId)
  const what = { ...event('workspace_users.delete', workspace), resourceId: userId, resourceName: email }
  await audited(actor, what, async (tx) => {
    await lockWorkspace(tx, workspace.id)
    const { role, organisationRole } = await getMember(tx, workspace, userId)
    await deleteMember(tx, workspace.id, userId)
    tx.event.details = {
      before: { role },
      revoked_keys: organisationRole === 'member' ? await revokeUserKeys(tx, workspace.id, userId) : [],
      still_accountable_for: await listServiceKeys(tx, workspace.id, userId),
    }
    tx.changed('user', userId)
  })
  return {}
}

/** @throws GatehouseError `not_found` */
export async function getMember(db: Gatehouse['read'], { id }: WorkspaceRow, userId: string): Promise<MemberRow> {
  const member = await findMember(db, id, userId)
  if (member === undefined) throw notFound('member')
  return member
}

async function giveRole(tx: Tx, workspaceId: string, userId: string, role: WorkspaceRole): Promise<void> {
  await putMember(tx, workspaceId, userId, role)
  // What the person's keys may do hangs on the role.
  tx.changed('user', userId)
}

/** Nobody gives a role above their own (file 00 section 2.3). */
function assertMayGiveRole({ rank }: Caller, role: WorkspaceRole): void {
  if (ranksAbove(rankOf({ organisationRole: 'member', workspaceRole: role }), rank))
    throw new GatehouseError('forbidden', 'role is above the role of this API key')
}

const event = (action: string, { id, name }: WorkspaceRow) => ({ action, workspaceId: id, resourceName: name })
