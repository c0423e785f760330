import type { PartialSummary, PartialVersion, Partial as PartialWire } from '../../schema/api/partials.ts'
import type { PartialRow, PartialVersionRow } from './store.ts'

const iso = (time: number): string => new Date(time).toISOString()
const statusOf = (partial: PartialRow, number: number) => (partial.defaultVersion === number ? 'active' : 'archived')

export const presentPartialSummary = (row: PartialRow): PartialSummary => ({
  id: row.id,
  slug: row.slug,
  name: row.name,
  collection_id: row.collectionId,
  created_at: iso(row.createdAt),
  last_updated_at: iso(row.lastUpdatedAt),
  status: row.status as PartialSummary['status'],
  object: 'partial',
})

export const presentPartial = (row: PartialRow, version: PartialVersionRow): PartialWire => ({
  ...presentPartialSummary(row),
  workspace_id: row.workspaceId,
  string: version.template,
  version: version.number,
  version_description: version.description,
  prompt_partial_version_id: version.id,
  prompt_partial_version_status: statusOf(row, version.number),
})

export const presentPartialVersion = (row: PartialRow, version: PartialVersionRow): PartialVersion => ({
  prompt_partial_id: row.id,
  prompt_partial_version_id: version.id,
  slug: row.slug,
  version: version.number,
  string: version.template,
  description: version.description,
  created_at: iso(version.createdAt),
  prompt_version_status: statusOf(row, version.number),
  object: 'partial',
})
