import { and, eq, isNull } from 'drizzle-orm'
import {
  GRANTABLE,
  normalisePermission,
  PERMISSIONS,
  type Permission,
  SYSTEM_PERMISSIONS,
} from '../../schema/api/permissions.ts'
import type { Actor, KeyType } from '../auth/caller.ts'
import type { Reader, Tx } from '../db/database.ts'
import { GatehouseError, invalid, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { nearest } from '../http/complaints.ts'
import { type KeyLetter, maskKey, newApiKey } from './key.ts'
import { findApiKey } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'digestKey'>

/** The key types of the API; system keys are made and ended at the command line alone (decision 16). */
export type ApiKeyType = Exclude<KeyType, 'system'>

export interface NewApiKey {
  type: KeyType
  name: string
  description?: string | null
  /** ignored for system keys, whose scopes are fixed */
  scopes: readonly string[]
  /** id of a workspace within the actor's reach; workspace keys only */
  workspaceId?: string | null
  /** user keys only: the person; without it the actor's accountable person (decision 30) */
  userId?: string | null | undefined
  /** UTC milliseconds, in the future */
  expiresAt?: number | null
}

const FAMILIES = {
  'organisation-service': 'organisation_service_api_keys',
  'workspace-service': 'workspace_service_api_keys',
  'workspace-user': 'workspace_user_api_keys',
} as const

/** The permission family of a key type: `organisation_service_api_keys` and its like. */
export const familyOf = (type: ApiKeyType) => FAMILIES[type]

const LETTERS: Record<KeyType, KeyLetter> = {
  'organisation-service': 'a',
  'workspace-service': 'w',
  'workspace-user': 'w',
  system: 's',
}

/** The resource that audit rows name. */
const resourceOf = (type: KeyType): string => (type === 'system' ? 'system_api_keys' : FAMILIES[type])

/**
 * Makes an API key. The clear key is in this answer and nowhere else.
 *
 * @throws GatehouseError `invalid` (name the field), `forbidden` for scopes beyond the actor's own (decision 31)
 */
export async function createApiKey(
  { audited, read, digestKey }: Deps,
  actor: Actor,
  input: NewApiKey,
): Promise<{ id: string; key: string }> {
  const { type, name, workspaceId = null, expiresAt = null } = input
  const scopes = type === 'system' ? [...SYSTEM_PERMISSIONS] : readScopes(type, input.scopes)
  assertWithinCeiling(actor, scopes)
  const isOfWorkspace = type === 'workspace-service' || type === 'workspace-user'
  if (isOfWorkspace && workspaceId === null) throw invalidField('workspace_id', 'is required for a workspace key')
  if (type !== 'workspace-user' && input.userId) throw invalidField('user_id', 'is only for user keys; leave it out')
  const organisationId = organisationOf(actor)
  const accountable = await accountablePerson(read, actor)
  const userId = type === 'workspace-user' ? (input.userId ?? accountable) : null
  assertExpiry(actor, type, userId, expiresAt)
  const key = newApiKey(LETTERS[type])
  const id = Bun.randomUUIDv7()
  const details = {
    type,
    scopes,
    user_id: userId,
    expires_at: expiresAt === null ? null : new Date(expiresAt).toISOString(),
  }
  const what = { action: `${resourceOf(type)}.create`, workspaceId, resourceId: id, resourceName: name, details }
  await audited(actor, what, async (tx) => {
    if (userId !== null && workspaceId !== null) await assertMember(tx, workspaceId, userId)
    const row = {
      id,
      organisationId,
      workspaceId,
      userId,
      accountableUserId: userId ?? accountable,
      type,
      name,
      description: input.description ?? null,
      scopes: JSON.stringify(scopes),
      digest: digestKey(key),
      masked: maskKey(key),
      creationMode: 'api',
      createdByKeyId: actor.kind === 'key' ? actor.caller.keyId : null,
      expiresAt,
      deletedAt: null,
      createdAt: tx.now,
      lastUpdatedAt: tx.now,
    }
    await tx.insert(tx.tables.apiKeys).values(row).returning({ id: tx.tables.apiKeys.id })
    tx.changed('api_key', id)
  })
  return { id, key }
}

/** Ends a key at once. Its row stays, so that what it did stays attributable. */
export async function deleteApiKey({ audited, read }: Deps, actor: Actor, id: string): Promise<Record<string, never>> {
  const row = await findApiKey(read, organisationOf(actor), id)
  if (row === undefined) throw notFound('API key')
  const what = {
    action: `${resourceOf(row.type as KeyType)}.delete`,
    workspaceId: row.workspaceId,
    resourceId: id,
    resourceName: row.name,
  }
  await audited(actor, what, async (tx) => {
    const { apiKeys: t } = tx.tables
    const rows = await tx
      .update(t)
      .set({ deletedAt: tx.now, lastUpdatedAt: tx.now })
      .where(and(eq(t.id, id), isNull(t.deletedAt)))
      .returning({ id: t.id })
    if (rows.length === 0) throw notFound('API key')
    tx.changed('api_key', id)
  })
  return {}
}

/** Known scopes that the key type may hold, in the caller's order, once each. */
function readScopes(type: ApiKeyType, written: readonly string[]): Permission[] {
  const scopes = [...new Set(written.map(normalisePermission))] as Permission[]
  const grantable: ReadonlySet<Permission> = GRANTABLE[type]
  const complaints = scopes.flatMap((scope, i) => {
    if (grantable.has(scope)) return []
    const path = `scopes[${i}]`
    if (PERMISSIONS.includes(scope)) return [{ path, message: `cannot be held by a key of type ${type}` }]
    const near = nearest(scope, PERMISSIONS)
    return [{ path, message: near === undefined ? 'is not a scope' : `is not a scope; did you mean ${near}?` }]
  })
  if (complaints.length > 0) throw invalid(complaints)
  return scopes
}

/** Scopes of the data plane: whoever manages the workspace may give them without holding them. */
const DATA_PLANE: ReadonlySet<Permission> = new Set([
  'completions.write',
  'logs.write',
  'guardrails.invoke',
  'mcp.invoke',
  'agents.invoke',
])

/** Nobody gives what they do not have (decision 31). */
function assertWithinCeiling(actor: Actor, scopes: readonly Permission[]): void {
  if (actor.kind === 'cli') return
  const { caller } = actor
  const mayGive = (scope: Permission) =>
    // a workspace service key counts as the manager of its workspace (decision 29)
    caller.permissions.has(scope) || (caller.type !== 'workspace-user' && DATA_PLANE.has(scope))
  const beyond = scopes.filter((scope) => !mayGive(scope))
  if (beyond.length > 0)
    throw new GatehouseError(
      'forbidden',
      `this API key may not give scopes that it does not hold: ${beyond.join(', ')}`,
    )
}

/** A key with an expiry cannot mint one of its own type for its own person that ends later (decision 31). */
function assertExpiry(actor: Actor, type: KeyType, userId: string | null, expiresAt: number | null): void {
  if (expiresAt !== null && expiresAt <= Date.now()) throw invalidField('expires_at', 'must be in the future')
  if (actor.kind === 'cli' || actor.caller.expiresAt === null) return
  const { caller } = actor
  const isLikeItself = type === caller.type && (userId ?? caller.accountableUserId) === caller.accountableUserId
  if (isLikeItself && (expiresAt === null || expiresAt > actor.caller.expiresAt))
    throw new GatehouseError(
      'forbidden',
      'this API key expires, so expires_at of the new one must not be later than its own',
    )
}

const organisationOf = (actor: Actor): string =>
  actor.kind === 'key' ? actor.caller.organisationId : actor.organisationId

/** Who answers for the new key: the caller's accountable person, or the owner for the command line (decision 29). */
async function accountablePerson(read: Reader, actor: Actor): Promise<string> {
  if (actor.kind === 'key') return actor.caller.accountableUserId
  const { users: t } = read.tables
  const [owner] = await read
    .select({ id: t.id })
    .from(t)
    .where(and(eq(t.organisationId, actor.organisationId), eq(t.role, 'owner'), eq(t.status, 'active')))
    .limit(1)
  if (owner === undefined) throw new GatehouseError('internal', 'the organisation has no owner')
  return owner.id
}

/** Owners and organisation admins belong to every workspace; others need a membership. */
async function assertMember(tx: Tx, workspaceId: string, userId: string): Promise<void> {
  const { users, workspaceMembers, workspaces } = tx.tables
  const [person] = await tx
    .select({ role: users.role, member: workspaceMembers.role })
    .from(users)
    .innerJoin(workspaces, and(eq(workspaces.id, workspaceId), eq(workspaces.organisationId, users.organisationId)))
    .leftJoin(
      workspaceMembers,
      and(eq(workspaceMembers.userId, users.id), eq(workspaceMembers.workspaceId, workspaceId)),
    )
    .where(and(eq(users.id, userId), eq(users.status, 'active')))
    .limit(1)
  if (person === undefined || (person.role === 'member' && person.member === null))
    throw invalidField('user_id', 'must be a person who belongs to the workspace')
}
