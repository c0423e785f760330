import { and, eq, inArray } from 'drizzle-orm'
import type { AcceptInvite, InviteAccepted } from '../../schema/api/invites.ts'
import { insertApiKey } from '../api-keys/service.ts'
import type { RequestInfo } from '../auth/caller.ts'
import type { Tx } from '../db/database.ts'
import { conflict, GatehouseError, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { keySettings, lockOrganisation } from '../organisation/settings.ts'
import { findUserByEmail, type UserRow, workspaceSlugsOf } from '../users/store.ts'
import { digestOfToken } from './link.ts'
import { isInviter } from './service.ts'
import { findOpenInvite, type Grant, grantOf, type InviteRow, isOpen } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'digestKey'>
type Key = InviteAccepted['api_keys'][number]

/**
 * Makes an invited person a user of the organisation, with their memberships and keys. The clear keys are in this
 * answer and nowhere else.
 *
 * @throws GatehouseError `not_found` alike for a token that is unknown, used, expired or taken back; `forbidden` when
 *         whoever answers for the invite may let nobody in any more; `conflict` when the person is a user by now
 */
export async function acceptInvite(deps: Deps, request: RequestInfo, body: AcceptInvite): Promise<AcceptedRows> {
  const tokenDigest = digestOfToken(deps.digestKey, body.token)
  // A guess costs one look-up and no place in the line of writers.
  const found = await findOpenInvite(deps.read, tokenDigest, Date.now())
  if (found === undefined) throw notFound('invite')
  const { organisationId } = found
  const userId = Bun.randomUUIDv7()
  const actor = { kind: 'person', userId, organisationId, request } as const
  const what = { action: 'organisation_users.accept', workspaceId: null, resourceId: userId, resourceName: found.email }
  return deps.audited(actor, what, async (tx) => {
    await lockOrganisation(tx, organisationId)
    const invite = await take(tx, tokenDigest, userId)
    if (!(await isInviter(tx, organisationId, invite.invitedByUserId)))
      throw new GatehouseError('forbidden', 'whoever invited you may not do so any more; ask for a new invite')
    if ((await findUserByEmail(tx, organisationId, invite.email)) !== undefined)
      throw conflict('there is a user with this email already')
    const user = await insertUser(tx, userId, invite, body)
    const grant = await stillThere(tx, organisationId, grantOf(invite))
    for (const { workspace_id: workspaceId, role } of grant.workspaces) {
      const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
      const { workspaceMembers: t } = tx.tables
      await tx
        .insert(t)
        .values({ workspaceId, userId, role, ...times })
        .returning({ userId: t.userId })
    }
    const keys: Key[] = []
    for (const key of grant.keys) keys.push(await insertKey(tx, deps.digestKey, { invite, userId, grant, ...key }))
    tx.event.details = {
      invite_id: invite.id,
      invited_by: invite.invitedByUserId,
      after: { email: invite.email, role: invite.role, workspaces: grant.workspaces },
      created_keys: grant.keys.map(({ workspaceId, scopes }, i) => ({
        id: keys[i]?.id,
        workspace_id: workspaceId,
        scopes,
      })),
    }
    return { user, workspaceSlugs: (await workspaceSlugsOf(tx, [userId]))(userId), keys }
  })
}

export interface AcceptedRows {
  user: UserRow
  workspaceSlugs: string[]
  keys: Key[]
}

/** One of many that come at once gets it. */
async function take(tx: Tx, tokenDigest: string, userId: string): Promise<InviteRow> {
  const { invites: t } = tx.tables
  const [invite] = await tx
    .update(t)
    .set({ status: 'accepted', acceptedAt: tx.now, acceptedUserId: userId })
    .where(and(eq(t.tokenDigest, tokenDigest), isOpen(tx, tx.now)))
    .returning()
  if (invite === undefined) throw notFound('invite')
  return invite
}

async function insertUser(tx: Tx, id: string, invite: InviteRow, body: AcceptInvite): Promise<UserRow> {
  const row = {
    id,
    organisationId: invite.organisationId,
    email: invite.email,
    firstName: body.first_name ?? invite.firstName ?? '',
    lastName: body.last_name ?? invite.lastName ?? '',
    role: invite.role,
    status: 'active',
    createdAt: tx.now,
    lastUpdatedAt: tx.now,
  }
  const [user] = await tx.insert(tx.tables.users).values(row).returning()
  if (user === undefined) throw new Error('the user was not stored')
  return user
}

/** Since the invite was made, a workspace may have been archived, and the expiry of the keys may have passed. */
async function stillThere(tx: Tx, organisationId: string, grant: Grant): Promise<Grant> {
  const { workspaces: t } = tx.tables
  const ids = [...grant.workspaces.map((each) => each.workspace_id), ...grant.keys.map((each) => each.workspaceId)]
  if (ids.length === 0) return grant
  const rows = await tx
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.organisationId, organisationId), eq(t.status, 'active'), inArray(t.id, ids)))
  const isPast = grant.keyExpiresAt !== null && grant.keyExpiresAt <= tx.now
  const live = new Set(rows.map(({ id }) => id))
  return {
    ...grant,
    workspaces: grant.workspaces.filter((each) => live.has(each.workspace_id)),
    keys: isPast ? [] : grant.keys.filter((each) => live.has(each.workspaceId)),
  }
}

async function insertKey(
  tx: Tx,
  digestKey: Gatehouse['digestKey'],
  of: Grant['keys'][number] & { invite: InviteRow; userId: string; grant: Grant },
): Promise<Key> {
  const { invite, userId, grant, workspaceId, scopes } = of
  const { organisationId } = invite
  const id = Bun.randomUUIDv7()
  const { maxTtlSeconds } = await keySettings(tx, organisationId, workspaceId)
  // The settings may have become narrower since: then the key lives as long as they say.
  const isTooLong = maxTtlSeconds !== null && (grant.keyExpiresAt ?? 0) > tx.now + maxTtlSeconds * 1000
  const { key } = await insertApiKey(tx, digestKey, {
    ...{ id, organisationId, workspaceId, userId, scopes, name: grant.keyName, type: 'workspace-user' },
    accountableUserId: userId,
    createdByKeyId: invite.invitedByKeyId,
    expires_at: isTooLong ? null : grant.keyExpiresAtText,
    defaults: grant.keyMetadata === null ? null : { metadata: grant.keyMetadata },
  })
  return { workspace_id: workspaceId, id, key }
}
