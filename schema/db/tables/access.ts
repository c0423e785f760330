import type { Columns } from '../columns.ts'

/** Who may do what: organisations, people, workspaces and API keys. */
export function defineAccessTables({ table, text, boolean, time, index, uniqueIndex, primaryKey, oneOf }: Columns) {
  const organisations = table('organisations', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    createdAt: time('created_at').notNull(),
  })

  const users = table(
    'users',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      email: text('email').notNull(),
      firstName: text('first_name'),
      lastName: text('last_name'),
      role: text('role').notNull(),
      status: text('status').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('users_email').on(t.organisationId, t.email),
      oneOf('users_role', 'role', ['owner', 'admin', 'member']),
      oneOf('users_status', 'status', ['active', 'removed']),
    ],
  )

  const workspaces = table(
    'workspaces',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      slug: text('slug').notNull(),
      name: text('name').notNull(),
      description: text('description'),
      isDefault: boolean('is_default').notNull(),
      status: text('status').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('workspaces_slug').on(t.organisationId, t.slug),
      oneOf('workspaces_status', 'status', ['active', 'archived']),
    ],
  )

  const workspaceMembers = table(
    'workspace_members',
    {
      workspaceId: text('workspace_id')
        .notNull()
        .references(() => workspaces.id, { onDelete: 'cascade' }),
      userId: text('user_id')
        .notNull()
        .references(() => users.id),
      role: text('role').notNull(),
      createdAt: time('created_at').notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.workspaceId, t.userId] }),
      oneOf('workspace_members_role', 'role', ['admin', 'manager', 'member']),
    ],
  )

  /** Deleted keys keep their row, so that what they did stays attributable (decision 39). */
  const apiKeys = table(
    'api_keys',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      /** null for admin keys */
      workspaceId: text('workspace_id').references(() => workspaces.id),
      /** the person a user key acts as */
      userId: text('user_id').references(() => users.id),
      /** the person at the end of the minting chain (decision 29) */
      accountableUserId: text('accountable_user_id')
        .notNull()
        .references(() => users.id),
      type: text('type').notNull(),
      name: text('name').notNull(),
      description: text('description'),
      /** JSON array of permissions, the caller's order */
      scopes: text('scopes').notNull(),
      /** HMAC-SHA256(pepper, clear key), base64url; the clear key is never stored */
      digest: text('digest').notNull(),
      /** what may be shown of the key */
      masked: text('masked').notNull(),
      creationMode: text('creation_mode').notNull(),
      createdByKeyId: text('created_by_key_id'),
      expiresAt: time('expires_at'),
      deletedAt: time('deleted_at'),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('api_keys_digest').on(t.digest),
      index('api_keys_organisation').on(t.organisationId, t.createdAt),
      oneOf('api_keys_type', 'type', ['organisation-service', 'workspace-service', 'workspace-user', 'system']),
      oneOf('api_keys_creation_mode', 'creation_mode', ['ui', 'api', 'auto']),
    ],
  )

  return { organisations, users, workspaces, workspaceMembers, apiKeys }
}

export type AccessTables = ReturnType<typeof defineAccessTables>
