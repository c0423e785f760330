import { type Columns, postgresColumns, sqliteColumns } from './columns.ts'

/**
 * The whole data model, once for both dialects. `bun run schema` writes the next migration of each from it.
 * Ids are lower-case UUIDs (v7) as text. JSON columns hold JSON text and say so in their comment.
 */
export function defineTables({
  table,
  text,
  integer,
  boolean,
  time,
  bytes,
  index,
  uniqueIndex,
  primaryKey,
  oneOf,
}: Columns) {
  /** One row: what this database is. `revision` grows by one with each committed change (decision 13). */
  const installation = table('installation', {
    id: text('id').primaryKey(),
    instanceId: text('instance_id').notNull(),
    revision: integer('revision').notNull(),
    /** the newest revision whose rows in `changes` are gone: a node that has not seen it must load everything again */
    prunedRevision: integer('pruned_revision').notNull(),
    createdAt: time('created_at').notNull(),
  })

  /** The migrations that made this database, with the SHA-256 of their text (UP-1). */
  const schemaMigrations = table('schema_migrations', {
    version: integer('version').primaryKey(),
    name: text('name').notNull(),
    checksum: text('checksum').notNull(),
    appliedAt: time('applied_at').notNull(),
  })

  /** What the newest revisions touched, for the caches of the other nodes. Pruned after an hour. */
  const changes = table(
    'changes',
    {
      revision: integer('revision').notNull(),
      kind: text('kind').notNull(),
      id: text('id').notNull(),
      at: time('at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.revision, t.kind, t.id] })],
  )

  /** Decision 41: the only rows that the master key seals. */
  const keyring = table(
    'keyring',
    {
      id: text('id').primaryKey(),
      purpose: text('purpose').notNull(),
      state: text('state').notNull(),
      /** id of the line in the master key source */
      sealedBy: text('sealed_by').notNull(),
      sealed: bytes('sealed').notNull(),
      createdAt: time('created_at').notNull(),
    },
    () => [
      oneOf('keyring_purpose', 'purpose', ['data', 'api_key_pepper', 'audit_signing', 'fingerprint', 'cursor']),
      oneOf('keyring_state', 'state', ['current', 'previous']),
    ],
  )

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

  const collections = table(
    'collections',
    {
      id: text('id').primaryKey(),
      workspaceId: text('workspace_id')
        .notNull()
        .references(() => workspaces.id),
      parentCollectionId: text('parent_collection_id'),
      slug: text('slug').notNull(),
      name: text('name').notNull(),
      isDefault: boolean('is_default').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('collections_slug').on(t.slug),
      index('collections_workspace').on(t.workspaceId),
      index('collections_parent').on(t.parentCollectionId),
    ],
  )

  const prompts = table(
    'prompts',
    {
      id: text('id').primaryKey(),
      workspaceId: text('workspace_id')
        .notNull()
        .references(() => workspaces.id),
      collectionId: text('collection_id')
        .notNull()
        .references(() => collections.id),
      slug: text('slug').notNull(),
      name: text('name').notNull(),
      /** number of the default (published) version */
      defaultVersion: integer('default_version').notNull(),
      /** highest version number */
      latestVersion: integer('latest_version').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('prompts_slug').on(t.slug),
      index('prompts_workspace').on(t.workspaceId, t.lastUpdatedAt),
      index('prompts_collection').on(t.collectionId),
    ],
  )

  /** Immutable once written, but for description and virtual key of the latest one (file 01, metadata mode). */
  const promptVersions = table(
    'prompt_versions',
    {
      id: text('id').primaryKey(),
      promptId: text('prompt_id')
        .notNull()
        .references(() => prompts.id, { onDelete: 'cascade' }),
      number: integer('number').notNull(),
      /** the text as the author sent it, to the letter */
      template: text('template').notNull(),
      templateType: text('template_type').notNull(),
      isRaw: boolean('is_raw').notNull(),
      /** JSON object as stored: hyperparameters and variable defaults mixed (decision 22 splits them when compiled) */
      parameters: text('parameters').notNull(),
      /** JSON array or null */
      functions: text('functions'),
      /** JSON array or null */
      tools: text('tools'),
      /** JSON object or string, or null */
      toolChoice: text('tool_choice'),
      /** JSON object */
      templateMetadata: text('template_metadata').notNull(),
      /** '' when unset */
      model: text('model').notNull(),
      virtualKey: text('virtual_key'),
      aiModelId: text('ai_model_id'),
      finetuneId: text('finetune_id'),
      description: text('description'),
      createdAt: time('created_at').notNull(),
    },
    (t) => [
      uniqueIndex('prompt_versions_number').on(t.promptId, t.number),
      oneOf('prompt_versions_template_type', 'template_type', ['chat', 'text']),
    ],
  )

  const partials = table(
    'partials',
    {
      id: text('id').primaryKey(),
      workspaceId: text('workspace_id')
        .notNull()
        .references(() => workspaces.id),
      collectionId: text('collection_id')
        .notNull()
        .references(() => collections.id),
      slug: text('slug').notNull(),
      name: text('name').notNull(),
      status: text('status').notNull(),
      defaultVersion: integer('default_version').notNull(),
      latestVersion: integer('latest_version').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('partials_slug').on(t.slug),
      index('partials_workspace').on(t.workspaceId, t.lastUpdatedAt),
      index('partials_collection').on(t.collectionId),
      oneOf('partials_status', 'status', ['active', 'archived']),
    ],
  )

  const partialVersions = table(
    'partial_versions',
    {
      id: text('id').primaryKey(),
      partialId: text('partial_id')
        .notNull()
        .references(() => partials.id, { onDelete: 'cascade' }),
      number: integer('number').notNull(),
      template: text('template').notNull(),
      description: text('description'),
      createdAt: time('created_at').notNull(),
    },
    (t) => [uniqueIndex('partial_versions_number').on(t.partialId, t.number)],
  )

  /** Universal labels have no workspace and belong to every one. */
  const labels = table(
    'labels',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      /** null: universal, or a label of the whole organisation */
      workspaceId: text('workspace_id').references(() => workspaces.id),
      /** where the name is unique: the workspace's id, or the organisation's where there is no workspace */
      scopeId: text('scope_id').notNull(),
      name: text('name').notNull(),
      description: text('description'),
      colorCode: text('color_code'),
      isUniversal: boolean('is_universal').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [uniqueIndex('labels_name').on(t.scopeId, t.name), index('labels_organisation').on(t.organisationId)],
  )

  /** A label stands on one version of a prompt at a time; a version may carry several. */
  const promptLabels = table(
    'prompt_labels',
    {
      promptId: text('prompt_id')
        .notNull()
        .references(() => prompts.id, { onDelete: 'cascade' }),
      labelId: text('label_id')
        .notNull()
        .references(() => labels.id, { onDelete: 'cascade' }),
      versionId: text('version_id')
        .notNull()
        .references(() => promptVersions.id, { onDelete: 'cascade' }),
      assignedAt: time('assigned_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.promptId, t.labelId] }), index('prompt_labels_label').on(t.labelId)],
  )

  /** Which prompt versions name which partial, so that deleting one in use can be refused (decision 26). */
  const promptPartials = table(
    'prompt_partials',
    {
      versionId: text('version_id')
        .notNull()
        .references(() => promptVersions.id, { onDelete: 'cascade' }),
      /** the slug as written in the tag, without its version */
      partialSlug: text('partial_slug').notNull(),
    },
    (t) => [primaryKey({ columns: [t.versionId, t.partialSlug] }), index('prompt_partials_slug').on(t.partialSlug)],
  )

  const auditEvents = table(
    'audit_events',
    {
      seq: integer('seq').primaryKey(),
      id: text('id').notNull(),
      organisationId: text('organisation_id').notNull(),
      workspaceId: text('workspace_id'),
      /** `prompts.create`, file 00 section 8 */
      action: text('action').notNull(),
      resourceId: text('resource_id'),
      resourceName: text('resource_name'),
      actorType: text('actor_type').notNull(),
      keyId: text('key_id'),
      userId: text('user_id'),
      clientIp: text('client_ip'),
      method: text('method'),
      uri: text('uri'),
      requestId: text('request_id'),
      status: integer('status').notNull(),
      /** JSON object, secrets replaced */
      details: text('details').notNull(),
      createdAt: time('created_at').notNull(),
    },
    (t) => [
      index('audit_events_organisation').on(t.organisationId, t.createdAt),
      oneOf('audit_events_actor_type', 'actor_type', [
        'organisation-service',
        'workspace-service',
        'workspace-user',
        'cli',
        'system',
      ]),
    ],
  )

  return {
    installation,
    schemaMigrations,
    changes,
    keyring,
    organisations,
    users,
    workspaces,
    workspaceMembers,
    apiKeys,
    collections,
    prompts,
    promptVersions,
    partials,
    partialVersions,
    labels,
    promptLabels,
    promptPartials,
    auditEvents,
  }
}

export type Tables = ReturnType<typeof defineTables>
export const sqliteTables: Tables = defineTables(sqliteColumns)
/** PostgreSQL's tables under SQLite's type (see `columns.ts`). */
export const postgresTables: Tables = defineTables(postgresColumns)
