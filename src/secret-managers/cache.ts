import type { OpenClient } from './clients.ts'
import type { ManagerError, ManagerFailure, Step } from './manager.ts'
import type { Reference, ReferenceHealth, SecretAnswer } from './values.ts'

/** What is held of one reference in one revision. Nothing of it is shared with another one (decision 46). */
export interface Entry {
  readonly revision: number
  /** the object whose grant was checked last, and what it lacks; the same object needs no second look */
  checked: { reference: Reference; host: string; missing: string | undefined } | undefined
  client: OpenClient | undefined
  value: SecretAnswer | undefined
  flight: Promise<SecretAnswer> | undefined
  /** a failure that answers callers until then, so that a wrong password does not lock an account */
  refusal: { error: ManagerError; from: number; until: number } | undefined
  refreshedAt: number
  /** of a revision that a newer one has replaced already: made for one call, and held by nobody */
  readonly outdated: boolean
  /** how the last call ended; undefined: there was none */
  failing: boolean | undefined
  lastSuccessAt: number | null
  latencyMs: number | null
  lastError: { step: Step; code: ManagerFailure; at: number } | null
  /** keyed digest of the value fetched last; it outlives the value */
  digest: string | undefined
  valueChangedAt: number | null
}

export interface Entries {
  /** The entry of a reference, made where there is none for its revision, and the last to be forgotten. */
  of(reference: Reference): Entry
  /** the entry, if there is one of just this revision */
  find(reference: Reference): Entry | undefined
  peek(referenceId: string): Entry | undefined
  drop(referenceId: string): void
  clear(): void
  held(): Entry[]
}

/** @param forgotten closes what an entry holds */
export function createEntries(max: number, forgotten: (entry: Entry) => void): Entries {
  /** least recently used first */
  const entries = new Map<string, Entry>()

  function drop(id: string): void {
    const entry = entries.get(id)
    if (entry === undefined) return
    entries.delete(id)
    forgotten(entry)
  }

  function touch(id: string, entry: Entry): Entry {
    entries.delete(id)
    entries.set(id, entry)
    return entry
  }

  function find({ id, revision }: Reference): Entry | undefined {
    const entry = entries.get(id)
    return entry?.revision === revision ? touch(id, entry) : undefined
  }

  return {
    find,
    of(reference) {
      const { id, revision } = reference
      const held = find(reference)
      if (held !== undefined) return held
      const newer = entries.get(id)
      // who still holds an older revision is served by a call of its own, and leaves nothing behind
      if (newer !== undefined && newer.revision > revision) return newEntry(revision, true)
      drop(id)
      const entry = touch(id, newEntry(revision, false))
      for (const oldest of entries.keys()) {
        if (entries.size <= max) break
        drop(oldest)
      }
      return entry
    },
    peek: (id) => entries.get(id),
    drop,
    clear() {
      for (const id of entries.keys()) drop(id)
    },
    held: () => [...entries.values()],
  }
}

const newEntry = (revision: number, outdated: boolean): Entry => ({
  revision,
  checked: undefined,
  client: undefined,
  value: undefined,
  flight: undefined,
  refusal: undefined,
  refreshedAt: Number.NEGATIVE_INFINITY,
  outdated,
  failing: undefined,
  lastSuccessAt: null,
  latencyMs: null,
  lastError: null,
  digest: undefined,
  valueChangedAt: null,
})

export function noteFailure(entry: Entry, { step, failure }: ManagerError, at: number): void {
  entry.failing = true
  entry.lastError = { step, code: failure, at }
}

export function healthOf(entry: Entry | undefined, now: number): ReferenceHealth {
  const value = entry?.value
  return {
    lastSuccessAt: entry?.lastSuccessAt ?? null,
    lastError: entry?.lastError ?? null,
    latencyMs: entry?.latencyMs ?? null,
    cached: value !== undefined && now < value.expiresAt,
    ageSeconds: value === undefined ? null : Math.max(0, Math.floor((now - value.fetchedAt) / 1000)),
    stale: value !== undefined && now >= value.expiresAt,
    valueChangedAt: entry?.valueChangedAt ?? null,
    loginExpiresAt: entry?.client?.retired === false ? entry.client.client.loginExpiresAt() : null,
  }
}
