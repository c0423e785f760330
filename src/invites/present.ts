import type { Invite } from '../../schema/api/invites.ts'
import { grantOf, type InviteRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()

/** @param now UTC milliseconds: a pending invite expires by itself */
export const statusOf = ({ status, expiresAt }: InviteRow, now: number): Invite['status'] =>
  status === 'pending' && expiresAt <= now ? 'expired' : (status as Invite['status'])

export const presentInvite = (row: InviteRow, now: number): Invite => ({
  object: 'invite',
  id: row.id,
  email: row.email,
  role: row.role as Invite['role'],
  status: statusOf(row, now),
  workspaces: grantOf(row).workspaces,
  invited_by: row.invitedByUserId,
  created_at: iso(row.createdAt),
  expires_at: iso(row.expiresAt),
  accepted_at: row.acceptedAt === null ? null : iso(row.acceptedAt),
})
