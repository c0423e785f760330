import { Database as Connection } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { join } from 'node:path'
import { verifyTrail } from '../../src/audit/verify.ts'
import { auditTrail } from '../support/audit.ts'
import { DIALECTS } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { expectProblem } from '../support/scenario.ts'

describe.each(DIALECTS)('the audit trail over HTTP: %s', (dialect) => {
  let world: TestGatehouse
  beforeAll(async () => {
    world = await openTestGatehouse(dialect)
  })
  afterAll(() => world.close())

  /** The rows that `work` left, oldest first. */
  async function rowsOf(work: () => Promise<unknown>) {
    const { read, refusals } = world.gatehouse
    const before = (await auditTrail(read))[0]?.seq ?? 0
    await work()
    await refusals.flush()
    return (await auditTrail(read)).filter(({ seq }) => seq > before).reverse()
  }

  const label = (name: string) => world.call('POST', '/v1/labels', { name })

  test.each([
    { what: 'no key', key: null, status: 401, user: 'anonymous' },
    {
      what: 'a key that is unknown',
      key: 'gth_a_000000000000000000000000000000_000000',
      status: 401,
      user: 'anonymous',
    },
  ])('$what is a row, of a read too', async ({ key, status, user }) => {
    const rows = await rowsOf(() => world.call('GET', '/v1/labels', undefined, { key }))
    expect(rows).toMatchObject([
      { response_status_code: status, user_id: user, organisation_id: world.made.organisation_id },
    ])
  })

  test('what a key may not do is a row with its name, its request and what it wanted', async () => {
    const { id, key } = await world.newKey('organisation/service', ['prompts.read'])
    const rows = await rowsOf(async () => {
      expectProblem(await world.call('POST', '/v1/labels?secret=x', { name: 'x' }, { key }), 'forbidden')
      await world.call('POST', '/v1/prompts/none/render', { variables: {} }, { key })
      await world.call('GET', '/v1/nothing', undefined, { key })
    })
    // They are written on their own, in any order.
    expect(rows.sort((a, b) => (a.uri! < b.uri! ? -1 : 1))).toMatchObject([
      {
        method: 'POST',
        uri: '/v1/labels?secret=[masked]',
        user_id: id,
        accountable_user_id: world.made.user_id,
        resource_type: 'labels',
        action: 'create',
        response_status_code: 403,
        details: { error: 'permission_error', route: '/v1/labels', count: 1 },
      },
      { uri: '/v1/nothing', user_id: 'anonymous', response_status_code: 404, details: { error: 'route_unknown' } },
      {
        uri: '/v1/prompts/none/render',
        user_id: id,
        response_status_code: 403,
        resource_type: 'prompts',
        action: 'render',
      },
    ])
  })

  test('what succeeds and changes nothing leaves no row', async () => {
    expect(await rowsOf(() => world.call('GET', '/v1/labels'))).toEqual([])
  })

  test('every row of a change says with what it was asked for', async () => {
    const [row] = await rowsOf(() => label('asked'))
    expect(row?.request_body).toEqual({ name: 'asked' })
  })

  test('a clock set back by an hour changes no order, starts no gap, and is said in the row and the log', async () => {
    await label('before')
    setSystemTime(Date.now() - 3_600_000)
    const rows = await rowsOf(() => label('earlier'))
    setSystemTime()
    await label('after')
    expect(rows[0]?.details['clock_set_back_ms']).toBeGreaterThan(3_590_000)
    expect(world.log.some((line) => line.includes('CLOCK_STEP'))).toBe(true)
    const { body } = await world.call('GET', '/v1/audit-logs?resource_type=labels&response_status_code=200&page_size=3')
    const names = body.data.map(({ resource_name: name }: { resource_name: string }) => name)
    expect(names).toEqual(['after', 'earlier', 'before'])
    const recent = new Date(Date.now() - 1_800_000).toISOString()
    const later = await world.call('GET', `/v1/audit-logs?start_time=${recent}`)
    expect(later.body.data.map(({ resource_name: name }: { resource_name: string }) => name)).not.toContain('earlier')
    expect(later.body.data[0].resource_name).toBe('after')
  })

  test('after all of this it verifies', async () => {
    expect((await verifyTrail(world.gatehouse)).fault).toBeUndefined()
  })
})

describe('a change whose row cannot be written', () => {
  test('does not happen: 503, and nothing is changed (AU-1)', async () => {
    const { gatehouse, call, close, dir } = await openTestGatehouse()
    const other = new Connection(join(dir, 'data/gatehouse.db'))
    other.run("CREATE TRIGGER fault BEFORE INSERT ON audit_events BEGIN SELECT RAISE(ABORT, 'no'); END")
    const labels = async () => (await call('GET', '/v1/labels')).body.total
    const before = await labels()
    expectProblem(await call('POST', '/v1/labels', { name: 'lost' }), 'storage_unavailable')
    expect(await labels()).toBe(before)
    // Nor is a refusal told as one (AU-2); that of a stranger is: nothing is known of them.
    expectProblem(await call('POST', '/v1/labels', { nam: 'x' }), 'audit_unavailable')
    expectProblem(await call('POST', '/v1/labels', { name: 'x' }, { key: null }), 'unauthenticated')
    other.run('DROP TRIGGER fault')
    await gatehouse.refusals.flush()
    const refused = (await call('GET', '/v1/audit-logs?response_status_code=400')).body.records
    expect(refused.map((row: { metadata: { count: number } }) => row.metadata.count)).toEqual([1])
    other.close()
    expect((await call('POST', '/v1/labels', { name: 'kept' })).status).toBe(200)
    expect((await verifyTrail(gatehouse)).fault).toBeUndefined()
    await close()
  })
})
