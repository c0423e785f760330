import type { Columns } from '../columns.ts'
import type { AccessTables } from './access.ts'

/** Prompts and partials with their versions, in collections. */
export function definePromptTables(
  { table, text, integer, boolean, time, index, uniqueIndex, primaryKey, oneOf }: Columns,
  { workspaces }: Pick<AccessTables, 'workspaces'>,
) {
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

  return { collections, prompts, promptVersions, partials, partialVersions, promptPartials }
}

export type PromptTables = ReturnType<typeof definePromptTables>
