import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import { ListUsersQuery, UpdateUser, User, UserList } from '../../schema/api/users.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentUser } from './present.ts'
import { deleteUser, getUser, updateUser } from './service.ts'
import { listUsers, workspaceSlugsOf } from './store.ts'

/** Rows of a page when nobody says how many: the ids of one go into one query. */
const PAGE_SIZE = 1000

export const userRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/admin/users', normalize: false })
    .decorate(guarded)
    .get(
      '',
      async ({ query, caller }) => {
        const { read } = gatehouse
        const filter = { role: query.role, email: query.email }
        const { rows, total } = await listUsers(read, caller.organisationId, filter, readPage(query, PAGE_SIZE))
        const slugs = await workspaceSlugsOf(
          read,
          rows.map((row) => row.id),
        )
        return listOf(
          rows.map((row) => presentUser(row, slugs(row.id))),
          total,
        )
      },
      {
        ...requires('organisation_users.list', 'List the people of the organisation, owners first'),
        query: ListUsersQuery,
        response: { 200: UserList, ...problems('invalid', 'unauthenticated', 'forbidden') },
      },
    )
    .get(
      '/:userId',
      async ({ params, caller }) => {
        const user = await getUser(gatehouse.read, caller.organisationId, params.userId)
        return presentUser(user, (await workspaceSlugsOf(gatehouse.read, [user.id]))(user.id))
      },
      {
        ...requires('organisation_users.read', 'Get a person'),
        response: { 200: User, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:userId',
      (context) => updateUser(gatehouse, actorOf(gatehouse, context), context.params.userId, context.body),
      {
        ...requires('organisation_users.update', 'Change the role or the name of a person'),
        body: UpdateUser,
        response: { 200: User, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete('/:userId', (context) => deleteUser(gatehouse, actorOf(gatehouse, context), context.params.userId), {
      ...requires('organisation_users.delete', 'Remove a person, with their memberships and user keys'),
      response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found') },
    })
