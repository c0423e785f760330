import type { CreateApiKey, DefaultsInput, KeyDefaults, UpdateApiKey } from '../../schema/api/api-keys.ts'
import type { KeyRateLimit, UsageLimits } from '../../schema/api/limits.ts'
import type { KeyType } from '../auth/caller.ts'
import { invalid, invalidField } from '../errors.ts'
import { assertMetadata } from '../organisation/metadata.ts'
import type { KeySettings } from '../organisation/settings.ts'
import { timeOf } from '../rfc3339.ts'
import { nextPeriodStart, readUsageLimits } from '../usage-limits.ts'
import {
  columnsOfSchedule,
  DEFAULT_TRANSITION_MS,
  readRotationPolicy,
  type Schedule,
  scheduleOf,
} from './rotation-policy.ts'
import type { ApiKeyRow } from './store.ts'

/** What may be said of a key beside its name and scopes. */
export type KeyOptions = Pick<
  CreateApiKey,
  'description' | 'rate_limits' | 'usage_limits' | 'defaults' | 'alert_emails' | 'expires_at' | 'rotation_policy'
>

/** What the fields of a key are read against; `settings` bind user keys alone, but for the metadata schema. */
export interface Grounds {
  type: KeyType
  settings: KeySettings
  /** UTC milliseconds */
  now: number
}

/**
 * The columns of a new key.
 *
 * @throws GatehouseError `invalid`, naming the field
 */
export function columnsOfNew(options: KeyOptions, grounds: Grounds) {
  const { settings, now } = grounds
  const ofUser = grounds.type === 'workspace-user'
  const demanded = ofUser ? settings.rotationPeriod : null
  const { description = null, rate_limits = null, alert_emails = null, usage_limits, rotation_policy } = options
  return {
    description,
    rateLimits: textOf(readRateLimits(rate_limits)),
    usageLimits: usage_limits ? textOf(readUsageLimits(usage_limits, 'usage_limits', now, null, 'up_to')) : null,
    defaults: options.defaults ? textOf(readDefaults(options.defaults, null)) : null,
    alertEmails: textOf(alert_emails),
    ...expiryOfNew(options.expires_at ?? null, ofUser ? settings : undefined, now),
    ...columnsOfSchedule(
      rotation_policy ? readRotationPolicy(rotation_policy, now, undefined, demanded) : demandedSchedule(demanded, now),
    ),
  }
}

/**
 * The columns that an update changes, by the table of file 08: an absent field keeps its value, null clears it where it
 * can be cleared and keeps it elsewhere.
 *
 * @throws GatehouseError `invalid`, naming the field
 */
export function columnsOfUpdate(row: ApiKeyRow, body: Omit<UpdateApiKey, 'scopes'>, grounds: Grounds) {
  const { settings, now } = grounds
  const { name, description, rate_limits, usage_limits, alert_emails, defaults, expires_at, rotation_policy } = body
  return {
    ...(isGiven(name) && { name }),
    ...(isGiven(description) && { description }),
    ...(rate_limits !== undefined && { rateLimits: textOf(readRateLimits(rate_limits)) }),
    ...(usage_limits !== undefined && { usageLimits: textOf(usageLimitsOfUpdate(row, usage_limits, now)) }),
    ...(alert_emails !== undefined && { alertEmails: textOf(alert_emails) }),
    ...(isGiven(defaults) && { defaults: textOf(defaultsOfUpdate(row, defaults, settings)) }),
    ...(expires_at !== undefined && expiryOfUpdate(row, expires_at, grounds)),
    ...(rotation_policy !== undefined && columnsOfSchedule(scheduleOfUpdate(row, rotation_policy, grounds))),
    ...(body.reset_usage === true && { lastResetAt: now }),
  }
}

const isGiven = <T>(value: T): value is NonNullable<T> => value !== undefined && value !== null
const textOf = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

function readRateLimits(limits: KeyRateLimit[] | null): KeyRateLimit[] | null {
  const names = (limits ?? []).map(({ type, unit }) => `${type} ${unit}`)
  const twice = names.flatMap((name, i) =>
    names.indexOf(name) < i ? [{ path: `rate_limits[${i}]`, message: 'has the type and unit of another one' }] : [],
  )
  if (twice.length > 0) throw invalid(twice)
  return limits
}

function usageLimitsOfUpdate(row: ApiKeyRow, sent: UpdateApiKey['usage_limits'], now: number): UsageLimits | null {
  const before = row.usageLimits === null ? null : (JSON.parse(row.usageLimits) as UsageLimits)
  return sent ? readUsageLimits(sent, 'usage_limits', now, before, 'up_to') : null
}

function defaultsOfUpdate(row: ApiKeyRow, sent: DefaultsInput, { metadataSchema }: KeySettings): KeyDefaults {
  const before = row.defaults === null ? null : (JSON.parse(row.defaults) as KeyDefaults)
  const defaults = readDefaults(sent, before)
  if (sent.metadata !== undefined) assertMetadata(metadataSchema, defaults.metadata, 'defaults.metadata')
  return defaults
}

function readDefaults(sent: DefaultsInput, before: KeyDefaults | null): KeyDefaults {
  // There are no configs yet.
  if (isGiven(sent.config_id)) throw invalidField('defaults.config_id', 'is unknown: no such config in the workspace')
  const metadata = sent.metadata === undefined ? (before?.metadata ?? null) : sent.metadata
  return {
    metadata: metadata === null || Object.keys(metadata).length === 0 ? null : metadata,
    config_id: sent.config_id === undefined ? (before?.config_id ?? null) : null,
    allow_config_override: sent.allow_config_override ?? before?.allow_config_override ?? true,
  }
}

/** The time and the text that the caller wrote for it, which is what clients compare (file 00 section 5). */
interface Expiry {
  expiresAt: number | null
  expiresAtText: string | null
}

/** The expiry of a key as it is read. */
export const writtenExpiry = ({ expiresAt, expiresAtText }: Expiry): string | null =>
  expiresAt === null ? null : (expiresAtText ?? new Date(expiresAt).toISOString())

const NO_EXPIRY: Expiry = { expiresAt: null, expiresAtText: null }

/** @param settings of user keys: they live as long as the settings say, unless the caller wants a shorter life */
function expiryOfNew(written: string | null, settings: KeySettings | undefined, now: number): Expiry {
  if (written === null) {
    const lifeSeconds = settings?.ttlSeconds ?? settings?.maxTtlSeconds ?? null
    if (lifeSeconds === null) return NO_EXPIRY
    const expiresAt = now + lifeSeconds * 1000
    return { expiresAt, expiresAtText: new Date(expiresAt).toISOString() }
  }
  return readExpiry(written, settings, now, now)
}

function expiryOfUpdate(row: ApiKeyRow, written: string | null, { type, settings, now }: Grounds): Expiry {
  const binding = type === 'workspace-user' ? settings : undefined
  // What is sent as it was read is no change, and may have passed.
  if (written === writtenExpiry(row)) return { expiresAt: row.expiresAt, expiresAtText: row.expiresAtText }
  if (written !== null) return readExpiry(written, binding, row.createdAt, now)
  if (!binding?.maxTtlSeconds) return NO_EXPIRY
  // The life that it would have been born with; one that is over by now ends nothing that still lives.
  const born = expiryOfNew(null, binding, row.createdAt)
  return (born.expiresAt ?? 0) > now ? born : { expiresAt: row.expiresAt, expiresAtText: row.expiresAtText }
}

function readExpiry(written: string, settings: KeySettings | undefined, bornAt: number, now: number): Expiry {
  const expiresAt = timeOf(written)
  if (expiresAt === undefined) throw invalidField('expires_at', 'must be a time such as 2030-01-31T12:00:00Z')
  if (expiresAt <= now) throw invalidField('expires_at', 'must be in the future')
  if (settings?.maxTtlSeconds && expiresAt > bornAt + settings.maxTtlSeconds * 1000) throw tooLong()
  return { expiresAt, expiresAtText: written }
}

const tooLong = () =>
  invalidField('expires_at', 'is later than the longest life of user keys here (user_api_key_max_ttl)')

function scheduleOfUpdate(row: ApiKeyRow, sent: UpdateApiKey['rotation_policy'], { type, settings, now }: Grounds) {
  const demanded = type === 'workspace-user' ? settings.rotationPeriod : null
  const before = scheduleOf(row)
  if (sent) return readRotationPolicy(sent, now, before, demanded)
  // Where the organisation demands a rotation, null takes away what goes beyond that.
  return demanded !== null && before?.policy.rotation_period === demanded ? before : demandedSchedule(demanded, now)
}

function demandedSchedule(period: 'weekly' | 'monthly' | null, now: number): Schedule | undefined {
  if (period === null) return undefined
  const policy = { rotation_period: period, next_rotation_at: null, key_transition_period_ms: DEFAULT_TRANSITION_MS }
  return { policy, nextRotationAt: nextPeriodStart(period, now) }
}
