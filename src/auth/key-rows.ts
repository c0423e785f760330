import { and, eq } from 'drizzle-orm'
import type { Permission } from '../../schema/api/permissions.ts'
import { DEFAULT_SECURITY, type SecuritySettings } from '../../schema/api/security-settings.ts'
import type { StoredRotationPolicy } from '../api-keys/rotation-policy.ts'
import type { Reader } from '../db/database.ts'
import type { Caller, KeyType } from './caller.ts'
import type { Limiters } from './rate-limit.ts'
import { effectivePermissions, type Person, permissionsOfOldSecret, rankOfKey } from './roles.ts'

/** Keys with all that decides what they may do: for the cache, and for the second look inside a change. */
export function selectKeys(db: Reader) {
  const { apiKeys, organisations, workspaces, workspaceMembers, users } = db.tables
  return db
    .select({
      id: apiKeys.id,
      type: apiKeys.type,
      organisationId: apiKeys.organisationId,
      workspaceId: apiKeys.workspaceId,
      accountableUserId: apiKeys.accountableUserId,
      userId: apiKeys.userId,
      scopes: apiKeys.scopes,
      expiresAt: apiKeys.expiresAt,
      digest: apiKeys.digest,
      previousDigest: apiKeys.previousDigest,
      previousDigestExpiresAt: apiKeys.previousDigestExpiresAt,
      rateLimits: apiKeys.rateLimits,
      rotationPolicy: apiKeys.rotationPolicy,
      nextRotationAt: apiKeys.nextRotationAt,
      deletedAt: apiKeys.deletedAt,
      organisationSettings: organisations.settings,
      workspaceStatus: workspaces.status,
      workspaceSecurity: workspaces.securitySettings,
      userStatus: users.status,
      organisationRole: users.role,
      workspaceRole: workspaceMembers.role,
    })
    .from(apiKeys)
    .innerJoin(organisations, eq(organisations.id, apiKeys.organisationId))
    .leftJoin(workspaces, eq(workspaces.id, apiKeys.workspaceId))
    .leftJoin(users, eq(users.id, apiKeys.userId))
    .leftJoin(
      workspaceMembers,
      and(eq(workspaceMembers.userId, apiKeys.userId), eq(workspaceMembers.workspaceId, apiKeys.workspaceId)),
    )
}

export type KeyRow = Awaited<ReturnType<typeof selectKeys>>[number]

/** What callers hold in common: texts and permission sets, so that a million keys fit into memory, and their limiters. */
export interface Shared {
  text<T extends string | null>(text: T): T
  permissions(name: string, make: () => ReadonlySet<Permission>): ReadonlySet<Permission>
  limiter: Limiters['of']
  /** `rotation.enforce` of the config: an overdue rotation ends the secret (decision 35) */
  enforcesRotation: boolean
}

/** Beyond this many, sharing starts anew: what nobody holds any more must not stay. A set takes a few kilobytes. */
const MOST_TEXTS = 100_000
const MOST_SETS = 10_000

export function createShared(limiters: Limiters, enforcesRotation: boolean): Shared {
  const texts = new Map<string, string>()
  const sets = new Map<string, ReadonlySet<Permission>>()
  return {
    text: <T extends string | null>(text: T): T =>
      text === null ? text : (remember(texts, MOST_TEXTS, text, () => text) as typeof text),
    permissions: (name, make) => remember(sets, MOST_SETS, name, make),
    limiter: limiters.of,
    enforcesRotation,
  }
}

/** For a caller that is looked at once. */
export const unshared: Shared = {
  text: (text) => text,
  permissions: (_name, make) => make(),
  limiter: () => undefined,
  enforcesRotation: false,
}

function remember<V>(all: Map<string, V>, most: number, name: string, make: () => V): V {
  const known = all.get(name)
  if (known !== undefined) return known
  if (all.size >= most) all.clear()
  const value = make()
  all.set(name, value)
  return value
}

/**
 * Whom a key's secrets prove: the current one first, then the one before it, which works until the end of its
 * transition window and manages no keys and no people (decision 31). None: the key is dead, or has no secret yet.
 */
export function callersOf(row: KeyRow, shared: Shared): Caller[] {
  // All keys of an archived workspace and user keys of a removed person are refused (decision 32).
  const isDead = row.deletedAt !== null || row.workspaceStatus === 'archived' || row.userStatus === 'removed'
  if (isDead || row.digest === null) return []
  const caller = callerOf(row, row.digest, shared)
  return row.previousDigest === null ? [caller] : [caller, byOldSecret(row, row.previousDigest, caller, shared)]
}

function callerOf(row: KeyRow, digest: string, shared: Shared): Caller {
  const type = shared.text(row.type) as KeyType
  const person = personOf(row)
  const userId = shared.text(row.userId)
  return {
    keyId: row.id,
    type,
    organisationId: shared.text(row.organisationId),
    workspaceId: shared.text(row.workspaceId),
    accountableUserId: row.accountableUserId === userId ? userId : shared.text(row.accountableUserId),
    userId,
    permissions: shared.permissions(groundsOf(row), () =>
      effectivePermissions({
        type,
        scopes: JSON.parse(row.scopes) as string[],
        person,
        security: securityOf(row.organisationSettings, row.workspaceSecurity),
      }),
    ),
    rank: rankOfKey(type, person),
    expiresAt: row.expiresAt,
    endsAt: earlier(row.expiresAt, shared.enforcesRotation ? overdueAt(row) : null),
    digest,
    isPreviousSecret: false,
    limiter: shared.limiter(row.id, row.rateLimits),
  }
}

function byOldSecret(row: KeyRow, digest: string, current: Caller, shared: Shared): Caller {
  return {
    ...current,
    digest,
    permissions: shared.permissions(`old ${groundsOf(row)}`, () => permissionsOfOldSecret(current.permissions)),
    endsAt: earlier(row.expiresAt, row.previousDigestExpiresAt ?? 0),
    isPreviousSecret: true,
  }
}

const earlier = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)

/** When a secret that is due for rotation has had its whole transition period (decision 35). */
export function overdueAt({ nextRotationAt, rotationPolicy }: KeyRow): number | null {
  if (nextRotationAt === null || rotationPolicy === null) return null
  return nextRotationAt + (JSON.parse(rotationPolicy) as StoredRotationPolicy).key_transition_period_ms
}

/** The same text for two keys means the same permissions. */
const groundsOf = (row: KeyRow): string =>
  [row.type, row.organisationRole, row.workspaceRole, row.organisationSettings, row.workspaceSecurity, row.scopes].join(
    '\n',
  )

const personOf = ({ userId, organisationRole, workspaceRole }: KeyRow): Person | null =>
  userId === null ? null : ({ organisationRole, workspaceRole } as Person)

/**
 * The security settings of a workspace: its own over the organisation's over the defaults.
 *
 * @param organisation JSON text of the organisation's settings, these among them as `security_settings`
 * @param workspace JSON text of the workspace's own security settings; null: it has none, or there is no workspace
 */
export function securityOf(organisation: string, workspace: string | null): SecuritySettings {
  const { security_settings: general } = JSON.parse(organisation) as { security_settings?: Partial<SecuritySettings> }
  return { ...DEFAULT_SECURITY, ...general, ...(workspace !== null && JSON.parse(workspace)) }
}
