import { and, eq, isNull } from 'drizzle-orm'
import type { ApiKeyCreated } from '../../schema/api/api-keys.ts'
import { type Permission, SYSTEM_PERMISSIONS } from '../../schema/api/permissions.ts'
import type { Actor, Caller, KeyType } from '../auth/caller.ts'
import { mayTouchKeyOf } from '../auth/ceiling.ts'
import { reaches } from '../auth/tenancy.ts'
import type { Reader, Tx } from '../db/database.ts'
import { GatehouseError, invalidField, notFound } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { assertMetadata } from '../organisation/metadata.ts'
import { keySettings } from '../organisation/settings.ts'
import { lockWorkspace } from '../workspaces/store.ts'
import { columnsOfNew, type KeyOptions } from './fields.ts'
import { type KeyLetter, maskKey, newApiKey } from './key.ts'
import { assertMayMake } from './minting.ts'
import { accountablePerson, assertRoomForKey, getMember, organisationOf } from './people.ts'
import { presentApiKey } from './present.ts'
import { type ApiKeyType, familyOf, readScopes, resourceOf } from './scopes.ts'
import { type ApiKeyRow, findApiKey } from './store.ts'

type Deps = Pick<Gatehouse, 'audited' | 'read' | 'digestKey'>

export interface NewApiKey extends KeyOptions {
  type: KeyType
  name: string
  /** ignored for system keys, whose scopes are fixed */
  scopes: readonly string[]
  /** id of a workspace within the actor's reach; workspace keys only */
  workspaceId?: string | null
  /** user keys only: the person; without it the accountable one (decision 30) */
  userId?: string | null | undefined
  /** who answers for it, where that is not the actor's own accountable person; for the command line alone */
  accountableUserId?: string | undefined
}

const LETTERS: Record<KeyType, KeyLetter> = {
  'organisation-service': 'a',
  'workspace-service': 'w',
  'workspace-user': 'w',
  system: 's',
}

/** A fresh clear key of a type. */
export const newKeyOf = (type: KeyType): string => newApiKey(LETTERS[type])

/**
 * Makes an API key. The clear key is in this answer and nowhere else.
 *
 * @throws GatehouseError `invalid` (name the field), `forbidden` for more than the actor is or has (decisions 31, 32),
 *         `not_found` for a workspace that has just been archived
 */
export async function createApiKey(
  { audited, read, digestKey }: Deps,
  actor: Actor,
  input: NewApiKey,
): Promise<ApiKeyCreated> {
  const { type, name, workspaceId = null } = input
  const scopes = type === 'system' ? [...SYSTEM_PERMISSIONS] : readScopes(type, input.scopes)
  const isOfWorkspace = type === 'workspace-service' || type === 'workspace-user'
  if (isOfWorkspace && workspaceId === null) throw invalidField('workspace_id', 'is required for a workspace key')
  if (type !== 'workspace-user' && input.userId) throw invalidField('user_id', 'is only for user keys; leave it out')
  const organisationId = organisationOf(actor)
  const accountable = input.accountableUserId ?? (await accountablePerson(read, actor))
  const userId = type === 'workspace-user' ? (input.userId ?? accountable) : null
  const id = Bun.randomUUIDv7()
  const what = { action: `${resourceOf(type)}.create`, workspaceId, resourceId: id, resourceName: name }
  return audited(actor, what, async (tx) => {
    if (workspaceId !== null) {
      // Members are removed under the same lock: who is going gets no key that would be theirs when they come back.
      await lockWorkspace(tx, workspaceId)
      if (userId !== null) await getMember(tx, workspaceId, userId)
    }
    if (actor.kind === 'key') {
      const { metadataSchema } = await keySettings(tx, organisationId, workspaceId ?? '')
      assertMetadata(metadataSchema, input.defaults?.metadata ?? null, 'defaults.metadata')
    }
    const made = await insertApiKey(tx, digestKey, {
      ...input,
      id,
      scopes,
      organisationId,
      workspaceId,
      userId,
      accountableUserId: userId ?? accountable,
      createdByKeyId: actor.kind === 'key' ? actor.caller.keyId : null,
    })
    // Only now: the settings may have given it an expiry.
    if (actor.kind === 'key') await assertMayMake(tx, actor.caller, made.row)
    const expiresAt = made.row.expiresAt === null ? null : new Date(made.row.expiresAt).toISOString()
    tx.event.details = { type, scopes, user_id: userId, expires_at: expiresAt }
    return { id, key: made.key, object: 'api-key' as const }
  })
}

/** A key whose caller, scopes and person have been looked at. */
export interface KeyToInsert extends KeyOptions {
  id: string
  type: KeyType
  name: string
  scopes: readonly Permission[]
  organisationId: string
  workspaceId: string | null
  userId: string | null
  accountableUserId: string
  createdByKeyId: string | null
}

/**
 * Writes a new key inside a change. The settings of the organisation bound life, number and rotation of user keys.
 *
 * @returns the clear key, and the row that was written
 * @throws GatehouseError `invalid`, naming the field
 */
export async function insertApiKey(tx: Tx, digestKey: Gatehouse['digestKey'], input: KeyToInsert) {
  const key = newKeyOf(input.type)
  const row = await insertKeyRow(tx, input, { digest: digestKey(key), masked: maskKey(key), creationMode: 'api' })
  return { key, row }
}

/**
 * Makes the user key of a new member where the settings want one: without a secret until its first rotate (decision
 * 35), and none where the person has a key there already.
 */
export async function autoCreateUserKey(
  tx: Tx,
  input: Omit<KeyToInsert, 'id' | 'type' | 'userId' | 'workspaceId'> & { userId: string; workspaceId: string },
): Promise<void> {
  const { organisationId, workspaceId, userId } = input
  const { autoCreate } = await keySettings(tx, organisationId, workspaceId)
  if (!autoCreate || (await hasKey(tx, workspaceId, userId))) return
  const secret = { digest: null, masked: '*****', creationMode: 'auto' }
  await insertKeyRow(tx, { ...input, id: Bun.randomUUIDv7(), type: 'workspace-user' }, secret)
}

async function hasKey(tx: Tx, workspaceId: string, userId: string): Promise<boolean> {
  const { apiKeys: t } = tx.tables
  const live = and(eq(t.workspaceId, workspaceId), eq(t.userId, userId), isNull(t.deletedAt))
  return (await tx.select({ id: t.id }).from(t).where(live).limit(1)).length > 0
}

async function insertKeyRow(
  tx: Tx,
  input: KeyToInsert,
  secret: { digest: string | null; masked: string; creationMode: string },
) {
  const { id, type, name, organisationId, workspaceId, userId, accountableUserId, createdByKeyId } = input
  const settings = await keySettings(tx, organisationId, workspaceId ?? '')
  if (userId !== null && workspaceId !== null && settings.maxCount !== null)
    await assertRoomForKey(tx, { organisationId, workspaceId, userId }, settings.maxCount)
  const row = {
    ...{ id, type, name, organisationId, workspaceId, userId, accountableUserId, createdByKeyId },
    scopes: JSON.stringify(input.scopes),
    ...secret,
    ...columnsOfNew(input, { type, settings, now: tx.now }),
    createdAt: tx.now,
    lastUpdatedAt: tx.now,
  }
  await tx.insert(tx.tables.apiKeys).values(row).returning({ id: tx.tables.apiKeys.id })
  tx.changed('api_key', id)
  return row
}

/** Ends a key at once. Its row stays, so that what it did stays attributable. */
export async function deleteApiKey({ audited, read }: Deps, actor: Actor, id: string): Promise<Record<string, never>> {
  const row = await findApiKey(read, organisationOf(actor), id)
  if (row === undefined) throw notFound('API key')
  await audited(actor, eventOf(row, 'delete'), async (tx) => {
    const { apiKeys: t } = tx.tables
    const [deleted] = await tx
      .update(t)
      .set({ deletedAt: tx.now, lastUpdatedAt: tx.now })
      .where(and(eq(t.id, id), isNull(t.deletedAt)))
      .returning()
    if (deleted === undefined) throw notFound('API key')
    const { type, scopes, workspace_id, user_id, expires_at, status } = presentApiKey(deleted, tx.now)
    tx.event.details = { before: { type, scopes, workspace_id, user_id, expires_at, status } }
    tx.changed('api_key', id)
  })
  return {}
}

/** What the audit row of a change of a key begins with. */
export const eventOf = (row: ApiKeyRow, verb: string) => ({
  action: `${resourceOf(row.type as KeyType)}.${verb}`,
  workspaceId: row.workspaceId,
  resourceId: row.id,
  resourceName: row.name,
})

/**
 * A key within the caller's reach, if the caller holds one of the permissions of that key's own family.
 *
 * @throws GatehouseError `not_found`, `forbidden`
 */
export async function getApiKey(
  read: Reader,
  caller: Caller,
  id: string,
  ...verbs: readonly ('read' | 'update' | 'delete' | 'rotate')[]
): Promise<ApiKeyRow> {
  const row = await findApiKey(read, caller.organisationId, id)
  if (row === undefined || row.type === 'system' || !reaches(caller, row)) throw notFound('API key')
  const permissions = verbs.map((verb) => `${familyOf(row.type as ApiKeyType)}.${verb}` as const)
  if (!permissions.some((permission) => caller.permissions.has(permission)))
    throw new GatehouseError('forbidden', `this API key lacks the scope ${permissions.join(' or ')}`)
  if (!mayTouchKeyOf(caller, row.userId))
    throw new GatehouseError('forbidden', 'this API key may look after the user keys of its own person only')
  return row
}

/**
 * The row as it is now, which nobody else changes until the end of the change.
 *
 * @throws GatehouseError `not_found` when it was deleted meanwhile
 */
export async function lockApiKey(tx: Tx, id: string): Promise<ApiKeyRow> {
  const { apiKeys: t } = tx.tables
  const [row] = await tx
    .update(t)
    .set({ id })
    .where(and(eq(t.id, id), isNull(t.deletedAt)))
    .returning()
  if (row === undefined) throw notFound('API key')
  return row
}
