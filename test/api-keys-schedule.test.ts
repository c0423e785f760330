import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { recordDue } from '../src/api-keys/due.ts'
import { nextPeriodStart } from '../src/usage-limits.ts'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { useWorld, type World } from './support/scenario.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const SCOPES = ['prompts.list', 'organisation_service_api_keys.rotate']

/** Tells the whole process another time. */
const travelTo = (time: number) => setSystemTime(new Date(time))
afterEach(() => setSystemTime())

const statusOf = async ({ call }: World, key: string) => (await call('GET', '/v1/prompts', undefined, { key })).status
const read = async ({ call }: World, id: string) => (await call('GET', `/v1/api-keys/${id}`)).body
const rotate = ({ call }: World, id: string, key?: string) =>
  call('POST', `/v1/api-keys/${id}/rotate`, undefined, key === undefined ? {} : { key })

describe.each(DIALECTS)('what time does to an API key: %s', (dialect) => {
  const world = useWorld(dialect)

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
    expect(rows[0]).toMatchObject({ user_type: 'system', user_id: 'system', action: 'rotation_due' })
    expect(rows[0]?.details).toMatchObject({ status: 'due', due_at: new Date(dueAt).toISOString() })
    expect(await statusOf(world(), key)).toBe(200)
    expect(gatehouse.metrics.text([])).toMatch(/gatehouse_api_key_rotations_due_total [1-9]/)
  })

  test('the next rotate, by the key itself too, opens the whole window and sets the next time', async () => {
    const { id, key, dueAt } = await dueKey({ rotation_period: 'monthly', key_transition_period_ms: 3 * HOUR })
    travelTo(dueAt + 40 * DAY)
    await recordDue(world().gatehouse, Date.now())
    const { body } = await rotate(world(), id, key)
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
