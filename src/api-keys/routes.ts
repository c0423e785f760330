import { Elysia } from 'elysia'
import {
  ApiKey,
  ApiKeyCreated,
  ApiKeyList,
  ApiKeyRotated,
  CreateApiKey,
  ListApiKeysQuery,
  RotateApiKey,
  UpdateApiKey,
} from '../../schema/api/api-keys.ts'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import { mayTouchKeyOf } from '../auth/ceiling.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { assertOwnOrganisation, workspaceForCreate, workspaceForList } from '../auth/tenancy.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { presentApiKey } from './present.ts'
import { rotateApiKey } from './rotate.ts'
import { API_KEY_TYPES, type ApiKeyType, familyOf } from './scopes.ts'
import { createApiKey, deleteApiKey, getApiKey } from './service.ts'
import { listApiKeyRows } from './store.ts'
import { updateApiKey } from './update.ts'

const anyFamily = (verb: 'list' | 'read' | 'update' | 'delete' | 'rotate') =>
  API_KEY_TYPES.map((type) => `${familyOf(type)}.${verb}` as const)

/** The organisation and the person are always those of the key; the path says which of the three forms is meant. */
export function apiKeyRoutes(gatehouse: Gatehouse, requires: Requires) {
  const createRoute = (type: ApiKeyType, summary: string) => ({
    ...requires(`${familyOf(type)}.create`, summary),
    body: CreateApiKey,
    response: { 200: ApiKeyCreated, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
  })

  async function create(type: ApiKeyType, context: Parameters<typeof actorOf>[1], body: CreateApiKey) {
    const actor = actorOf(gatehouse, context)
    const [ofWhat, subType] = type.split('-')
    for (const [name, said] of [
      ['type', ofWhat],
      ['sub-type', subType],
    ] as const)
      if (body[name] !== undefined && body[name] !== said)
        throw invalidField(name, 'differs from the path; leave it out')
    assertOwnOrganisation(actor.caller, body.organisation_id)
    if (type === 'organisation-service' && body.workspace_id)
      throw invalidField('workspace_id', 'is only for workspace keys; leave it out')
    if (type !== 'organisation-service' && actor.caller.workspaceId === null && !body.workspace_id)
      throw invalidField('workspace_id', 'is required: an admin key must say which workspace the new key is for')
    const workspaceId =
      type === 'organisation-service'
        ? null
        : (await workspaceForCreate(gatehouse.read, actor.caller, body.workspace_id)).id
    const { user_id: userId, organisation_id: _own, workspace_id: _named, type: _type, ...rest } = body
    return createApiKey(gatehouse, actor, { ...rest, type, workspaceId, userId })
  }

  return new Elysia({ prefix: '/api-keys', normalize: false })
    .decorate(guarded)
    .post(
      '/organisation/service',
      (context) => create('organisation-service', context, context.body),
      createRoute('organisation-service', 'Create an admin key'),
    )
    .post(
      '/workspace/service',
      (context) => create('workspace-service', context, context.body),
      createRoute('workspace-service', 'Create a service key of a workspace'),
    )
    .post(
      '/workspace/user',
      (context) => create('workspace-user', context, context.body),
      createRoute('workspace-user', 'Create a key that acts as a person in a workspace'),
    )
    .post(
      '/organisation/user',
      () => {
        throw invalidField(
          '',
          'there are no user keys of an organisation; create one of a workspace at /v1/api-keys/workspace/user',
        )
      },
      {
        ...requires(
          ['organisation_service_api_keys.create', 'workspace_user_api_keys.create'],
          'Always refused: user keys belong to a workspace',
        ),
        body: CreateApiKey,
        response: problems('invalid', 'unauthenticated', 'forbidden'),
      },
    )
    .get(
      '',
      async ({ query, caller }) => {
        const workspaceId = await workspaceForList(gatehouse.read, caller, query.workspace_id)
        const types = API_KEY_TYPES.filter((type) => caller.permissions.has(`${familyOf(type)}.list`))
        const ids = query.ids
          ?.split(',')
          .map((id) => id.trim())
          .filter((id) => id !== '')
        const userId = mayTouchKeyOf(caller, null) ? undefined : caller.userId
        const filter = { organisationId: caller.organisationId, workspaceId, userId, ids, types }
        const { rows, total } = await listApiKeyRows(gatehouse.read, filter, readPage(query))
        return listOf(
          rows.map((row) => presentApiKey(row, Date.now())),
          total,
        )
      },
      {
        ...requires(anyFamily('list'), 'List API keys of the types that the caller may list'),
        query: ListApiKeysQuery,
        response: { 200: ApiKeyList, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .get(
      '/:apiKeyId',
      async ({ params, caller }) =>
        presentApiKey(await getApiKey(gatehouse.read, caller, params.apiKeyId, 'read'), Date.now()),
      {
        ...requires(anyFamily('read'), 'Get an API key; the key itself is masked'),
        response: { 200: ApiKey, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .put(
      '/:apiKeyId',
      (context) => updateApiKey(gatehouse, actorOf(gatehouse, context), context.params.apiKeyId, context.body),
      {
        ...requires(anyFamily('update'), 'Update an API key; absent fields keep their values'),
        body: UpdateApiKey,
        response: { 200: Nothing, ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .post(
      '/:apiKeyId/rotate',
      (context) => rotateApiKey(gatehouse, actorOf(gatehouse, context), context.params.apiKeyId, context.body),
      {
        ...requires(
          [...anyFamily('rotate'), ...anyFamily('update')],
          'Give an API key a new secret; the old one stays valid for a while',
          'admin_body_bytes',
          true,
        ),
        body: RotateApiKey,
        response: {
          200: ApiKeyRotated,
          ...problems('invalid', 'unauthenticated', 'forbidden', 'not_found', 'conflict'),
        },
      },
    )
    .delete(
      '/:apiKeyId',
      async (context) => {
        const { id } = await getApiKey(gatehouse.read, context.caller, context.params.apiKeyId, 'delete')
        return deleteApiKey(gatehouse, actorOf(gatehouse, context), id)
      },
      {
        ...requires(anyFamily('delete'), 'Delete an API key; it is refused from the next request on'),
        response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
}
