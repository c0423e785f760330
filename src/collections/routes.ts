import { Elysia } from 'elysia'
import {
  Collection,
  CollectionCreated,
  CollectionList,
  CreateCollection,
  ListCollectionsQuery,
  UpdateCollection,
} from '../../schema/api/collections.ts'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { workspaceForList } from '../auth/tenancy.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentCollection, presentCollectionRow } from './present.ts'
import { createCollection, deleteCollection, getCollection, renameCollection } from './service.ts'
import { detailsOf, listChildren, listCollections } from './store.ts'

export const collectionRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/collections', normalize: false })
    .decorate(guarded)
    .post('', (context) => createCollection(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('prompts.create', 'Create a collection'),
      body: CreateCollection,
      response: { 200: CollectionCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const workspaceId = await workspaceForList(gatehouse.read, caller, query.workspace_id)
        const { rows, total } = await listCollections(
          gatehouse.read,
          caller,
          { workspaceId, search: query.search },
          readPage(query),
        )
        const details = await detailsOf(
          gatehouse.read,
          rows.map((row) => row.id),
        )
        return listOf(
          rows.map((row) => presentCollectionRow(row, details(row.id))),
          total,
        )
      },
      {
        ...requires('prompts.list', 'List collections'),
        query: ListCollectionsQuery,
        response: { 200: CollectionList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:collectionId',
      async ({ params, caller }) => {
        const collection = await getCollection(gatehouse.read, caller, params.collectionId)
        const children = await listChildren(gatehouse.read, collection.id)
        return presentCollection(
          collection,
          children,
          await detailsOf(
            gatehouse.read,
            children.map((child) => child.id),
          ),
        )
      },
      {
        ...requires('prompts.read', 'Get a collection with its children'),
        response: { 200: Collection, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:collectionId',
      (context) => renameCollection(gatehouse, actorOf(gatehouse, context), context.params.collectionId, context.body),
      {
        ...requires('prompts.update', 'Rename a collection'),
        body: UpdateCollection,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:collectionId',
      (context) => deleteCollection(gatehouse, actorOf(gatehouse, context), context.params.collectionId),
      {
        ...requires('prompts.delete', 'Delete an empty collection'),
        response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found', 'conflict') },
      },
    )
