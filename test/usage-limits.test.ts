import { describe, expect, test } from 'bun:test'
import { timeOf } from '../src/rfc3339.ts'
import { nextPeriodStart, readUsageLimits } from '../src/usage-limits.ts'

const at = (text: string) => Date.parse(text)

describe('nextPeriodStart', () => {
  test.each([
    ['weekly', '2026-01-05T00:00:00.000Z', '2026-01-12', 'a Monday begins its own week'],
    ['weekly', '2026-01-04T23:59:59.999Z', '2026-01-05', 'Sunday ends one'],
    ['weekly', '2026-12-29T12:00:00.000Z', '2027-01-04', 'over the end of a year'],
    ['monthly', '2026-01-01T00:00:00.000Z', '2026-02-01', 'the 1st begins its own month'],
    ['monthly', '2026-01-31T23:59:59.999Z', '2026-02-01', 'from a day that the next month has not'],
    ['monthly', '2026-12-31T12:00:00.000Z', '2027-01-01', 'over the end of a year'],
  ] as const)('%s from %s is %s: %s', (period, now, next) => {
    expect(nextPeriodStart(period, at(now))).toBe(at(`${next}T00:00:00.000Z`))
  })
})

describe('readUsageLimits', () => {
  const now = at('2026-01-30T10:00:00Z')
  const read = (...[input, before, threshold]: [object, object?, 'up_to'?]) =>
    readUsageLimits({ credit_limit: 5, ...input }, 'usage_limits', now, before as never, threshold)

  test.each([
    ['without a period there is no reset', {}, null],
    ['days are counted in whole days', { periodic_reset_days: 2 }, '2026-02-01T00:00:00.000Z'],
    [
      'the time that is sent counts',
      { periodic_reset: 'weekly', next_usage_reset_at: '2026-03-01T00:00:00+01:00' },
      '2026-03-01T00:00:00+01:00',
    ],
  ])('%s', (_, input, next) => {
    expect(read(input).next_usage_reset_at).toBe(next)
  })

  test('the same interval goes on, another one begins', () => {
    const before = { ...read({ periodic_reset_days: 9 }), next_usage_reset_at: '2026-02-02T00:00:00Z' }
    expect(read({ periodic_reset_days: 9 }, before).next_usage_reset_at).toBe('2026-02-02T00:00:00Z')
    expect(read({ periodic_reset_days: 8 }, before).next_usage_reset_at).toBe('2026-02-07T00:00:00.000Z')
    const past = { ...before, next_usage_reset_at: '2026-01-30T09:00:00Z' }
    expect(read({ periodic_reset_days: 9 }, past).next_usage_reset_at).toBe('2026-02-08T00:00:00.000Z')
  })

  test('a threshold reaches the limit where that is allowed, and never passes it', () => {
    expect(() => read({ alert_threshold: 5 })).toThrow('less than credit_limit')
    expect(read({ alert_threshold: 5 }, undefined, 'up_to').alert_threshold).toBe(5)
    expect(() => read({ alert_threshold: 6 }, undefined, 'up_to')).toThrow('no more than credit_limit')
  })
})

describe('timeOf', () => {
  test.each([
    '2026-01-31',
    '2026-01-31 10:00:00Z',
    '2026-01-31T10:00:00',
    '2026-02-30T00:00:00Z',
    '2026-01-31T25:00:00Z',
    'now',
    '',
  ])('no time: %p', (text) => {
    expect(timeOf(text)).toBeUndefined()
  })

  test.each(['2026-01-31T10:00:00Z', '2026-01-31T15:30:00+05:30', '2026-01-31T10:00:00.000000Z'])(
    'a time: %s',
    (text) => {
      expect(timeOf(text)).toBe(at('2026-01-31T10:00:00Z'))
    },
  )
})
