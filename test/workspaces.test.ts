import { describe, expect, test } from 'bun:test'
import { getWorkspace } from '../src/workspaces/store.ts'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, defaultTenant } from './support/tenants.ts'

const list = 'GET /v1/admin/workspaces'

describe.each(DIALECTS)('workspaces: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys }) => {
    const tenant = defaultTenant(made)
    const other = await addOrganisation(gatehouse)
    const { organisation_id: organisationId } = made
    names['other_workspace'] = other.workspaceId
    const { slug } = await getWorkspace(gatehouse.read, { ...other, workspaceId: null }, other.workspaceId)
    names['other_slug'] = slug
    names['member'] = await addPerson(gatehouse, organisationId, 'member')
    names['stranger'] = await addPerson(gatehouse, other.organisationId, 'member')
    keys['service'] = await addKey(gatehouse, tenant, 'workspace-service')
    keys['owner'] = await addKey(gatehouse, tenant, 'workspace-user')
    keys['other'] = other.adminKey
  })

  scenarios('POST /v1/admin/workspaces', world, [
    {
      name: 'answers with the workspace, without members',
      body: { name: 'core', defaults: { metadata: { env: 'dev' }, is_default: 0 }, users: ['$member'] },
      expect: 200,
      answer: {
        name: 'core',
        icon: null,
        description: null,
        status: 'active',
        is_default: 0,
        defaults: { metadata: { env: 'dev' }, is_default: 0, object: 'workspace' },
        usage_limits: null,
        rate_limits: null,
        security_settings: {},
        scim_source_id: null,
        object: 'workspace',
      },
      mentions: '"slug":"ws-core-',
      notMentions: '"users"',
      keep: { core: 'id', core_slug: 'slug' },
    },
    {
      name: 'it reads back with members, settings and defaults, by slug as well',
      call: 'GET /v1/admin/workspaces/$core_slug',
      expect: 200,
      answer: {
        id: '$core',
        organisation_id: '$organisation_id',
        users: [{ id: '$member', role: 'member' }],
        defaults: { metadata: { env: 'dev' }, input_guardrails: [], output_guardrails: [], user_api_key_config: null },
        settings: { debug_log: null, user_api_key_ttl: null, user_api_key_count: null },
        created_by: '$user_id',
        creation_source: 'api',
        last_reset_at: null,
      },
    },
    {
      name: 'it has one collection, the default one',
      call: 'GET /v1/collections?workspace_id=$core',
      expect: 200,
      answer: { total: 1, data: [{ name: 'Default', is_default: 1, workspace_id: '$core' }] },
    },
    {
      name: 'limits are completed',
      body: {
        name: 'limited',
        usage_limits: [{ credit_limit: 10, alert_threshold: 8, periodic_reset: 'monthly' }],
        rate_limits: [{ type: 'requests', unit: 'rpm', value: 60 }],
      },
      expect: 200,
      answer: {
        usage_limits: [
          { type: 'cost', credit_limit: 10, alert_threshold: 8, periodic_reset: 'monthly', periodic_reset_days: null },
        ],
        rate_limits: [{ type: 'requests', unit: 'rpm', value: 60 }],
      },
      mentions: '-01T00:00:00.000Z"',
      keep: { limited: 'id' },
    },
    {
      name: 'the time of the next reset is echoed to the letter',
      body: { name: 'echo', usage_limits: [{ credit_limit: 1, next_usage_reset_at: '2031-01-01T05:30:00+05:30' }] },
      expect: 200,
      answer: { usage_limits: [{ next_usage_reset_at: '2031-01-01T05:30:00+05:30' }] },
      keep: { echo: 'id' },
    },
    {
      name: 'an emoji before the name becomes the icon, and the name reads as it was written',
      body: { name: '🚀 rockets' },
      expect: 200,
      answer: { name: '🚀 rockets', icon: '🚀' },
      keep: { rockets: 'id' },
    },
    {
      name: 'a slug of its own',
      body: { name: 'own', slug: 'Own_slug-1', icon: null, description: null, usage_limits: null, users: null },
      expect: 200,
      answer: { slug: 'Own_slug-1' },
      keep: { own: 'id' },
    },
    { name: 'a slug is taken once', body: { name: 'x', slug: 'Own_slug-1' }, expect: 'conflict' },
    {
      name: 'no slug stands for the id of another workspace',
      body: { name: 'x', slug: '$core' },
      expect: 'invalid',
      mentions: '"param":"slug"',
    },
    { name: 'a slug has no path in it', body: { name: 'x', slug: 'a/b' }, expect: 'invalid' },
    { name: 'a name is required', body: {}, expect: 'invalid', mentions: '"param":"name"' },
    {
      name: 'people of other organisations do not exist',
      body: { name: 'x', users: ['$member', '$stranger'] },
      expect: 'invalid',
      mentions: '"param":"users[1]"',
    },
    {
      name: 'nobody makes a second default workspace',
      body: { name: 'x', defaults: { is_default: 1 } },
      expect: 'invalid',
      mentions: '"param":"defaults.is_default"',
    },
    ...['id', 'organisation_id', 'status', 'is_default', 'created_by', 'security_settings', 'role'].map((field) => ({
      name: `${field} is not for the caller to set`,
      body: { name: 'x', [field]: 'x' },
      expect: 'invalid' as const,
      mentions: `"param":"${field}"`,
    })),
    {
      name: 'two ways to reset exclude each other, and a threshold lies below the limit',
      body: {
        name: 'x',
        usage_limits: [{ credit_limit: 5, alert_threshold: 5, periodic_reset: 'weekly', periodic_reset_days: 3 }],
      },
      expect: 'invalid',
      mentions: ['usage_limits[0].periodic_reset_days', 'usage_limits[0].alert_threshold'],
    },
    {
      name: 'usage is limited once',
      body: { name: 'x', usage_limits: [{ credit_limit: 5 }, { credit_limit: 6 }] },
      expect: 'invalid',
    },
    {
      name: 'a reset happens at a time that there is',
      body: { name: 'x', usage_limits: [{ credit_limit: 5, next_usage_reset_at: '2031-02-30T00:00:00Z' }] },
      expect: 'invalid',
    },
    {
      name: 'requests per second are for keys alone',
      body: { name: 'x', rate_limits: [{ type: 'requests', unit: 'rps', value: 1 }] },
      expect: 'invalid',
    },
    { name: 'no workspace key makes workspaces', as: 'service', body: { name: 'x' }, expect: 'forbidden' },
    { name: 'not even the one of the owner', as: 'owner', body: { name: 'x' }, expect: 'forbidden' },
    { name: 'a stranger learns nothing', as: 'nobody', body: {}, expect: 'unauthenticated' },
  ])

  scenarios(list, world, [
    {
      name: 'all of the organisation, the default one first',
      expect: 200,
      answer: {
        object: 'list',
        total: 6,
        data: [{ id: '$workspace_id', is_default: 1 }, { id: '$core' }, {}, {}, {}, {}],
      },
      notMentions: '$other_workspace',
    },
    {
      name: 'a workspace key sees its own',
      as: 'service',
      expect: 200,
      answer: { total: 1, data: [{ id: '$workspace_id' }] },
    },
    {
      name: 'by part of the name',
      call: `${list}?name=ocke`,
      expect: 200,
      answer: { total: 1, data: [{ id: '$rockets' }] },
    },
    { name: 'in its own case', call: `${list}?name=OCKE`, expect: 200, answer: { total: 0 } },
    { name: 'in which no character is special', call: `${list}?name=%25`, expect: 200, answer: { total: 0 } },
    {
      name: 'by the whole name, plain',
      call: `${list}?exact_name=rockets&name_format=plain`,
      expect: 200,
      answer: { total: 1, data: [{ name: 'rockets', icon: '🚀' }] },
    },
    {
      name: 'or as it is displayed',
      call: `${list}?exact_name=%F0%9F%9A%80%20rockets`,
      expect: 200,
      answer: { total: 1, data: [{ name: '🚀 rockets' }] },
    },
    { name: 'a part is not the whole', call: `${list}?exact_name=rocket`, expect: 200, answer: { total: 0 } },
    {
      name: 'page by page, in the spelling of one client',
      call: `${list}?page_size=2&current_page=1`,
      expect: 200,
      answer: { total: 6, data: [{}, {}] },
    },
    {
      name: 'and of another',
      call: `${list}?pageSize=4&currentPage=1`,
      expect: 200,
      answer: { total: 6, data: [{}, {}] },
    },
    {
      name: 'a page past the end is empty',
      call: `${list}?page_size=5&current_page=9`,
      expect: 200,
      answer: { total: 6, data: [] },
    },
    { name: 'no page of nothing', call: `${list}?page_size=0`, expect: 'invalid', mentions: '"param":"page_size"' },
    { name: 'no page of everything', call: `${list}?page_size=1001`, expect: 'invalid' },
    { name: 'no page before the first', call: `${list}?current_page=-1`, expect: 'invalid' },
    {
      name: 'no status but the two',
      call: `${list}?status=active,deleted`,
      expect: 'invalid',
      mentions: '"param":"status"',
    },
    {
      name: 'a workspace key does not ask for archived ones',
      as: 'service',
      call: `${list}?status=active,archived`,
      expect: 'forbidden',
    },
    { name: 'GET /workspaces is no route', call: 'GET /v1/workspaces', expect: 'route_unknown' },
  ])

  scenarios('GET /v1/admin/workspaces/$core', world, [
    { name: 'another workspace does not exist for a workspace key', as: 'service', expect: 'not_found' },
    { name: 'nor for another organisation', as: 'other', expect: 'not_found' },
    { name: 'its own does, by slug', as: 'service', call: 'GET /v1/admin/workspaces/$workspace_slug', expect: 200 },
    {
      name: 'nor does one of another organisation for ours',
      call: 'GET /v1/admin/workspaces/$other_workspace',
      expect: 'not_found',
    },
    { name: 'nor by its slug', call: 'GET /v1/admin/workspaces/$other_slug', expect: 'not_found' },
    { name: 'an unknown one does not', call: 'GET /v1/admin/workspaces/ws-x', expect: 'not_found' },
    {
      name: 'the name without its icon',
      call: 'GET /v1/admin/workspaces/$rockets?name_format=plain',
      expect: 200,
      answer: { name: 'rockets' },
    },
  ])

  scenarios('DELETE /v1/admin/workspaces/$core', world, [
    {
      name: 'another name does not confirm it',
      body: { name: 'limited' },
      expect: 'invalid',
      mentions: '"param":"name"',
    },
    {
      name: 'a key',
      call: 'POST /v1/api-keys/workspace/service',
      body: { name: 'k', workspace_id: '$core', scopes: ['prompts.read'] },
      expect: 200,
      keep: { key: 'id', clear_key: 'key' },
    },
    { name: 'keeps it', body: { name: 'core' }, expect: 'conflict', mentions: 'API keys' },
    {
      name: 'a prompt',
      call: 'POST /v1/prompts',
      body: { name: 'p', string: 'x', parameters: {}, workspace_id: '$core' },
      expect: 200,
    },
    { name: 'keeps it too', expect: 'conflict', mentions: 'API keys and prompts' },
    { name: 'no workspace key deletes', as: 'service', expect: 'forbidden' },
    { name: 'another organisation finds nothing', as: 'other', expect: 'not_found' },
    {
      name: 'with force it goes',
      body: { name: 'core', force_delete: true, workspace_id: '$core' },
      expect: 200,
      answer: {},
    },
    { name: 'and is gone', call: 'GET /v1/admin/workspaces/$core', expect: 'not_found' },
    { name: 'once', body: { force_delete: true }, expect: 'not_found' },
    { name: 'for updates', call: 'PUT /v1/admin/workspaces/$core', body: { name: 'x' }, expect: 'not_found' },
    {
      name: 'for new things',
      call: 'POST /v1/collections',
      body: { name: 'x', workspace_id: '$core' },
      expect: 'not_found',
    },
    { name: 'its key is gone', call: 'GET /v1/api-keys/$key', expect: 'not_found' },
    { name: 'it is listed no more', call: list, expect: 200, answer: { total: 5 } },
    {
      name: 'but among the archived',
      call: `${list}?status=archived`,
      expect: 200,
      answer: { total: 1, data: [{ id: '$core', status: 'archived' }] },
    },
    {
      name: 'the name as it is displayed confirms',
      call: 'DELETE /v1/admin/workspaces/$rockets',
      body: { name: '🚀 rockets' },
      expect: 200,
    },
    { name: 'a body is not needed', call: 'DELETE /v1/admin/workspaces/Own_slug-1', expect: 200 },
    {
      name: 'the default workspace stays',
      call: 'DELETE /v1/admin/workspaces/$workspace_id',
      body: { force_delete: true },
      expect: 'conflict',
    },
  ])

  test('what an archived workspace holds is out of reach of admin keys too', async () => {
    const { call, gatehouse, made } = world()
    const { workspaceId } = await addWorkspace(gatehouse, made.organisation_id)
    const prompt = { name: 'kept', string: 'hello', parameters: {}, model: 'm', workspace_id: workspaceId }
    const { id } = (await call('POST', '/v1/prompts', prompt)).body
    const statuses = async () => [
      (await call('GET', `/v1/prompts/${id}`)).status,
      (await call('POST', `/v1/prompts/${id}/render`, { variables: {} })).status,
    ]
    expect(await statuses()).toEqual([200, 200])
    await call('DELETE', `/v1/admin/workspaces/${workspaceId}`, { force_delete: true })
    expect(await statuses()).toEqual([404, 404])
  })

  test('a key of an archived workspace is refused from the next request on', async () => {
    const { call, gatehouse, made } = world()
    const tenant = { ...defaultTenant(made), ...(await addWorkspace(gatehouse, made.organisation_id)) }
    const keys = [
      await addKey(gatehouse, tenant, 'workspace-service'),
      await addKey(gatehouse, tenant, 'workspace-user'),
    ]
    const statuses = () =>
      Promise.all(keys.map(async (key) => (await call('GET', '/v1/prompts', undefined, { key })).status))
    expect(await statuses()).toEqual([200, 200])
    await call('DELETE', `/v1/admin/workspaces/${tenant.workspaceId}`, { force_delete: true })
    expect(await statuses()).toEqual([401, 401])
  })
})
