import { afterAll, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { createFakeManager, everyManager, failing, text } from './support/fake-manager.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'
import { addOrganisation } from './support/tenants.ts'
import { SECRET_REFERENCE } from './support/things.ts'

// File 04: what a node knows of a reference without asking its manager, and what /metrics says of all of them.

const BASE = '/v1/secret-references'
const NOON = Date.UTC(2026, 2, 1, 12)
const at = (seconds: number) => new Date(NOON + seconds * 1000)

const UNUSED = {
  object: 'secret-reference-health',
  last_success_at: null,
  last_error: null,
  latency_ms: null,
  cached: false,
  age_seconds: null,
  stale: false,
  value_changed_at: null,
  login_expires_at: null,
  granted: true,
  used_by: [],
}

describe.each(DIALECTS)('health: %s', (dialect) => {
  const manager = createFakeManager()
  const world = useWorld(
    dialect,
    async (opened) => {
      opened.keys['system'] = await addSystemKey(opened)
      opened.keys['far'] = (await addOrganisation(opened.gatehouse)).adminKey
      opened.names['id'] = (await opened.call('POST', BASE, SECRET_REFERENCE)).body.id
    },
    '[secret_managers]\nserve_stale_seconds = 3600',
    { managers: everyManager(manager) },
  )
  beforeAll(() => void setSystemTime(at(0)))
  afterAll(() => void setSystemTime())
  beforeEach(() => {
    setSystemTime(at(0))
    manager.answer = () => text('one')
    manager.loginExpiresAt = null
  })

  const newReference = async (body: object = {}): Promise<string> =>
    (await world().call('POST', BASE, { ...SECRET_REFERENCE, ...body })).body.id
  const health = async (id: string) => (await world().call('GET', `${BASE}/${id}/health`)).body
  const resolve = (id: string, body: object = {}) =>
    world().call(
      'POST',
      `${BASE}/${id}/resolve`,
      { workspace_id: null, ...body },
      { key: world().keys['system'] ?? '' },
    )

  test('of one that was never used nothing is known, and it is not asked for', async () => {
    const { calls } = manager
    expect(await health(await newReference())).toEqual(UNUSED)
    expect(manager.calls).toBe(calls)
  })

  test('a call that succeeded, one that gave another value, and one that failed', async () => {
    const id = await newReference()
    manager.loginExpiresAt = NOON + 3_600_000
    await resolve(id)
    setSystemTime(at(10))
    expect(await health(id)).toEqual({
      ...UNUSED,
      last_success_at: at(0).toISOString(),
      latency_ms: 0,
      cached: true,
      age_seconds: 10,
      login_expires_at: '2026-03-01T13:00:00.000Z',
    })
    manager.answer = () => text('two')
    await resolve(id, { refresh: true })
    expect(await health(id)).toMatchObject({ value_changed_at: at(10).toISOString(), age_seconds: 0 })
    setSystemTime(at(400))
    manager.answer = failing('manager_sealed')
    expect((await resolve(id)).body).toMatchObject({ value: 'two', stale: true, stale_reason: 'manager_sealed' })
    expect(await health(id)).toMatchObject({
      last_success_at: at(10).toISOString(),
      last_error: { step: 'read', code: 'manager_sealed', at: at(400).toISOString() },
      cached: false,
      stale: true,
      age_seconds: 390,
    })
  })

  test('a change makes it new', async () => {
    const id = await newReference()
    await resolve(id)
    await world().call('PUT', `${BASE}/${id}`, { secret_path: 'secret/other' })
    expect(await health(id)).toEqual(UNUSED)
  })

  test('a machine identity that nobody granted is seen without a call', async () => {
    const auth_config = { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' }
    const id = await newReference({ manager_type: 'aws_sm', secret_path: 'prod/openai', auth_config })
    expect(await health(id)).toEqual({ ...UNUSED, granted: false })
  })

  test('what takes values from it is named, in the order of its fields', async () => {
    const { gatehouse, made } = world()
    const id = await newReference()
    const holderId = Bun.randomUUIDv7()
    const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    await gatehouse.audited(cli, { action: 'test.map' }, async (tx) => {
      const { secretMappings: t } = tx.tables
      const holder = { holderKind: 'integration', holderId, organisationId: made.organisation_id }
      const rows = ['key', 'configurations.region'].map((targetField, position) => ({
        ...{ ...holder, position, targetField },
        secretReferenceId: id,
        referenceAsGiven: 'openai-prod',
      }))
      await tx.insert(t).values(rows).returning({ id: t.holderId })
    })
    expect((await health(id)).used_by).toEqual([
      { kind: 'integration', id: holderId, target_field: 'key' },
      { kind: 'integration', id: holderId, target_field: 'configurations.region' },
    ])
  })

  scenarios(`GET ${BASE}/$id/health`, world, [
    { name: 'by its slug', call: `GET ${BASE}/openai-prod/health`, expect: 200, answer: { cached: false } },
    { name: 'the system caller has no business with it', as: 'system', expect: 'forbidden' },
    { name: 'another organisation sees nothing', as: 'far', expect: 'not_found' },
    { name: 'one that is not there', call: `GET ${BASE}/nowhere/health`, expect: 'not_found' },
    { name: 'a stranger', as: 'nobody', expect: 'unauthenticated' },
  ])
})

describe('/metrics', () => {
  const manager = createFakeManager()
  const world = useWorld(
    'sqlite',
    async (opened) => {
      opened.keys['system'] = await addSystemKey(opened)
    },
    '',
    { managers: everyManager(manager) },
  )

  test('tell of all references together, by numbers and never by name; a manager that is down leaves the node ready', async () => {
    const { call, keys, gatehouse } = world()
    const make = async (name: string) => (await call('POST', BASE, { ...SECRET_REFERENCE, name })).body.id
    const resolve = (id: string) =>
      call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key: keys['system'] ?? '' })
    const [good, bad] = [await make('name-of-a-tenant'), await make('bad')]
    manager.answer = () => text('value')
    for (let i = 0; i < 3; i++) await resolve(good)
    manager.answer = failing('manager_unreachable')
    await resolve(bad)
    const { text: metrics } = await call('GET', '/metrics')
    for (const line of [
      'gatehouse_secret_references{state="healthy"} 1',
      'gatehouse_secret_references{state="failing"} 1',
      'gatehouse_secret_references{state="pending"} 0',
      'gatehouse_secret_manager_calls_total{manager_type="hashicorp_vault",outcome="ok"} 1',
      'gatehouse_secret_manager_calls_total{manager_type="hashicorp_vault",outcome="manager_unreachable"} 1',
      'gatehouse_secret_manager_call_seconds_count{manager_type="hashicorp_vault"} 2',
      'gatehouse_secret_cache_total{outcome="hit"} 2',
      'gatehouse_secret_cache_total{outcome="miss"} 1',
      'gatehouse_secret_manager_breakers_open 0',
      'gatehouse_secret_manager_calls_under_way 0',
    ])
      expect(metrics.split('\n')).toContain(line)
    expect(metrics.match(/^# TYPE gatehouse_secret_references gauge$/gm)).toHaveLength(1)
    for (const name of ['name-of-a-tenant', good, bad, world().made.organisation_id])
      expect(metrics).not.toContain(name)
    expect((await call('GET', '/readyz')).status).toBe(200)
    expect(gatehouse.secretValues.counts().held).toBe(2)
  })
})
