import { setPriority } from 'node:os'

/** What a Worker calls first whose long work is to disturb no render: its thread alone stands back, which Linux knows. */
export function standBack(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(10)
  } catch {
    // not allowed here: it works on all the same
  }
}
