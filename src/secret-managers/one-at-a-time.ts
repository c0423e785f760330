import type { ManagerCall, ManagerError } from './manager.ts'

/** Work that heeds the signal says for so long at which step it was; less than a call is left to say it itself. */
const GRACE_MS = 50

/**
 * Does one piece of work at a time. Who asks meanwhile gets the same result, or the same failure, but waits no longer
 * than their own deadline, and is not hurt by an end of the first one's. What comes after its deadline is dropped.
 */
export function oneAtATime<Call extends ManagerCall, T>(
  work: (call: Call) => Promise<T>,
  tooLate: () => ManagerError,
): (call: Call) => Promise<T> {
  let underWay: { signal: AbortSignal; result: Promise<T> } | undefined

  async function within(signal: AbortSignal, result: Promise<T>): Promise<T> {
    const { promise: ended, reject } = Promise.withResolvers<never>()
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = () => {
      timer = setTimeout(() => reject(tooLate()), GRACE_MS)
    }
    if (signal.aborted) reject(tooLate())
    signal.addEventListener('abort', end)
    try {
      return await Promise.race([result, ended])
    } finally {
      signal.removeEventListener('abort', end)
      clearTimeout(timer)
    }
  }

  function start(call: Call) {
    const started = { signal: call.signal, result: within(call.signal, work(call)) }
    const end = () => {
      if (underWay === started) underWay = undefined
    }
    started.result.then(end, end)
    underWay = started
    return started
  }

  return async function join(call: Call): Promise<T> {
    const joined = underWay ?? start(call)
    try {
      return await within(call.signal, joined.result)
    } catch (error) {
      if (call.signal.aborted || !joined.signal.aborted) throw error
      return join(call)
    }
  }
}
