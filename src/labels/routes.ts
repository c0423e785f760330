import { and, asc, count, desc, eq, isNull, or } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  CreateLabel,
  Label,
  LabelCreated,
  LabelList,
  LabelScopeQuery,
  type Label as LabelWire,
  ListLabelsQuery,
  UpdateLabel,
} from '../../schema/api/labels.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { assertOwnOrganisation, workspaceForList } from '../auth/tenancy.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, type Page, paged, readPage } from '../http/paging.ts'
import { nameContains } from '../prompts/store.ts'
import { createLabel, deleteLabel, getLabel, type LabelRow, updateLabel } from './service.ts'

export const labelRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/labels', normalize: false })
    .decorate(guarded)
    .post('', (context) => createLabel(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('prompts.create', 'Create a label'),
      body: CreateLabel,
      response: { 200: LabelCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'conflict') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        assertOwnOrganisation(caller, query.organisation_id ?? query.organization_id)
        const workspaceId = await workspaceForList(gatehouse.read, caller, query.workspace_id)
        const { rows, total } = await listLabels(
          gatehouse.read,
          caller.organisationId,
          workspaceId,
          query.search,
          readPage(query),
        )
        return listOf(rows.map(presentLabel), total)
      },
      {
        ...requires('prompts.list', 'List labels, the universal ones first'),
        query: ListLabelsQuery,
        response: { 200: LabelList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:labelId',
      async ({ params, query, caller }) => {
        assertOwnOrganisation(caller, query.organisation_id)
        await workspaceForList(gatehouse.read, caller, query.workspace_id)
        return presentLabel(await getLabel(gatehouse.read, caller, params.labelId))
      },
      {
        ...requires('prompts.read', 'Get a label'),
        query: LabelScopeQuery,
        response: { 200: Label, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:labelId',
      (context) => updateLabel(gatehouse, actorOf(gatehouse, context), context.params.labelId, context.body),
      {
        ...requires('prompts.update', 'Update a label'),
        body: UpdateLabel,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'conflict') },
      },
    )
    .delete('/:labelId', (context) => deleteLabel(gatehouse, actorOf(gatehouse, context), context.params.labelId), {
      ...requires('prompts.delete', 'Delete a label'),
      response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found') },
    })

function listLabels(
  read: Gatehouse['read'],
  organisationId: string,
  workspaceId: string | undefined,
  search: string | undefined,
  page: Page,
) {
  const { labels: t } = read.tables
  const where = and(
    eq(t.organisationId, organisationId),
    workspaceId === undefined ? undefined : or(eq(t.workspaceId, workspaceId), isNull(t.workspaceId)),
    search === undefined ? undefined : nameContains(t.name, search),
  )
  const rows = read.select().from(t).where(where).orderBy(desc(t.isUniversal), asc(t.createdAt), asc(t.id))
  return paged(rows, read.select({ n: count() }).from(t).where(where), page)
}

const presentLabel = (row: LabelRow): LabelWire => ({
  id: row.id,
  name: row.name,
  description: row.description,
  color_code: row.colorCode,
  organisation_id: row.organisationId,
  workspace_id: row.workspaceId,
  is_universal: row.isUniversal,
  created_at: new Date(row.createdAt).toISOString(),
  last_updated_at: new Date(row.lastUpdatedAt).toISOString(),
  status: 'active',
  object: 'label',
})
