import { describe, expect, test } from 'bun:test'
import type { Audited } from '../../src/audit/audited.ts'
import type { UnplacedRow } from '../../src/audit/row.ts'
import { createUses } from '../../src/audit/uses.ts'
import type { Caller, KeyActor } from '../../src/auth/caller.ts'
import type { AuditDraft, Tx } from '../../src/db/database.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'

const START = Date.UTC(2026, 0, 1)
const caller = { keyId: 'k', type: 'system', organisationId: 'o', workspaceId: null, accountableUserId: 'p' } as Caller
const event: AuditDraft = {
  action: 'secret_references.resolve',
  workspaceId: 'w',
  resourceId: 'r',
  resourceName: 'name',
  details: { outcome: 'cached' },
}

/** Uses on a clock of their own: the rows of first ones, which are let go by hand, and those of counts. */
function open() {
  const firsts: { actor: KeyActor; event: AuditDraft; end: (error?: Error) => void }[] = []
  const counts: UnplacedRow[] = []
  const lost: number[] = []
  let now = START
  let stores = true
  const audited: Audited = async (actor, what, work) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const end = (error?: Error) => (error === undefined ? resolve() : reject(error))
    firsts.push({ actor: actor as KeyActor, event: what, end })
    await promise
    return work({} as Tx)
  }
  const uses = createUses({
    audited,
    keys: () => TEST_AUDIT_KEYS,
    record: async (row) => {
      if (!stores) throw new Error('storage')
      counts.push(row)
    },
    lost: (_error, count) => void lost.push(count),
    now: () => now,
  })
  const actor = { kind: 'key', caller } as KeyActor
  return {
    ...{ uses, firsts, counts, lost },
    note: (changes: Partial<AuditDraft> = {}) => uses.note(caller, { ...event, ...changes }, () => actor),
    advance: (ms: number) => {
      now += ms
    },
    break: () => {
      stores = false
    },
  }
}

describe('uses of what is in memory', () => {
  test('the first waits for its row; once that is stored, the others wait for nothing', async () => {
    const { uses, note, firsts, counts, advance } = open()
    const first = note()
    expect(Bun.peek.status(first!)).toBe('pending')
    firsts[0]?.end()
    await first
    for (let i = 0; i < 3; i++) {
      advance(1000)
      expect(note()).toBeUndefined()
    }
    expect(firsts).toHaveLength(1)
    await uses.flush()
    expect(counts).toMatchObject([
      {
        organisation_id: 'o',
        workspace_id: 'w',
        user_type: 'system',
        user_id: 'k',
        accountable_user_id: 'p',
        resource_type: 'secret_references',
        action: 'resolve',
        resource_id: 'r',
        resource_name: 'name',
        request_id: null,
        response_status_code: 200,
        details: {
          outcome: 'cached',
          count: 3,
          first_time: '2026-01-01T00:00:01.000Z',
          last_time: '2026-01-01T00:00:03.000Z',
        },
      },
    ])
  })

  test('who comes before the first row is stored waits for it, too, and is counted then', async () => {
    const { uses, note, firsts, counts } = open()
    const all = Promise.all([note(), note(), note()])
    expect(firsts).toHaveLength(1)
    firsts[0]?.end()
    await all
    await uses.flush()
    expect(counts.map(({ details }) => details['count'])).toEqual([2])
  })

  test('where the row cannot be stored nobody gets an answer, and the next one tries again', async () => {
    const { uses, note, firsts, counts } = open()
    const all = [note(), note()]
    firsts[0]?.end(new Error('storage'))
    const outcomes = await Promise.allSettled(all)
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    const again = note()
    firsts[1]?.end()
    await again
    await uses.flush()
    expect(firsts).toHaveLength(2)
    expect(counts).toEqual([])
  })

  test.each([
    ['reference', { resourceId: 'other' }],
    ['workspace', { workspaceId: 'other' }],
    ['workspace than none', { workspaceId: null }],
    ['action', { action: 'secret_references.other' }],
  ])('another %s has a first row of its own', async (_what, changes) => {
    const { note, firsts } = open()
    const all = [note(), note(changes)]
    for (const { end } of firsts) end()
    await Promise.all(all)
    expect(firsts).toHaveLength(2)
    expect([note(), note(changes)]).toEqual([undefined, undefined])
  })

  test('a new minute has a first row again, and the count of the one before is written without waiting', async () => {
    const { note, firsts, counts, advance } = open()
    const first = note()
    firsts[0]?.end()
    await first
    note()
    advance(60_000)
    const next = note()
    expect(next).toBeInstanceOf(Promise)
    expect(counts.map(({ details }) => details['count'])).toEqual([1])
    firsts[1]?.end()
    await next
  })

  test('one use in a minute is one row', async () => {
    const { uses, note, firsts, counts } = open()
    const first = note()
    firsts[0]?.end()
    await first
    await uses.flush()
    expect(counts).toEqual([])
  })

  test('a count that cannot be written is told of', async () => {
    const opened = open()
    const first = opened.note()
    opened.firsts[0]?.end()
    await first
    opened.note()
    opened.break()
    await opened.uses.flush()
    expect(opened.lost).toEqual([1])
  })
})
