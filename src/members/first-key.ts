import { autoCreateUserKey } from '../api-keys/service.ts'
import type { Caller } from '../auth/caller.ts'
import { mayGive, ranksAbove } from '../auth/ceiling.ts'
import { rankOf } from '../auth/roles.ts'
import type { Tx } from '../db/database.ts'
import { workspaceSecurity } from '../organisation/settings.ts'
import type { WorkspaceRow } from '../workspaces/store.ts'
import { personOf, scopesOf } from './scopes.ts'
import { findMember } from './store.ts'

/**
 * The key of a new member, where the settings want one (`user_api_key_auto_create`): it reads and lists what the role
 * does, as far as the caller may give that. There is none for people above the caller (decision 32).
 */
export async function makeFirstKey(tx: Tx, caller: Caller, workspace: WorkspaceRow, userId: string): Promise<void> {
  const member = await findMember(tx, workspace.id, userId)
  if (member === undefined || ranksAbove(rankOf(personOf(member)), caller.rank)) return
  const security = await workspaceSecurity(tx, workspace.organisationId, workspace.securitySettings)
  const scopes = scopesOf(member, security).filter((scope) => /\.(?:read|list)$/.test(scope) && mayGive(caller, scope))
  if (scopes.length === 0) return
  await autoCreateUserKey(tx, {
    name: 'first key',
    scopes,
    organisationId: workspace.organisationId,
    workspaceId: workspace.id,
    userId,
    accountableUserId: userId,
    createdByKeyId: caller.keyId,
  })
}
