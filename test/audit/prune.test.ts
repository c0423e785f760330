import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { pruneTrail } from '../../src/audit/prune.ts'
import { verifyTrail } from '../../src/audit/verify.ts'
import { auditTrail } from '../support/audit.ts'
import { DIALECTS } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

const DAY_MS = 86_400_000

describe.each(DIALECTS)('pruning: %s', (dialect) => {
  let world: TestGatehouse
  beforeAll(async () => {
    setSystemTime(Date.now() - 400 * DAY_MS)
    world = await openTestGatehouse(dialect)
    for (const name of ['a', 'b', 'c']) await world.call('POST', '/v1/labels', { name })
    setSystemTime()
    await world.call('POST', '/v1/labels', { name: 'young' })
  })
  afterAll(() => world.close())

  const prune = (daysAgo: number) => {
    const { organisation_id: organisationId } = world.made
    const actor = { kind: 'cli', uid: 1, organisationId, command: 'audit prune' } as const
    return pruneTrail(world.gatehouse, actor, Date.now() - daysAgo * DAY_MS)
  }

  test('rows within the time that they have to be kept stay', async () => {
    await expect(prune(364)).rejects.toMatchObject({ code: 'invalid' })
    expect(await auditTrail(world.gatehouse.read)).toHaveLength(5)
  })

  test('what is left verifies, goes on counting, and says what is gone', async () => {
    const { public_key } = (await auditTrail(world.gatehouse.read)).at(-1)!.details['signing_key'] as {
      public_key: string
    }
    expect(await prune(366)).toBe(4)
    const rows = await auditTrail(world.gatehouse.read)
    expect(rows.map(({ seq, action }) => [seq, action])).toEqual([
      [6, 'prune'],
      [5, 'create'],
    ])
    expect(rows[0]).toMatchObject({ user_type: 'cli', details: { count: 4, first_seq: 1, last_seq: 4 } })
    expect(await verifyTrail(world.gatehouse, public_key)).toMatchObject({ rows: 2, fault: undefined })
    await world.call('POST', '/v1/labels', { name: 'later' })
    expect(await verifyTrail(world.gatehouse, public_key)).toMatchObject({ rows: 3, fault: undefined })
  })

  test('rows that nobody pruned are missed', async () => {
    const { read } = world.gatehouse
    const undo = new Error('undo')
    const { organisation_id: organisationId } = world.made
    const actor = { kind: 'cli', uid: 1, organisationId, command: 'test' } as const
    let problem: unknown
    await world.gatehouse
      .audited(actor, { action: 'test' }, async (tx) => {
        await tx.delete(read.tables.auditEvents).where(eq(read.tables.auditEvents.seq, 5)).returning()
        problem = (await verifyTrail({ read: tx })).fault
        throw undo
      })
      .catch(() => {})
    expect(problem).toMatchObject({ seq: 6 })
  })
})
