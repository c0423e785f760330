import { and, eq, isNull } from 'drizzle-orm'
import type { Permission } from '../../schema/api/permissions.ts'
import type { Reader } from '../db/database.ts'
import type { Caller, KeyType } from './caller.ts'

/** Every live key of the installation in memory, by digest: a request reads no database to know its caller. */
export interface Keys {
  /** undefined: unknown, deleted, or expired at `now` (UTC milliseconds) */
  find(digest: string, now: number): Caller | undefined
  count(): number
  /** reads all keys; at start, and when this node has missed changes */
  load(): Promise<void>
  /** reads one key again, after a commit touched it */
  reload(id: string): Promise<void>
  /** reads again the keys that a workspace or person stands behind */
  reloadWhere(of: { workspaceId: string } | { userId: string }): Promise<void>
}

export function createKeys(read: Reader): Keys {
  const byDigest = new Map<string, Caller>()
  // Seen as expired once, expired for ever: the clock may step back (decision 13).
  const expired = new WeakSet<Caller>()
  const permissionSets = new Map<string, ReadonlySet<Permission>>()

  const { apiKeys, workspaces, users } = read.tables
  const select = () =>
    read
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
        deletedAt: apiKeys.deletedAt,
        workspaceStatus: workspaces.status,
        userStatus: users.status,
      })
      .from(apiKeys)
      .leftJoin(workspaces, eq(workspaces.id, apiKeys.workspaceId))
      .leftJoin(users, eq(users.id, apiKeys.userId))

  type Row = Awaited<ReturnType<typeof select>>[number]

  function put(row: Row): void {
    // All keys of an archived workspace and user keys of a removed person are refused (decision 32).
    if (row.digest === null) return
    const dead = row.deletedAt !== null || row.workspaceStatus === 'archived' || row.userStatus === 'removed'
    if (dead) byDigest.delete(row.digest)
    else byDigest.set(row.digest, toCaller(row))
  }

  function toCaller(row: Row): Caller {
    return {
      keyId: row.id,
      type: row.type as KeyType,
      organisationId: row.organisationId,
      workspaceId: row.workspaceId,
      accountableUserId: row.accountableUserId,
      userId: row.userId,
      permissions: permissionsOf(row.scopes),
      expiresAt: row.expiresAt,
    }
  }

  /** Many keys hold the same scopes: they share one set. */
  function permissionsOf(scopes: string): ReadonlySet<Permission> {
    let set = permissionSets.get(scopes)
    if (set === undefined) {
      set = new Set(JSON.parse(scopes) as Permission[])
      permissionSets.set(scopes, set)
    }
    return set
  }

  return {
    find(digest, now) {
      const caller = byDigest.get(digest)
      if (caller === undefined || caller.expiresAt === null) return caller
      if (expired.has(caller)) return undefined
      if (now < caller.expiresAt) return caller
      expired.add(caller)
      return undefined
    },
    count: () => byDigest.size,
    async load() {
      const rows = await select().where(isNull(apiKeys.deletedAt))
      byDigest.clear()
      for (const row of rows) put(row)
    },
    async reload(id) {
      for (const row of await select().where(eq(apiKeys.id, id))) put(row)
    },
    async reloadWhere(of) {
      const whose = 'workspaceId' in of ? eq(apiKeys.workspaceId, of.workspaceId) : eq(apiKeys.userId, of.userId)
      for (const row of await select().where(and(whose, isNull(apiKeys.deletedAt)))) put(row)
    },
  }
}
