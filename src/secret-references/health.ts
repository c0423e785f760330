import type { SecretReferenceHealth } from '../../schema/api/secret-values.ts'
import type { Caller } from '../auth/caller.ts'
import { GatehouseError, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { missingGrant } from '../secret-managers/grants.ts'
import { listMappings } from './store.ts'

/**
 * What this node knows of a reference: how its last calls went, what is in memory, and what uses it. No manager is asked.
 *
 * @throws GatehouseError `not_found`; `forbidden` for the system caller (decision 16)
 */
export async function readHealth(
  {
    secretReferences,
    secretValues,
    read,
    config,
  }: Pick<Gatehouse, 'secretReferences' | 'secretValues' | 'read' | 'config'>,
  { type, organisationId }: Caller,
  idOrSlug: string,
): Promise<SecretReferenceHealth> {
  if (type === 'system') throw new GatehouseError('forbidden', 'the health of secret references takes an admin key')
  const live = await secretReferences.references.load(organisationId, idOrSlug)
  if (live === undefined) throw notFound('secret reference')
  const { id, reference } = live
  const { lastError, ...health } = secretValues.health(id)
  const { machine_identity: grants } = config.secret_managers
  const mappings = await listMappings(read, id)
  return {
    object: 'secret-reference-health',
    last_success_at: timeOf(health.lastSuccessAt),
    last_error: lastError && { step: lastError.step, code: lastError.code, at: iso(lastError.at) },
    latency_ms: health.latencyMs,
    cached: health.cached,
    age_seconds: health.ageSeconds,
    stale: health.stale,
    value_changed_at: timeOf(health.valueChangedAt),
    login_expires_at: timeOf(health.loginExpiresAt),
    granted: missingGrant(reference.authConfig(), reference, grants) === undefined,
    used_by: mappings.map(({ holderKind, holderId, targetField }) => ({
      kind: holderKind,
      id: holderId,
      target_field: targetField,
    })),
  }
}

const iso = (time: number): string => new Date(time).toISOString()
const timeOf = (time: number | null): string | null => (time === null ? null : iso(time))
