import { afterAll, beforeAll, describe, test } from 'bun:test'
import { deleteMember, revokeUserKeys } from '../src/members/store.ts'
import { lockWorkspace } from '../src/workspaces/store.ts'
import { DIALECTS } from './support/database.ts'
import { openTestGatehouse, type TestGatehouse } from './support/gatehouse.ts'
import { expectProblem } from './support/scenario.ts'
import { addPerson } from './support/tenants.ts'

describe.each(DIALECTS)('a member who is being removed: %s', (dialect) => {
  let world: TestGatehouse
  beforeAll(async () => {
    world = await openTestGatehouse(dialect)
  })
  afterAll(() => world.close())

  test('gets no key meanwhile, which would live again when they are added again (decision 32)', async () => {
    const { gatehouse, call, made } = world
    const { organisation_id: organisationId, workspace_id } = made
    const person = await addPerson(gatehouse, organisationId, 'member')
    await call('POST', `/v1/admin/workspaces/${workspace_id}/users`, { user_id: person, role: 'member' })
    const removed = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    const actor = { kind: 'cli', uid: 0, organisationId, command: 'test' } as const
    const removal = gatehouse.audited(actor, { action: 'workspace_users.delete' }, async (tx) => {
      await lockWorkspace(tx, workspace_id)
      await deleteMember(tx, workspace_id, person)
      await revokeUserKeys(tx, workspace_id, person)
      removed.resolve()
      await asked.promise
      await Bun.sleep(300)
    })
    await removed.promise
    const body = { name: 'late', user_id: person, workspace_id, scopes: ['prompts.read'] }
    const answer = call('POST', '/v1/api-keys/workspace/user', body)
    asked.resolve()
    await removal
    expectProblem(await answer, 'invalid')
  })
})
