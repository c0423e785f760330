import { closeSync, openSync, readFileSync, readSync } from 'node:fs'

const PAGE = 4096
const ENTRY_BYTES = 8
/** Of an entry's last byte: in memory; swapped out. */
const IS_KEPT = 0xc0

/**
 * What a process of ours has made in its memory, but for its stacks; nothing of the files that it maps, its own program
 * among them (Linux).
 */
export function heapOf(pid: number): Buffer {
  const [pagemap, memory] = [openSync(`/proc/${pid}/pagemap`, 'r'), openSync(`/proc/${pid}/mem`, 'r')]
  const found: Buffer[] = []
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const [, from, to] = /^([\da-f]+)-([\da-f]+) r\S+ \S+ \S+ \S+\s*(?:\[heap\])?$/.exec(line) ?? []
      if (from === undefined || to === undefined) continue
      const [start, end] = [Number.parseInt(from, 16), Number.parseInt(to, 16)]
      const entries = Buffer.alloc(((end - start) / PAGE) * ENTRY_BYTES)
      readSync(pagemap, entries, 0, entries.length, (start / PAGE) * ENTRY_BYTES)
      for (const [first, last] of runsIn(entries)) {
        const bytes = Buffer.alloc((last - first) * PAGE)
        const length = readOr0(memory, bytes, start + first * PAGE)
        found.push(bytes.subarray(0, length))
      }
    }
  } finally {
    closeSync(pagemap)
    closeSync(memory)
  }
  return Buffer.concat(found)
}

/** Pages in a row that are there: [first, behind the last]. */
function runsIn(entries: Buffer): [number, number][] {
  const runs: [number, number][] = []
  const count = entries.length / ENTRY_BYTES
  let first: number | undefined
  for (let page = 0; page <= count; page++) {
    const isKept = page < count && (entries[page * ENTRY_BYTES + ENTRY_BYTES - 1]! & IS_KEPT) !== 0
    if (isKept) first ??= page
    else if (first !== undefined) {
      runs.push([first, page])
      first = undefined
    }
  }
  return runs
}

/** The process goes on meanwhile, and gives pages back. */
function readOr0(memory: number, bytes: Buffer, at: number): number {
  try {
    return readSync(memory, bytes, 0, bytes.length, at)
  } catch {
    return 0
  }
}
