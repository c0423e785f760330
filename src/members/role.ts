export type WorkspaceRole = 'admin' | 'manager' | 'member'

/** Owners and admins of the organisation are admins in every workspace, whatever their membership says (file 00 section 2.3). */
export const effectiveRole = ({ organisationRole, role }: { organisationRole: string; role: string }): WorkspaceRole =>
  organisationRole === 'member' ? (role as WorkspaceRole) : 'admin'
