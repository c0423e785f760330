import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { DIALECTS } from '../support/database.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { expectProblem } from '../support/scenario.ts'
import { addKey, addOrganisation, addPerson, defaultTenant } from '../support/tenants.ts'

describe.each(DIALECTS)('GET /v1/audit-logs: %s', (dialect) => {
  let world: TestGatehouse
  let created: Answer
  let id: string
  let keyId: string
  beforeAll(async () => {
    world = await openTestGatehouse(dialect)
    keyId = (await world.call('GET', '/v1/api-keys')).body.data[0].id
    const headers = { 'user-agent': 'agent/1.0' }
    created = await world.call('POST', '/v1/labels', { name: 'canary', description: 'a bird' }, { headers })
    id = created.body.id
    await world.call('PUT', `/v1/labels/${id}?x=1`, { description: 'another bird' })
    await world.call('PUT', `/v1/labels/${id}`, { description: 'a third bird' })
    await world.call('DELETE', `/v1/labels/${id}`)
    await world.call('POST', '/v1/labels', { nam: 'x' })
    await world.gatehouse.refusals.flush()
  })
  afterAll(() => world.close())

  const list = (query = '', key?: string) =>
    world.call('GET', `/v1/audit-logs${query === '' ? '' : `?${query}`}`, undefined, key === undefined ? {} : { key })

  test('a row holds everything that either kind of client reads, and both find it under their own names', async () => {
    const { body, status } = await list(`resource_id=${id}&action=create`)
    expect(status).toBe(200)
    expect(body).toEqual({ object: 'list', total: 1, records: [expect.any(Object)], data: body.records })
    const request_id = created.headers.get('x-request-id')
    const timestamp = expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/)
    expect(body.records[0]).toEqual({
      id: request_id,
      seq: 2,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      timestamp,
      created_at: body.records[0].timestamp,
      method: 'POST',
      uri: '/v1/labels',
      request_id,
      request_body: '{"description":"a bird","name":"canary"}',
      query_params: '{}',
      request_headers: '{"content-type":"application/json","user-agent":"agent/1.0","x-service-api-key":"*****"}',
      user_id: keyId,
      actor_id: keyId,
      user_type: 'api_key',
      accountable_user_id: world.made.user_id,
      actor_email: 'owner@example.com',
      actor_name: '',
      organisation_id: world.made.organisation_id,
      workspace_id: world.made.workspace_id,
      response_status_code: 200,
      resource_type: 'labels',
      resource_id: id,
      resource_name: 'canary',
      action: 'create',
      client_ip: '',
      ip_address: '',
      country: '',
      user_agent: 'agent/1.0',
      metadata: expect.any(Object),
    })
  })

  test('without parameters it answers what happened lately, newest first, what was refused too', async () => {
    const { body } = await list()
    const told = body.records.map((row: Record<string, unknown>) => [
      row['resource_type'],
      row['action'],
      row['response_status_code'],
    ])
    expect(told).toEqual([
      ['labels', 'create', 400],
      ['labels', 'delete', 200],
      ['labels', 'update', 200],
      ['labels', 'update', 200],
      ['labels', 'create', 200],
      ['organisation', 'bootstrap', 200],
    ])
    expect(body.total).toBe(6)
  })

  const filters = (): [string, number][] => [
    ['method=POST', 2],
    ['method=PUT', 2],
    ['uri=/v1/labels', 5],
    [`uri=${encodeURIComponent(`/v1/labels/${id}?x`)}`, 1],
    ['uri=/v1/label%25', 0],
    [`request_id=${created.headers.get('x-request-id')}`, 1],
    [`user_id=${keyId}`, 5],
    [`actor_id=${keyId}`, 5],
    [`user_id=${world.made.user_id}`, 5],
    [`actor_id=${world.made.user_id}&action=update`, 2],
    [`user_id=${world.made.organisation_id}`, 0],
    ['user_id=cli:0', 1],
    ['user_type=cli', 1],
    ['user_type=user', 0],
    [`workspace_id=${world.made.workspace_id}`, 4],
    [`workspace_id=${world.made.workspace_slug}`, 4],
    ['response_status_code=400', 1],
    ['resource_type=labels', 5],
    [`resource_id=${id}`, 4],
    ['action=update', 2],
    ['client_ip=192.0.2.1', 0],
    ['country=', 6],
    ['country=DE', 0],
    [`organisation_id=${world.made.organisation_id}`, 6],
    ['start_time=2020-01-01', 6],
    ['start_time=2020-01-01&end_time=2020-02-01', 0],
    ['end_time=2999-01-01T00:00:00%2B02:00', 0],
    ['start_time=2020-01-01&end_time=2999-01-01', 6],
    [`action=update&resource_id=${id}&method=PUT&response_status_code=200`, 2],
    ['action=update&method=POST', 0],
  ]

  test('every filter finds its rows, and the total counts them exactly', async () => {
    const found: [string, number][] = []
    for (const [query] of filters()) {
      const { body, status } = await list(query)
      found.push([query, status === 200 && body.records.length === body.total ? body.total : status])
    }
    expect(found).toEqual(filters())
  })

  test('pages cut the same list, and the total stays that of all of it', async () => {
    const all = (await list()).body.records
    const page = async (n: number) => (await list(`page_size=4&current_page=${n}`)).body
    expect([...(await page(0)).records, ...(await page(1)).records]).toEqual(all)
    expect(await page(2)).toEqual({ object: 'list', total: 6, records: [], data: [] })
    expect((await list('page_size=0')).body).toEqual({ object: 'list', total: 6, records: [], data: [] })
    expect((await list('pageSize=1&currentPage=5')).body.records).toEqual(all.slice(5))
  })

  test.each([
    'page_size=101',
    'page_size=-1',
    'current_page=x',
    'start_time=yesterday',
    'start_time=2026-02-31T25:00:00Z',
    'start_time=2026-02-30',
    'end_time=2026-02-30T00:00:00Z',
    'start_time=2026-02-01&end_time=2026-01-01',
    'method=FETCH',
    'user_type=robot',
    'response_status_code=2xx',
    'user_id=a&actor_id=b',
    'metod=POST',
  ])('%s is refused', async (query) => expectProblem(await list(query), 'invalid'))

  test('another organisation sees its own rows only, and cannot name this one', async () => {
    const other = await addOrganisation(world.gatehouse)
    const { body } = await list('', other.adminKey)
    expect(new Set(body.records.map((row: { organisation_id: string }) => row.organisation_id))).toEqual(
      new Set([other.organisationId]),
    )
    expect(body.total).toBe(body.records.length)
    expectProblem(await list(`organisation_id=${world.made.organisation_id}`, other.adminKey), 'forbidden')
    expectProblem(await list(`workspace_id=${world.made.workspace_id}`, other.adminKey), 'not_found')
  })

  test('an address finds the refusals that were only counted, by the network that they came from', async () => {
    const { gatehouse, call } = world
    const { peerIp } = gatehouse
    for (const address of ['192.0.2.7', '192.0.2.7', '192.0.3.7', '2001:db8::7', '2001:db8::7']) {
      gatehouse.peerIp = () => address
      await call('POST', '/v1/collections', {})
    }
    gatehouse.peerIp = peerIp
    await gatehouse.refusals.flush()
    const found = async (address: string) =>
      (await list(`client_ip=${encodeURIComponent(address)}`)).body.records
        .map((row: { client_ip: string }) => row.client_ip)
        .sort()
    expect(await found('192.0.2.7')).toEqual(['192.0.2.0/24', '192.0.2.7'])
    expect(await found('192.0.2.8')).toEqual(['192.0.2.0/24'])
    expect(await found('192.0.2.0/24')).toEqual(['192.0.2.0/24'])
    expect(await found('192.0.3.7')).toEqual(['192.0.3.7'])
    expect(await found('2001:db8::7')).toEqual(['2001:db8:0:0::/64', '2001:db8::7'])
  })

  test('a person finds the rows of all keys that they answer for, deleted ones too, and their own', async () => {
    const { gatehouse, made, call } = world
    const tenant = defaultTenant(made)
    const [ann, bob] = [await personOf('ann'), await personOf('bob')]
    async function personOf(name: string) {
      const userId = await addPerson(gatehouse, tenant.organisationId, 'member')
      const keys = [
        await addKey(gatehouse, { ...tenant, userId }, 'workspace-service'),
        await addKey(gatehouse, { ...tenant, userId }, 'organisation-service'),
      ]
      const make = (key: string) => call('POST', '/v1/collections', { name }, { key })
      for (const key of keys) {
        expect((await make(key)).status).toBe(200)
        const { keyId } = gatehouse.keys.find(gatehouse.digestKey(key), Date.now())!
        await call('DELETE', `/v1/api-keys/${keyId}`)
        expect((await make(key)).status).toBe(401)
      }
      const request = { requestId: name, method: 'POST', uri: '/', clientIp: null }
      const actor = { kind: 'person', userId, organisationId: tenant.organisationId, request } as const
      await gatehouse.audited(actor, { action: 'test.accept' }, async () => {})
      return userId
    }
    await gatehouse.refusals.flush()
    for (const [person, name] of [
      [ann, 'ann'],
      [bob, 'bob'],
    ]) {
      const { body } = await list(`user_id=${person}&page_size=100`)
      const told = body.records.map((row: Record<string, unknown>) => [row['action'], row['response_status_code']])
      expect(told.sort()).toEqual([
        ['accept', 200],
        ['create', 200],
        ['create', 200],
        ['create', 401],
        ['create', 401],
      ])
      expect(body.total).toBe(5)
      expect(
        body.records.every((row: Record<string, unknown>) => row['accountable_user_id'] === person),
        name,
      ).toBe(true)
    }
    const other = await addOrganisation(gatehouse)
    expect((await list(`user_id=${ann}`, other.adminKey)).body.total).toBe(0)
  })

  test('reading the trail leaves no row', async () => {
    const before = (await list()).body.total
    for (let i = 0; i < 3; i++) await list()
    expect((await list()).body.total).toBe(before)
  })
})
