import { describe, expect, test } from 'bun:test'
import { type AdminName, runAdmin } from '../src/cli/admin.ts'
import { gatehouse as runCommand } from './cli/support.ts'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { useWorld } from './support/scenario.ts'
import { addKey, addPerson } from './support/tenants.ts'

describe.each(DIALECTS)('keys and owners at the command line: %s', (dialect) => {
  const world = useWorld(dialect)
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  const run = (name: AdminName, input: object): Promise<any> =>
    runAdmin({ gatehouse: world().gatehouse, uid: 7 }, name, input)
  const person = async (role: 'owner' | 'admin' | 'member') => {
    const id = await addPerson(world().gatehouse, world().made.organisation_id, role)
    return { id, email: `${id}@example.com` }
  }
  const roleOf = async (id: string) => {
    const { users } = world().gatehouse.read.tables
    const rows = await world().gatehouse.read.select({ id: users.id, role: users.role }).from(users)
    return rows.find((row) => row.id === id)?.role
  }

  test('an admin key is answered for by the person it was made for, in either case', async () => {
    const { id, email } = await person('admin')
    const key = { type: 'organisation-service', name: 'k', scopes: ['prompts.list'] }
    const made = await run('keys.create', { ...key, accountable: email.toUpperCase() })
    const { apiKeys } = world().gatehouse.read.tables
    const rows = await world().gatehouse.read.select().from(apiKeys)
    expect(rows.find((row) => row.id === made.id)).toMatchObject({ accountableUserId: id, userId: null })
    await expect(run('keys.create', { ...key, accountable: 'nobody@example.com' })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  test('the old secret of a rotated key ends at once', async () => {
    const { call, newKey } = world()
    const { id, key } = await newKey('organisation/service', ['prompts.list'])
    await call('POST', `/v1/api-keys/${id}/rotate`)
    const status = async () => (await call('GET', '/v1/prompts', undefined, { key })).status
    expect(await status()).toBe(200)
    expect(await run('keys.end-transition', { id })).toEqual({ id })
    expect(await status()).toBe(401)
    await expect(run('keys.end-transition', { id })).rejects.toMatchObject({ code: 'conflict' })
    await expect(run('keys.end-transition', { id: 'x' })).rejects.toMatchObject({ code: 'not_found' })
    const { gatehouse } = world()
    await gatehouse.refusals.flush()
    const [refused, row] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({ user_type: 'cli', user_id: 'cli:7', action: 'rotate', resource_id: id })
    expect(refused, 'its use stays attributable').toMatchObject({ user_id: id, details: { reason: 'rotated' } })
  })

  test('an owner is made by transfer alone, and the one before becomes an admin, whose keys do what an admin may', async () => {
    const { call, gatehouse, made } = world()
    const { id, email } = await person('member')
    const tenant = {
      organisationId: made.organisation_id,
      workspaceId: made.workspace_id,
      collectionId: '',
      userId: id,
    }
    const key = await addKey(gatehouse, tenant, 'workspace-user', ['prompts.list'])
    const status = async () => (await call('GET', '/v1/prompts', undefined, { key })).status
    expect(await status(), 'no member of the workspace').toBe(403)
    expect(await run('owner.transfer', { email })).toEqual({ owner_id: id, previous_owner_ids: [made.user_id] })
    expect(await roleOf(id)).toBe('owner')
    expect(await roleOf(made.user_id)).toBe('admin')
    expect(await status(), 'in force at once').toBe(200)
    const [row] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({
      resource_type: 'organisation_users',
      action: 'transfer',
      user_id: 'cli:7',
      resource_id: id,
    })
    expect(row?.details).toMatchObject({ before: { role: 'member', owners: [made.user_id] }, after: { role: 'owner' } })
    await expect(run('owner.transfer', { email })).rejects.toMatchObject({ code: 'conflict' })
    await expect(run('owner.transfer', { email: 'nobody@example.com' })).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('the command line itself', () => {
  test.each([
    [['keys', 'create', '--workspace', 'w', '--user', 'u', '--for', 'a@example.com', '--name', 'k'], '--for'],
    [['keys', 'end-transition'], 'ID is missing'],
    [['owner', 'transfer'], 'EMAIL is missing'],
  ])('%j is refused', async (argv, said) => {
    const { exitCode, err } = await runCommand(argv)
    expect(exitCode).toBe(64)
    expect(err).toContain(said)
  })
})
