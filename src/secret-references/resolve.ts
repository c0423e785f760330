import { PROBLEMS } from '../../schema/api/errors.ts'
import type { ResolveSecretReference, SecretValue } from '../../schema/api/secret-values.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import type { AuditDraft } from '../db/database.ts'
import { type GatehouseError, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { type PickedValue, pickField } from '../secret-managers/field.ts'
import { ManagerError } from '../secret-managers/manager.ts'
import { problemOf } from '../secret-managers/problem.ts'
import type { ManagerCallEnded, SecretAnswer } from '../secret-managers/values.ts'
import type { LiveReference } from './live.ts'
import type { Thing } from './lookup.ts'

type Deps = Pick<Gatehouse, 'secretReferences' | 'secretValues' | 'audited' | 'uses' | 'metrics'>

export interface Resolve {
  caller: Caller
  idOrSlug: string
  body: ResolveSecretReference
  /** of this request; asked for only where it gets an audit row of its own */
  actor(): KeyActor
  /** told that a manager may have to be waited for */
  waiting(): void
  /** told that the row of this request's failure is stored, so that it is not counted among the refusals as well */
  recorded(): void
}

export interface Resolved {
  value: SecretValue
  /** whether this very request made a call to the manager */
  isFetched: boolean
}

/**
 * The value of a secret reference for a workspace, or for the organisation itself. Who may use it is looked at each
 * time, before anything is taken from memory; the audit row is stored before the value goes out (decision 40).
 *
 * @throws GatehouseError `not_found`: the same for a reference or a workspace that is missing, archived or of others, and
 *                        for one that the workspace may not use; `manager_…`, `machine_identity_not_granted`
 */
export async function resolveSecret(gatehouse: Deps, resolve: Resolve): Promise<Resolved> {
  const { secretValues, audited, uses, metrics } = gatehouse
  const { caller, body, actor } = resolve
  const { live, event } = await reached(gatehouse, resolve)
  const refresh = body.refresh === true
  const calls: ManagerCallEnded[] = []
  try {
    const held = refresh ? undefined : secretValues.cached(live.reference)
    if (held === undefined) resolve.waiting()
    const onCall = (call: ManagerCallEnded) => void calls.push(call)
    const answer = held ?? (await secretValues.fetch(live.reference, { refresh, onCall }))
    const field = pickField(answer.secret, body.secret_key ?? live.secretKey)
    const [call] = calls
    const stale = answer.stale && { served: 'stale' }
    if (call === undefined) await uses.note(caller, { ...event, details: { outcome: 'cached', ...stale } }, actor)
    else await audited(actor(), { ...event, details: { ...toldOf(call), ...stale } }, async () => {})
    metrics.secretCache(call === undefined ? 'hit' : 'miss')
    return { value: present(live, answer, field), isFetched: call !== undefined }
  } catch (error) {
    if (!(error instanceof ManagerError)) throw error
    throw await failed(gatehouse, resolve, event, error, calls[0])
  }
}

/** A call that failed is a row of its own, stored before the caller is told; anything else is a refusal like others. */
async function failed(
  { audited }: Deps,
  { actor, recorded }: Resolve,
  event: AuditDraft,
  error: ManagerError,
  call: ManagerCallEnded | undefined,
): Promise<GatehouseError> {
  const problem = problemOf(error)
  if (call === undefined) return problem
  const details = { ...toldOf(call), outcome: error.failure, step: error.step }
  await audited(actor(), { ...event, status: PROBLEMS[problem.code].status, details }, async () => {})
  recorded()
  return problem
}

/** @throws GatehouseError `not_found` */
async function reached(
  { secretReferences: { references, workspaces } }: Deps,
  { caller: { organisationId }, idOrSlug, body: { workspace_id: named } }: Resolve,
): Promise<{ live: LiveReference; event: AuditDraft }> {
  const live = references.find(organisationId, idOrSlug) ?? (await references.load(organisationId, idOrSlug))
  const workspace =
    named === null ? null : (workspaces.find(organisationId, named) ?? (await workspaces.load(organisationId, named)))
  if (live === undefined || workspace === undefined || !isOpenTo(live, workspace)) throw notFound('secret reference')
  const event = { action: 'secret_references.resolve', resourceId: live.id, resourceName: live.name }
  return { live, event: { ...event, workspaceId: workspace?.id ?? null } }
}

/** The organisation itself uses what names no workspace: a grant must then name all of them (decision 45). */
function isOpenTo({ reference: { workspaces }, isForOrganisation }: LiveReference, workspace: Thing | null): boolean {
  if (workspace === null) return isForOrganisation
  return workspaces === 'all' || workspaces.some(({ id }) => id === workspace.id)
}

const toldOf = ({ managerType, outcome, step, seconds }: ManagerCallEnded) => ({
  manager_type: managerType,
  outcome,
  ...(step !== null && { step }),
  ms: Math.round(seconds * 1000),
})

const present = (
  { id, slug }: LiveReference,
  { secret, fetchedAt, expiresAt, stale, staleReason }: SecretAnswer,
  { value, encoding }: PickedValue,
): SecretValue => ({
  object: 'secret-value',
  ...{ id, slug, value, encoding, stale },
  version: secret.version,
  fetched_at: new Date(fetchedAt).toISOString(),
  expires_at: new Date(expiresAt).toISOString(),
  stale_reason: staleReason,
})
