import { eq } from 'drizzle-orm'
import type { KeyRateLimit, UsageLimits } from '../../schema/api/limits.ts'
import type { Permission } from '../../schema/api/permissions.ts'
import type { Caller, KeyType } from '../auth/caller.ts'
import { assertMayMint, isLikeItself } from '../auth/ceiling.ts'
import type { Tx } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'
import { timeOf } from '../rfc3339.ts'
import { findPerson } from './people.ts'
import type { ApiKeyRow } from './store.ts'

type Limits = Pick<ApiKeyRow, 'rateLimits' | 'usageLimits'>
type Made = Pick<ApiKeyRow, 'type' | 'scopes' | 'expiresAt' | 'userId' | 'workspaceId'> & Limits

/**
 * Asks the ceiling about a key as its row says it is, or will be (decision 31). A caller's own expiry and limits bind the
 * keys that are like itself, itself among them.
 *
 * @param change.boundLife   the caller's expiry binds this key in any case
 * @param change.boundLimits so do its limits
 * @param change.resetsUsage what the key used counts no more, which loosens its limit as well
 * @throws GatehouseError `forbidden`
 */
export async function assertMayMake(
  tx: Tx,
  caller: Caller,
  row: Made,
  change: { boundLife?: boolean; boundLimits?: boolean; resetsUsage?: boolean } = {},
): Promise<void> {
  const { userId, workspaceId, expiresAt } = row
  const person = userId === null || workspaceId === null ? undefined : await findPerson(tx, workspaceId, userId)
  const minted = {
    type: row.type as KeyType,
    scopes: JSON.parse(row.scopes) as Permission[],
    expiresAt,
    person: person ?? null,
  }
  const isAlike = isLikeItself(caller, minted)
  assertMayMint(caller, minted, isAlike || change.boundLife)
  if (!isAlike && change.boundLimits !== true) return
  const own = await limitsOf(tx, caller.keyId)
  if (areLimitsLooser(own, row))
    throw forbidden('this API key has limits, so rate_limits and usage_limits must not be looser than its own')
  if (change.resetsUsage === true && own.usageLimits !== null)
    throw forbidden('this API key has a usage limit, so it may not reset what this key has used')
}

async function limitsOf(tx: Tx, id: string): Promise<Limits> {
  const { apiKeys: t } = tx.tables
  const columns = { rateLimits: t.rateLimits, usageLimits: t.usageLimits }
  const [row] = await tx.select(columns).from(t).where(eq(t.id, id)).limit(1)
  if (row === undefined) throw new GatehouseError('unauthenticated', 'the API key is not valid')
  return row
}

/** Whether limits let through anything that others do not. */
export const areLimitsLooser = (before: Limits, after: Limits): boolean =>
  areLooser(before.rateLimits, after.rateLimits) || isLooser(before.usageLimits, after.usageLimits)

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

const forbidden = (message: string): GatehouseError => new GatehouseError('forbidden', message)
