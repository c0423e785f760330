import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { createApp } from '../../src/app.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

// Decision 3: answers are checked against their contract in tests and in `dev`, not in production.

let world: TestGatehouse
beforeAll(async () => {
  world = await openTestGatehouse()
  const { id } = await world.newKey('organisation/service', ['prompts.read'])
  // A row that no program of ours writes: a scope that is no text.
  await world.gatehouse.audited(
    { kind: 'cli', uid: 0, organisationId: world.made.organisation_id, command: 'test' },
    { action: 'test.break' },
    async (tx) => {
      const t = tx.tables.apiKeys
      await tx.update(t).set({ scopes: '[1]' }).where(eq(t.id, id)).returning({ id: t.id })
    },
  )
})
afterAll(() => world.close())

const statusOf = async (checkAnswers: boolean): Promise<number> => {
  const headers = { 'x-service-api-key': world.made.admin_key }
  const request = new Request('http://localhost/v1/api-keys', { headers })
  return (await createApp(world.gatehouse, { checkAnswers }).fetch(request)).status
}

test('in tests an answer that breaks its contract is a failure', async () => {
  expect(await statusOf(true)).toBe(500)
})

test('in production a client gets the answer that there is', async () => {
  expect(await statusOf(false)).toBe(200)
})
