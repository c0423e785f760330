import { describe, expect, test } from 'bun:test'
import { GRANTABLE } from '../schema/api/permissions.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, defaultTenant, type Tenant } from './support/tenants.ts'

const USERS = '/v1/admin/users'

const tenantOf = ({ made }: World, userId = made.user_id): Tenant => ({ ...defaultTenant(made), userId })

describe.each(DIALECTS)('users: %s', (dialect) => {
  const world = useWorld(dialect, async (world) => {
    const { gatehouse, made, names, keys, call } = world
    for (const role of ['admin', 'member'] as const)
      names[role] = await addPerson(gatehouse, made.organisation_id, role)
    keys['of_admin'] = await addKey(gatehouse, tenantOf(world, names['admin']), 'organisation-service')
    keys['of_member'] = await addKey(gatehouse, tenantOf(world, names['member']), 'organisation-service')
    keys['owner_as_user'] = await addKey(gatehouse, tenantOf(world), 'workspace-user')
    keys['stranger'] = (await addOrganisation(gatehouse)).adminKey
    const invited = await call('POST', `${USERS}/invites`, {
      email: 'Joined@example.org',
      role: 'member',
      workspaces: [{ id: made.workspace_id, role: 'member' }],
    })
    const token = invited.body.invite_link.split('#')[1]
    const { body } = await call('POST', `${USERS}/invites/accept`, { token, first_name: 'Jo' }, { key: null })
    names['joined'] = body.id
    keys['joined'] = body.api_keys[0].key
  })

  scenarios(`GET ${USERS}`, world, [
    {
      name: 'owners first, then the oldest, with slugs of workspaces',
      expect: 200,
      answer: {
        object: 'list',
        total: 4,
        data: [
          { object: 'user', id: '$user_id', role: 'owner', workspace_ids: ['$workspace_slug'] },
          { id: '$admin', role: 'admin', workspace_ids: [] },
          { id: '$member' },
          { id: '$joined', first_name: 'Jo', last_name: '', status: 'active', workspace_ids: ['$workspace_slug'] },
        ],
      },
    },
    { name: 'by role', call: `GET ${USERS}?role=admin`, expect: 200, answer: { total: 1, data: [{ id: '$admin' }] } },
    {
      name: 'by the whole address, in any case',
      call: `GET ${USERS}?email=jOINED@EXAMPLE.ORG`,
      expect: 200,
      answer: { total: 1, data: [{ email: 'Joined@example.org' }] },
    },
    { name: 'not by a part of it', call: `GET ${USERS}?email=joined`, expect: 200, answer: { total: 0 } },
    {
      name: 'pages count from 0, and the total is that of all pages',
      call: `GET ${USERS}?pageSize=3&currentPage=1`,
      expect: 200,
      answer: { total: 4, data: [{ id: '$joined' }] },
    },
    {
      name: 'the other spelling',
      call: `GET ${USERS}?page_size=1`,
      expect: 200,
      answer: { data: [{ role: 'owner' }] },
    },
    {
      name: 'past the end there is nothing',
      call: `GET ${USERS}?page_size=2&current_page=9`,
      expect: 200,
      answer: { data: [] },
    },
    ...['page_size=0', 'page_size=1001', 'page_size=x', 'current_page=-1', 'role=boss', 'sort=email'].map((query) => ({
      name: `${query} is refused`,
      call: `GET ${USERS}?${query}`,
      expect: 'invalid' as const,
    })),
    { name: 'another organisation has other people', as: 'stranger', expect: 200, notMentions: 'Joined@example.org' },
    { name: 'a workspace key sees nobody, whoever is behind it', as: 'owner_as_user', expect: 'forbidden' },
    { name: 'one', call: `GET ${USERS}/$joined`, expect: 200, answer: { id: '$joined', role: 'member' } },
    {
      name: 'one of another organisation does not exist',
      as: 'stranger',
      call: `GET ${USERS}/$joined`,
      expect: 'not_found',
    },
  ])

  scenarios(`PUT ${USERS}/$joined`, world, [
    {
      name: 'names, and the whole person in the answer',
      body: { first_name: 'Joan', last_name: 'Doe', user_id: '$joined' },
      expect: 200,
      answer: { object: 'user', id: '$joined', first_name: 'Joan', last_name: 'Doe', role: 'member' },
    },
    {
      name: 'null keeps',
      body: { first_name: null, last_name: '' },
      expect: 200,
      answer: { first_name: 'Joan', last_name: '' },
    },
    { name: 'a role', body: { role: 'admin' }, expect: 200, answer: { role: 'admin' } },
    {
      name: 'the same role again is no change',
      body: { role: 'admin' },
      expect: 'invalid',
      mentions: '"param":"role"',
    },
    { name: 'and back', body: { role: 'member' }, expect: 200, answer: { role: 'member' } },
    { name: 'nothing at all is no update', body: {}, expect: 'invalid' },
    { name: 'nobody is made owner here', body: { role: 'owner' }, expect: 'invalid', mentions: '"param":"role"' },
    ...['status', 'email', 'organisation_id', 'workspace_ids', 'created_at'].map((field) => ({
      name: `${field} is not there to be set`,
      body: { first_name: 'x', [field]: 'x' },
      expect: 'invalid' as const,
      mentions: `"param":"${field}"`,
    })),
    {
      name: 'an id that differs from the path is refused',
      body: { first_name: 'x', id: '$member' },
      expect: 'invalid',
    },
    {
      name: 'the last owner stays owner',
      call: `PUT ${USERS}/$user_id`,
      body: { role: 'member' },
      expect: 'forbidden',
    },
    { name: 'an owner may be named anew', call: `PUT ${USERS}/$user_id`, body: { first_name: 'Olive' }, expect: 200 },
    {
      name: 'nobody changes their own role',
      as: 'of_admin',
      call: `PUT ${USERS}/$admin`,
      body: { role: 'member' },
      expect: 'forbidden',
    },
    {
      name: 'nor raises it',
      as: 'of_member',
      call: `PUT ${USERS}/$member`,
      body: { role: 'admin' },
      expect: 'forbidden',
    },
    { name: 'not those of others', as: 'stranger', body: { first_name: 'x' }, expect: 'not_found' },
    {
      name: 'an unknown person does not exist',
      call: `PUT ${USERS}/nobody`,
      body: { first_name: 'x' },
      expect: 'not_found',
    },
    { name: 'a workspace key changes nobody', as: 'owner_as_user', body: { first_name: 'x' }, expect: 'forbidden' },
  ])

  test('a change says in the trail what was, and what is', async () => {
    const { call, names, gatehouse } = world()
    await call('PUT', `${USERS}/${names['joined']}`, { role: 'admin' })
    await call('PUT', `${USERS}/${names['joined']}`, { role: 'member' })
    const row = (await auditTrail(gatehouse.read)).find((each) => doneBy(each) === 'organisation_users.update')
    expect(row).toMatchObject({
      resource_id: names['joined'],
      resource_name: 'Joined@example.org',
      details: { before: { role: 'admin' }, after: { role: 'member' } },
    })
  })

  scenarios(`DELETE ${USERS}/$joined`, world, [
    { name: 'the last owner stays', call: `DELETE ${USERS}/$user_id`, expect: 'forbidden' },
    { name: 'another organisation removes nobody', as: 'stranger', expect: 'not_found' },
    { name: 'a workspace key removes nobody', as: 'owner_as_user', expect: 'forbidden' },
    { name: 'the key works', as: 'joined', call: 'GET /v1/prompts', expect: 200 },
    { name: 'the person is removed', body: { user_id: '$joined' }, expect: 200, answer: {} },
    {
      name: 'the key is refused on the next request',
      as: 'joined',
      call: 'GET /v1/prompts',
      expect: 'unauthenticated',
    },
    { name: 'the person is gone', call: `GET ${USERS}/$joined`, expect: 'not_found' },
    { name: 'and gone', expect: 'not_found' },
    { name: 'from the list too', call: `GET ${USERS}?email=joined@example.org`, expect: 200, answer: { total: 0 } },
    {
      name: 'they may be invited again',
      call: `POST ${USERS}/invites`,
      body: { email: 'joined@example.org', role: 'member', workspaces: [{ id: '$workspace_id', role: 'member' }] },
      expect: 200,
      keep: { again: 'invite_link' },
    },
  ])

  test('coming back revives no key', async () => {
    const { call, names, keys } = world()
    const token = names['again']?.split('#')[1]
    const { body } = await call('POST', `${USERS}/invites/accept`, { token }, { key: null })
    expect(body.id).not.toBe(names['joined'])
    expectProblem(await call('GET', '/v1/prompts', undefined, { key: keys['joined'] ?? '' }), 'unauthenticated')
  })

  test('a removal leaves the keys of the organisation, and names those that the person answers for', async () => {
    const { call, gatehouse, made, keys } = world()
    const id = await addPerson(gatehouse, made.organisation_id, 'admin')
    const tenant = tenantOf(world(), id)
    const service = await addKey(gatehouse, tenant, 'workspace-service')
    const own = await addKey(gatehouse, tenant, 'workspace-user')
    const idOf = (key: string) => gatehouse.keys.find(gatehouse.digestKey(key), Date.now())?.keyId
    const [serviceId, ownId] = [idOf(service), idOf(own)]
    expect((await call('DELETE', `${USERS}/${id}`, undefined, { key: keys['of_admin'] ?? '' })).status).toBe(200)
    expect((await call('GET', '/v1/prompts', undefined, { key: service })).status).toBe(200)
    expectProblem(await call('GET', '/v1/prompts', undefined, { key: own }), 'unauthenticated')
    const row = (await auditTrail(gatehouse.read)).find((each) => doneBy(each) === 'organisation_users.delete')
    expect(row?.details).toMatchObject({
      revoked_keys: [ownId],
      still_accountable_for: [{ id: serviceId, type: 'workspace-service', name: 'of a tenant' }],
    })
  })

  test('a demotion takes effect on the next request: keys keep what the new role allows', async () => {
    const { call, gatehouse, made } = world()
    const id = await addPerson(gatehouse, made.organisation_id, 'admin')
    const key = await addKey(gatehouse, tenantOf(world(), id), 'workspace-user', [...GRANTABLE['workspace-user']])
    expect((await call('GET', '/v1/prompts', undefined, { key })).status).toBe(200)
    expect((await call('PUT', `${USERS}/${id}`, { role: 'member' })).status).toBe(200)
    expectProblem(await call('GET', '/v1/prompts', undefined, { key }), 'forbidden')
  })
})
