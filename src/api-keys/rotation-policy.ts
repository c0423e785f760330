import type { RotationPolicy, RotationPolicyInput } from '../../schema/api/api-keys.ts'
import { type Complaint, invalid } from '../errors.ts'
import { timeOf } from '../rfc3339.ts'
import { nextPeriodStart } from '../usage-limits.ts'

export const DAY_MS = 86_400_000
/** What a rotation leaves the old secret where nobody says otherwise, and the least that may be said (file 08). */
export const DEFAULT_TRANSITION_MS = 1_800_000

/** As it is kept in a key's row, beside the time of the next rotation. */
export interface StoredRotationPolicy {
  rotation_period: Period | null
  /** as the caller wrote it; null where the period decides */
  next_rotation_at: string | null
  key_transition_period_ms: number
}

/** A policy with the time (UTC milliseconds) at which it makes the secret due. */
export interface Schedule {
  policy: StoredRotationPolicy
  nextRotationAt: number
}

type Period = 'weekly' | 'monthly'

const SHORTEST_MS = { weekly: 7 * DAY_MS, monthly: 28 * DAY_MS } as const

/**
 * Reads a policy: a period, or one date, at 00:00 UTC.
 *
 * @param now UTC milliseconds
 * @param before the schedule that it replaces: the same period or date, sent again, puts no rotation off
 * @param demanded the period that the organisation demands at least; a slower policy is refused
 * @throws GatehouseError `invalid` with all complaints
 */
export function readRotationPolicy(
  input: RotationPolicyInput,
  now: number,
  before: Schedule | undefined,
  demanded: Period | null,
): Schedule {
  const { rotation_period: period = null, next_rotation_at: written = null } = input
  const transitionMs = input.key_transition_period_ms ?? DEFAULT_TRANSITION_MS
  const policy = { rotation_period: period, next_rotation_at: written, key_transition_period_ms: transitionMs }
  const isSame = before?.policy.rotation_period === period && before.policy.next_rotation_at === written
  const at = isSame ? before.nextRotationAt : timeFor(period, written, now)
  const complaints: Complaint[] = []
  const complain = (field: string, message: string) => complaints.push({ path: `rotation_policy${field}`, message })
  if ((period === null) === (written === null)) complain('', 'takes one of rotation_period and next_rotation_at')
  else if (at === undefined || at % DAY_MS !== 0 || (at <= now && !isSame))
    complain('.next_rotation_at', 'must be a midnight UTC in the future, such as 2030-01-31T00:00:00Z')
  if (period !== null && transitionMs >= SHORTEST_MS[period])
    complain('.key_transition_period_ms', 'must be shorter than the period')
  if (demanded !== null && period !== demanded && period !== 'weekly')
    complain('', `must rotate as often as the settings of the organisation demand: ${demanded}`)
  if (at === undefined || complaints.length > 0) throw invalid(complaints)
  return { policy, nextRotationAt: at }
}

const timeFor = (period: Period | null, written: string | null, now: number): number | undefined =>
  period === null ? timeOf(written ?? '') : nextPeriodStart(period, now)

/** What becomes of a policy when the key is rotated: a period goes on, a date that has come is done with. */
export function afterRotation(schedule: Schedule | undefined, now: number): Schedule | undefined {
  if (schedule === undefined) return undefined
  const { policy, nextRotationAt } = schedule
  if (policy.rotation_period !== null) return { policy, nextRotationAt: nextPeriodStart(policy.rotation_period, now) }
  return nextRotationAt > now ? schedule : undefined
}

/** The schedule that a row holds. */
export function scheduleOf(row: {
  rotationPolicy: string | null
  nextRotationAt: number | null
}): Schedule | undefined {
  if (row.rotationPolicy === null || row.nextRotationAt === null) return undefined
  return { policy: JSON.parse(row.rotationPolicy) as StoredRotationPolicy, nextRotationAt: row.nextRotationAt }
}

/** The columns of a schedule. What was recorded as due of another schedule says nothing about this one. */
export const columnsOfSchedule = (schedule: Schedule | undefined) => ({
  rotationPolicy: schedule === undefined ? null : JSON.stringify(schedule.policy),
  nextRotationAt: schedule?.nextRotationAt ?? null,
})

/**
 * A policy on the wire.
 *
 * @param recordedAt the due time that was last recorded: due once, due until the rotation, wherever the clock goes
 */
export function presentRotationPolicy(
  { policy, nextRotationAt }: Schedule,
  recordedAt: number | null,
  now: number,
): RotationPolicy {
  return {
    ...policy,
    next_rotation_at: policy.next_rotation_at ?? new Date(nextRotationAt).toISOString(),
    status: nextRotationAt <= now || recordedAt === nextRotationAt ? 'due' : 'active',
  }
}
