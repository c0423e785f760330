import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  CreatePartial,
  DeletePartialQuery,
  ListPartialsQuery,
  Partial,
  PartialCreated,
  PartialList,
  PartialUpdated,
  PartialVersionList,
  UpdatePartial,
} from '../../schema/api/partials.ts'
import { MakeDefault, VersionQuery } from '../../schema/api/prompts.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { workspaceForList } from '../auth/tenancy.ts'
import { resolveCollection } from '../collections/store.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentPartial, presentPartialSummary, presentPartialVersion } from './present.ts'
import {
  createPartial,
  deletePartial,
  getPartial,
  getPartialVersion,
  makePartialDefault,
  updatePartial,
} from './service.ts'
import { listPartials, listPartialVersions } from './store.ts'

export const partialRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/prompts/partials', normalize: false })
    .decorate(guarded)
    .post('', (context) => createPartial(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('prompts.create', 'Create a partial', 'prompt_body_bytes'),
      body: CreatePartial,
      response: { 200: PartialCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const workspaceId = await workspaceForList(gatehouse.read, caller, query.workspace_id)
        const collection =
          query.collection_id && (await resolveCollection(gatehouse.read, caller, query.collection_id, undefined))
        const filter = { workspaceId, collectionId: collection ? collection.id : undefined, search: query.search }
        const { rows, total } = await listPartials(gatehouse.read, caller, filter, readPage(query))
        return listOf(rows.map(presentPartialSummary), total)
      },
      {
        ...requires('prompts.list', 'List partials'),
        query: ListPartialsQuery,
        response: { 200: PartialList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:partialId',
      async ({ params, query, caller }) => {
        const partial = await getPartial(gatehouse.read, caller, params.partialId)
        return presentPartial(partial, await getPartialVersion(gatehouse.read, partial, query.version ?? 'default'))
      },
      {
        ...requires('prompts.read', 'Get a partial, its default version unless another is named'),
        query: VersionQuery,
        response: { 200: Partial, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:partialId',
      (context) => updatePartial(gatehouse, actorOf(gatehouse, context), context.params.partialId, context.body),
      {
        ...requires('prompts.update', 'Update a partial; new text becomes a new version', 'prompt_body_bytes'),
        body: UpdatePartial,
        response: { 200: PartialUpdated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:partialId',
      (context) =>
        deletePartial(gatehouse, actorOf(gatehouse, context), context.params.partialId, context.query.force === 'true'),
      {
        ...requires('prompts.delete', 'Delete a partial that no published prompt uses'),
        query: DeletePartialQuery,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'conflict') },
      },
    )
    .get(
      '/:partialId/versions',
      async ({ params, caller }) => {
        const partial = await getPartial(gatehouse.read, caller, params.partialId)
        const versions = await listPartialVersions(gatehouse.read, partial.id)
        return listOf(
          versions.map((version) => presentPartialVersion(partial, version)),
          versions.length,
        )
      },
      {
        ...requires('prompts.read', 'List the versions of a partial'),
        response: { 200: PartialVersionList, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:partialId/makeDefault',
      (context) =>
        makePartialDefault(gatehouse, actorOf(gatehouse, context), context.params.partialId, context.body.version),
      {
        ...requires('prompts.publish', 'Publish a version of a partial'),
        body: MakeDefault,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
