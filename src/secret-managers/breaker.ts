/** Failures in a row after which a host is left alone. */
export const FAILURES_TO_OPEN = 5
const OPEN_MS = 30_000
/** Hosts with failures that are remembered; beyond it the oldest is forgotten. */
const MAX_HOSTS = 1000

/**
 * Keeps callers from waiting for a host that does not answer (decision 46). It is kept by host and organisation: what
 * one organisation's references do says nothing to another.
 */
export interface Breaker {
  /** Asks to call a host; seconds to wait instead, while it is left alone. After that time one caller is let through. */
  enter(host: string, now: number): number | undefined
  /** Tells how a call that was let through ended; undefined: in a way that says nothing of the host. */
  leave(host: string, answered: boolean | undefined, now: number): void
  open(now: number): number
  clear(): void
}

interface Host {
  failures: number
  /** 0: closed */
  openUntil: number
  /** one caller is finding out whether it answers again */
  probing: boolean
}

export function createBreaker(): Breaker {
  /** those alone that failed last, by their last failure */
  const hosts = new Map<string, Host>()
  return {
    enter(name, now) {
      const host = hosts.get(name)
      if (host === undefined || host.openUntil === 0) return undefined
      const waitMs = waitOf(host, now)
      if (waitMs > 0) return Math.ceil(waitMs / 1000)
      if (host.probing) return 1
      host.probing = true
      return undefined
    },
    leave(name, answered, now) {
      if (answered === true) {
        hosts.delete(name)
        return
      }
      const host = hosts.get(name) ?? { failures: 0, openUntil: 0, probing: false }
      // a call that began before it opened, and ends while it is open, tells nothing new
      if (waitOf(host, now) > 0) return
      host.probing = false
      if (answered === undefined) return
      host.failures++
      if (host.failures >= FAILURES_TO_OPEN) host.openUntil = now + OPEN_MS
      hosts.delete(name)
      hosts.set(name, host)
      forgetOldest(hosts)
    },
    open: (now) => [...hosts.values()].filter((host) => waitOf(host, now) > 0).length,
    clear: () => hosts.clear(),
  }
}

/** Longer than it can be: the clock was set back. */
const waitOf = ({ openUntil }: Host, now: number): number => (openUntil - now > OPEN_MS ? 0 : openUntil - now)

function forgetOldest(hosts: Map<string, Host>): void {
  for (const name of hosts.keys()) {
    if (hosts.size <= MAX_HOSTS) return
    hosts.delete(name)
  }
}
