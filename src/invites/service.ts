import { and, eq, ne } from 'drizzle-orm'
import type { CreateInvite, InviteCreated, InviteResent } from '../../schema/api/invites.ts'
import type { KeyActor } from '../auth/caller.ts'
import type { Reader } from '../db/database.ts'
import { conflict, GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { lockOrganisation } from '../organisation/settings.ts'
import { findUser, findUserByEmail } from '../users/store.ts'
import { assertMayInvite, readGrant } from './grant.ts'
import { newLink } from './link.ts'
import { presentInvite } from './present.ts'
import { columnsOfGrant, findInvite, findOpenInviteTo, type Grant, grantOf, type InviteRow, isOpen } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'digestKey' | 'mailer' | 'publicUrl'>

const iso = (time: number): string => new Date(time).toISOString()

/**
 * Invites somebody into the organisation. The link is in this answer, in the mail where one is sent, and nowhere else.
 *
 * @throws GatehouseError `invalid`, `forbidden` for more than the caller has (decision 31), `conflict` for somebody who
 *         is a user or has an invite already
 */
export async function createInvite(deps: Deps, actor: KeyActor, body: CreateInvite): Promise<InviteCreated> {
  const { audited, read } = deps
  const { caller } = actor
  const id = Bun.randomUUIDv7()
  const grant = await readGrant(read, caller, body, Date.now())
  assertMayInvite(caller, id, body.role, grant)
  const link = newLink(deps, actor)
  const what = { action: 'organisation_users.invite', workspaceId: null, resourceId: id, resourceName: body.email }
  const answer = await audited(actor, what, async (tx) => {
    await lockOrganisation(tx, caller.organisationId)
    await assertInviter(tx, caller.organisationId, caller.accountableUserId)
    if ((await findUserByEmail(tx, caller.organisationId, body.email)) !== undefined)
      throw conflict('there is a user with this email already')
    if ((await findOpenInviteTo(tx, caller.organisationId, body.email, tx.now)) !== undefined)
      throw conflict('there is a pending invite to this email already: resend it, or delete it first')
    const row = {
      id,
      organisationId: caller.organisationId,
      email: body.email,
      role: body.role,
      ...columnsOfGrant(grant),
      firstName: body.first_name ?? null,
      lastName: body.last_name ?? null,
      status: 'pending',
      createdAt: tx.now,
    }
    const [invite] = await tx
      .insert(tx.tables.invites)
      .values({ ...row, ...link.columns(tx.now) })
      .returning()
    if (invite === undefined) throw new Error('the invite was not stored')
    tx.event.details = { after: { email: body.email, role: body.role, ...told(grant) } }
    link.isFor(invite)
    return { ...presentInvite(invite, tx.now), invite_link: link.text }
  })
  link.mail()
  return answer
}

/**
 * Makes a new link for a pending invite, with a new life; the old link is dead.
 *
 * @throws GatehouseError `not_found`, `invalid` for an invite that is not pending, `forbidden` as for a new one
 */
export async function resendInvite(deps: Deps, actor: KeyActor, id: string): Promise<InviteResent> {
  const { organisationId, accountableUserId } = actor.caller
  const link = newLink(deps, actor)
  const what = { action: 'organisation_users.resend', workspaceId: null, resourceId: id }
  const answer = await deps.audited(actor, what, async (tx) => {
    const before = await getInvite(tx, organisationId, id)
    assertMayInvite(actor.caller, id, before.role, grantOf(before))
    await assertInviter(tx, organisationId, accountableUserId)
    const { invites: t } = tx.tables
    const [after] = await tx
      .update(t)
      .set(link.columns(tx.now))
      .where(and(eq(t.id, id), isOpen(tx, tx.now)))
      .returning()
    if (after === undefined) throw invalidField('', 'only a pending invite can be sent again; create a new one')
    tx.event.resourceName = after.email
    tx.event.details = { before: { expires_at: iso(before.expiresAt) }, after: { expires_at: iso(after.expiresAt) } }
    link.isFor(after)
    return { inviteLink: link.text, invite_link: link.text }
  })
  link.mail()
  return answer
}

/**
 * Takes an invite back. Its row stays and reads `cancelled`: some clients cannot do without it.
 *
 * @throws GatehouseError `not_found`, `invalid` for an invite that was accepted
 */
export async function cancelInvite(
  { audited }: Pick<Gatehouse, 'audited'>,
  actor: KeyActor,
  id: string,
): Promise<Record<string, never>> {
  const what = { action: 'organisation_users.delete', workspaceId: null, resourceId: id }
  return audited(actor, what, async (tx) => {
    const invite = await getInvite(tx, actor.caller.organisationId, id)
    const { invites: t } = tx.tables
    const cancelled = await tx
      .update(t)
      .set({ status: 'cancelled' })
      .where(and(eq(t.id, id), ne(t.status, 'accepted')))
      .returning({ id: t.id })
    if (cancelled.length === 0) throw invalidField('', 'this invite was accepted; remove the user instead')
    tx.event.resourceName = invite.email
    tx.event.details = { before: { status: invite.status }, after: { status: 'cancelled' } }
    return {}
  })
}

/** @throws GatehouseError `not_found` */
export async function getInvite(db: Reader, organisationId: string, id: string): Promise<InviteRow> {
  const invite = await findInvite(db, organisationId, id)
  if (invite === undefined) throw notFound('invite')
  return invite
}

/** Whether a person may let others in: an invite is only as good as who answers for it (decision 36). */
export async function isInviter(db: Reader, organisationId: string, userId: string): Promise<boolean> {
  const person = await findUser(db, organisationId, userId)
  return person !== undefined && person.role !== 'member'
}

/** An invite that could never be accepted is not made. */
async function assertInviter(db: Reader, organisationId: string, userId: string): Promise<void> {
  if (!(await isInviter(db, organisationId, userId)))
    throw new GatehouseError(
      'forbidden',
      'the person who answers for this API key is no owner or admin of the organisation any more; use the key of one',
    )
}

/** What an audit row says of a grant. */
const told = ({ workspaces, keys, keyName, keyExpiresAtText, keyMetadata }: Grant) => ({
  workspaces,
  keys: keys.map(({ workspaceId, scopes }) => ({ workspace_id: workspaceId, scopes })),
  ...(keys.length > 0 && { key_name: keyName, key_expires_at: keyExpiresAtText, key_metadata: keyMetadata }),
})
