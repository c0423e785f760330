import type { User } from '../../schema/api/users.ts'
import type { UserRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()

export const presentUser = (row: UserRow, workspaceSlugs: string[]): User => ({
  object: 'user',
  id: row.id,
  first_name: row.firstName,
  last_name: row.lastName,
  role: row.role as User['role'],
  email: row.email,
  status: 'active',
  workspace_ids: workspaceSlugs,
  created_at: iso(row.createdAt),
  last_updated_at: iso(row.lastUpdatedAt),
  updated_at: iso(row.lastUpdatedAt),
})
