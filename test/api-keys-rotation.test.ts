import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { recordDue } from '../src/api-keys/due.ts'
import { maskKey } from '../src/api-keys/key.ts'
import { endTransition } from '../src/api-keys/rotate.ts'
import { nextPeriodStart } from '../src/usage-limits.ts'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, addPerson } from './support/tenants.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const SCOPES = ['prompts.list', 'organisation_service_api_keys.read', 'organisation_service_api_keys.rotate']
const SEPARATE = 'secrets of one key'

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

  test(`both ${SEPARATE} work for the window, the old one no longer, the id stays`, async () => {
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

  const PERIODS = [
    ['weekly', '2030-02-28T23:59:59.999Z', '2030-03-04T00:00:00.000Z'],
    ['weekly', '2030-03-04T00:00:00.000Z', '2030-03-11T00:00:00.000Z'],
    ['weekly', '2030-12-31T12:00:00.000Z', '2031-01-06T00:00:00.000Z'],
    ['monthly', '2030-01-31T23:59:59.999Z', '2030-02-01T00:00:00.000Z'],
    ['monthly', '2030-02-01T00:00:00.000Z', '2030-03-01T00:00:00.000Z'],
    ['monthly', '2030-12-15T12:00:00.000Z', '2031-01-01T00:00:00.000Z'],
  ] as const
  test.each(PERIODS)('%s, set at %s, is due at %s', async (rotation_period, now, next) => {
    travelTo(Date.parse(now))
    const { id } = await world().newKey('organisation/service', SCOPES, { rotation_policy: { rotation_period } })
    expect((await read(world(), id)).rotation_policy).toEqual({
      rotation_period,
      next_rotation_at: next,
      key_transition_period_ms: 1_800_000,
      status: 'active',
    })
    travelTo(Date.parse(next))
    expect((await read(world(), id)).rotation_policy).toMatchObject({ next_rotation_at: next, status: 'due' })
  })

  /** A key with a policy, taken to the moment that makes it due. */
  async function dueKey(policy: object, extra: object = {}) {
    const made = await world().newKey('organisation/service', SCOPES, { rotation_policy: policy, ...extra })
    const dueAt = Date.parse((await read(world(), made.id)).rotation_policy.next_rotation_at)
    return { ...made, dueAt }
  }
  const dueRows = async (id: string) =>
    (await auditTrail(world().gatehouse.read)).filter(
      (row) => row.resource_id === id && row.details['rotation_mode'] === 'auto',
    )

  test('a due rotation makes no secret and locks nobody out; it leaves one row, whatever the clock does', async () => {
    const { id, key, dueAt } = await dueKey({ rotation_period: 'weekly' })
    const { gatehouse } = world()
    await recordDue(gatehouse, dueAt - 1)
    expect(await dueRows(id)).toHaveLength(0)
    travelTo(dueAt + HOUR)
    await Promise.all([recordDue(gatehouse, Date.now()), recordDue(gatehouse, Date.now())])
    travelTo(dueAt - DAY)
    await recordDue(gatehouse, Date.now())
    expect((await read(world(), id)).rotation_policy.status, 'due once, due until it is rotated').toBe('due')
    travelTo(dueAt + 30 * DAY)
    await recordDue(gatehouse, Date.now())
    const rows = await dueRows(id)
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({ user_type: 'system', user_id: 'system', action: 'rotate' })
    expect(rows[0]?.details).toMatchObject({ status: 'due', due_at: new Date(dueAt).toISOString() })
    expect(await statusOf(world(), key)).toBe(200)
    expect(gatehouse.metrics.text([])).toMatch(/gatehouse_api_key_rotations_due_total [1-9]/)
  })

  test('the next rotate, by the key itself too, opens the whole window and sets the next time', async () => {
    const { id, key, dueAt } = await dueKey({ rotation_period: 'monthly', key_transition_period_ms: 3 * HOUR })
    travelTo(dueAt + 40 * DAY)
    await recordDue(world().gatehouse, Date.now())
    const { body } = await rotate(world(), id, undefined, key)
    expect(Date.parse(body.key_transition_expires_at)).toBe(Date.now() + 3 * HOUR)
    const next = nextPeriodStart('monthly', Date.now())
    const { rotation_policy } = await read(world(), id)
    expect(rotation_policy).toMatchObject({ next_rotation_at: new Date(next).toISOString(), status: 'active' })
    travelTo(next)
    await recordDue(world().gatehouse, Date.now())
    expect(await dueRows(id), 'the next due time is another one').toHaveLength(2)
  })

  test('a single date is done with after its rotation, and not before', async () => {
    const next_rotation_at = '2031-05-05T05:30:00+05:30'
    const { id, dueAt } = await dueKey({ next_rotation_at })
    expect((await rotate(world(), id)).status).toBe(200)
    expect((await read(world(), id)).rotation_policy).toMatchObject({ next_rotation_at, status: 'active' })
    travelTo(dueAt + DAY)
    expect((await rotate(world(), id)).status).toBe(200)
    expect((await read(world(), id)).rotation_policy).toBeNull()
  })

  test('sending the same policy again puts a due rotation off by nothing', async () => {
    for (const policy of [{ rotation_period: 'weekly' }, { next_rotation_at: '2032-01-01T00:00:00Z' }]) {
      const { id, dueAt } = await dueKey(policy)
      travelTo(dueAt + DAY)
      const answer = await world().call('PUT', `/v1/api-keys/${id}`, { name: 'same', rotation_policy: policy })
      expect(answer.status, answer.text).toBe(200)
      expect((await read(world(), id)).rotation_policy.status).toBe('due')
    }
  })

  test('an expiry is refused to the second and recorded once', async () => {
    const expiresAt = Math.floor(Date.now() / 1000) * 1000 + 50 * DAY
    const expires_at = new Date(expiresAt).toISOString().replace('.000Z', 'Z')
    const { id, key } = await world().newKey('organisation/service', SCOPES, { expires_at })
    travelTo(expiresAt - 1)
    expect(await statusOf(world(), key)).toBe(200)
    travelTo(expiresAt)
    expect(await statusOf(world(), key)).toBe(401)
    expect(await read(world(), id)).toMatchObject({ status: 'expired', expires_at })
    for (let i = 0; i < 3; i++) await recordDue(world().gatehouse, Date.now())
    const rows = (await auditTrail(world().gatehouse.read)).filter(
      (row) => row.resource_id === id && row.action === 'expire',
    )
    expect(rows).toHaveLength(1)
  })

  test('the last use is known to the minute, and no request writes it', async () => {
    const { gatehouse } = world()
    const { id, key } = await world().newKey('organisation/service', SCOPES)
    const revision = async () => (await gatehouse.read.select().from(gatehouse.read.tables.installation))[0]?.revision
    const at = Date.parse('2033-03-03T03:03:33.333Z')
    travelTo(at)
    const before = await revision()
    for (let i = 0; i < 5; i++) await statusOf(world(), key)
    expect(await revision(), 'no write per request').toBe(before)
    expect((await read(world(), id)).last_used_at).toBeNull()
    const rows = (await auditTrail(gatehouse.read)).length
    await gatehouse.lastUsed.flush()
    expect((await read(world(), id)).last_used_at).toBe('2033-03-03T03:03:00.000Z')
    expect((await auditTrail(gatehouse.read)).length, 'no audit row').toBe(rows)
    gatehouse.lastUsed.note(id, at - DAY)
    await gatehouse.lastUsed.flush()
    expect((await read(world(), id)).last_used_at, 'never earlier than before').toBe('2033-03-03T03:03:00.000Z')
  })
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

describe('rotation.enforce', () => {
  const world = useWorld('sqlite', undefined, '[rotation]\nenforce = true')

  test('an overdue secret is refused when its transition period has passed since the due time', async () => {
    const policy = { rotation_period: 'weekly', key_transition_period_ms: 2 * HOUR }
    const { id, key } = await world().newKey('organisation/service', SCOPES, { rotation_policy: policy })
    const dueAt = Date.parse((await read(world(), id)).rotation_policy.next_rotation_at)
    travelTo(dueAt + 2 * HOUR - 1)
    expect(await statusOf(world(), key)).toBe(200)
    travelTo(dueAt + 2 * HOUR)
    expect(await statusOf(world(), key)).toBe(401)
    const { body } = await rotate(world(), id)
    expect(await statusOf(world(), body.key), 'another key rotates it back to life').toBe(200)
  })

  test('a key that must be rotated may make keys without an end', async () => {
    const extra = { rotation_policy: { rotation_period: 'monthly' } }
    const { key } = await world().newKey('organisation/service', ['organisation_service_api_keys.create'], extra)
    const body = { name: 'k', scopes: ['organisation_service_api_keys.create'] }
    expect((await world().call('POST', '/v1/api-keys/organisation/service', body, { key })).status).toBe(200)
  })
})
