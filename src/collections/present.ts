import type { CollectionRow as CollectionRowWire, Collection as CollectionWire } from '../../schema/api/collections.ts'
import type { CollectionDetails, CollectionRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()

const presentDetails = ({ children, prompts, childrenUpdatedAt, promptsUpdatedAt }: CollectionDetails) => ({
  child_collections_count: children,
  prompts_count: prompts,
  child_collections_last_updated_at: childrenUpdatedAt === null ? null : iso(childrenUpdatedAt),
  prompts_last_updated_at: promptsUpdatedAt === null ? null : iso(promptsUpdatedAt),
})

const presentFields = (row: CollectionRow) => ({
  id: row.id,
  name: row.name,
  workspace_id: row.workspaceId,
  slug: row.slug,
  parent_collection_id: row.parentCollectionId,
  is_default: row.isDefault ? (1 as const) : (0 as const),
  status: 'active' as const,
  created_at: iso(row.createdAt),
  last_updated_at: iso(row.lastUpdatedAt),
  object: 'collection' as const,
})

export const presentCollectionRow = (row: CollectionRow, details: CollectionDetails): CollectionRowWire => ({
  ...presentFields(row),
  collection_details: presentDetails(details),
})

export const presentCollection = (
  row: CollectionRow,
  children: CollectionRow[],
  details: (id: string) => CollectionDetails,
): CollectionWire => ({
  ...presentFields(row),
  child_collections: children.map((child) => ({
    id: child.id,
    name: child.name,
    last_updated_at: iso(child.lastUpdatedAt),
    collection_details: presentDetails(details(child.id)),
  })),
})
