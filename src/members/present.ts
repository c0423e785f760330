import type { Member } from '../../schema/api/members.ts'
import type { SecuritySettings } from '../../schema/api/security-settings.ts'
import { effectiveRole } from './role.ts'
import { scopesOf } from './scopes.ts'
import type { MemberRow } from './store.ts'

/** @param security the settings of the workspace, which decide what its members may do */
export const presentMember = (row: MemberRow, security: SecuritySettings): Member => ({
  object: 'workspace-user',
  id: row.userId,
  first_name: row.firstName,
  last_name: row.lastName,
  org_role: row.organisationRole as Member['org_role'],
  role: effectiveRole(row),
  created_at: new Date(row.createdAt).toISOString(),
  last_updated_at: new Date(row.lastUpdatedAt).toISOString(),
  status: 'active',
  workspace_id: row.workspaceId,
  email: row.email,
  scopes: scopesOf(row, security),
  settings: null,
})
