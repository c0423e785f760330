import { eq } from 'drizzle-orm'
import type {
  CreateSecretReference,
  SecretReference,
  UpdateSecretReference,
} from '../../schema/api/secret-references.ts'
import type { Caller, KeyActor } from '../auth/caller.ts'
import { assertOwnOrganisation } from '../auth/tenancy.ts'
import type { Reader, Tx } from '../db/database.ts'
import { isUniqueViolation } from '../db/errors.ts'
import { invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { withSlugOfName } from '../slug.ts'
import { detailsOfUpdate, toldOf } from './audit-details.ts'
import { assertNone, readNewReference, readUpdate, saysAnything, textOfTags } from './fields.ts'
import { presentSecretReference } from './present.ts'
import { openAuthConfig, sealAuthConfig } from './sealed-auth-config.ts'
import {
  type AllowedWorkspace,
  findSecretReference,
  findWorkspaces,
  isMapped,
  lockSecretReference,
  putAllowedWorkspaces,
  putTags,
  type SecretReferenceRow,
} from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'keyring' | 'config'>

/**
 * Stores where a secret lives and how to log in there. The manager is not asked (SM-1), nor is it looked at whether the
 * machine's own identity may be used: that is asked at each use (decision 45).
 *
 * @throws GatehouseError `invalid` with all complaints, `forbidden` for another organisation
 */
export async function createSecretReference(
  { audited, keyring, config }: Pick<Deps, 'audited' | 'keyring' | 'config'>,
  actor: KeyActor,
  body: CreateSecretReference,
) {
  const { organisationId, accountableUserId } = actor.caller
  assertOwnOrganisation(actor.caller, body.organisation_id)
  const authConfig = readNewReference(body, config.outbound.allow)
  const { tags = null, allowed_workspaces: allowed } = body
  const id = Bun.randomUUIDv7()
  const event = { action: 'secret_references.create', resourceId: id, resourceName: body.name }
  const write = (slug: string) =>
    audited(actor, event, async (tx) => {
      const row: SecretReferenceRow = {
        id,
        organisationId,
        name: body.name,
        slug,
        description: body.description ?? null,
        managerType: body.manager_type,
        authConfig: sealAuthConfig(keyring(), authConfig, { id, organisationId }),
        secretPath: body.secret_path,
        secretKey: body.secret_key ?? null,
        allowAllWorkspaces: body.allow_all_workspaces ?? !allowed,
        tags: textOfTags(tags),
        cacheSeconds: body.cache_seconds ?? null,
        revision: 1,
        createdBy: accountableUserId,
        createdAt: tx.now,
        lastUpdatedAt: tx.now,
      }
      const { secretReferences: t } = tx.tables
      await tx.insert(t).values(row).returning({ id: t.id })
      if (allowed) await putAllowedWorkspaces(tx, id, await workspaceIds(tx, organisationId, allowed))
      if (tags !== null) await putTags(tx, id, tags)
      tx.event.details = { after: { ...(await toldOf(tx, row)), auth_config: authConfig } }
      tx.changed('secret_reference', id)
      return { id, slug, object: 'secret-reference' as const }
    })
  return withSlug(body, write)
}

/**
 * Changes a reference by the table of file 04; what is absent stays. `manager_type` and `slug` are taken from clients
 * that repeat them, and change nothing.
 *
 * @throws GatehouseError `invalid` with all complaints, also for an empty update; `forbidden`, `not_found`
 */
export async function updateSecretReference(
  { audited, read, keyring, config }: Deps,
  actor: KeyActor,
  idOrSlug: string,
  body: UpdateSecretReference,
): Promise<Record<string, never>> {
  const found = await getSecretReference(read, actor.caller, idOrSlug)
  assertOwnOrganisation(actor.caller, body.organisation_id)
  if (!saysAnything(body)) throw invalidField('', 'nothing to update: send a field')
  await audited(actor, eventOf('update', found), async (tx) => {
    const before = await lockSecretReference(tx, found.id)
    const stored = openAuthConfig(keyring(), before)
    const { authConfig, columns } = readUpdate(before, stored, body, config.outbound.allow)
    const after: SecretReferenceRow = {
      ...before,
      ...columns,
      ...(body.auth_config !== undefined && { authConfig: sealAuthConfig(keyring(), authConfig, before) }),
      revision: before.revision + 1,
      lastUpdatedAt: Math.max(tx.now, before.lastUpdatedAt),
    }
    const toldBefore = await toldOf(tx, before)
    const { secretReferences: t } = tx.tables
    await tx.update(t).set(after).where(eq(t.id, before.id)).returning({ id: t.id })
    await putAccess(tx, after, body)
    if (body.tags !== undefined) await putTags(tx, before.id, body.tags ?? {})
    tx.event.resourceName = after.name
    tx.event.details = detailsOfUpdate([toldBefore, stored], [await toldOf(tx, after), authConfig])
    tx.changed('secret_reference', before.id)
  })
  return {}
}

/** @throws GatehouseError `invalid` while something takes a value from it (file 04: 400, not 409), `not_found` */
export async function deleteSecretReference(
  { audited, read }: Pick<Deps, 'audited' | 'read'>,
  actor: KeyActor,
  idOrSlug: string,
): Promise<Record<string, never>> {
  const found = await getSecretReference(read, actor.caller, idOrSlug)
  await audited(actor, eventOf('delete', found), async (tx) => {
    const row = await lockSecretReference(tx, found.id)
    if (await isMapped(tx, row.id))
      throw invalidField('', 'the secret reference is in use: take it out of all secret_mappings first')
    tx.event.details = { before: await toldOf(tx, row) }
    const { secretReferences: t } = tx.tables
    await tx.delete(t).where(eq(t.id, row.id)).returning({ id: t.id })
    tx.changed('secret_reference', row.id)
  })
  return {}
}

/**
 * A reference as its caller may see it: with its secrets masked, but for the system caller, each of whose looks is
 * stored before it is answered (decisions 16, 40).
 */
export async function readSecretReference(
  { audited, read, keyring }: Pick<Deps, 'audited' | 'read' | 'keyring'>,
  actor: KeyActor,
  idOrSlug: string,
): Promise<SecretReference> {
  const row = await getSecretReference(read, actor.caller, idOrSlug)
  if (actor.caller.type !== 'system') return presentSecretReference(row, openAuthConfig(keyring(), row), false)
  return audited(actor, eventOf('read', row), async (tx) => {
    const now = await getSecretReference(tx, actor.caller, row.id)
    tx.event.details = { unmasked: true }
    return presentSecretReference(now, openAuthConfig(keyring(), now), true)
  })
}

/** @throws GatehouseError `not_found`, also for one of another organisation */
export async function getSecretReference(
  db: Reader,
  { organisationId }: Pick<Caller, 'organisationId'>,
  idOrSlug: string,
): Promise<SecretReferenceRow> {
  const row = await findSecretReference(db, organisationId, idOrSlug)
  if (row === undefined) throw notFound('secret reference')
  return row
}

const eventOf = (verb: string, { id, name }: SecretReferenceRow) => ({
  action: `secret_references.${verb}`,
  resourceId: id,
  resourceName: name,
})

async function putAccess(tx: Tx, row: SecretReferenceRow, { allowed_workspaces: allowed }: UpdateSecretReference) {
  if (row.allowAllWorkspaces) await putAllowedWorkspaces(tx, row.id, [])
  else if (allowed) await putAllowedWorkspaces(tx, row.id, await workspaceIds(tx, row.organisationId, allowed))
}

async function workspaceIds(tx: Tx, organisationId: string, named: readonly string[]): Promise<string[]> {
  return (await getNamedWorkspaces(tx, organisationId, named)).map(({ id }) => id)
}

/**
 * The workspaces of `allowed_workspaces`, each once, however often and by which name it is there.
 *
 * @throws GatehouseError `invalid` for those that are unknown
 */
export async function getNamedWorkspaces(
  db: Reader,
  organisationId: string,
  named: readonly string[],
): Promise<AllowedWorkspace[]> {
  const found = await findWorkspaces(db, organisationId, named)
  const known = new Set(found.flatMap(({ id, slug }) => [id, slug]))
  assertNone(
    named.flatMap((name, i) => (known.has(name) ? [] : [{ path: `allowed_workspaces[${i}]`, message: 'is unknown' }])),
  )
  return found
}

/** Under the slug that was asked for, or under the one that the name makes. */
async function withSlug<T>({ slug, name }: CreateSecretReference, write: (slug: string) => Promise<T>): Promise<T> {
  if (slug === undefined || slug === null)
    return withSlugOfName(name, 'secret-reference', 'secret_references_slug', write)
  try {
    return await write(slug)
  } catch (error) {
    if (isUniqueViolation(error, 'secret_references_slug'))
      throw invalidField('slug', 'is taken by another secret reference; choose another one, or leave it out')
    throw error
  }
}
