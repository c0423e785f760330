import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import type { CreateInvite } from '../../schema/api/invites.ts'
import { GRANTABLE, type Permission } from '../../schema/api/permissions.ts'
import { readScopes } from '../api-keys/scopes.ts'
import type { Caller } from '../auth/caller.ts'
import { assertMayGive, assertMayMint, mayGive } from '../auth/ceiling.ts'
import { securityOf } from '../auth/key-rows.ts'
import { effectivePermissions, type Person } from '../auth/roles.ts'
import type { Reader } from '../db/database.ts'
import { invalid, invalidField } from '../errors.ts'
import { assertMetadata } from '../organisation/metadata.ts'
import { keySettings } from '../organisation/settings.ts'
import { timeOf } from '../rfc3339.ts'
import type { Grant } from './store.ts'

/**
 * What an invite will give. Where nobody says which scopes, it is what the role reads and lists, as far as the caller
 * may give that (decision 36).
 *
 * @throws GatehouseError `invalid` for unknown workspaces, scopes that no user key holds, an expiry that is past;
 *         `forbidden` when the caller may give nothing of what the role reads
 */
export async function readGrant(db: Reader, caller: Caller, body: CreateInvite, now: number): Promise<Grant> {
  const { organisationId } = caller
  const details = body.workspace_api_key_details ?? undefined
  const asked = details && readScopes('workspace-user', details.scopes, 'workspace_api_key_details.scopes')
  const expiry = details?.expiry ?? null
  const keyExpiresAt = readExpiry(expiry, now)
  const named = body.workspaces ?? []
  const found = await readWorkspaces(db, organisationId, named)
  const workspaces = named.map(({ id, role }, i) => ({ id, workspace_id: found[i]?.id ?? '', role }))
  // An administrator belongs to every workspace, and begins in the default one.
  const isAdminOfAll = body.role === 'admin' && found.length === 0
  const places = isAdminOfAll
    ? await liveWorkspaces(db, organisationId, eq(db.tables.workspaces.isDefault, true))
    : found
  const metadata = details?.metadata ?? null
  for (const { id } of places) {
    const { metadataSchema, maxTtlSeconds } = await keySettings(db, organisationId, id)
    assertMetadata(metadataSchema, metadata, 'workspace_api_key_details.metadata')
    if (keyExpiresAt !== null && maxTtlSeconds !== null && keyExpiresAt > now + maxTtlSeconds * 1000)
      throw invalidField(EXPIRY, 'is later than the longest life of user keys here (user_api_key_max_ttl)')
  }
  const keys = places.map((workspace) => {
    const person = personIn(workspace.id, body.role, workspaces)
    return { workspaceId: workspace.id, scopes: asked ?? scopesToGive(caller, readingScopes(person, workspace)) }
  })
  const keyName = details?.name ?? 'first key'
  return { workspaces, keys, keyName, keyExpiresAt, keyExpiresAtText: expiry, keyMetadata: metadata }
}

/**
 * Nobody invites to more than they have (decision 31); asked again when an invite is sent again.
 *
 * @throws GatehouseError `forbidden`
 */
export function assertMayInvite(
  caller: Caller,
  id: string,
  role: string,
  { workspaces, keys, keyExpiresAt }: Grant,
): void {
  assertMayMint(caller, {
    type: 'workspace-user',
    scopes: [],
    expiresAt: null,
    person: { id, ...personIn('', role, []) },
  })
  for (const { workspaceId, scopes } of keys) {
    const person = { id, ...personIn(workspaceId, role, workspaces) }
    assertMayMint(caller, { type: 'workspace-user', scopes, expiresAt: keyExpiresAt, person })
  }
}

/** @throws GatehouseError `forbidden` when the caller may give none of them: a key without scopes is good for nothing */
function scopesToGive(caller: Caller, scopes: readonly Permission[]): Permission[] {
  const given = scopes.filter((scope) => mayGive(caller, scope))
  if (given.length === 0) assertMayGive(caller, scopes)
  return given
}

/** What the role of an invited person may read and list in a workspace. */
function readingScopes(person: Person, { settings, security }: Workspace): readonly Permission[] {
  const reading = [...GRANTABLE['workspace-user']].filter((scope) => /\.(?:read|list)$/.test(scope))
  const grounds = { type: 'workspace-user', scopes: reading, person, security: securityOf(settings, security) } as const
  return [...effectivePermissions(grounds)]
}

function personIn(workspaceId: string, role: string, workspaces: Grant['workspaces']): Person {
  const membership = workspaces.find(({ workspace_id }) => workspace_id === workspaceId)
  return { organisationRole: role as Person['organisationRole'], workspaceRole: membership?.role ?? null }
}

interface Workspace {
  id: string
  slug: string
  /** of the organisation, JSON text */
  settings: string
  /** its own security settings, JSON text */
  security: string | null
}

type Named = NonNullable<CreateInvite['workspaces']>

async function readWorkspaces(db: Reader, organisationId: string, named: Named): Promise<Workspace[]> {
  if (named.length === 0) return []
  const { workspaces: t } = db.tables
  const names = named.map(({ id }) => id)
  const rows = await liveWorkspaces(db, organisationId, or(inArray(t.id, names), inArray(t.slug, names)))
  const found = names.map((name) => rows.find(({ id, slug }) => id === name || slug === name))
  const complaints = found.flatMap((row, i) => {
    const path = `workspaces[${i}].id`
    if (row === undefined) return [{ path, message: 'is unknown; GET /v1/admin/workspaces lists the ones there are' }]
    return found.indexOf(row) < i ? [{ path, message: 'is a workspace that is named before' }] : []
  })
  if (complaints.length > 0) throw invalid(complaints)
  return found.filter((row) => row !== undefined)
}

const liveWorkspaces = (db: Reader, organisationId: string, where: SQL | undefined): PromiseLike<Workspace[]> => {
  const { workspaces: t, organisations } = db.tables
  return db
    .select({ id: t.id, slug: t.slug, settings: organisations.settings, security: t.securitySettings })
    .from(t)
    .innerJoin(organisations, eq(organisations.id, t.organisationId))
    .where(and(eq(t.organisationId, organisationId), eq(t.status, 'active'), where))
}

const EXPIRY = 'workspace_api_key_details.expiry'

function readExpiry(written: string | null, now: number): number | null {
  if (written === null) return null
  const time = timeOf(written)
  if (time === undefined || time <= now)
    throw invalidField(EXPIRY, 'must be a time in the future such as 2030-01-31T12:00:00Z')
  return time
}
