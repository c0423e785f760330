import { sql } from 'drizzle-orm'
import type { Columns } from '../columns.ts'

/** Who may do what: organisations, people, workspaces and API keys. */
export function defineAccessTables({
  table,
  text,
  boolean,
  time,
  bytes,
  index,
  uniqueIndex,
  primaryKey,
  oneOf,
}: Columns) {
  const organisations = table('organisations', {
    id: text('id').primaryKey(),
    name: text('name').notNull(),
    /** JSON object: organisation settings that were set; the rest are defaults */
    settings: text('settings').notNull().default('{}'),
    /** JSON object: default guardrails and the workspaces excluded from them */
    guardrails: text('guardrails').notNull().default('{}'),
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
      firstName: text('first_name').notNull().default(''),
      lastName: text('last_name').notNull().default(''),
      role: text('role').notNull(),
      status: text('status').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      // A removed person may be invited again, as another row.
      uniqueIndex('users_email').on(t.organisationId, t.email).where(sql`status = 'active'`),
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
      icon: text('icon'),
      description: text('description'),
      isDefault: boolean('is_default').notNull(),
      status: text('status').notNull(),
      /** JSON object: metadata and the other defaults of a workspace */
      defaults: text('defaults'),
      /** JSON array of at most one UsageLimits */
      usageLimits: text('usage_limits'),
      /** JSON array of RateLimits */
      rateLimits: text('rate_limits'),
      /** JSON object: security settings that override the organisation's */
      securitySettings: text('security_settings'),
      /** JSON object: key settings that override the organisation's */
      settings: text('settings'),
      createdBy: text('created_by'),
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
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.workspaceId, t.userId] }),
      index('workspace_members_user').on(t.userId),
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
      /** HMAC-SHA256(pepper, clear key), base64url; the clear key is never stored; null: no secret yet (decision 35) */
      digest: text('digest'),
      /** of the secret before the last rotation, until the end of its transition window */
      previousDigest: text('previous_digest'),
      previousDigestExpiresAt: time('previous_digest_expires_at'),
      /** what may be shown of the key */
      masked: text('masked').notNull(),
      creationMode: text('creation_mode').notNull(),
      createdByKeyId: text('created_by_key_id'),
      expiresAt: time('expires_at'),
      /** as the caller wrote it, which is what clients compare */
      expiresAtText: text('expires_at_text'),
      /** JSON array of RateLimits */
      rateLimits: text('rate_limits'),
      /** JSON object: UsageLimits */
      usageLimits: text('usage_limits'),
      lastResetAt: time('last_reset_at'),
      /** JSON object: metadata, config_id, allow_config_override */
      defaults: text('defaults'),
      /** JSON array of addresses */
      alertEmails: text('alert_emails'),
      /** JSON object, times as the caller wrote them */
      rotationPolicy: text('rotation_policy'),
      /** when the policy makes the secret due; null without one */
      nextRotationAt: time('next_rotation_at'),
      /** the due time that was last recorded, so that none is recorded twice */
      rotationDueRecordedAt: time('rotation_due_recorded_at'),
      /** the expiry that was last recorded */
      expiryRecordedAt: time('expiry_recorded_at'),
      /** to the minute */
      lastUsedAt: time('last_used_at'),
      deletedAt: time('deleted_at'),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('api_keys_digest').on(t.digest),
      uniqueIndex('api_keys_previous_digest').on(t.previousDigest),
      index('api_keys_workspace').on(t.workspaceId),
      index('api_keys_user').on(t.userId),
      index('api_keys_accountable_user').on(t.accountableUserId),
      index('api_keys_next_rotation').on(t.nextRotationAt),
      index('api_keys_expiry').on(t.expiresAt),
      index('api_keys_organisation').on(t.organisationId, t.createdAt),
      oneOf('api_keys_type', 'type', ['organisation-service', 'workspace-service', 'workspace-user', 'system']),
      oneOf('api_keys_creation_mode', 'creation_mode', ['ui', 'api', 'auto']),
    ],
  )

  const invites = table(
    'invites',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      email: text('email').notNull(),
      role: text('role').notNull(),
      /** JSON array of {id as supplied, workspace_id, role} */
      workspaces: text('workspaces').notNull(),
      /** JSON object: the user keys that acceptance makes, one a workspace, and what they have in common */
      keyDetails: text('key_details').notNull(),
      firstName: text('first_name'),
      lastName: text('last_name'),
      /** keyed digest of the token in the link; a resend replaces it */
      tokenDigest: text('token_digest').notNull(),
      /** pending | accepted | cancelled; expired follows from the time */
      status: text('status').notNull(),
      invitedByKeyId: text('invited_by_key_id'),
      invitedByUserId: text('invited_by_user_id').notNull(),
      acceptedUserId: text('accepted_user_id'),
      acceptedAt: time('accepted_at'),
      expiresAt: time('expires_at').notNull(),
      createdAt: time('created_at').notNull(),
    },
    (t) => [
      uniqueIndex('invites_token').on(t.tokenDigest),
      index('invites_organisation').on(t.organisationId, t.createdAt),
      oneOf('invites_role', 'role', ['admin', 'member']),
      oneOf('invites_status', 'status', ['pending', 'accepted', 'cancelled']),
    ],
  )

  /** Answers of successful POSTs that carried an Idempotency-Key, for 24 hours (decision 8). */
  const idempotentAnswers = table(
    'idempotent_answers',
    {
      /** keyed digest of (organisation, calling key, method, full path, Idempotency-Key) */
      id: text('id').primaryKey(),
      organisationId: text('organisation_id').notNull(),
      /** keyed digest of body and query: the same key with others is 409 */
      bodyDigest: text('body_digest').notNull(),
      /** JSON object: action, workspace, resource of the change's audit row */
      event: text('event').notNull(),
      /** JSON text; null where the answer holds a secret */
      answer: text('answer'),
      /** the answer sealed, where it holds a clear key or an invite link; gone after an hour */
      sealedAnswer: bytes('sealed_answer'),
      createdAt: time('created_at').notNull(),
    },
    (t) => [index('idempotent_answers_created').on(t.createdAt)],
  )

  return { organisations, users, workspaces, workspaceMembers, apiKeys, invites, idempotentAnswers }
}

export type AccessTables = ReturnType<typeof defineAccessTables>
