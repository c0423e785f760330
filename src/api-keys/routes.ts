import { Elysia } from 'elysia'
import {
  ApiKey,
  ApiKeyCreated,
  ApiKeyList,
  type ApiKey as ApiKeyWire,
  CreateApiKey,
  ListApiKeysQuery,
} from '../../schema/api/api-keys.ts'
import { Nothing } from '../../schema/api/common.ts'
import { problems } from '../../schema/api/errors.ts'
import type { Caller } from '../auth/caller.ts'
import { actorOf, guarded, type Requires } from '../auth/guard.ts'
import { assertOwnOrganisation, reaches, workspaceForCreate, workspaceForList } from '../auth/tenancy.ts'
import { GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { listOf, readPage } from '../http/paging.ts'
import { type ApiKeyType, createApiKey, deleteApiKey, familyOf } from './service.ts'
import { type ApiKeyRow, findApiKey, listApiKeyRows } from './store.ts'

const TYPES: readonly ApiKeyType[] = ['organisation-service', 'workspace-service', 'workspace-user']
const anyFamily = (verb: 'list' | 'read' | 'delete') => TYPES.map((type) => `${familyOf(type)}.${verb}` as const)

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
    const { name, scopes, description = null, user_id: userId } = body
    const expiresAt = readTime(body.expires_at)
    const made = await createApiKey(gatehouse, actor, {
      type,
      name,
      scopes,
      description,
      workspaceId,
      userId,
      expiresAt,
    })
    return { ...made, object: 'api-key' as const }
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
        const types = TYPES.filter((type) => caller.permissions.has(`${familyOf(type)}.list`))
        const ids = query.ids
          ?.split(',')
          .map((id) => id.trim())
          .filter((id) => id !== '')
        const filter = { organisationId: caller.organisationId, workspaceId, ids, types }
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
        presentApiKey(await getApiKey(gatehouse, caller, params.apiKeyId, 'read'), Date.now()),
      {
        ...requires(anyFamily('read'), 'Get an API key; the key itself is masked'),
        response: { 200: ApiKey, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
    .delete(
      '/:apiKeyId',
      async (context) => {
        const { id } = await getApiKey(gatehouse, context.caller, context.params.apiKeyId, 'delete')
        return deleteApiKey(gatehouse, actorOf(gatehouse, context), id)
      },
      {
        ...requires(anyFamily('delete'), 'Delete an API key; it is refused from the next request on'),
        response: { 200: Nothing, ...problems('unauthenticated', 'forbidden', 'not_found') },
      },
    )
}

/** A key within the caller's reach, if the caller holds the permission of that key's own family. */
async function getApiKey(
  gatehouse: Gatehouse,
  caller: Caller,
  id: string,
  verb: 'read' | 'delete',
): Promise<ApiKeyRow> {
  const row = await findApiKey(gatehouse.read, caller.organisationId, id)
  if (row === undefined || row.type === 'system' || !reaches(caller, row)) throw notFound('API key')
  const permission = `${familyOf(row.type as ApiKeyType)}.${verb}` as const
  if (!caller.permissions.has(permission))
    throw new GatehouseError('forbidden', `this API key lacks the scope ${permission}`)
  return row
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

function readTime(written: string | null | undefined): number | null {
  if (written === null || written === undefined) return null
  const time = RFC3339.test(written) ? Date.parse(written) : Number.NaN
  if (Number.isNaN(time)) throw invalidField('expires_at', 'must be a time such as 2030-01-31T12:00:00Z')
  return time
}

/** @param now UTC milliseconds */
const presentApiKey = (row: ApiKeyRow, now: number): ApiKeyWire => ({
  id: row.id,
  key: row.masked,
  name: row.name,
  description: row.description,
  type: row.type as ApiKeyType,
  organisation_id: row.organisationId,
  workspace_id: row.workspaceId,
  user_id: row.userId,
  status: row.expiresAt !== null && row.expiresAt <= now ? 'expired' : 'active',
  creation_mode: row.creationMode as ApiKeyWire['creation_mode'],
  rate_limits: null,
  usage_limits: null,
  reset_usage: null,
  scopes: JSON.parse(row.scopes) as string[],
  defaults: null,
  allow_config_override: null,
  api_key_defaults_id: null,
  alert_emails: null,
  expires_at: row.expiresAt === null ? null : new Date(row.expiresAt).toISOString(),
  last_reset_at: null,
  next_usage_reset_at: null,
  expiry_enforced: 0,
  rotation_policy: null,
  created_at: new Date(row.createdAt).toISOString(),
  last_updated_at: new Date(row.lastUpdatedAt).toISOString(),
  object: 'api-key',
})
