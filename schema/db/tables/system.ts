import type { Columns } from '../columns.ts'

/** What Gatehouse keeps about itself: identity, schema, changes for other nodes, sealed keys and the audit trail. */
export function defineSystemTables({ table, text, integer, boolean, time, bytes, index, primaryKey, oneOf }: Columns) {
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
      /** previous: what it sealed is being sealed anew; retired: nothing was left under it (decision 42) */
      state: text('state').notNull(),
      /** id of the line in the master key source */
      sealedBy: text('sealed_by').notNull(),
      sealed: bytes('sealed').notNull(),
      createdAt: time('created_at').notNull(),
    },
    () => [
      oneOf('keyring_purpose', 'purpose', ['data', 'api_key_pepper', 'audit_signing', 'fingerprint', 'cursor']),
      oneOf('keyring_state', 'state', ['current', 'previous', 'retired']),
    ],
  )

  /**
   * The audit trail (decision 9): the canonical text of each row and its hash, which holds the hash of the row before.
   * The other columns repeat parts of the text, so that rows can be found; `audit verify` compares them with it.
   */
  const auditEvents = table(
    'audit_events',
    {
      seq: integer('seq').primaryKey(),
      /** canonical JSON (RFC 8785), never written again */
      text: text('text').notNull(),
      /** SHA-256, 64 hexadecimal digits */
      hash: text('hash').notNull(),
      organisationId: text('organisation_id').notNull(),
      /** of another organisation than the trail's own one; decision 19 leaves none outside of tests */
      isForeign: boolean('is_foreign').notNull(),
      createdAt: time('created_at').notNull(),
      /** how often the clock was set back before this row: within one value, time grows with `seq` */
      clock: integer('clock').notNull(),
      method: text('method'),
      uri: text('uri'),
      requestId: text('request_id'),
      userType: text('user_type').notNull(),
      /** id of the key, `cli:<uid>` or `system` */
      userId: text('user_id').notNull(),
      workspaceId: text('workspace_id'),
      status: integer('status').notNull(),
      resourceType: text('resource_type').notNull(),
      action: text('action').notNull(),
      resourceId: text('resource_id'),
      clientIp: text('client_ip'),
    },
    (t) => [
      index('audit_events_clock').on(t.clock, t.createdAt, t.seq),
      index('audit_events_foreign').on(t.isForeign, t.seq),
      index('audit_events_method').on(t.isForeign, t.method, t.seq),
      index('audit_events_uri').on(t.isForeign, t.uri, t.seq),
      index('audit_events_request').on(t.isForeign, t.requestId, t.seq),
      index('audit_events_user_type').on(t.isForeign, t.userType, t.seq),
      index('audit_events_user').on(t.isForeign, t.userId, t.seq),
      index('audit_events_workspace').on(t.isForeign, t.workspaceId, t.seq),
      index('audit_events_status').on(t.isForeign, t.status, t.seq),
      index('audit_events_resource_type').on(t.isForeign, t.resourceType, t.seq),
      index('audit_events_action').on(t.isForeign, t.action, t.seq),
      index('audit_events_resource').on(t.isForeign, t.resourceId, t.seq),
      index('audit_events_client').on(t.isForeign, t.clientIp, t.seq),
      oneOf('audit_events_user_type_known', 'user_type', ['api_key', 'user', 'cli', 'system']),
    ],
  )

  /** One row: the end of the trail, written over with every commit and signed (decision 9). */
  const auditHead = table('audit_head', {
    id: text('id').primaryKey(),
    chainId: text('chain_id').notNull(),
    /** the organisation of the first row */
    organisationId: text('organisation_id').notNull(),
    seq: integer('seq').notNull(),
    hash: text('hash').notNull(),
    createdAt: time('created_at').notNull(),
    clock: integer('clock').notNull(),
    /** the last row that `audit prune` removed, and its hash: what the oldest row follows; 0 and zeros if there is none */
    prunedSeq: integer('pruned_seq').notNull(),
    prunedHash: text('pruned_hash').notNull(),
    keyId: text('key_id').notNull(),
    /** Ed25519 over all of the above, base64; empty only inside a transaction */
    signature: text('signature').notNull(),
  })

  /** The public keys that the trail has been signed with, oldest first by `seq`, the row that introduced each one. */
  const auditKeys = table('audit_keys', {
    id: text('id').primaryKey(),
    seq: integer('seq').notNull(),
    /** Ed25519, 32 bytes, base64 */
    publicKey: text('public_key').notNull(),
    /** the key before this one vouches for it; null for the first */
    vouchedBy: text('vouched_by'),
    voucher: text('voucher'),
  })

  return { installation, schemaMigrations, changes, keyring, auditEvents, auditHead, auditKeys }
}

export type SystemTables = ReturnType<typeof defineSystemTables>
