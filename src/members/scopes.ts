import { GRANTABLE, type Permission } from '../../schema/api/permissions.ts'
import type { SecuritySettings } from '../../schema/api/security-settings.ts'
import { effectivePermissions, type Person } from '../auth/roles.ts'
import type { MemberRow } from './store.ts'

/** All that a user key of a member could do, were it given every scope. */
export const scopesOf = (member: MemberRow, security: SecuritySettings): Permission[] => {
  const scopes = [...GRANTABLE['workspace-user']]
  return [...effectivePermissions({ type: 'workspace-user', scopes, person: personOf(member), security })]
}

export const personOf = ({ organisationRole, role }: MemberRow): Person =>
  ({ organisationRole, workspaceRole: role }) as Person
