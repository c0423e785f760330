import { eq } from 'drizzle-orm'
import { PERMISSIONS } from '../../schema/api/permissions.ts'
import { createApiKey } from '../../src/api-keys/service.ts'
import type { World } from './scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, defaultTenant } from './tenants.ts'

/**
 * Every kind of caller. `owner` to `member` have a user key of the default workspace, `service` its service key, `old`
 * the secret that an admin key had before its rotation, `next` a service key of another workspace, `far` an admin key of
 * another organisation; the others a key that is no longer good, or none.
 */
export const CALLERS = [
  'admin',
  'owner',
  'orgadmin',
  'manager',
  'member',
  'service',
  'system',
  'old',
  'next',
  'far',
  'expired',
  'deleted',
  'archived',
  'removed',
  'none',
] as const
export type CallerKind = (typeof CALLERS)[number]

/**
 * The clear key of each kind of caller. Each has every scope there is, also those that its type cannot hold, so that no
 * scope is what keeps it out.
 */
export async function makeCallers({ gatehouse, made, call }: World): Promise<Record<CallerKind, string | null>> {
  // A system key is taken from a peer on this machine alone (decision 16).
  gatehouse.peerIp = () => '127.0.0.1'
  const own = defaultTenant(made)
  const workspace = `/v1/admin/workspaces/${own.workspaceId}`
  const person = async (organisationRole: 'admin' | 'member', role?: 'manager' | 'member') => {
    const userId = await addPerson(gatehouse, own.organisationId, organisationRole)
    if (role !== undefined) await call('POST', `${workspace}/users`, { user_id: userId, role })
    return { ...own, userId }
  }
  const idOf = (key: string) => gatehouse.keys.find(gatehouse.digestKey(key), Date.now())?.keyId ?? ''
  const add = (tenant: typeof own, type: Parameters<typeof addKey>[2]) => addKey(gatehouse, tenant, type, PERMISSIONS)

  const cli = { kind: 'cli', uid: 0, organisationId: own.organisationId, command: 'test' } as const
  const system = await createApiKey(gatehouse, cli, {
    type: 'system',
    name: 's',
    scopes: [],
    accountableUserId: own.userId,
  })
  const expired = await add(own, 'organisation-service')
  await gatehouse.audited(cli, { action: 'test.expire' }, async (tx) => {
    const { apiKeys: t } = tx.tables
    const id = idOf(expired)
    await tx
      .update(t)
      .set({ expiresAt: tx.now - 1 })
      .where(eq(t.id, id))
      .returning({ id: t.id })
    tx.changed('api_key', id)
  })
  const deleted = await add(own, 'organisation-service')
  await call('DELETE', `/v1/api-keys/${idOf(deleted)}`)
  const old = await add(own, 'organisation-service')
  await call('POST', `/v1/api-keys/${idOf(old)}/rotate`, {})
  const leaver = await person('member', 'manager')
  const removed = await add(leaver, 'workspace-user')
  await call('DELETE', `/v1/admin/users/${leaver.userId}`)
  const closed = { ...own, ...(await addWorkspace(gatehouse, own.organisationId)) }
  const archived = await add(closed, 'workspace-service')
  await call('DELETE', `/v1/admin/workspaces/${closed.workspaceId}`, { force_delete: true })
  return {
    admin: await add(own, 'organisation-service'),
    owner: await add(own, 'workspace-user'),
    orgadmin: await add(await person('admin'), 'workspace-user'),
    manager: await add(await person('member', 'manager'), 'workspace-user'),
    member: await add(await person('member', 'member'), 'workspace-user'),
    service: await add(own, 'workspace-service'),
    system: system.key,
    old,
    next: await add({ ...own, ...(await addWorkspace(gatehouse, own.organisationId)) }, 'workspace-service'),
    far: await add(await addOrganisation(gatehouse), 'organisation-service'),
    ...{ expired, deleted, archived, removed, none: null },
  }
}
