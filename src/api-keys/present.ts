import type { ApiKey, KeyDefaults } from '../../schema/api/api-keys.ts'
import type { KeyRateLimit, UsageLimits } from '../../schema/api/limits.ts'
import { writtenExpiry } from './fields.ts'
import { presentRotationPolicy, scheduleOf } from './rotation-policy.ts'
import type { ApiKeyType } from './scopes.ts'
import type { ApiKeyRow } from './store.ts'

/** @param now UTC milliseconds */
export function presentApiKey(row: ApiKeyRow, now: number): ApiKey {
  const usageLimits = parsed<UsageLimits>(row.usageLimits)
  const defaults = parsed<KeyDefaults>(row.defaults)
  const schedule = scheduleOf(row)
  return {
    id: row.id,
    key: row.masked,
    name: row.name,
    description: row.description,
    type: row.type as ApiKeyType,
    organisation_id: row.organisationId,
    workspace_id: row.workspaceId,
    user_id: row.userId,
    status: row.expiresAt !== null && row.expiresAt <= now ? 'expired' : 'active',
    creation_mode: row.creationMode as ApiKey['creation_mode'],
    rate_limits: parsed<KeyRateLimit[]>(row.rateLimits),
    usage_limits: usageLimits,
    reset_usage: null,
    scopes: JSON.parse(row.scopes) as string[],
    defaults,
    allow_config_override: defaults === null ? null : defaults.allow_config_override ? 1 : 0,
    api_key_defaults_id: null,
    alert_emails: parsed<string[]>(row.alertEmails),
    expires_at: writtenExpiry(row),
    last_reset_at: isoOf(row.lastResetAt),
    next_usage_reset_at: usageLimits?.next_usage_reset_at ?? null,
    last_used_at: isoOf(row.lastUsedAt),
    expiry_enforced: 0,
    rotation_policy: schedule === undefined ? null : presentRotationPolicy(schedule, row.rotationDueRecordedAt, now),
    created_at: new Date(row.createdAt).toISOString(),
    last_updated_at: new Date(row.lastUpdatedAt).toISOString(),
    object: 'api-key',
  }
}

const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T))
const isoOf = (time: number | null): string | null => (time === null ? null : new Date(time).toISOString())
