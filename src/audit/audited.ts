import { AsyncLocalStorage } from 'node:async_hooks'
import { and, eq, gt, isNull, max, or } from 'drizzle-orm'
import type { Actor, Caller } from '../auth/caller.ts'
import type { AuditDraft, Database, Tx } from '../db/database.ts'
import { GatehouseError } from '../errors.ts'

export type Audited = <T>(actor: Actor, what: AuditDraft, work: (tx: Tx) => Promise<T>) => Promise<T>

/**
 * The only door to a write transaction (house 2.3): proves the actor again, runs `work`, and leaves one audit row, all
 * in one transaction. If it throws, nothing happened.
 *
 * `work` may complete `tx.event`; it must not reach outside `tx` (on PostgreSQL it may run again) and must not call
 * `audited`: a change inside a change would wait for its own end, and is refused at once.
 */
export function createAudited(db: Database): Audited {
  const inside = new AsyncLocalStorage<true>()
  return async (actor, what, work) => {
    if (inside.getStore()) throw new Error(`audited(${what.action}) was called inside another change`)
    return db.transaction(what, (tx) =>
      inside.run(true, async () => {
        if (actor.kind === 'key') await requireStillValid(tx, actor.caller)
        const value = await work(tx)
        await insertAuditEvent(tx, actor)
        return value
      }),
    )
  }
}

/**
 * A key that was revoked, or whose workspace or person is gone, changes nothing on any node, however old that node's
 * cache is (decision 13).
 */
async function requireStillValid(tx: Tx, caller: Caller): Promise<void> {
  const { apiKeys, users, workspaces } = tx.tables
  const [key] = await tx
    .select({
      userId: apiKeys.userId,
      userStatus: users.status,
      workspaceId: apiKeys.workspaceId,
      workspaceStatus: workspaces.status,
    })
    .from(apiKeys)
    .leftJoin(users, eq(users.id, apiKeys.userId))
    .leftJoin(workspaces, eq(workspaces.id, apiKeys.workspaceId))
    .where(
      and(
        eq(apiKeys.id, caller.keyId),
        eq(apiKeys.organisationId, caller.organisationId),
        isNull(apiKeys.deletedAt),
        or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, tx.now)),
      ),
    )
  const isValid =
    key !== undefined &&
    (key.userId === null || key.userStatus === 'active') &&
    (key.workspaceId === null || key.workspaceStatus === 'active')
  if (!isValid) throw new GatehouseError('unauthenticated', 'the API key is not valid')
}

async function insertAuditEvent(tx: Tx, actor: Actor): Promise<void> {
  // Only after this does nobody else take the next number.
  await tx.revise()
  const { auditEvents } = tx.tables
  const [head] = await tx.select({ seq: max(auditEvents.seq) }).from(auditEvents)
  const { action, workspaceId, resourceId, resourceName, details } = tx.event
  const by = actor.kind === 'key' ? byKey(actor) : byCommand(actor)
  await tx
    .insert(auditEvents)
    .values({
      seq: (head?.seq ?? 0) + 1,
      id: Bun.randomUUIDv7(),
      ...by,
      workspaceId: workspaceId === undefined ? by.workspaceId : workspaceId,
      action,
      resourceId: resourceId ?? null,
      resourceName: resourceName ?? null,
      status: 200,
      details: JSON.stringify({ ...details, ...by.details }),
      createdAt: tx.now,
    })
    .returning({ seq: auditEvents.seq })
}

const byKey = ({ caller, request }: Extract<Actor, { kind: 'key' }>) => ({
  organisationId: caller.organisationId,
  workspaceId: caller.workspaceId,
  actorType: caller.type,
  keyId: caller.keyId,
  userId: caller.accountableUserId,
  clientIp: request.clientIp,
  method: request.method,
  uri: request.uri,
  requestId: request.requestId,
  details: {},
})

const byCommand = (actor: Extract<Actor, { kind: 'cli' }>) => ({
  organisationId: actor.organisationId,
  workspaceId: null,
  actorType: 'cli',
  keyId: null,
  userId: null,
  clientIp: null,
  method: null,
  uri: null,
  requestId: null,
  details: { uid: actor.uid, command: actor.command },
})
