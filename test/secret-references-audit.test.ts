import { afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { AuditRow } from '../src/audit/row.ts'
import { GatehouseError } from '../src/errors.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { createFakeManager, everyManager, failing, text } from './support/fake-manager.ts'
import { openTestGatehouse } from './support/gatehouse.ts'
import { expectProblem, useWorld } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'
import { addWorkspace, revokeUnnoticed } from './support/tenants.ts'
import { SECRET_REFERENCE } from './support/things.ts'

// Decision 40: each call to a manager, each test and each use of a value leaves its row, and none holds a value.

const BASE = '/v1/secret-references'
const VALUE = 'canary-of-the-manager'
const TOKEN = SECRET_REFERENCE.auth_config.vault_token
const NOON = Date.UTC(2026, 2, 1, 12)

describe.each(DIALECTS)('the trail of secret references: %s', (dialect) => {
  const manager = createFakeManager()
  const world = useWorld(
    dialect,
    async (opened) => {
      opened.keys['system'] = await addSystemKey(opened)
    },
    '',
    { managers: everyManager(manager) },
  )
  let other: string
  beforeAll(async () => {
    other = (await addWorkspace(world().gatehouse, world().made.organisation_id)).workspaceId
  })
  afterEach(() => void setSystemTime())

  const systemKey = () => world().keys['system'] ?? ''
  const keyIdOf = (key: string) => {
    const { gatehouse } = world()
    return gatehouse.keys.find(gatehouse.digestKey(key), Date.now())?.keyId ?? ''
  }
  const newReference = async (body: object = {}): Promise<string> => {
    manager.answer = () => text(VALUE)
    return (await world().call('POST', BASE, { ...SECRET_REFERENCE, ...body })).body.id
  }
  const resolve = (id: string, body: object = {}, key = systemKey()) =>
    world().call('POST', `${BASE}/${id}/resolve`, { workspace_id: world().made.workspace_id, ...body }, { key })

  /** What was written while something was done, oldest first, refusals and counts included. */
  async function rowsOf(done: () => Promise<unknown>): Promise<AuditRow[]> {
    const { gatehouse } = world()
    const [last] = await auditTrail(gatehouse.read)
    await done()
    const rows = await auditTrail(gatehouse.read)
    return rows.filter(({ seq }) => seq > (last?.seq ?? 0)).reverse()
  }

  test('a call to the manager is a row that says who asked for whom, and how it went; it is stored when the value goes out', async () => {
    const { made } = world()
    const id = await newReference({ name: 'of a call' })
    let answered: Awaited<ReturnType<typeof resolve>> | undefined
    const rows = await rowsOf(async () => {
      answered = await resolve(id, { secret_key: null })
    })
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      organisation_id: made.organisation_id,
      workspace_id: made.workspace_id,
      user_type: 'system',
      user_id: keyIdOf(systemKey()),
      accountable_user_id: made.user_id,
      resource_type: 'secret_references',
      action: 'resolve',
      resource_id: id,
      resource_name: 'of a call',
      method: 'POST',
      uri: `${BASE}/${id}/resolve`,
      request_id: answered?.headers.get('x-request-id'),
      request_body: { workspace_id: made.workspace_id, secret_key: null },
      response_status_code: 200,
      details: { manager_type: 'hashicorp_vault', outcome: 'ok', ms: expect.any(Number) },
    })
  })

  test('what is in memory: the first use in a minute is a row, the others are one with their count', async () => {
    setSystemTime(new Date(NOON))
    const id = await newReference()
    const rows = await rowsOf(async () => {
      await resolve(id)
      for (let i = 0; i < 5; i++) {
        await resolve(id)
        setSystemTime(new Date(NOON + 1000 * (i + 1)))
      }
      await resolve(id, { workspace_id: other })
      setSystemTime(new Date(NOON + 60_000))
      await world().gatehouse.uses.flush()
      await resolve(id)
    })
    const told = rows.map(({ workspace_id, request_id, method, details }) => [
      workspace_id,
      request_id !== null && method === 'POST',
      details['outcome'],
      details['count'],
    ])
    const own = world().made.workspace_id
    expect(told).toEqual([
      [own, true, 'ok', undefined],
      [own, true, 'cached', undefined],
      [other, true, 'cached', undefined],
      [own, false, 'cached', 4],
      [own, true, 'cached', undefined],
    ])
    expect(rows[3]).toMatchObject({
      user_type: 'system',
      user_id: keyIdOf(systemKey()),
      resource_id: id,
      details: { first_time: '2026-03-01T12:00:01.000Z', last_time: '2026-03-01T12:00:04.000Z' },
    })
  })

  test('each key and each reference is counted for itself', async () => {
    setSystemTime(new Date(NOON))
    const [one, two] = [await newReference(), await newReference()]
    const second = await addSystemKey(world())
    const rows = await rowsOf(async () => {
      for (const id of [one, two]) for (const key of [systemKey(), second, second]) await resolve(id, {}, key)
      await world().gatehouse.uses.flush()
    })
    const told = rows.map(({ user_id, resource_id, details }) => `${user_id} ${resource_id} ${details['count'] ?? 1}`)
    const [a, b] = [keyIdOf(systemKey()), keyIdOf(second)]
    // The manager's call, then the first use and the count of the second key.
    expect(told.sort()).toEqual([one, two].flatMap((id) => [`${a} ${id} 1`, `${b} ${id} 1`, `${b} ${id} 1`]).sort())
  })

  test('1,000 who wait for one call: one row of the call, one of the first use, one of the others', async () => {
    setSystemTime(new Date(NOON))
    const id = await newReference()
    const rows = await rowsOf(async () => {
      await Promise.all(Array.from({ length: 1000 }, () => resolve(id)))
      await world().gatehouse.uses.flush()
    })
    const told = rows.map(({ details }) => `${details['outcome']} ${details['count'] ?? 1}`)
    expect(told.sort()).toEqual(['cached 1', 'cached 998', 'ok 1'])
  })

  test('a call that failed is a row of its own with step and reason, and no refusal besides; who is refused from memory is counted', async () => {
    const id = await newReference({ name: 'failing' })
    manager.answer = failing('manager_auth_failed', { step: 'login' })
    const rows = await rowsOf(async () => {
      for (let i = 0; i < 4; i++) expectProblem(await resolve(id), 'manager_auth_failed')
      await world().gatehouse.refusals.flush()
    })
    expect(rows.map(doneBy)).toEqual(Array(3).fill('secret_references.resolve'))
    expect(rows[0]).toMatchObject({
      user_type: 'system',
      resource_id: id,
      resource_name: 'failing',
      workspace_id: world().made.workspace_id,
      response_status_code: 502,
      details: { outcome: 'manager_auth_failed', step: 'login' },
    })
    const counted = rows.slice(1).sort((a, b) => Number(a.details['count']) - Number(b.details['count']))
    expect(counted).toMatchObject([
      {
        resource_id: id,
        response_status_code: 502,
        details: { error: 'manager_auth_failed', step: 'login', count: 1 },
      },
      { response_status_code: 502, details: { error: 'manager_auth_failed', step: 'login', count: 2 } },
    ])
  })

  test.each([
    ['manager_sealed', 503],
    ['manager_timeout', 504],
    ['manager_config', 400],
  ] as const)('%s, too, leaves its row with %d', async (failure, status) => {
    const id = await newReference()
    manager.answer = failing(failure)
    const rows = await rowsOf(() => resolve(id))
    expect(rows).toMatchObject([{ resource_id: id, response_status_code: status, details: { outcome: failure } }])
  })

  test('a field that is not there: the call and what came of it are one row', async () => {
    const id = await newReference()
    const rows = await rowsOf(() => resolve(id, { secret_key: 'nothing' }))
    const details = { outcome: 'manager_not_json', step: 'field', manager_type: 'hashicorp_vault' }
    expect(rows).toMatchObject([{ response_status_code: 502, details }])
  })

  test('who may not use it leaves a refusal, and a stranger as any stranger', async () => {
    const id = await newReference({ allowed_workspaces: [other] })
    const rows = await rowsOf(async () => {
      await resolve(id)
      await world().call('POST', `${BASE}/${id}/resolve`, { workspace_id: null })
      await world().gatehouse.refusals.flush()
    })
    expect(rows.sort((a, b) => b.response_status_code - a.response_status_code)).toMatchObject([
      { user_type: 'system', action: 'resolve', resource_id: id, response_status_code: 404 },
      { user_type: 'api_key', action: 'resolve', resource_id: id, response_status_code: 403 },
    ])
  })

  test('a test is a row with how far it got', async () => {
    const id = await newReference({ name: 'tested' })
    const good = await rowsOf(() => world().call('POST', `${BASE}/${id}/test`, {}))
    manager.answer = failing('manager_denied')
    const bad = await rowsOf(() => world().call('POST', `${BASE}/test`, { ...SECRET_REFERENCE, name: 'not stored' }))
    expect([...good, ...bad]).toMatchObject([
      {
        action: 'test',
        resource_id: id,
        resource_name: 'tested',
        user_type: 'api_key',
        details: { ok: true, failed_step: null, code: null, used_cached_login: false },
      },
      {
        action: 'test',
        resource_id: null,
        resource_name: 'not stored',
        details: { ok: false, failed_step: 'read', code: 'manager_denied' },
      },
    ])
  })

  test('a key that was revoked a moment ago, on another node, gets no fetched value and no first use', async () => {
    const key = await addSystemKey(world())
    const [cold, warm] = [await newReference(), await newReference()]
    await resolve(warm)
    await revokeUnnoticed(world().gatehouse, key)
    for (const id of [cold, warm]) expectProblem(await resolve(id, {}, key), 'unauthenticated')
  })

  test('no row holds a value or a login', async () => {
    const id = await newReference()
    await resolve(id)
    await resolve(id)
    await world().call('POST', `${BASE}/${id}/test`, { fresh: true })
    await world().call('POST', `${BASE}/test`, SECRET_REFERENCE)
    await Promise.all([world().gatehouse.refusals.flush(), world().gatehouse.uses.flush()])
    const trail = JSON.stringify(await auditTrail(world().gatehouse.read))
    for (const secret of [VALUE, TOKEN]) expect(trail).not.toContain(secret)
    expect(world().log.join('')).not.toContain(VALUE)
  })
})

test('the count of a minute that has not ended is written at shutdown', async () => {
  const manager = createFakeManager(() => text(VALUE))
  const opened = await openTestGatehouse('sqlite', '', { managers: everyManager(manager) })
  try {
    setSystemTime(new Date(NOON))
    const key = await addSystemKey(opened)
    const { body } = await opened.call('POST', BASE, SECRET_REFERENCE)
    for (let i = 0; i < 5; i++) await opened.call('POST', `${BASE}/${body.id}/resolve`, { workspace_id: null }, { key })
    await opened.gatehouse.close()
    const { gatehouse } = await opened.openNode()
    const rows = (await auditTrail(gatehouse.read)).filter((row) => doneBy(row) === 'secret_references.resolve')
    expect(rows.map(({ details }) => details['count'])).toEqual([3, undefined, undefined])
    await gatehouse.close()
  } finally {
    setSystemTime()
    rmSync(opened.dir, { recursive: true })
  }
})

test('no value goes out where its row cannot be stored', async () => {
  const manager = createFakeManager(() => text(VALUE))
  const opened = await openTestGatehouse('sqlite', '', { managers: everyManager(manager) })
  const { gatehouse, call } = opened
  try {
    const key = await addSystemKey(opened)
    const { body } = await call('POST', BASE, SECRET_REFERENCE)
    const resolve = () => call('POST', `${BASE}/${body.id}/resolve`, { workspace_id: null }, { key })
    const { audited } = gatehouse
    gatehouse.audited = async () => {
      throw new GatehouseError('storage_unavailable', 'the disk is full')
    }
    const refused = await resolve()
    expectProblem(refused, 'storage_unavailable')
    expect(refused.text).not.toContain(VALUE)
    gatehouse.audited = audited
    expect((await resolve()).body.value).toBe(VALUE)
    const [row] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({ resource_id: body.id, details: { outcome: 'cached' } })
  } finally {
    await opened.close()
  }
})
