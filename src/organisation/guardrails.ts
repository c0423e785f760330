import { and, eq, inArray } from 'drizzle-orm'
import type {
  Exclusions,
  OrganisationDefaults,
  UpdateExclusions,
  UpdateOrganisationDefaults,
} from '../../schema/api/organisation-settings.ts'
import type { KeyActor } from '../auth/caller.ts'
import type { Reader } from '../db/database.ts'
import { difference } from '../difference.ts'
import { invalid, invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { lockOrganisation } from './settings.ts'

/** Guardrails of a kind hold for all workspaces but the excluded ones. */
export type GuardrailKind = 'input' | 'output'

/** What is stored: ids of workspaces, in the order in which they were sent. */
interface Stored {
  excluded?: Partial<Record<GuardrailKind, string[]>>
}

/** The organisation's default guardrails. */
export const organisationDefaults = (): OrganisationDefaults => ({ input_guardrails: [], output_guardrails: [] })

/** @throws GatehouseError `invalid` for an update of nothing, and for any guardrail: there are none yet */
export async function updateOrganisationDefaults(
  { audited }: Pick<Gatehouse, 'audited'>,
  actor: KeyActor,
  body: UpdateOrganisationDefaults,
): Promise<OrganisationDefaults> {
  if (Object.keys(body).length === 0)
    throw invalidField('', 'nothing to update: send input_guardrails, output_guardrails or both')
  const unknown = (['input_guardrails', 'output_guardrails'] as const).flatMap((list) =>
    (body[list] ?? []).map((_, i) => ({ path: `${list}[${i}]`, message: 'is unknown: there are no guardrails yet' })),
  )
  if (unknown.length > 0) throw invalid(unknown)
  const { organisationId } = actor.caller
  const what = { action: 'organisation_settings.update', workspaceId: null, resourceId: organisationId }
  return audited(actor, what, async (tx) => {
    tx.event.resourceName = (await lockOrganisation(tx, organisationId)).name
    const defaults = organisationDefaults()
    tx.event.details = { after: defaults }
    return defaults
  })
}

/** The active workspaces that are excluded from the organisation's guardrails of a kind. */
export async function listExclusions(db: Reader, organisationId: string, kind: GuardrailKind): Promise<Exclusions> {
  const { organisations, workspaces } = db.tables
  const [row] = await db
    .select({ guardrails: organisations.guardrails })
    .from(organisations)
    .where(eq(organisations.id, organisationId))
    .limit(1)
  const ids = excludedOf(row?.guardrails ?? '{}', kind)
  if (ids.length === 0) return { workspaces: [] }
  const active = await db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(and(inArray(workspaces.id, ids), eq(workspaces.status, 'active')))
  const live = new Set(active.map(({ id }) => id))
  return { workspaces: ids.filter((id) => live.has(id)).map((id) => ({ workspace_id: id, excluded: true })) }
}

/** @throws GatehouseError `invalid` for unknown workspaces */
export async function updateExclusions(
  { audited, read }: Pick<Gatehouse, 'audited' | 'read'>,
  actor: KeyActor,
  kind: GuardrailKind,
  { workspaces, override_existing: replaces }: UpdateExclusions,
): Promise<Record<string, never>> {
  const { organisationId } = actor.caller
  const named = await idsOf(
    read,
    organisationId,
    workspaces.map((each) => each.workspace_id),
  )
  const what = { action: 'organisation_exclusions.update', workspaceId: null, resourceId: organisationId }
  await audited(actor, what, async (tx) => {
    const { name, guardrails } = await lockOrganisation(tx, organisationId)
    const before = excludedOf(guardrails, kind)
    const after = new Set(replaces ? [] : before)
    for (const [i, id] of named.entries()) {
      if (workspaces[i]?.excluded) after.add(id)
      else after.delete(id)
    }
    const stored = JSON.parse(guardrails) as Stored
    const next: Stored = { ...stored, excluded: { ...stored.excluded, [kind]: [...after] } }
    const { organisations: t } = tx.tables
    await tx
      .update(t)
      .set({ guardrails: JSON.stringify(next) })
      .where(eq(t.id, organisationId))
      .returning({ id: t.id })
    tx.event.resourceName = name
    tx.event.details = difference({ [kind]: before }, { [kind]: [...after] })
  })
  return {}
}

const excludedOf = (guardrails: string, kind: GuardrailKind): string[] =>
  (JSON.parse(guardrails) as Stored).excluded?.[kind] ?? []

/** The ids of active workspaces that are named by id or slug, in that order. */
async function idsOf(db: Reader, organisationId: string, named: readonly string[]): Promise<string[]> {
  const { workspaces: t } = db.tables
  const rows = await db
    .select({ id: t.id, slug: t.slug })
    .from(t)
    .where(and(eq(t.organisationId, organisationId), eq(t.status, 'active')))
  const ids = new Map(rows.flatMap(({ id, slug }) => [[slug, id] as const, [id, id] as const]))
  const unknown = named.flatMap((each, i) =>
    ids.has(each) ? [] : [{ path: `workspaces[${i}].workspace_id`, message: 'is unknown' }],
  )
  if (unknown.length > 0) throw invalid(unknown)
  return named.map((each) => ids.get(each) ?? each)
}
