import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { recordDue } from '../src/api-keys/due.ts'
import { maskKey } from '../src/api-keys/key.ts'
import { endTransition } from '../src/api-keys/rotate.ts'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, addPerson } from './support/tenants.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const SCOPES = ['prompts.list', 'organisation_service_api_keys.read', 'organisation_service_api_keys.rotate']

/** Tells the whole process another time. */
const travelTo = (time: number) => setSystemTime(new Date(time))
afterEach(() => setSystemTime())

/** What a request with this secret is answered. */
const statusOf = async ({ call }: World, key: string, path = '/v1/prompts') =>
  (await call('GET', path, undefined, { key })).status
const read = async ({ call }: World, id: string) => (await call('GET', `/v1/api-keys/${id}`)).body
const rotate = (world: World, id: string, body?: object, key?: string) =>
  world.call('POST', `/v1/api-keys/${id}/rotate`, body, key === undefined ? {} : { key })

describe.each(DIALECTS)('rotating an API key: %s', (dialect) => {
  const world = useWorld(dialect, async ({ newKey, names, keys, made, gatehouse }) => {
    const updating = await newKey('organisation/service', ['organisation_service_api_keys.update'])
    keys['updating'] = updating.key
    names['updating'] = updating.id
    keys['rotating'] = (await newKey('organisation/service', SCOPES)).key
    const reading = await newKey('organisation/service', ['prompts.list'])
    keys['reading'] = reading.key
    names['reading'] = reading.id
    names['like'] = (await newKey('organisation/service', ['organisation_service_api_keys.update'])).id
    const inWorkspace = { workspace_id: made.workspace_id }
    const service = await newKey('workspace/service', ['workspace_service_api_keys.rotate'], inWorkspace)
    keys['service'] = service.key
    names['service'] = service.id
    names['owner_key'] = (await newKey('workspace/user', ['prompts.list'], inWorkspace)).id
    const userId = await addPerson(gatehouse, made.organisation_id, 'member')
    names['no_member'] = userId
    const tenant = { organisationId: made.organisation_id, workspaceId: made.workspace_id, collectionId: '', userId }
    keys['powerless'] = await addKey(gatehouse, tenant, 'workspace-user', ['prompts.list'])
  })

  test('both secrets of a key work for the window, the old one no longer, the id stays', async () => {
    const { newKey } = world()
    const start = Date.now()
    const made = await newKey('organisation/service', SCOPES)
    const before = await read(world(), made.id)
    const { body, status } = await rotate(world(), made.id)
    expect(status).toBe(200)
    expect(body).toEqual({
      id: made.id,
      key: expect.stringMatching(/^gth_a_/),
      key_transition_expires_at: expect.any(String),
    })
    const endsAt = Date.parse(body.key_transition_expires_at)
    expect(endsAt - start).toBeWithin(30 * MINUTE, 30 * MINUTE + 5000)
    expect(await statusOf(world(), made.key)).toBe(200)
    expect(await statusOf(world(), body.key)).toBe(200)
    const { last_updated_at, key, last_used_at: _, ...rest } = await read(world(), made.id)
    expect(before).toMatchObject(rest)
    expect(key).toBe(maskKey(body.key))
    expect(last_updated_at > before.last_updated_at).toBe(true)
    travelTo(endsAt - 1)
    expect(await statusOf(world(), made.key)).toBe(200)
    travelTo(endsAt)
    expect(await statusOf(world(), made.key)).toBe(401)
    expect(await statusOf(world(), body.key)).toBe(200)
    travelTo(endsAt - MINUTE)
    expect(await statusOf(world(), made.key), 'ended once, ended for ever').toBe(401)
  })

  test('never more than two secrets: a second rotate inside the window is refused, after it is not', async () => {
    const { id, key } = await world().newKey('organisation/service', SCOPES)
    const at = Date.now()
    const first = (await rotate(world(), id, { key_transition_period_ms: 2 * HOUR })).body
    travelTo(at + 2 * HOUR - MINUTE)
    expectProblem(await rotate(world(), id), 'conflict')
    travelTo(at + 2 * HOUR + MINUTE)
    const second = await rotate(world(), id)
    expect(second.status).toBe(200)
    expect(await statusOf(world(), key)).toBe(401)
    expect(await statusOf(world(), first.key)).toBe(200)
    expect(await statusOf(world(), second.body.key)).toBe(200)
  })

  test('of many rotates at once one makes a secret', async () => {
    const { id } = await world().newKey('organisation/service', SCOPES)
    const answers = await Promise.all(Array.from({ length: 8 }, () => rotate(world(), id)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...new Array(7).fill(409)])
  })

  test('an old secret manages neither keys nor people, the new one does', async () => {
    const scopes = [...SCOPES, 'organisation_users.list', 'organisation_service_api_keys.create']
    const { id, key: old } = await world().newKey('organisation/service', scopes)
    const { key } = (await rotate(world(), id)).body
    const minting = { name: 'k', scopes: ['prompts.list'] }
    for (const [method, path, body] of [
      ['GET', `/v1/api-keys/${id}`, undefined],
      ['POST', `/v1/api-keys/${id}/rotate`, {}],
      ['POST', '/v1/api-keys/organisation/service', minting],
    ] as const)
      expectProblem(await world().call(method, path, body, { key: old }), 'forbidden')
    expect((await world().call('POST', '/v1/api-keys/organisation/service', minting, { key })).status).toBe(200)
    expect(await statusOf(world(), old)).toBe(200)
  })

  test('no old secret outlives its key, and the window says so', async () => {
    const expires_at = new Date(Date.now() + 10 * MINUTE).toISOString()
    const { id } = await world().newKey('organisation/service', SCOPES, { expires_at })
    expect((await rotate(world(), id)).body.key_transition_expires_at).toBe(expires_at)
  })

  test('an expired key gets no secret that nothing could be done with, until it lives again', async () => {
    const expires_at = new Date(Date.now() + 10 * MINUTE).toISOString()
    const { id } = await world().newKey('organisation/service', SCOPES, { expires_at })
    travelTo(Date.now() + 11 * MINUTE)
    const refused = await rotate(world(), id)
    expectProblem(refused, 'conflict')
    expect(refused.body.message).toContain('expired: set expires_at first')
    expect((await world().call('PUT', `/v1/api-keys/${id}`, { expires_at: null })).status).toBe(200)
    const { key } = (await rotate(world(), id)).body
    expect(await statusOf(world(), key)).toBe(200)
  })

  test('an operator ends the old secret at once', async () => {
    const { gatehouse, made } = world()
    const { id, key: old } = await world().newKey('organisation/service', SCOPES)
    const { key } = (await rotate(world(), id)).body
    const actor = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'keys end-transition' } as const
    await endTransition(gatehouse, actor, id)
    expect(await statusOf(world(), old)).toBe(401)
    expect(await statusOf(world(), key)).toBe(200)
    expect(endTransition(gatehouse, actor, id)).rejects.toMatchObject({ code: 'conflict' })
    expect((await rotate(world(), id)).status, 'there is room for another one').toBe(200)
  })

  test('its audit row names the key, the way, the old secret masked and the end of its window', async () => {
    const { id, key } = await world().newKey('organisation/service', SCOPES)
    const { body } = await rotate(world(), id)
    const [row] = await auditTrail(world().gatehouse.read)
    expect(row).toMatchObject({ resource_type: 'organisation_service_api_keys', action: 'rotate', resource_id: id })
    expect(row?.details).toEqual({
      api_key_id: id,
      rotation_mode: 'manual',
      old_key_masked: maskKey(key),
      transition_expires_at: body.key_transition_expires_at,
    })
  })

  scenarios('POST /v1/api-keys/$like/rotate', world, [
    ...[{ key_transition_period_ms: 1_799_999 }, { key_transition_period_ms: '1800000' }, { transition: 1 }].map(
      (body) => ({ name: `${JSON.stringify(body)} is refused`, body, expect: 'invalid' as const }),
    ),
    { name: 'a window beyond a month too', body: { key_transition_period_ms: 31 * DAY + 1 }, expect: 'invalid' },
    { name: 'a key with update alone rotates its like', as: 'updating', body: {}, expect: 200 },
    {
      name: 'but no stronger one: it would have its secret',
      as: 'updating',
      call: 'POST /v1/api-keys/$reading/rotate',
      expect: 'forbidden',
    },
    { name: 'nor does rotate alone', as: 'rotating', call: 'POST /v1/api-keys/$updating/rotate', expect: 'forbidden' },
    {
      name: 'a stranger to both scopes',
      as: 'reading',
      call: 'POST /v1/api-keys/$updating/rotate',
      expect: 'forbidden',
    },
    {
      name: 'an unknown key tells such a one nothing',
      as: 'reading',
      call: `POST /v1/api-keys/${Bun.randomUUIDv7()}/rotate`,
      expect: 'forbidden',
    },
    { name: 'a workspace key finds no admin key', as: 'service', expect: 'not_found' },
    {
      name: 'nor a key of another family',
      as: 'service',
      call: 'POST /v1/api-keys/$owner_key/rotate',
      expect: 'forbidden',
    },
    { name: 'a key may always rotate itself', as: 'reading', call: 'POST /v1/api-keys/$reading/rotate', expect: 200 },
    {
      name: 'whose secret is the old one now, and does it no more',
      as: 'reading',
      call: 'POST /v1/api-keys/$reading/rotate',
      expect: 'forbidden',
      mentions: 'replaced',
    },
    { name: 'an unknown key', call: `POST /v1/api-keys/${Bun.randomUUIDv7()}/rotate`, expect: 'not_found' },
    { name: 'nobody', as: 'nobody', expect: 'unauthenticated' },
  ])
})

describe.if(DIALECTS.includes('postgres'))('on two nodes', () => {
  const world = useWorld('postgres')

  test('a key is rotated once, its old secret dies everywhere, and a due time is recorded once', async () => {
    const node = await world().openNode()
    const nodes = [world(), node]
    try {
      const rotation_policy = { rotation_period: 'weekly' }
      const { id, key: old } = await world().newKey('organisation/service', SCOPES, { rotation_policy })
      const dueAt = Date.parse((await read(world(), id)).rotation_policy.next_rotation_at)
      await Promise.all(nodes.map(({ gatehouse }) => recordDue(gatehouse, dueAt)))
      const due = (await auditTrail(node.gatehouse.read)).filter(({ details }) => details['rotation_mode'] === 'auto')
      expect(due).toHaveLength(1)
      const answers = await Promise.all(nodes.map(({ call }) => call('POST', `/v1/api-keys/${id}/rotate`)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
      const actor = { kind: 'cli', uid: 0, organisationId: world().made.organisation_id, command: 'test' } as const
      await endTransition(world().gatehouse, actor, id)
      const statusAt = async ({ call }: typeof node) =>
        (await call('GET', '/v1/prompts', undefined, { key: old })).status
      expect(await statusAt(world())).toBe(401)
      const bound = Date.now() + 1000
      while ((await statusAt(node)) === 200) {
        expect(Date.now(), 'the bound of decision 13').toBeLessThan(bound)
        await Bun.sleep(10)
      }
    } finally {
      await node.gatehouse.close()
    }
  })
})
