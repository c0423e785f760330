import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  AddMembers,
  ListMembersQuery,
  Member,
  MemberList,
  MembersAdded,
  UpdateMember,
} from '../../schema/api/members.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { workspaceSecurity } from '../organisation/settings.ts'
import { getWorkspace, type WorkspaceRow } from '../workspaces/store.ts'
import { presentMember } from './present.ts'
import { addMembers, getMember, removeMember, updateMember } from './service.ts'
import { listMembers } from './store.ts'

/** Of a list of which a page is asked for, without its size (D-18). */
const PAGE_SIZE = 50

export function memberRoutes(gatehouse: Gatehouse, requires: Requires) {
  const { read } = gatehouse
  const securityOf = ({ organisationId, securitySettings }: WorkspaceRow) =>
    workspaceSecurity(read, organisationId, securitySettings)

  return new Elysia({ prefix: '/admin/workspaces/:workspaceId/users', normalize: false })
    .decorate(guarded)
    .post(
      '',
      (context) => addMembers(gatehouse, actorOf(gatehouse, context), context.params.workspaceId, context.body),
      {
        ...requires('workspace_users.create', 'Add people to a workspace'),
        body: AddMembers,
        response: { 200: MembersAdded, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '',
      async ({ params, query, caller }) => {
        const workspace = await getWorkspace(read, caller, params.workspaceId)
        const isPaged = query.current_page !== undefined || query.currentPage !== undefined
        const page = readPage(query, isPaged ? PAGE_SIZE : undefined)
        const { rows, total } = await listMembers(read, workspace.id, { role: query.role, email: query.email }, page)
        const security = await securityOf(workspace)
        return listOf(
          rows.map((row) => presentMember(row, security)),
          total,
        )
      },
      {
        ...requires('workspace_users.list', 'List the members of a workspace'),
        query: ListMembersQuery,
        response: { 200: MemberList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:userId',
      async ({ params, caller }) => {
        const workspace = await getWorkspace(read, caller, params.workspaceId)
        return presentMember(await getMember(read, workspace, params.userId), await securityOf(workspace))
      },
      {
        ...requires('workspace_users.read', 'Get a member of a workspace'),
        response: { 200: Member, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:userId',
      async (context) => {
        const { workspaceId, userId } = context.params
        const actor = actorOf(gatehouse, context)
        const member = await updateMember(gatehouse, actor, workspaceId, userId, context.body.role)
        return presentMember(member, await securityOf(await getWorkspace(read, context.caller, workspaceId)))
      },
      {
        ...requires('workspace_users.update', 'Give a member of a workspace another role'),
        body: UpdateMember,
        response: { 200: Member, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:userId',
      (context) =>
        removeMember(gatehouse, actorOf(gatehouse, context), context.params.workspaceId, context.params.userId),
      {
        ...requires('workspace_users.delete', 'Remove a member from a workspace, and revoke their user keys there'),
        response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
}
