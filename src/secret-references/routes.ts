import { Elysia } from 'elysia'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import {
  CreateSecretReference,
  ListSecretReferencesQuery,
  SecretReference,
  SecretReferenceCreated,
  SecretReferenceList,
  UpdateSecretReference,
} from '../../schema/api/secret-references.ts'
import { SecretReferenceHealth, SecretReferenceTest, TestSecretReference } from '../../schema/api/secret-values.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, type Page, readPage } from '../http/paging.ts'
import { parseStrict } from '../json.ts'
import { readHealth } from './health.ts'
import { presentSecretReferenceRow } from './present.ts'
import { createSecretReference, deleteSecretReference, readSecretReference, updateSecretReference } from './service.ts'
import { listSecretReferences, type SecretTags } from './store.ts'
import { testNewReference, testSecretReference } from './test.ts'

export const secretReferenceRoutes = (gatehouse: Gatehouse, requires: Requires) =>
  new Elysia({ prefix: '/secret-references', normalize: false })
    .decorate(guarded)
    .post('', (context) => createSecretReference(gatehouse, actorOf(gatehouse, context), context.body), {
      ...requires('secret_references.create', 'Create a secret reference; its manager is not asked'),
      body: CreateSecretReference,
      response: { 200: SecretReferenceCreated, ...problems('invalid', 'unauthenticated', 'forbidden') },
    })
    .get(
      '',
      async ({ query, caller }) => {
        const { manager_type: managerType, search } = query
        const filter = { managerType, search, tags: readTags(query.tags) }
        const page = readShortPage(query)
        const { rows, total } = await listSecretReferences(gatehouse.read, caller.organisationId, filter, page)
        return listOf(rows.map(presentSecretReferenceRow), total)
      },
      {
        ...requires('secret_references.list', 'List secret references'),
        query: ListSecretReferencesQuery,
        response: { 200: SecretReferenceList, ...problems('invalid', 'unauthenticated', 'forbidden') },
      },
    )
    .get(
      '/:secretReferenceId',
      (context) => readSecretReference(gatehouse, actorOf(gatehouse, context), context.params.secretReferenceId),
      {
        ...requires('secret_references.read', 'Get a secret reference, its secrets masked'),
        response: { 200: SecretReference, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:secretReferenceId',
      (context) =>
        updateSecretReference(gatehouse, actorOf(gatehouse, context), context.params.secretReferenceId, context.body),
      {
        ...requires('secret_references.update', 'Update a secret reference; what is not sent stays as it is'),
        body: UpdateSecretReference,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:secretReferenceId',
      (context) => deleteSecretReference(gatehouse, actorOf(gatehouse, context), context.params.secretReferenceId),
      {
        ...requires('secret_references.delete', 'Delete a secret reference that nothing uses'),
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .post(
      '/test',
      (context) => {
        gatehouse.mayTakeLong(context.request)
        return testNewReference(gatehouse, actorOf(gatehouse, context), context.body)
      },
      {
        ...requires('secret_references.test', 'Test a secret reference that is not stored, step by step'),
        body: CreateSecretReference,
        response: { 200: SecretReferenceTest, ...problems('invalid', 'unauthenticated', 'forbidden', 'rate_limited') },
      },
    )
    .post(
      '/:secretReferenceId/test',
      (context) => {
        const { secretReferenceId } = context.params
        gatehouse.mayTakeLong(context.request)
        return testSecretReference(
          gatehouse,
          actorOf(gatehouse, context),
          secretReferenceId,
          context.body.fresh === true,
        )
      },
      {
        ...requires('secret_references.test', 'Test a secret reference at its manager, step by step'),
        body: TestSecretReference,
        response: {
          200: SecretReferenceTest,
          ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'rate_limited'),
        },
      },
    )
    .get(
      '/:secretReferenceId/health',
      ({ params, caller }) => readHealth(gatehouse, caller, params.secretReferenceId),
      {
        ...requires('secret_references.read', 'What this node knows of a secret reference; its manager is not asked'),
        response: { 200: SecretReferenceHealth, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )

const PAGE_SIZE = 20
const MAX_PAGE_SIZE = 100

function readShortPage(query: typeof ListSecretReferencesQuery.static): Page {
  const size = Number(query.page_size ?? query.pageSize ?? PAGE_SIZE)
  if (size < 1 || size > MAX_PAGE_SIZE) throw invalidField('page_size', `must be from 1 to ${MAX_PAGE_SIZE}`)
  return readPage(query, PAGE_SIZE)
}

/** @throws GatehouseError `invalid` for anything but the text of a JSON object */
function readTags(text: string | undefined): SecretTags {
  if (text === undefined) return {}
  const tags = parsed(text)
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags))
    throw invalidField('tags', 'must be a JSON object, such as {"team":"core"}')
  return tags as SecretTags
}

function parsed(text: string): unknown {
  try {
    return parseStrict(text).value
  } catch {
    return undefined
  }
}
