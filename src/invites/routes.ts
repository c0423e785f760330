import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  AcceptInvite,
  CreateInvite,
  Invite,
  InviteAccepted,
  InviteCreated,
  InviteList,
  InviteResent,
  ListInvitesQuery,
} from '../../schema/api/invites.ts'
import { createFailures } from '../auth/failures.ts'
import { actorOf, createOpen, guarded, type Requires, requestInfo } from '../auth/guard.ts'
import { GatehouseError } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentUser } from '../users/present.ts'
import { acceptInvite } from './accept.ts'
import { presentInvite } from './present.ts'
import { cancelInvite, createInvite, getInvite, resendInvite } from './service.ts'
import { listInvites } from './store.ts'

const PAGE_SIZE = 1000

export function inviteRoutes(gatehouse: Gatehouse, requires: Requires) {
  const open = createOpen(gatehouse)
  const failures = createFailures()

  return new Elysia({ prefix: '/admin/users/invites', normalize: false })
    .decorate(guarded)
    .post('', (context) => createInvite(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('organisation_users.create', 'Invite somebody into the organisation'),
      body: CreateInvite,
      response: { 200: InviteCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'conflict') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const now = Date.now()
        const filter = { role: query.role, email: query.email, status: query.status }
        const page = readPage(query, PAGE_SIZE)
        const { rows, total } = await listInvites(gatehouse.read, caller.organisationId, filter, page, now)
        return listOf(
          rows.map((row) => presentInvite(row, now)),
          total,
        )
      },
      {
        ...requires('organisation_users.list', 'List invites, newest first'),
        query: ListInvitesQuery,
        response: { 200: InviteList, ...problems('invalid', 'unauthenticated', 'forbidden') },
      },
    )
    .get(
      '/:inviteId',
      async ({ params, caller }) =>
        presentInvite(await getInvite(gatehouse.read, caller.organisationId, params.inviteId), Date.now()),
      {
        ...requires('organisation_users.read', 'Get an invite'),
        response: { 200: Invite, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete('/:inviteId', (context) => cancelInvite(gatehouse, actorOf(gatehouse, context), context.params.inviteId), {
      ...requires('organisation_users.delete', 'Take an invite back'),
      response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    })
    .post(
      '/:inviteId/resend',
      (context) => resendInvite(gatehouse, actorOf(gatehouse, context), context.params.inviteId),
      {
        ...requires('organisation_users.create', 'Make a new link for a pending invite; the old one is dead'),
        body: Nothing,
        response: { 200: InviteResent, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .post(
      '/accept',
      async ({ request, call, body }) => {
        const info = { ...requestInfo(gatehouse, request, call.requestId), body }
        const { user, workspaceSlugs, keys } = await acceptInvite(gatehouse, info, body).catch((error) => {
          if (error instanceof GatehouseError && error.code === 'not_found')
            failures.note(info.clientIp, performance.now())
          throw error
        })
        return { ...presentUser(user, workspaceSlugs), api_keys: keys }
      },
      {
        ...open('Accept an invite; needs its token and no API key'),
        body: AcceptInvite,
        response: {
          200: InviteAccepted,
          ...problems('invalid', 'forbidden', 'not_found', 'conflict', 'rate_limited'),
        },
      },
    )
}
