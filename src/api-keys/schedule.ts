import type { Gatehouse } from '../gatehouse.ts'
import { describeError } from '../log.ts'
import { recordDue } from './due.ts'

const MINUTE_MS = 60_000

/**
 * Once a minute, and at start: records what has come due, writes when keys were last used, and forgets the clear keys
 * among the answers that are kept for a second request.
 */
export function startKeySchedule(gatehouse: Gatehouse): { stop(): Promise<void> } {
  let stopped = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let running = run()

  async function run(): Promise<void> {
    try {
      if (gatehouse.initialised()) {
        await recordDue(gatehouse, Date.now())
        await gatehouse.lastUsed.flush()
        await gatehouse.pruneAnswers(Date.now())
      }
    } catch (error) {
      gatehouse.log.warn('key_schedule_failed', { cause: describeError(error) })
    }
    if (stopped) return
    timer = setTimeout(() => {
      running = run()
    }, MINUTE_MS)
    timer.unref()
  }

  return {
    stop() {
      stopped = true
      clearTimeout(timer)
      return running
    },
  }
}
