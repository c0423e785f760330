import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { GRANTABLE } from '../schema/api/permissions.ts'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, defaultTenant } from './support/tenants.ts'

const HOUR = 3_600_000
const inHours = (hours: number): string => new Date(Date.now() + hours * HOUR).toISOString()

describe.each(DIALECTS)('API keys: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys, newKey, call }) => {
    const own = defaultTenant(made)
    const second = await addWorkspace(gatehouse, made.organisation_id)
    const other = await addOrganisation(gatehouse)
    keys['service'] = await addKey(gatehouse, own, 'workspace-service')
    keys['user'] = await addKey(gatehouse, own, 'workspace-user')
    keys['elsewhere'] = await addKey(gatehouse, { ...own, ...second }, 'workspace-service')
    keys['foreign'] = other.adminKey
    const minting = ['workspace_service_api_keys.create']
    keys['manager'] = await addKey(gatehouse, own, 'workspace-service', minting)
    keys['person'] = await addKey(gatehouse, own, 'workspace-user', minting)
    const scopes = ['workspace_service_api_keys.create', 'organisation_service_api_keys.create', 'prompts.read']
    keys['minter'] = (await newKey('organisation/service', scopes)).key
    keys['expiring'] = (await newKey('organisation/service', scopes, { expires_at: inHours(1) })).key
    Object.assign(names, { second_workspace: second.workspaceId, second_slug: second.workspaceSlug })
    names['foreign_person'] = other.userId
    // a manager of the workspace, by a user key of their own
    const manager = await addPerson(gatehouse, made.organisation_id, 'member')
    await call('POST', `/v1/admin/workspaces/${made.workspace_id}/users`, { users: [{ id: manager, role: 'manager' }] })
    names['manager_person'] = manager
    const managing = [
      'workspace_user_api_keys.create',
      'workspace_user_api_keys.rotate',
      'workspace_user_api_keys.update',
      'prompts.read',
    ]
    keys['managing'] = await addKey(
      gatehouse,
      { ...own, userId: manager, collectionId: '' },
      'workspace-user',
      managing,
    )
    names['owner_key'] = (
      await newKey('workspace/user', ['prompts.read'], { workspace_id: made.workspace_id, user_id: made.user_id })
    ).id
    names['stranger'] = await addPerson(gatehouse, made.organisation_id, 'member')
    names['admin_person'] = await addPerson(gatehouse, made.organisation_id, 'admin')
  })
  const key = { name: 'k', scopes: ['prompts.read'] }
  const ofWorkspace = { ...key, workspace_id: '$workspace_id' }

  scenarios('POST /v1/api-keys/organisation/service', world, [
    {
      name: 'an id and the clear key, which looks like one',
      body: { ...key, description: 'd' },
      expect: 200,
      mentions: ['"key":"gth_a_', '"object":"api-key"'],
      keep: { a: 'id', a_key: 'key' },
    },
    {
      name: 'afterwards it is only seen masked',
      call: 'GET /v1/api-keys/$a',
      expect: 200,
      answer: {
        id: '$a',
        name: 'k',
        description: 'd',
        key: expect.stringMatching(/^[0-9A-Za-z]{2}\*{5}[0-9A-Za-z]{3}$/),
        type: 'organisation-service',
        organisation_id: '$organisation_id',
        workspace_id: null,
        user_id: null,
        status: 'active',
        creation_mode: 'api',
        scopes: ['prompts.read'],
        expires_at: null,
        expiry_enforced: 0,
        rate_limits: null,
        usage_limits: null,
        object: 'api-key',
      },
      notMentions: 'gth_',
    },
    {
      name: 'scopes keep their order, once each, in one spelling',
      body: { name: 'k', scopes: ['logs:view', 'prompts.read', 'logs.view', 'organisation-service-api-keys.rotate'] },
      expect: 200,
      keep: { ordered: 'id' },
    },
    {
      name: 'and read back so',
      call: 'GET /v1/api-keys/$ordered',
      expect: 200,
      answer: { scopes: ['logs.view', 'prompts.read', 'organisation_service_api_keys.rotate'] },
    },
    { name: 'it is not for a workspace', body: ofWorkspace, expect: 'invalid', mentions: '"param":"workspace_id"' },
    {
      name: 'nor for a person',
      body: { ...key, user_id: '$user_id' },
      expect: 'invalid',
      mentions: '"param":"user_id"',
    },
    { name: 'its own organisation may be named', body: { ...key, organisation_id: '$organisation_id' }, expect: 200 },
    { name: 'another one may not', body: { ...key, organisation_id: '$workspace_id' }, expect: 'forbidden' },
    {
      name: 'clients may repeat what the path says',
      body: { ...key, type: 'organisation', 'sub-type': 'service' },
      expect: 200,
    },
    { name: 'a workspace key makes none', as: 'service', body: key, expect: 'forbidden' },
  ])

  scenarios('POST /v1/api-keys/workspace/service', world, [
    { name: 'a workspace by id', body: ofWorkspace, expect: 200, mentions: '"key":"gth_w_', keep: { w: 'id' } },
    {
      name: 'a workspace by slug',
      body: { ...key, workspace_id: '$second_slug', expires_at: '2999-01-01T00:00:00+02:00' },
      expect: 200,
      keep: { w2: 'id' },
    },
    {
      name: 'is read back by id',
      call: 'GET /v1/api-keys/$w2',
      expect: 200,
      answer: {
        type: 'workspace-service',
        workspace_id: '$second_workspace',
        user_id: null,
        expires_at: '2999-01-01T00:00:00+02:00',
      },
    },
    { name: 'an admin key must say which', body: key, expect: 'invalid', mentions: '"param":"workspace_id"' },
    { name: 'an unknown one does not exist', body: { ...key, workspace_id: 'ws-x' }, expect: 'not_found' },
    { name: 'a workspace key need not', as: 'service', body: key, expect: 200 },
    {
      name: 'and may not say another',
      as: 'service',
      body: { ...key, workspace_id: '$second_workspace' },
      expect: 'forbidden',
    },
    {
      name: 'a scope of organisations is refused',
      body: { ...ofWorkspace, scopes: ['audit_logs.list'] },
      expect: 'invalid',
      mentions: '"param":"scopes[0]"',
    },
    {
      name: 'an admin key gives scopes of the data plane that it cannot hold',
      body: {
        ...ofWorkspace,
        scopes: ['completions.write', 'logs.write', 'guardrails.invoke', 'mcp.invoke', 'agents.invoke'],
      },
      expect: 200,
    },
    {
      name: 'so does a service key, the manager of its workspace',
      as: 'manager',
      body: { ...key, scopes: ['completions.write'] },
      expect: 200,
    },
    {
      name: 'a user key gives what it holds, no more',
      as: 'person',
      body: { ...key, scopes: ['workspace_service_api_keys.create', 'prompts.delete'] },
      expect: 'forbidden',
      mentions: 'prompts.delete',
    },
    {
      name: 'nobody gives a scope that they do not hold',
      as: 'minter',
      body: { ...ofWorkspace, scopes: ['prompts.read', 'prompts.delete'] },
      expect: 'forbidden',
      mentions: 'prompts.delete',
    },
    { name: 'what they hold they may give', as: 'minter', body: ofWorkspace, expect: 200 },
    { name: 'a person may not be named', body: { ...ofWorkspace, user_id: '$user_id' }, expect: 'invalid' },
  ])

  scenarios('POST /v1/api-keys/workspace/user', world, [
    {
      name: 'the three fields of the interface, with a workspace key',
      as: 'service',
      body: ofWorkspace,
      expect: 200,
      keep: { u: 'id' },
    },
    {
      name: 'make a key for the accountable person',
      call: 'GET /v1/api-keys/$u',
      expect: 200,
      answer: { type: 'workspace-user', user_id: '$user_id', workspace_id: '$workspace_id' },
    },
    {
      name: 'an organisation admin belongs to every workspace',
      body: { ...ofWorkspace, user_id: '$admin_person' },
      expect: 200,
    },
    {
      name: 'a member of no workspace does not',
      body: { ...ofWorkspace, user_id: '$stranger' },
      expect: 'invalid',
      mentions: '"param":"user_id"',
    },
    {
      name: 'nor does a person of another organisation',
      body: { ...ofWorkspace, user_id: '$foreign_person' },
      expect: 'invalid',
      mentions: '"param":"user_id"',
    },
    {
      name: 'nor an unknown one',
      body: { ...ofWorkspace, user_id: '$a' },
      expect: 'invalid',
      mentions: '"param":"user_id"',
    },
    {
      name: 'a manager names the owner, and would act as them',
      as: 'managing',
      body: { ...key, user_id: '$user_id' },
      expect: 'forbidden',
      mentions: 'user_id',
    },
    { name: 'a manager names themselves', as: 'managing', body: { ...key, user_id: '$manager_person' }, expect: 200 },
    {
      name: 'a manager rotates the key of the owner',
      as: 'managing',
      call: 'POST /v1/api-keys/$owner_key/rotate',
      expect: 'forbidden',
    },
    {
      name: 'or widens it',
      as: 'managing',
      call: 'PUT /v1/api-keys/$owner_key',
      body: { scopes: ['prompts.read', 'workspace_user_api_keys.rotate'] },
      expect: 'forbidden',
    },
    {
      name: 'no user keys of organisations',
      call: 'POST /v1/api-keys/organisation/user',
      body: key,
      expect: 'invalid',
      mentions: 'workspace/user',
    },
  ])

  scenarios('POST /v1/api-keys/organisation/service, from a key that expires', world, [
    ...[null, inHours(2)].map((expires_at) => ({
      name: `a key of its own kind may not outlive it: ${expires_at === null ? 'for ever' : 'an hour longer'}`,
      as: 'expiring',
      call: 'POST /v1/api-keys/organisation/service',
      body: { ...key, expires_at },
      expect: 'forbidden' as const,
    })),
    {
      name: 'one that ends earlier may',
      as: 'expiring',
      call: 'POST /v1/api-keys/organisation/service',
      body: { ...key, expires_at: inHours(0.5) },
      expect: 200,
    },
    {
      name: 'a key of another type is none of its own kind',
      as: 'expiring',
      call: 'POST /v1/api-keys/workspace/service',
      body: ofWorkspace,
      expect: 200,
    },
  ])

  scenarios('GET /v1/api-keys', world, [
    {
      name: 'a workspace key sees the keys of its workspace',
      as: 'elsewhere',
      expect: 200,
      answer: { object: 'list', total: 2 },
      notMentions: ['organisation-service', '$w"'],
    },
    { name: 'a workspace', call: 'GET /v1/api-keys?workspace_id=$second_slug', expect: 200, answer: { total: 2 } },
    {
      name: 'some by id, in the order they were made',
      call: 'GET /v1/api-keys?ids=$w,%20$a,',
      expect: 200,
      answer: { total: 2, data: [{ id: '$a' }, { id: '$w' }] },
    },
    {
      name: 'a page',
      call: 'GET /v1/api-keys?ids=$w,$a&page_size=1&current_page=1',
      expect: 200,
      answer: { total: 2, data: [{ id: '$w' }] },
    },
    { name: 'no clear key, ever', expect: 200, notMentions: ['gth_', '$a_key'] },
    { name: 'another organisation sees its own alone', as: 'foreign', expect: 200, answer: { total: 1 } },
    { name: 'a key without any list scope sees nothing', as: 'minter', expect: 'forbidden' },
    {
      name: 'only the families that it may list',
      call: 'POST /v1/api-keys/organisation/service',
      body: { name: 'k', scopes: ['workspace_user_api_keys.list', 'workspace_user_api_keys.read'] },
      expect: 200,
      keep: { lister: 'id', lister_key: 'key' },
    },
  ])

  test('a key lists, reads and deletes the families that its scopes name, and no others', async () => {
    const { call, names } = world()
    const asLister = { key: names['lister_key'] ?? '' }
    const listed = (await call('GET', '/v1/api-keys', undefined, asLister)).body
    expect([...new Set(listed.data.map((row: { type: string }) => row.type))]).toEqual(['workspace-user'])
    expect((await call('GET', `/v1/api-keys/${names['u']}`, undefined, asLister)).status).toBe(200)
    expectProblem(await call('GET', `/v1/api-keys/${names['a']}`, undefined, asLister), 'forbidden')
    expectProblem(await call('DELETE', `/v1/api-keys/${names['u']}`, undefined, asLister), 'forbidden')
  })

  scenarios('DELETE /v1/api-keys/$w', world, [
    { name: 'another workspace does not see it', as: 'elsewhere', expect: 'not_found' },
    { name: 'nor does another organisation', as: 'foreign', expect: 'not_found' },
    { name: 'its own does', as: 'user', expect: 200, answer: {} },
    { name: 'it is gone', call: 'GET /v1/api-keys/$w', expect: 'not_found' },
    { name: 'it is gone from lists', call: 'GET /v1/api-keys?ids=$w', expect: 200, answer: { total: 0 } },
    { name: 'a second delete finds nothing', expect: 'not_found' },
  ])

  test('the audit row of a delete says what the key could do, for whom and until when', async () => {
    const { call, newKey, made, gatehouse } = world()
    const expires_at = '2999-01-01T00:00:00Z'
    const { id } = await newKey('workspace/user', ['prompts.list'], { workspace_id: made.workspace_id, expires_at })
    await call('DELETE', `/v1/api-keys/${id}`)
    const [row] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({ action: 'delete', resource_id: id })
    expect(row?.details).toEqual({
      before: {
        type: 'workspace-user',
        scopes: ['prompts.list'],
        workspace_id: made.workspace_id,
        user_id: made.user_id,
        expires_at,
        status: 'active',
      },
    })
  })

  test('a deleted key is refused from the next request on, however many are under way', async () => {
    const { call, newKey } = world()
    const { id, key: clear } = await newKey('organisation/service', ['prompts.list'])
    const asIt = () => call('GET', '/v1/prompts', undefined, { key: clear })
    expect((await asIt()).status).toBe(200)
    await call('DELETE', `/v1/api-keys/${id}`)
    for (const answer of await Promise.all(Array.from({ length: 20 }, asIt))) expectProblem(answer, 'unauthenticated')
  })

  test('a key may delete itself, and is then refused', async () => {
    const { call, newKey } = world()
    const { id, key: clear } = await newKey('organisation/service', ['organisation_service_api_keys.delete'])
    expect((await call('DELETE', `/v1/api-keys/${id}`, undefined, { key: clear })).status).toBe(200)
    expectProblem(await call('DELETE', `/v1/api-keys/${id}`, undefined, { key: clear }), 'unauthenticated')
  })

  test('an expired key is refused, and reads as expired', async () => {
    const { call, newKey } = world()
    const expires_at = new Date(Date.now() + 300).toISOString()
    const { id, key: clear } = await newKey('organisation/service', ['prompts.list'], { expires_at })
    await Bun.sleep(350)
    expectProblem(await call('GET', '/v1/prompts', undefined, { key: clear }), 'unauthenticated')
    expect((await call('GET', `/v1/api-keys/${id}`)).body).toMatchObject({ status: 'expired', expires_at })
  })

  test('the database holds no clear key, and every key has its accountable person', async () => {
    const { gatehouse, names, made } = world()
    const { apiKeys, auditEvents } = gatehouse.read.tables
    const [row] = await gatehouse.read
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.id, names['a'] ?? ''))
    const events = await gatehouse.read.select().from(auditEvents)
    const random = names['a_key']?.slice(6, 36) ?? ''
    expect(random).toHaveLength(30)
    expect(JSON.stringify([row, events])).not.toContain(random)
    expect(row?.accountableUserId).toBe(made.user_id)
  })

  test('the first admin key holds every scope that its type may hold', async () => {
    const { call } = world()
    const first = (await call('GET', '/v1/api-keys')).body.data[0]
    expect(new Set(first.scopes)).toEqual(GRANTABLE['organisation-service'])
    expect(first).toMatchObject({ name: 'first admin key', creation_mode: 'auto' })
  })
})
