import { describe, expect, setSystemTime, test } from 'bun:test'
import fc from 'fast-check'
import { createRefusals, networkOf, type Refusal } from '../../src/audit/refusals.ts'
import type { UnplacedRow } from '../../src/audit/row.ts'
import type { Caller } from '../../src/auth/caller.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'

const START = Date.UTC(2026, 0, 1)

/** Refusals on a clock of their own, and the rows that they left. */
function open() {
  const rows: UnplacedRow[] = []
  const lost: number[] = []
  const disk = { isFull: false }
  let now = START
  const refusals = createRefusals({
    async record(row) {
      if (disk.isFull) throw new Error('disk full')
      rows.push(row)
    },
    lost: (_error, count) => void lost.push(count),
    keys: () => TEST_AUDIT_KEYS,
    organisationId: () => 'installation',
    now: () => now,
  })
  return {
    rows,
    refusals,
    lost,
    disk,
    advance: (ms: number) => (now += ms),
    total: () => rows.reduce((n, row) => n + counted(row), 0),
  }
}

const counted = ({ details }: UnplacedRow): number => Number(details['count'])

const refusal = (changes: Partial<Refusal> = {}): Refusal => ({
  caller: undefined,
  isKeyUnknown: false,
  clientIp: '192.0.2.1',
  method: 'POST',
  route: '/v1/prompts',
  action: 'prompts.create',
  resourceId: null,
  status: 400,
  type: 'invalid_request_error',
  request: () => ({ requestId: 'r', method: 'POST', uri: '/v1/prompts?token=x', clientIp: '192.0.2.1' }),
  ...changes,
})

const caller = { keyId: 'k', type: 'workspace-service', organisationId: 'o', workspaceId: 'w', accountableUserId: 'p' }

describe('refusals', () => {
  test('the first of a kind is a row at once, the rest are one row with their count, first and last time', async () => {
    const { rows, refusals, advance } = open()
    for (let i = 0; i < 5; i++) {
      refusals.note(refusal({ caller: caller as Caller, status: 403, type: 'permission_error' }))
      if (i === 0) expect(rows).toHaveLength(1)
      advance(1000)
    }
    await refusals.flush()
    expect(rows).toMatchObject([
      {
        organisation_id: 'o',
        workspace_id: 'w',
        user_id: 'k',
        accountable_user_id: 'p',
        resource_type: 'prompts',
        action: 'create',
        uri: '/v1/prompts?token=[masked]',
        client_ip: '192.0.2.1',
        request_id: 'r',
        response_status_code: 403,
        details: { error: 'permission_error', count: 1 },
      },
      {
        user_id: 'k',
        client_ip: '192.0.2.0/24',
        response_status_code: 403,
        details: { count: 4, first_time: '2026-01-01T00:00:01.000Z', last_time: '2026-01-01T00:00:04.000Z' },
      },
    ])
  })

  test.each([
    { what: 'key', other: { caller: caller as Caller } },
    { what: 'network', other: { clientIp: '198.51.100.1' } },
    { what: 'route', other: { route: '/v1/labels' } },
    { what: 'status', other: { status: 415 } },
    { what: 'code', other: { type: 'key_in_url' } },
    { what: 'action', other: { action: 'labels.create' } },
  ])('another $what is another kind', ({ other }) => {
    const { rows, refusals } = open()
    for (const changes of [{}, other, {}, other]) refusals.note(refusal(changes))
    expect(rows).toHaveLength(2)
  })

  test('unknown keys are one row a minute for the whole installation, whatever they ask for and wherever from', async () => {
    const { rows, refusals } = open()
    for (let i = 0; i < 1000; i++)
      refusals.note(refusal({ isKeyUnknown: true, clientIp: `192.0.${i % 256}.1`, route: `/v1/${i}`, status: 401 }))
    await refusals.flush()
    expect(rows.map(counted)).toEqual([1000])
  })

  test('100,000 bad requests in a minute, from everywhere and for everything, leave at most 121 rows and lose none', async () => {
    const { rows, refusals, total } = open()
    for (let i = 0; i < 100_000; i++) {
      const clientIp = `${i % 251}.${i % 241}.${i % 239}.1`
      refusals.note(refusal({ clientIp, route: i % 3 === 0 ? undefined : `/v1/${i % 97}`, isKeyUnknown: i % 5 === 0 }))
    }
    await refusals.flush()
    expect(rows.length).toBeLessThanOrEqual(121)
    expect(total()).toBe(100_000)
  })

  test('the count of a minute is written when it ends, though no further request comes', async () => {
    setSystemTime(new Date(START))
    const { rows, refusals, advance } = open()
    advance(59_990)
    refusals.note(refusal())
    refusals.note(refusal())
    await Bun.sleep(30)
    setSystemTime()
    expect(rows.map(counted)).toEqual([1, 1])
  })

  describe('rows that cannot be stored', () => {
    const broken = () => {
      const opened = open()
      opened.disk.isFull = true
      return opened
    }

    test('are counted until they can: none is missing from the sum', async () => {
      const { rows, refusals, advance, total, lost, disk } = broken()
      const noted = refusals.note(refusal())
      refusals.note(refusal())
      expect(await noted).toEqual({ isStored: false })
      for (let minute = 0; minute < 3; minute++) {
        advance(60_000)
        refusals.note(refusal())
        await Bun.sleep(0)
      }
      expect(rows).toEqual([])
      disk.isFull = false
      advance(60_000)
      refusals.note(refusal({ status: 404 }))
      await refusals.flush()
      expect(total()).toBe(6)
      expect(lost).toEqual([])
    })

    test('are told of at shutdown, as one number', async () => {
      const { refusals, lost } = broken()
      for (let i = 0; i < 3; i++) refusals.note(refusal())
      await refusals.flush()
      expect(lost).toEqual([3])
    })
  })

  test('one whose key is still looked for is counted all the same, at shutdown too, as what it turns out to be', async () => {
    const { rows, refusals, total } = open()
    const found = Promise.withResolvers<Refusal>()
    const stranger = refusal({ isKeyUnknown: true, status: 401 })
    refusals.noteWhenFound(found.promise)
    refusals.noteWhenFound(Promise.resolve(stranger))
    refusals.note(stranger)
    const flushed = refusals.flush()
    found.resolve(refusal({ caller: { ...(caller as Caller), reason: 'deleted' }, status: 401 }))
    await flushed
    expect(total()).toBe(3)
    expect(rows).toMatchObject([
      { user_id: 'k', accountable_user_id: 'p', details: { reason: 'deleted', count: 1 } },
      { user_id: 'anonymous', details: { count: 2 } },
    ])
  })

  test('before bootstrap there is nobody to tell', async () => {
    const { rows } = open()
    const refusals = createRefusals({
      record: async (row) => void rows.push(row),
      keys: () => TEST_AUDIT_KEYS,
      lost() {},
      organisationId: () => undefined,
    })
    refusals.note(refusal())
    await refusals.flush()
    expect(rows).toEqual([])
  })

  test('whenever they come, the counts of the rows add up to the requests', async () => {
    const request = fc.record({
      wait: fc.integer({ min: -5_000, max: 90_000 }),
      route: fc.integer({ max: 80, min: 0 }).map((n) => `/v1/${n}`),
      clientIp: fc.constantFrom('192.0.2.1', '2001:db8::1', '::1'),
      isKeyUnknown: fc.boolean(),
      times: fc.integer({ min: 1, max: 100 }),
    })
    const property = fc.asyncProperty(fc.array(request), async (requests) => {
      const { refusals, advance, total } = open()
      for (const { wait, times, ...changes } of requests) {
        advance(wait)
        for (let i = 0; i < times; i++) refusals.note(refusal(changes))
      }
      await refusals.flush()
      expect(total()).toBe(requests.reduce((n, { times }) => n + times, 0))
    })
    await fc.assert(property, { numRuns: 200 })
  })
})

test.each([
  ['192.0.2.77', '192.0.2.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:0db8::', '2001:db8:0:0::/64'],
  [null, ''],
])('the network of %s is %s', (address, network) => expect(networkOf(address)).toBe(network))
