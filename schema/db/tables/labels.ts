import type { Columns } from '../columns.ts'
import type { AccessTables } from './access.ts'
import type { PromptTables } from './prompts.ts'

/** Labels, and the prompt versions that carry them. */
export function defineLabelTables(
  { table, text, boolean, time, index, uniqueIndex, primaryKey }: Columns,
  { organisations, workspaces, prompts, promptVersions }: AccessTables & PromptTables,
) {
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

  return { labels, promptLabels }
}

export type LabelTables = ReturnType<typeof defineLabelTables>
