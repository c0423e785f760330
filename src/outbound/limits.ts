import { OutboundError } from './transport.ts'

/** Requests at once: to one host, and in all; a slow manager must not hold up the others. */
export const PER_HOST = 16
const IN_ALL = 64

/** Who waits longer than this for a turn would wait for a manager that does not keep up. */
export const WAIT_MS = 2_000

interface Waiting {
  host: string
  enter(): void
}

export interface Limits {
  /**
   * Waits for a turn, in order of arrival.
   *
   * @returns what ends the turn; it may be called more than once
   * @throws OutboundError unreachable after `waitMs`; the signal's reason when that comes first
   */
  enter(host: string, signal: AbortSignal): Promise<() => void>
}

export function createLimits(waitMs = WAIT_MS): Limits {
  const underWay = new Map<string, number>()
  let total = 0
  let queue: Waiting[] = []

  const hasRoom = (host: string) => total < IN_ALL && (underWay.get(host) ?? 0) < PER_HOST

  function begin(host: string): () => void {
    total++
    underWay.set(host, (underWay.get(host) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      total--
      const left = (underWay.get(host) ?? 1) - 1
      if (left === 0) underWay.delete(host)
      else underWay.set(host, left)
      queue.find((each) => hasRoom(each.host))?.enter()
    }
  }

  function wait(host: string, signal: AbortSignal): Promise<() => void> {
    const { promise, resolve, reject } = Promise.withResolvers<() => void>()
    const leave = () => {
      queue = queue.filter((each) => each !== waiting)
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
    const waiting: Waiting = {
      host,
      enter() {
        leave()
        resolve(begin(host))
      },
    }
    const abort = () => {
      leave()
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      leave()
      reject(
        new OutboundError(
          'connect',
          'unreachable',
          'too many calls to this host, or to all hosts together, are under way; try again',
        ),
      )
    }, waitMs)
    signal.addEventListener('abort', abort)
    queue.push(waiting)
    return promise
  }

  return {
    enter: async (host, signal) => {
      signal.throwIfAborted()
      return hasRoom(host) ? begin(host) : wait(host, signal)
    },
  }
}
