import { describe, expect, test } from 'bun:test'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, defaultTenant, type Tenant } from './support/tenants.ts'

const users = '/v1/admin/workspaces/$team/users'

describe.each(DIALECTS)('members: %s', (dialect) => {
  let team: Tenant
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys }) => {
    const { organisation_id: organisationId } = made
    const workspace = await addWorkspace(gatehouse, organisationId)
    const other = await addOrganisation(gatehouse)
    team = { ...defaultTenant(made), ...workspace }
    Object.assign(names, { team: team.workspaceId, team_slug: workspace.workspaceSlug })
    for (const name of ['ann', 'ben', 'cleo']) names[name] = await addPerson(gatehouse, organisationId, 'member')
    names['admin'] = await addPerson(gatehouse, organisationId, 'admin')
    names['stranger'] = await addPerson(gatehouse, other.organisationId, 'member')
    keys['service'] = await addKey(gatehouse, team, 'workspace-service')
    keys['elsewhere'] = await addKey(gatehouse, defaultTenant(made), 'workspace-service')
    keys['other'] = other.adminKey
  })
  const userKeyOf = (name: string) =>
    addKey(world().gatehouse, { ...team, userId: world().names[name]! }, 'workspace-user')
  const statusOf = async (key: string) => (await world().call('GET', '/v1/prompts', undefined, { key })).status

  scenarios(`POST ${users}`, world, [
    {
      name: 'one person is answered with the member',
      body: { user_id: '$ann', role: 'manager' },
      expect: 200,
      answer: {
        object: 'workspace-user',
        id: '$ann',
        org_role: 'member',
        role: 'manager',
        status: 'active',
        workspace_id: '$team',
        email: '$ann@example.com',
        first_name: '',
        settings: null,
      },
      mentions: '"workspace_service_api_keys.create"',
    },
    {
      name: 'a list is answered with nothing, and the path may hold a slug',
      call: 'POST /v1/admin/workspaces/$team_slug/users',
      body: {
        users: [
          { id: '$ben', role: 'member' },
          { id: '$user_id', role: 'member' },
        ],
        workspace_id: '$team_slug',
      },
      expect: 200,
      answer: {},
      notMentions: 'id',
    },
    {
      name: 'the owner is an admin, whatever was asked for',
      call: `GET ${users}/$user_id`,
      expect: 200,
      answer: { id: '$user_id', org_role: 'owner', role: 'admin' },
    },
    {
      name: 'a member makes no keys (spec 5.3)',
      call: `GET ${users}/$ben`,
      expect: 200,
      answer: { role: 'member' },
      notMentions: 'api_keys',
    },
    {
      name: 'the same again is no failure',
      body: { user_id: '$ann', role: 'manager' },
      expect: 200,
      answer: { role: 'manager' },
    },
    {
      name: 'another role is an update',
      body: { user_id: '$ann', role: 'admin' },
      expect: 200,
      answer: { role: 'admin' },
    },
    { name: 'who is a member twice is counted once', call: `GET ${users}`, expect: 200, answer: { total: 3 } },
    {
      name: 'people of other organisations do not exist',
      body: { user_id: '$stranger', role: 'member' },
      expect: 'not_found',
    },
    {
      name: 'a list is taken whole or not at all',
      body: {
        users: [
          { id: '$cleo', role: 'member' },
          { id: '$stranger', role: 'member' },
        ],
      },
      expect: 'not_found',
    },
    { name: 'so nobody of it is a member', call: `GET ${users}/$cleo`, expect: 'not_found' },
    {
      name: 'nobody is named twice',
      body: {
        users: [
          { id: '$cleo', role: 'member' },
          { id: '$cleo', role: 'admin' },
        ],
      },
      expect: 'invalid',
      mentions: '"param":"users[1].id"',
    },
    {
      name: 'not both forms',
      body: { users: [{ id: '$cleo', role: 'member' }], user_id: '$cleo', role: 'member' },
      expect: 'invalid',
    },
    { name: 'nor none', body: {}, expect: 'invalid' },
    { name: 'nor an empty list', body: { users: [] }, expect: 'invalid', mentions: '"param":"users"' },
    {
      name: 'owners are not made here',
      body: { user_id: '$cleo', role: 'owner' },
      expect: 'invalid',
      mentions: '"param":"role"',
    },
    ...['org_role', 'scopes', 'status', 'organisation_id'].map((field) => ({
      name: `${field} is not for the caller to set`,
      body: { user_id: '$cleo', role: 'member', [field]: 'admin' },
      expect: 'invalid' as const,
    })),
    {
      name: 'the body names the workspace of the path',
      body: { user_id: '$cleo', role: 'member', workspace_id: '$workspace_id' },
      expect: 'invalid',
      mentions: '"param":"workspace_id"',
    },
    {
      name: 'no workspace key adds people (spec 5.4)',
      as: 'service',
      body: { user_id: '$cleo', role: 'member' },
      expect: 'forbidden',
    },
    {
      name: 'an unknown workspace',
      call: 'POST /v1/admin/workspaces/ws-x/users',
      body: { user_id: '$cleo', role: 'member' },
      expect: 'not_found',
    },
    {
      name: 'another organisation finds none',
      as: 'other',
      body: { user_id: '$stranger', role: 'member' },
      expect: 'not_found',
    },
  ])

  scenarios(`GET ${users}`, world, [
    {
      name: 'oldest membership first',
      expect: 200,
      answer: { object: 'list', total: 3, data: [{ id: '$ann' }, { id: '$user_id' }, { id: '$ben' }] },
    },
    { name: 'for a key of the workspace', as: 'service', expect: 200, answer: { total: 3 } },
    { name: 'for no key of another one', as: 'elsewhere', expect: 'not_found' },
    { name: 'owners are found as admins', call: `GET ${users}?role=admin`, expect: 200, answer: { total: 2 } },
    {
      name: 'and not as members',
      call: `GET ${users}?role=member`,
      expect: 200,
      answer: { total: 1, data: [{ id: '$ben' }] },
    },
    {
      name: 'by address, in any case',
      call: `GET ${users}?email=OWNER@EXAMPLE.COM`,
      expect: 200,
      answer: { total: 1, data: [{ id: '$user_id' }] },
    },
    { name: 'an address is whole', call: `GET ${users}?email=owner`, expect: 200, answer: { total: 0 } },
    {
      name: 'a page',
      call: `GET ${users}?current_page=1&page_size=2&workspaceId=$team`,
      expect: 200,
      answer: { total: 3, data: [{}] },
    },
    {
      name: 'a page has 50 rows unless it is said',
      call: `GET ${users}?currentPage=1`,
      expect: 200,
      answer: { total: 3, data: [] },
    },
    { name: 'no page of nothing', call: `GET ${users}?pageSize=0`, expect: 'invalid' },
    { name: 'a role is one of three', call: `GET ${users}?role=owner`, expect: 'invalid' },
  ])

  scenarios(`PUT ${users}/$ben`, world, [
    {
      name: 'another role',
      body: { role: 'manager', user_id: '$ben', workspace_id: '$team' },
      expect: 200,
      answer: { id: '$ben', role: 'manager' },
    },
    { name: 'is read at once', call: `GET ${users}/$ben`, expect: 200, answer: { role: 'manager' } },
    { name: 'a role is required', body: {}, expect: 'invalid', mentions: '"param":"role"' },
    { name: 'the body names the person of the path', body: { role: 'member', user_id: '$ann' }, expect: 'invalid' },
    { name: 'who is no member has no role', call: `PUT ${users}/$cleo`, body: { role: 'member' }, expect: 'not_found' },
    {
      name: 'the owner stays an admin',
      call: `PUT ${users}/$user_id`,
      body: { role: 'member' },
      expect: 200,
      answer: { role: 'admin' },
    },
    { name: 'no workspace key changes roles', as: 'service', body: { role: 'admin' }, expect: 'forbidden' },
    { name: 'nor one of another workspace', as: 'elsewhere', body: { role: 'admin' }, expect: 'forbidden' },
  ])

  test('a new role holds for the keys of the person from the next request on', async () => {
    const { call, names } = world()
    const key = await userKeyOf('ben')
    const listKeys = async () => (await call('GET', '/v1/api-keys', undefined, { key })).status
    expect(await listKeys()).toBe(200)
    await call('PUT', `/v1/admin/workspaces/${team.workspaceId}/users/${names['ben']}`, { role: 'member' })
    expect(await listKeys()).toBe(403)
  })

  describe('where a setting lets managers manage members', () => {
    scenarios(`PUT ${users}/$ben`, world, [
      {
        name: 'the setting',
        call: 'PUT /v1/admin/workspaces/$team',
        body: { security_settings: { managersWriteWsUsers: true } },
        expect: 200,
      },
      {
        name: 'a service key counts as a manager',
        as: 'service',
        body: { role: 'manager' },
        expect: 200,
        answer: { role: 'manager' },
      },
      { name: 'nobody gives a role above their own', as: 'service', body: { role: 'admin' }, expect: 'forbidden' },
      {
        name: 'nor by adding',
        as: 'service',
        call: `POST ${users}`,
        body: { users: [{ id: '$cleo', role: 'admin' }] },
        expect: 'forbidden',
      },
      {
        name: 'it adds',
        as: 'service',
        call: `POST ${users}`,
        body: { user_id: '$cleo', role: 'member' },
        expect: 200,
      },
      { name: 'and removes', as: 'service', call: `DELETE ${users}/$cleo`, expect: 200 },
      {
        name: 'within its workspace',
        as: 'service',
        call: 'POST /v1/admin/workspaces/$workspace_id/users',
        body: { user_id: '$cleo', role: 'member' },
        expect: 'not_found',
      },
      {
        name: 'the setting is off again',
        call: 'PUT /v1/admin/workspaces/$team',
        body: { security_settings: null },
        expect: 200,
      },
      { name: 'at once', as: 'service', body: { role: 'member' }, expect: 'forbidden' },
    ])

    test('no manager makes themselves an admin', async () => {
      const { call, names } = world()
      const workspace = `/v1/admin/workspaces/${team.workspaceId}`
      await call('PUT', workspace, { security_settings: { managersWriteWsUsers: true } })
      const key = await userKeyOf('ben')
      const promoted = await call('PUT', `${workspace}/users/${names['ben']}`, { role: 'admin' }, { key })
      await call('PUT', workspace, { security_settings: null })
      expect(promoted.status).toBe(403)
    })
  })

  scenarios(`DELETE ${users}/$ann`, world, [
    { name: 'no workspace key removes people', as: 'service', expect: 'forbidden' },
    { name: 'a member goes', body: { user_id: '$ann', workspace_id: '$team' }, expect: 200, answer: {} },
    { name: 'and is gone', call: `GET ${users}/$ann`, expect: 'not_found' },
    { name: 'once', expect: 'not_found' },
    { name: 'the last admin may go: the owner remains', call: `DELETE ${users}/$user_id`, expect: 200 },
    { name: 'no listed admin is left', call: `GET ${users}?role=admin`, expect: 200, answer: { total: 0 } },
  ])

  test('removing a member revokes their keys there, and adding them again revives none', async () => {
    const { call, gatehouse, names, made } = world()
    const path = `/v1/admin/workspaces/${team.workspaceId}/users`
    const cleo = names['cleo']!
    for (const workspace of [team.workspaceId, made.workspace_id])
      await call('POST', `/v1/admin/workspaces/${workspace}/users`, { user_id: cleo, role: 'manager' })
    const service = await call(
      'POST',
      '/v1/api-keys/workspace/service',
      { name: 's', scopes: ['prompts.list'] },
      { key: await userKeyOf('cleo') },
    )
    const here = await userKeyOf('cleo')
    const elsewhere = await addKey(gatehouse, { ...defaultTenant(made), userId: cleo }, 'workspace-user')
    await call('DELETE', `${path}/${cleo}`)
    const [event] = await auditTrail(gatehouse.read)
    expect(event && doneBy(event)).toBe('workspace_users.delete')
    expect(event).toMatchObject({
      resource_id: cleo,
      details: { before: { role: 'manager' }, still_accountable_for: [service.body.id] },
    })
    expect(event?.details['revoked_keys']).toHaveLength(2)
    expect(await statusOf(here)).toBe(401)
    expect(await statusOf(service.body.key)).toBe(200)
    expect(await statusOf(elsewhere)).toBe(200)
    await call('POST', path, { user_id: cleo, role: 'manager' })
    expect(await statusOf(here)).toBe(401)
  })

  test('an admin of the organisation who loses a membership keeps their keys', async () => {
    const { call, names } = world()
    const path = `/v1/admin/workspaces/${team.workspaceId}/users`
    await call('POST', path, { user_id: names['admin'], role: 'member' })
    const key = await userKeyOf('admin')
    expect((await call('DELETE', `${path}/${names['admin']}`)).status).toBe(200)
    expect(await statusOf(key)).toBe(200)
  })

  test('where the settings say so, a new member has a key that waits for its first secret', async () => {
    const { call, names, made } = world()
    await call('PUT', '/v1/admin/organisation/settings', { user_api_key_auto_create: true })
    const ann = names['ann']!
    const add = (workspace: string) =>
      call('POST', `/v1/admin/workspaces/${workspace}/users`, { user_id: ann, role: 'member' })
    await Promise.all([add(team.workspaceId), add(made.workspace_id)])
    await add(team.workspaceId)
    const created = await call('POST', '/v1/admin/workspaces', { name: 'new', users: [ann] })
    const { body } = await call('GET', '/v1/api-keys')
    const auto = body.data.filter(
      (key: { creation_mode: string; user_id: string }) => key.user_id === ann && key.creation_mode === 'auto',
    )
    expect(auto.map((key: { workspace_id: string }) => key.workspace_id).sort()).toEqual(
      [team.workspaceId, created.body.id].sort(),
    )
    expect(auto[0].scopes).toContain('prompts.read')
    expect(auto[0].scopes).not.toContain('prompts.create')
  })
})
