import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  CreateWorkspace,
  DeleteWorkspace,
  GetWorkspaceQuery,
  ListWorkspacesQuery,
  UpdateWorkspace,
  Workspace,
  WorkspaceDetail,
  WorkspaceList,
} from '../../schema/api/workspaces.ts'
import type { Caller } from '../auth/caller.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentWorkspace, presentWorkspaceDetail } from './present.ts'
import { createWorkspace, deleteWorkspace, updateWorkspace } from './service.ts'
import { getWorkspace, listPeople, listWorkspaces, type WorkspaceStatus } from './store.ts'

export const workspaceRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/admin/workspaces', normalize: false })
    .decorate(guarded)
    .post('', (context) => createWorkspace(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('workspaces.create', 'Create a workspace, with its default collection'),
      body: CreateWorkspace,
      response: { 200: Workspace, ...problems('invalid', 'unauthenticated', 'forbidden', 'conflict') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const filter = { name: query.name, exactName: query.exact_name, statuses: readStatuses(caller, query.status) }
        const { rows, total } = await listWorkspaces(gatehouse.read, caller, filter, readPage(query))
        return listOf(
          rows.map((row) => presentWorkspace(row, query.name_format)),
          total,
        )
      },
      {
        ...requires('workspaces.list', 'List workspaces; a workspace key sees its own'),
        query: ListWorkspacesQuery,
        response: { 200: WorkspaceList, ...problems('invalid', 'unauthenticated', 'forbidden') },
      },
    )
    .get(
      '/:workspaceId',
      async ({ params, query, caller }) => {
        const workspace = await getWorkspace(gatehouse.read, caller, params.workspaceId)
        return presentWorkspaceDetail(workspace, await listPeople(gatehouse.read, workspace.id), query.name_format)
      },
      {
        ...requires('workspaces.read', 'Get a workspace with its members and settings'),
        query: GetWorkspaceQuery,
        response: { 200: WorkspaceDetail, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:workspaceId',
      async (context) => {
        const { params, body } = context
        return presentWorkspace(await updateWorkspace(gatehouse, actorOf(gatehouse, context), params.workspaceId, body))
      },
      {
        ...requires('workspaces.update', 'Update a workspace; what is not sent stays as it is'),
        body: UpdateWorkspace,
        response: { 200: Workspace, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:workspaceId',
      (context) => deleteWorkspace(gatehouse, actorOf(gatehouse, context), context.params.workspaceId, context.body),
      {
        ...requires('workspaces.delete', 'Archive a workspace and revoke its keys'),
        body: DeleteWorkspace,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'conflict') },
      },
    )

function readStatuses(caller: Caller, written = 'active'): WorkspaceStatus[] {
  const statuses = written.split(',') as WorkspaceStatus[]
  if (caller.workspaceId !== null && statuses.includes('archived'))
    throw new GatehouseError('forbidden', 'archived workspaces are listed for admin keys alone')
  return statuses
}
