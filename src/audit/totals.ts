/** Numbers of rows, both included. */
export type Range = [first: number, last: number]

/** Filters whose totals are kept. */
const KEPT = 1000
/** Rows that were added or have grown too old since a filter was last counted are counted by number, up to so many. */
const NEAR = 100_000

export interface Totals {
  /**
   * How many rows of a range fit a filter.
   *
   * @param filter of rows, whatever their numbers; its rows never change
   * @param state  of the trail: another chain, or rows pruned, and what was counted before counts no more
   * @param all    counts a range; `near` counts one of few numbers
   */
  count(filter: string, state: string, range: Range, all: Count, near: Count): Promise<number>
}

type Count = (range: Range) => Promise<number>

/**
 * Exact totals of a trail that only grows. Counting millions of rows takes up to seconds, so what is asked again, by
 * another page or a moment later, is worked out from the last answer: the rows that have come and those that the range
 * has left behind are counted, no others.
 */
export function createTotals(): Totals {
  const known = new Map<string, { state: string; range: Range; total: number }>()
  return {
    async count(filter, state, range, all, near) {
      const before = known.get(filter)
      const isNear = before?.state === state && distance(before.range, range) <= NEAR
      const total = isNear ? before.total + (await difference(before.range, range, near)) : await all(range)
      known.delete(filter)
      known.set(filter, { state, range, total })
      if (known.size > KEPT) known.delete(known.keys().next().value ?? '')
      return total
    },
  }
}

const distance = (a: Range, b: Range): number => Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1])

/** What is to be added to the count of `before` to have that of `after`; the two ranges overlap or nearly do. */
async function difference(before: Range, after: Range, count: Count): Promise<number> {
  const between = (low: number, high: number) => (low > high ? 0 : count([low, high]))
  const atStart =
    after[0] < before[0] ? await between(after[0], before[0] - 1) : -(await between(before[0], after[0] - 1))
  const atEnd =
    after[1] > before[1] ? await between(before[1] + 1, after[1]) : -(await between(after[1] + 1, before[1]))
  return atStart + atEnd
}
