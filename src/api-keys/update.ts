import { eq } from 'drizzle-orm'
import type { UpdateApiKey } from '../../schema/api/api-keys.ts'
import type { KeyActor } from '../auth/caller.ts'
import { assertOwnOrganisation, workspaceForCreate } from '../auth/tenancy.ts'
import { difference } from '../difference.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { keySettings } from '../organisation/settings.ts'
import { columnsOfUpdate } from './fields.ts'
import { areLimitsLooser, assertMayMake } from './minting.ts'
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
    const resetsUsage = body.reset_usage === true
    const loosens = resetsUsage || areLimitsLooser(before, after)
    const lengthens = before.expiresAt !== null && (after.expiresAt === null || after.expiresAt > before.expiresAt)
    // Who may make keys of this type could make one without those bounds.
    const isBound = !caller.permissions.has(`${familyOf(type)}.create`)
    const change = { boundLife: isBound && lengthens, boundLimits: isBound && loosens, resetsUsage }
    // All of it counts as making a key, a change of scopes too (decision 31).
    if (loosens || lengthens || !isSameSet(before.scopes, after.scopes)) await assertMayMake(tx, caller, after, change)
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

function isSameSet(before: string, after: string): boolean {
  const [one, other] = [before, after].map((text) => new Set(JSON.parse(text) as string[]))
  return one?.size === other?.size && other?.isSubsetOf(one ?? new Set()) === true
}
