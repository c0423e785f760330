import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createTotals, type Range } from '../../src/audit/totals.ts'

/** A trail that only grows: which of its rows fit, by number. */
const counter = (fits: readonly boolean[]) => {
  const counted: Range[] = []
  const count = async (range: Range): Promise<number> => {
    counted.push(range)
    return fits.slice(range[0], range[1] + 1).filter(Boolean).length
  }
  return { count, counted }
}

describe('totals of a growing trail', () => {
  test('are exact, whichever ranges are asked for one after another', async () => {
    const ranges = fc.array(fc.tuple(fc.nat(60), fc.nat(60)), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { minLength: 61, maxLength: 61 }), ranges, async (fits, asked) => {
        const totals = createTotals()
        const { count } = counter(fits)
        for (const [a, b] of asked) {
          const range: Range = [Math.min(a, b), Math.max(a, b)]
          expect(await totals.count('f', 's', range, count, count)).toBe(await counter(fits).count(range))
        }
      }),
    )
  })

  test('count only what has come since, and what the range has left behind', async () => {
    const totals = createTotals()
    const { count, counted } = counter(Array.from({ length: 100 }, () => true))
    expect(await totals.count('f', 's', [10, 50], count, count)).toBe(41)
    expect(await totals.count('f', 's', [10, 50], count, count)).toBe(41)
    expect(await totals.count('f', 's', [12, 53], count, count)).toBe(42)
    expect(counted).toEqual([
      [10, 50],
      [10, 11],
      [51, 53],
    ])
  })

  test.each([
    ['of another filter', 'g', 's', [10, 50]],
    ['of another chain, or after a prune', 'f', 't', [10, 50]],
    ['of numbers far away', 'f', 's', [10, 500_000]],
  ] as const)('%s are counted anew', async (_, filter, state, range) => {
    const totals = createTotals()
    const { count, counted } = counter(Array.from({ length: 100 }, () => true))
    await totals.count('f', 's', [10, 50], count, count)
    await totals.count(filter, state, [range[0], range[1]], count, count)
    expect(counted.at(-1)).toEqual([range[0], range[1]])
  })
})
