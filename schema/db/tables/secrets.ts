import type { Columns } from '../columns.ts'
import type { AccessTables } from './access.ts'

/** Secret references: where a secret lives and how to log in there, and who uses them. Never a secret's own value. */
export function defineSecretTables(
  { table, text, integer, boolean, time, bytes, index, uniqueIndex, primaryKey, oneOf }: Columns,
  { organisations, workspaces }: AccessTables,
) {
  const secretReferences = table(
    'secret_references',
    {
      id: text('id').primaryKey(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      name: text('name').notNull(),
      slug: text('slug').notNull(),
      description: text('description'),
      managerType: text('manager_type').notNull(),
      /** JSON object, sealed whole (decision 41) */
      authConfig: bytes('auth_config').notNull(),
      secretPath: text('secret_path').notNull(),
      secretKey: text('secret_key'),
      /** false: those of `secret_reference_workspaces`, if any */
      allowAllWorkspaces: boolean('allow_all_workspaces').notNull(),
      /** JSON object */
      tags: text('tags'),
      cacheSeconds: integer('cache_seconds'),
      /** one more with every update: what was fetched for an older one is not used (decision 46) */
      revision: integer('revision').notNull(),
      /** id of the person who answers for it */
      createdBy: text('created_by').notNull(),
      createdAt: time('created_at').notNull(),
      lastUpdatedAt: time('last_updated_at').notNull(),
    },
    (t) => [
      uniqueIndex('secret_references_slug').on(t.organisationId, t.slug),
      index('secret_references_created').on(t.organisationId, t.createdAt),
      oneOf('secret_references_manager_type', 'manager_type', ['aws_sm', 'azure_kv', 'hashicorp_vault']),
    ],
  )
  const ofReference = () =>
    text('reference_id')
      .notNull()
      .references(() => secretReferences.id, { onDelete: 'cascade' })

  const secretReferenceWorkspaces = table(
    'secret_reference_workspaces',
    {
      referenceId: ofReference(),
      workspaceId: text('workspace_id')
        .notNull()
        .references(() => workspaces.id),
    },
    (t) => [
      primaryKey({ columns: [t.referenceId, t.workspaceId] }),
      index('secret_reference_workspaces_workspace').on(t.workspaceId),
    ],
  )

  /** The tags once more, to find references by them: a value of any length and kind in one short text. */
  const secretReferenceTags = table(
    'secret_reference_tags',
    {
      referenceId: ofReference(),
      /** SHA-256 of name and value, base64url */
      pair: text('pair').notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.pair, t.referenceId] }),
      index('secret_reference_tags_reference').on(t.referenceId),
    ],
  )

  /**
   * Fields of other things that take their values from references. Who writes one locks the reference first
   * (`lockSecretReference`), so that none is deleted meanwhile.
   */
  const secretMappings = table(
    'secret_mappings',
    {
      /** kind of thing, and its id: an integration, a provider */
      holderKind: text('holder_kind').notNull(),
      holderId: text('holder_id').notNull(),
      organisationId: text('organisation_id')
        .notNull()
        .references(() => organisations.id),
      /** from 0; they are read back in this order */
      position: integer('position').notNull(),
      targetField: text('target_field').notNull(),
      secretReferenceId: text('secret_reference_id')
        .notNull()
        .references(() => secretReferences.id),
      /** id or slug, as it was written */
      referenceAsGiven: text('reference_as_given').notNull(),
      secretKey: text('secret_key'),
      valueFormat: text('value_format'),
    },
    (t) => [
      primaryKey({ columns: [t.holderKind, t.holderId, t.position] }),
      uniqueIndex('secret_mappings_target').on(t.holderKind, t.holderId, t.targetField),
      index('secret_mappings_reference').on(t.secretReferenceId),
      oneOf('secret_mappings_value_format', 'value_format', ['json', 'string']),
    ],
  )

  return { secretReferences, secretReferenceWorkspaces, secretReferenceTags, secretMappings }
}

export type SecretTables = ReturnType<typeof defineSecretTables>
