import type { DatabaseOptions } from '../db/open.ts'
import { describeError, type Log } from '../log.ts'
import type { Verified } from './verify.ts'
import type { TrailAnswer, TrailQuestion } from './verify.worker.ts'
import { startWorker } from './worker.ts'

export type Fault = NonNullable<Verified['fault']>

/** Checks of the trail while the server runs, on a thread of their own (AU-4). */
export interface TrailCheck {
  /**
   * Checks all rows, or only the newest ones; head, keys and anchor in either case. One at a time.
   *
   * @param newest how many numbers back from the head
   * @returns      what is wrong, undefined if nothing is; never settles once it was stopped
   * @throws Error when the trail cannot be read
   */
  run(newest?: number): Promise<Fault | undefined>
  /** whether the last one that came to its end found something */
  isBroken(): boolean
  stop(): void
}

export function createTrailCheck(options: DatabaseOptions): TrailCheck {
  let isBroken = false
  let worker: Worker | undefined

  return {
    async run(newest) {
      const { promise, resolve, reject } = Promise.withResolvers<TrailAnswer>()
      const started = startWorker('verify')
      worker = started
      started.unref()
      started.onmessage = ({ data }: { data: TrailAnswer }) => resolve(data)
      started.onerror = ({ message }) => reject(new Error(message))
      started.postMessage({ options, newest } satisfies TrailQuestion)
      const answer = await promise.finally(() => started.terminate())
      if ('failure' in answer) throw new Error(`the trail cannot be read: ${JSON.stringify(answer.failure)}`)
      isBroken = answer.fault !== undefined
      return answer.fault
    },
    isBroken: () => isBroken,
    stop: () => worker?.terminate(),
  }
}

const NEWEST_AT_START = 10_000
const NIGHT_HOUR = 2

/**
 * Checks the newest rows now, and all of them every night (AU-4).
 *
 * @param options.untilNext milliseconds from one check of all rows to the next
 * @returns `brokenAtStart` resolves with what the first check found, and never if it found nothing
 */
export function startTrailChecks(
  check: TrailCheck,
  log: Log,
  { untilNext = untilNight }: { untilNext?: () => number } = {},
): { brokenAtStart: Promise<Fault>; stop(): void } {
  const atStart = Promise.withResolvers<Fault>()
  let timer: ReturnType<typeof setTimeout> | undefined

  async function run(newest?: number): Promise<void> {
    try {
      const fault = await check.run(newest)
      if (fault !== undefined) log.error('audit_chain_broken', { ...fault })
      if (fault !== undefined && newest !== undefined) atStart.resolve(fault)
    } catch (error) {
      log.warn('audit_check_failed', { cause: describeError(error) })
    }
    timer = setTimeout(run, untilNext())
    timer.unref()
  }

  void run(NEWEST_AT_START)
  return {
    brokenAtStart: atStart.promise,
    stop() {
      clearTimeout(timer)
      check.stop()
    },
  }
}

/** To a minute of the hour after two o'clock, another one each time: the nodes of one database do not come together. */
export function untilNight(now = new Date()): number {
  const next = new Date(now)
  next.setHours(NIGHT_HOUR, Math.floor(Math.random() * 60), 0, 0)
  if (next <= now) next.setDate(next.getDate() + 1)
  return next.getTime() - now.getTime()
}
