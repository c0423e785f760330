import type { UnplacedRow } from './row.ts'

const MINUTE_MS = 60_000

/** What is counted of one kind in one minute. */
export interface Tally {
  /** those that have no row yet */
  count: number
  firstAt: number
  lastAt: number
  /** what the row of the count says, but for the count and its times */
  row(): UnplacedRow
}

/** Counts what happens too often for a row each: each count becomes one row at the minute's end, and at shutdown. */
export interface Tallies {
  /** the tally of a kind in this minute */
  find(kind: string): Tally | undefined
  begin(kind: string, row: Tally['row']): Tally
  /** kinds of this minute */
  size(): number
  count(tally: Tally): void
  /** Writes the row of the first of a kind that has begun; where it cannot be stored, the kind counts one more. */
  writeFirst(kind: string, row: UnplacedRow): Promise<{ isStored: boolean }>
  /** Writes what was counted, and resolves when every row is stored or given up; at shutdown. */
  flush(): Promise<void>
}

export interface TalliesOptions {
  /** writes one row */
  record(row: UnplacedRow): Promise<void>
  /** told at shutdown what could not be written; until then it is tried again at the end of each minute */
  lost(error: unknown, count: number): void
  /** UTC milliseconds */
  now?: (() => number) | undefined
}

export function createTallies({ record, lost, now = Date.now }: TalliesOptions): Tallies {
  const writing = new Set<Promise<unknown>>()
  let tallies = new Map<string, Tally>()
  let minute = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  let failure: unknown

  function write(kind: string, row: UnplacedRow, counted: Tally): Promise<{ isStored: boolean }> {
    const written = record(row)
      .then(
        () => ({ isStored: true }),
        (error: unknown) => {
          failure = error
          keep(kind, counted)
          return { isStored: false }
        },
      )
      .finally(() => writing.delete(written))
    writing.add(written)
    return written
  }

  /** Counts once more what was counted and could not be stored. */
  function keep(kind: string, { row, count, firstAt, lastAt }: Tally): void {
    const tally = tallies.get(kind) ?? begin(kind, row)
    tally.firstAt = tally.count === 0 ? firstAt : Math.min(tally.firstAt, firstAt)
    tally.lastAt = Math.max(tally.lastAt, lastAt)
    tally.count += count
  }

  function begin(kind: string, row: Tally['row']): Tally {
    enterMinute()
    const tally = { row, count: 0, firstAt: 0, lastAt: 0 }
    tallies.set(kind, tally)
    return tally
  }

  function endMinute(): void {
    clearTimeout(timer)
    timer = undefined
    const ended = tallies
    tallies = new Map()
    for (const [kind, tally] of ended) {
      const { row, count, firstAt, lastAt } = tally
      if (count === 0) continue
      const times = { first_time: new Date(firstAt).toISOString(), last_time: new Date(lastAt).toISOString() }
      const told = row()
      void write(kind, { ...told, details: { ...told.details, count, ...times } }, tally)
    }
  }

  function enterMinute(): void {
    const at = now()
    const current = Math.floor(at / MINUTE_MS)
    if (current === minute && timer !== undefined) return
    if (current !== minute) endMinute()
    minute = current
    timer = setTimeout(endMinute, (current + 1) * MINUTE_MS - at)
    timer.unref()
  }

  return {
    find(kind) {
      enterMinute()
      return tallies.get(kind)
    },
    begin,
    size: () => tallies.size,
    count(tally) {
      tally.lastAt = now()
      if (tally.count++ === 0) tally.firstAt = tally.lastAt
    },
    writeFirst(kind, row) {
      const at = now()
      const base = tallies.get(kind)?.row ?? (() => row)
      return write(kind, row, { row: base, count: 1, firstAt: at, lastAt: at })
    },
    async flush() {
      endMinute()
      await Promise.all(writing)
      const left = [...tallies.values()].filter(({ count }) => count > 0)
      for (const tally of left) {
        lost(failure, tally.count)
        tally.count = 0
      }
    },
  }
}
