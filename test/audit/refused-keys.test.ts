import { afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { newApiKey } from '../../src/api-keys/key.ts'
import { createRefusedKeys, type RefusedBecause } from '../../src/auth/refused-keys.ts'
import type { Reader } from '../../src/db/database.ts'
import { auditTrail } from '../support/audit.ts'
import { type CallerKind, makeCallers } from '../support/callers.ts'
import { DIALECTS } from '../support/database.ts'
import { expectProblem, useWorld } from '../support/scenario.ts'

const HOUR = 3_600_000
// All of a test is in one minute.
beforeEach(() => setSystemTime(new Date()))
afterEach(() => setSystemTime())

describe.each(DIALECTS)('the use of a key that is good no more: %s', (dialect) => {
  const world = useWorld(dialect, async (it) => {
    for (const [who, key] of Object.entries(await makeCallers(it))) if (key !== null) it.keys[who] = key
  })

  /** The rows that `work` left, those that stand for one request first. */
  async function rowsOf(work: () => Promise<unknown>) {
    const { read, refusals } = world().gatehouse
    await refusals.flush()
    const before = (await auditTrail(read))[0]?.seq ?? 0
    await work()
    await refusals.flush()
    return (await auditTrail(read))
      .filter(({ seq }) => seq > before)
      .sort((one, other) => Number(one.details['count']) - Number(other.details['count']))
  }
  const list = (key: string, headers = {}) => world().call('GET', '/v1/labels', undefined, { key, headers })
  const rowOf = async (who: CallerKind) => {
    const { read, digestKey } = world().gatehouse
    const { apiKeys: t } = read.tables
    const digest = digestKey(world().keys[who]!)
    const rows = await read.select().from(t)
    return rows.find((row) => row.digest === digest || row.previousDigest === digest)!
  }

  test.each<[CallerKind, RefusedBecause]>([
    ['deleted', 'deleted'],
    ['expired', 'expired'],
    ['removed', 'person_removed'],
    ['archived', 'workspace_archived'],
  ])('is put down to the key and its person: %s', async (who, reason) => {
    const { id, accountableUserId, workspaceId, organisationId } = await rowOf(who)
    const rows = await rowsOf(async () => {
      for (let i = 0; i < 3; i++) expectProblem(await list(world().keys[who]!), 'unauthenticated')
    })
    const row = {
      organisation_id: organisationId,
      workspace_id: workspaceId,
      user_type: 'api_key',
      user_id: id,
      accountable_user_id: accountableUserId,
      resource_type: 'labels',
      action: 'list',
      response_status_code: 401,
    }
    const details = { error: 'authentication_error', route: '/v1/labels', reason }
    expect(rows).toMatchObject([
      { ...row, uri: '/v1/labels', method: 'GET', details: { ...details, count: 1 } },
      { ...row, details: { ...details, count: 2 } },
    ])
  })

  test('is answered as that of a key that never was', async () => {
    const { keys } = world()
    const never = await list(newApiKey('a'))
    for (const who of ['deleted', 'expired', 'removed', 'archived'] as const) {
      const { status, body, headers } = await list(keys[who]!)
      expect(status).toBe(never.status)
      const requestId = headers.get('x-request-id')
      expect(body).toEqual({ ...never.body, request_id: requestId })
      expect([...headers.keys()]).toEqual([...never.headers.keys()])
    }
  })

  test('is put down to the key after its old secret has ended, for as long as that is kept', async () => {
    const { id } = await rowOf('old')
    expect((await list(world().keys['old']!)).status, 'inside the window').toBe(200)
    setSystemTime(new Date(Date.now() + HOUR))
    const [row] = await rowsOf(async () => expectProblem(await list(world().keys['old']!), 'unauthenticated'))
    expect(row).toMatchObject({ user_id: id, details: { reason: 'rotated' } })
  })

  test('of a system key from a peer or through a proxy that may not send it names that key', async () => {
    const { gatehouse, keys } = world()
    const { id } = await rowOf('system')
    const { peerIp } = gatehouse
    const rows = await rowsOf(async () => {
      expectProblem(await list(keys['system']!, { via: '1.1 proxy' }), 'unauthenticated')
      gatehouse.peerIp = () => '203.0.113.9'
      expectProblem(await list(keys['system']!), 'unauthenticated')
      gatehouse.peerIp = peerIp
    })
    const row = { user_type: 'system', user_id: id, details: { reason: 'peer' } }
    expect(rows).toMatchObject([row, row])
    expect(new Set(rows.map(({ client_ip }) => client_ip))).toEqual(new Set(['127.0.0.1', '203.0.113.9']))
  })

  test('by a change, on a node that has not heard of it, names the key as well', async () => {
    const { gatehouse, made, newKey, call } = world()
    const { id, key } = await newKey('organisation/service', ['prompts.create'])
    const { apiKeys: t } = gatehouse.read.tables
    const actor = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    await gatehouse.audited(actor, { action: 'test.delete' }, (tx) =>
      tx.update(t).set({ deletedAt: tx.now }).where(eq(t.id, id)).returning({ id: t.id }),
    )
    const prompt = { name: 'p', string: 'x', parameters: {} }
    const [row] = await rowsOf(async () =>
      expectProblem(await call('POST', '/v1/prompts', prompt, { key }), 'unauthenticated'),
    )
    expect(row).toMatchObject({ user_id: id, action: 'create', details: { reason: 'deleted' } })
  })

  test('keys that never were stay one row a minute', async () => {
    setSystemTime(new Date(Math.ceil(Date.now() / 60_000) * 60_000 + 120_000))
    const rows = await rowsOf(async () => {
      for (let i = 0; i < 50; i++) await list(newApiKey('w'))
      await list('gth_a_mistyped')
    })
    expect(rows).toMatchObject([{ user_id: 'anonymous', details: { count: 51 } }])
  })
})

describe('looking for whose a refused key was', () => {
  const world = useWorld()

  /** As the database, counting what it is asked. */
  function counting() {
    const { read } = world().gatehouse
    const asked = { queries: 0 }
    const select = (...columns: Parameters<Reader['select']>) => {
      asked.queries++
      return read.select(...columns)
    }
    return { asked, read: { ...read, select } as Reader }
  }

  test('100,000 bad keys in a minute are at most 600 queries, and one key is one', async () => {
    const { asked, read } = counting()
    const keys = createRefusedKeys(read, { enforcesRotation: false })
    const found: unknown[] = []
    for (let i = 0; i < 1000; i++) found.push(keys.find('the same', 0))
    for (let i = 0; i < 100_000; i++) found.push(keys.find(`digest ${i}`, 30_000))
    expect(new Set(await Promise.all(found))).toEqual(new Set([undefined]))
    expect(asked.queries).toBe(600)
    await keys.find('in the next minute', 60_000)
    expect(asked.queries).toBe(601)
  })

  const fail = () => {
    throw new Error('gone')
  }
  test('that fails leaves the refusal counted as that of an unknown key', async () => {
    const read = { ...world().gatehouse.read, select: fail } as unknown as Reader
    expect(await createRefusedKeys(read, { enforcesRotation: false }).find('x', 0)).toBeUndefined()
  })

  test('waits for the answer to be on its way, so that its time tells nothing', async () => {
    const { asked, read } = counting()
    const found = createRefusedKeys(read, { enforcesRotation: false }).find('x', 0)
    await Promise.resolve()
    expect(asked.queries).toBe(0)
    await found
    expect(asked.queries).toBe(1)
  })
})

describe('rotation.enforce', () => {
  const world = useWorld('sqlite', undefined, '[rotation]\nenforce = true')

  test('the use of an overdue secret names its key', async () => {
    const { call, newKey, gatehouse } = world()
    const policy = { rotation_policy: { rotation_period: 'weekly' } }
    const { id, key } = await newKey('organisation/service', ['prompts.list'], policy)
    setSystemTime(new Date(Date.now() + 15 * 24 * HOUR))
    expectProblem(await call('GET', '/v1/prompts', undefined, { key }), 'unauthenticated')
    await gatehouse.refusals.flush()
    const [row] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({ user_id: id, details: { reason: 'rotation_overdue' } })
  })
})
