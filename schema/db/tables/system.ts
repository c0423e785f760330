import type { Columns } from '../columns.ts'

/** What Gatehouse keeps about itself: identity, schema, changes for other nodes, sealed keys and the audit trail. */
export function defineSystemTables({ table, text, integer, time, bytes, index, primaryKey, oneOf }: Columns) {
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

  return { installation, schemaMigrations, changes, keyring, auditEvents }
}

export type SystemTables = ReturnType<typeof defineSystemTables>
