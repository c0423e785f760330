import { eq } from 'drizzle-orm'
import type { UpdateApiKey } from '../../schema/api/api-keys.ts'
import type { KeyRateLimit, UsageLimits } from '../../schema/api/limits.ts'
import type { Permission } from '../../schema/api/permissions.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { assertMayMint } from '../auth/ceiling.ts'
import { assertOwnOrganisation, workspaceForCreate } from '../auth/tenancy.ts'
import type { Tx } from '../db/database.ts'
import { difference } from '../difference.ts'
import { GatehouseError, invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { keySettings } from '../organisation/settings.ts'
import { timeOf } from '../rfc3339.ts'
import { columnsOfUpdate } from './fields.ts'
import { findPerson } from './people.ts'
import { presentApiKey } from './present.ts'
import { type ApiKeyType, familyOf, readScopes } from './scopes.ts'
import { eventOf, getApiKey, lockApiKey } from './service.ts'
import type { ApiKeyRow } from './store.ts'

/**
 * Changes a key, the calling one too. What it is and for whom stays: `user_id` and `workspace_id` are taken from
 * clients that repeat them, and change nothing (file 08).
 *
 * @throws GatehouseError `invalid` (also for an empty update), `forbidden` when the key would become more than the
 *         caller is (decision 31), `not_found`
 */
export async function updateApiKey(
  { audited, read }: Pick<Gatehouse, 'audited' | 'read'>,
  actor: KeyActor,
  id: string,
  body: UpdateApiKey,
): Promise<Record<string, never>> {
  const { caller } = actor
  const found = await getApiKey(read, caller, id, 'update')
  assertOwnOrganisation(caller, body.organisation_id)
  // Of a key that knows one workspace alone, naming another is refused everywhere (decision 33).
  if (caller.workspaceId !== null) await workspaceForCreate(read, caller, body.workspace_id)
  if (!CHANGEABLE.some((name) => body[name] !== undefined)) throw invalidField('', 'nothing to update: send a field')
  const type = found.type as ApiKeyType
  const scopes = body.scopes ? readScopes(type, body.scopes) : undefined
  await audited(actor, eventOf(found, 'update'), async (tx) => {
    const before = await lockApiKey(tx, id)
    const settings = await keySettings(tx, before.organisationId, before.workspaceId ?? '')
    const after: ApiKeyRow = {
      ...before,
      ...columnsOfUpdate(before, body, { type, settings, now: tx.now }),
      ...(scopes && { scopes: JSON.stringify(scopes) }),
      lastUpdatedAt: Math.max(tx.now, before.lastUpdatedAt + 1),
    }
    const isLoosened = body.reset_usage === true || areLimitsLooser(before, after)
    if (isLoosened && id === caller.keyId) assertMayLoosenItself(caller)
    if (isLoosened || isMore(before, after)) await assertMayMake(tx, caller, after)
    const { apiKeys: t } = tx.tables
    await tx.update(t).set(after).where(eq(t.id, id)).returning({ id: t.id })
    tx.event.resourceName = after.name
    tx.event.details = difference(presentApiKey(before, tx.now), presentApiKey(after, tx.now))
    tx.changed('api_key', id)
  })
  return {}
}

const CHANGEABLE = [
  'name',
  'description',
  'scopes',
  'rate_limits',
  'usage_limits',
  'defaults',
  'alert_emails',
  'expires_at',
  'rotation_policy',
  'reset_usage',
] as const

/** Asks the ceiling about a key as its row says it is, or will be. */
export async function assertMayMake(tx: Tx, caller: Caller, row: ApiKeyRow): Promise<void> {
  const { userId, workspaceId } = row
  const person = userId === null || workspaceId === null ? undefined : await findPerson(tx, workspaceId, userId)
  assertMayMint(caller, {
    type: row.type as ApiKeyType,
    scopes: JSON.parse(row.scopes) as Permission[],
    expiresAt: row.expiresAt,
    person: person ?? null,
  })
}

/** A key's own limits bind it, unless it may make another like itself without any. */
function assertMayLoosenItself({ type, permissions }: Caller): void {
  const permission = `${familyOf(type as ApiKeyType)}.create` as const
  if (!permissions.has(permission))
    throw new GatehouseError(
      'forbidden',
      `this API key may not loosen its own limits or reset its own usage; that takes the scope ${permission}`,
    )
}

/** Whether a change of a key's scopes or life counts as making one, as looser limits do (decision 31). */
const isMore = (before: ApiKeyRow, after: ApiKeyRow): boolean =>
  !isSameSet(before.scopes, after.scopes) ||
  (before.expiresAt !== null && (after.expiresAt === null || after.expiresAt > before.expiresAt))

const areLimitsLooser = (before: ApiKeyRow, after: ApiKeyRow): boolean =>
  areLooser(before.rateLimits, after.rateLimits) || isLooser(before.usageLimits, after.usageLimits)

function isSameSet(before: string, after: string): boolean {
  const [one, other] = [before, after].map((text) => new Set(JSON.parse(text) as string[]))
  return one?.size === other?.size && other?.isSubsetOf(one ?? new Set()) === true
}

function areLooser(before: string | null, after: string | null): boolean {
  const limits = JSON.parse(after ?? '[]') as KeyRateLimit[]
  return (JSON.parse(before ?? '[]') as KeyRateLimit[]).some(
    ({ type, unit, value }) =>
      !limits.some((limit) => limit.type === type && limit.unit === unit && limit.value <= value),
  )
}

/** Of what is not a plain reduction of the same budget nobody can say that it is no loosening. */
function isLooser(before: string | null, after: string | null): boolean {
  if (before === null) return false
  if (after === null) return true
  const [was, is] = [before, after].map((text) => JSON.parse(text) as UsageLimits) as [UsageLimits, UsageLimits]
  return (
    is.credit_limit > was.credit_limit ||
    (['type', 'periodic_reset', 'periodic_reset_days'] as const).some((name) => is[name] !== was[name]) ||
    resetOf(is) < resetOf(was)
  )
}

const resetOf = ({ next_usage_reset_at: at }: UsageLimits): number =>
  at === null ? Number.POSITIVE_INFINITY : (timeOf(at) ?? Number.POSITIVE_INFINITY)
