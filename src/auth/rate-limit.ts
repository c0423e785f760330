import type { KeyRateLimit } from '../../schema/api/limits.ts'
import { GatehouseError } from '../errors.ts'

/** The request limits of one key, counted in the memory of this node (RL-1); a restart begins anew (RL-3). */
export interface Limiter {
  /**
   * Counts one request.
   *
   * @param now milliseconds of a clock that never goes back
   * @throws GatehouseError `rate_limited`, with the time to wait; a refused request counts for nothing
   */
  take(now: number): void
  /** the fields `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers */
  headers(now: number): Record<string, string>
}

export interface Limiters {
  /**
   * The limiter of a key; undefined: it has no request limits. The same one as before while the limits are the same,
   * whatever else changes in the key, and for both secrets of a key that is rotated.
   *
   * @param rateLimits JSON text of the key's `rate_limits`, or null
   */
  of(keyId: string, rateLimits: string | null): Limiter | undefined
}

export function createLimiters(): Limiters {
  const known = new Map<string, { text: string; buckets: Bucket[]; limiter: Limiter }>()
  return {
    of(keyId, text) {
      const before = known.get(keyId)
      if (text !== null && before?.text === text) return before.limiter
      const limits = text === null ? [] : (JSON.parse(text) as KeyRateLimit[]).filter(({ type }) => type === 'requests')
      if (text === null || limits.length === 0) {
        known.delete(keyId)
        return undefined
      }
      const buckets = limits.map((limit) => newBucket(limit, before?.buckets))
      const limiter = limiterOver(buckets)
      known.set(keyId, { text, buckets, limiter })
      return limiter
    },
  }
}

/** A token bucket: it starts full, so never more than `capacity + capacity · t / periodMs` requests pass. */
interface Bucket {
  unit: KeyRateLimit['unit']
  capacity: number
  periodMs: number
  tokens: number
  filledAt: number
}

const PERIOD_MS: Record<KeyRateLimit['unit'], number> = {
  rps: 1000,
  rpm: 60_000,
  rph: 3_600_000,
  rpd: 86_400_000,
  rpw: 604_800_000,
}

/** What was used up under the limits before stays used up. */
function newBucket({ unit, value }: KeyRateLimit, before: Bucket[] = []): Bucket {
  const old = before.find((bucket) => bucket.unit === unit)
  const used = old === undefined ? 0 : old.capacity - old.tokens
  const tokens = Math.max(0, value - used)
  return { unit, capacity: value, periodMs: PERIOD_MS[unit], tokens, filledAt: old?.filledAt ?? 0 }
}

const limiterOver = (buckets: Bucket[]): Limiter => ({
  take(now) {
    let waitMs = 0
    for (const bucket of buckets) {
      fill(bucket, now)
      if (bucket.tokens < 1) waitMs = Math.max(waitMs, untilMs(bucket, 1))
    }
    if (waitMs > 0) throw tooMany(waitMs, headersOf(buckets))
    for (const bucket of buckets) bucket.tokens -= 1
  },
  headers(now) {
    for (const bucket of buckets) fill(bucket, now)
    return headersOf(buckets)
  },
})

function fill(bucket: Bucket, now: number): void {
  const elapsed = now - bucket.filledAt
  if (elapsed <= 0) return
  bucket.tokens = Math.min(bucket.capacity, bucket.tokens + (elapsed * bucket.capacity) / bucket.periodMs)
  bucket.filledAt = now
}

/** Milliseconds until a bucket holds so many tokens; one that holds none ever is asked again after its period. */
const untilMs = ({ tokens, capacity, periodMs }: Bucket, wanted: number): number =>
  capacity === 0 ? periodMs : ((wanted - tokens) * periodMs) / capacity

const seconds = (ms: number): number => Math.ceil(ms / 1000)

const headersOf = (buckets: Bucket[]): Record<string, string> => ({
  'ratelimit-policy': buckets.map((b) => `"${b.unit}";q=${b.capacity};w=${b.periodMs / 1000}`).join(', '),
  ratelimit: buckets
    .map((b) => `"${b.unit}";r=${Math.floor(b.tokens)};t=${seconds(untilMs(b, b.capacity))}`)
    .join(', '),
})

// The numbers are in the headers alone: no error may hold the digits that clients take for "gone" (decision 3).
const tooMany = (waitMs: number, headers: Record<string, string>): GatehouseError =>
  new GatehouseError('rate_limited', 'this API key has made all the requests that its rate_limits allow; try later', {
    retryAfterSeconds: Math.max(1, seconds(waitMs)),
    headers,
  })
