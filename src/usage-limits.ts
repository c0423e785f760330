import type { UsageLimits, UsageLimitsInput } from '../schema/api/limits.ts'
import { type Complaint, invalid } from './errors.ts'
import { timeOf } from './rfc3339.ts'

/**
 * Usage limits as they are kept: every field, with the time of the next reset.
 *
 * @param path the field that holds them, for complaints: `usage_limits[0]`
 * @param now UTC milliseconds
 * @param before the limits that these replace; the same period goes on from where it is
 * @param threshold whether `alert_threshold` may reach `credit_limit`; only API keys let it (file 08)
 * @throws GatehouseError `invalid` with all complaints (file 00 section 7)
 */
export function readUsageLimits(
  input: UsageLimitsInput,
  path: string,
  now: number,
  before: UsageLimits | null = null,
  threshold: 'below' | 'up_to' = 'below',
): UsageLimits {
  const { type = 'cost', credit_limit, alert_threshold = null, next_usage_reset_at: written = null } = input
  const { periodic_reset_days = null } = input
  // Some clients send '' for unset.
  const periodic_reset = input.periodic_reset || null
  const complaints: Complaint[] = []
  if (periodic_reset !== null && periodic_reset_days !== null)
    complaints.push({ path: `${path}.periodic_reset_days`, message: 'excludes periodic_reset; send one of the two' })
  const isTooHigh = alert_threshold !== null && alert_threshold >= credit_limit
  if (isTooHigh && !(threshold === 'up_to' && alert_threshold === credit_limit))
    complaints.push({
      path: `${path}.alert_threshold`,
      message: `must be ${threshold === 'below' ? 'less than' : 'no more than'} credit_limit`,
    })
  if (written !== null && timeOf(written) === undefined)
    complaints.push({ path: `${path}.next_usage_reset_at`, message: 'must be a time such as 2030-01-31T00:00:00Z' })
  if (complaints.length > 0) throw invalid(complaints)
  const limits = { type, credit_limit, alert_threshold, periodic_reset, periodic_reset_days }
  return { ...limits, next_usage_reset_at: written ?? nextReset(limits, now, before) }
}

type Periods = Pick<UsageLimits, 'periodic_reset' | 'periodic_reset_days'>

function nextReset(periods: Periods, now: number, before: UsageLimits | null): string | null {
  const { periodic_reset: period, periodic_reset_days: days } = periods
  // A client that sends the same limits again and again must not put the reset off for ever.
  const isSame = before?.periodic_reset === period && before.periodic_reset_days === days
  const kept = isSame ? (before?.next_usage_reset_at ?? null) : null
  if (kept !== null && (timeOf(kept) ?? 0) > now) return kept
  if (period !== null) return new Date(nextPeriodStart(period, now)).toISOString()
  return days === null ? null : new Date(startOfDay(now, days)).toISOString()
}

/**
 * When the current week or month ends: Monday or the 1st, 00:00 UTC (D-45).
 *
 * @param now UTC milliseconds, as is the answer, which is always later
 */
export function nextPeriodStart(period: 'weekly' | 'monthly', now: number): number {
  const date = new Date(now)
  if (period === 'monthly') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1)
  return startOfDay(now, 7 - ((date.getUTCDay() + 6) % 7))
}

/** 00:00 UTC so many days after the day of `now`. */
function startOfDay(now: number, days: number): number {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + days)
}
