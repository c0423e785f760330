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
  /** Starts to write a row that stands for `count` of them. */
  write(row: UnplacedRow, count: number): void
  /** Writes what was counted, and resolves when every row is stored or given up. */
  flush(): Promise<void>
}

export interface TalliesOptions {
  /** writes one row */
  record(row: UnplacedRow): Promise<void>
  /** told what could not be written */
  lost(error: unknown, count: number): void
  /** UTC milliseconds */
  now?: (() => number) | undefined
}

export function createTallies({ record, lost, now = Date.now }: TalliesOptions): Tallies {
  const writing = new Set<Promise<void>>()
  let tallies = new Map<string, Tally>()
  let minute = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function write(row: UnplacedRow, count: number): void {
    const written = record(row)
      .catch((error: unknown) => lost(error, count))
      .finally(() => writing.delete(written))
    writing.add(written)
  }

  function endMinute(): void {
    clearTimeout(timer)
    timer = undefined
    const ended = tallies
    tallies = new Map()
    for (const { row, count, firstAt, lastAt } of ended.values()) {
      if (count === 0) continue
      const times = { first_time: new Date(firstAt).toISOString(), last_time: new Date(lastAt).toISOString() }
      const told = row()
      write({ ...told, details: { ...told.details, count, ...times } }, count)
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
    begin(kind, row) {
      enterMinute()
      const tally = { row, count: 0, firstAt: 0, lastAt: 0 }
      tallies.set(kind, tally)
      return tally
    },
    size: () => tallies.size,
    count(tally) {
      tally.lastAt = now()
      if (tally.count++ === 0) tally.firstAt = tally.lastAt
    },
    write,
    async flush() {
      endMinute()
      await Promise.all(writing)
    },
  }
}
