import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Portkey } from 'portkey-ai'
import { type Listening, startServer } from '../../src/http/server.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

// Decision 15: people, invites, workspaces and members, with the public client of the ecosystem.

let gatehouse: TestGatehouse
let server: Listening
let admin: Portkey['admin']

beforeAll(async () => {
  gatehouse = await openTestGatehouse('sqlite', '[server]\nport = 0')
  server = await startServer(gatehouse.gatehouse, { checkAnswers: true })
  admin = new Portkey({ apiKey: gatehouse.made.admin_key, baseURL: `${server.url}/v1` }).admin
})
afterAll(async () => {
  await server.stop()
  await gatehouse.close()
})

// biome-ignore lint/suspicious/noExplicitAny: the client types answers narrowly, and not always rightly
const answerOf = async (answer: PromiseLike<unknown>): Promise<any> => {
  const { getHeaders: _, ...body } = (await answer) as Record<string, unknown>
  return body
}
const statusOf = (answer: PromiseLike<unknown>): Promise<number> =>
  Promise.resolve(answer).then(
    () => 200,
    (error) => error.status,
  )

/** Opens the link of an invite as a browser would, and accepts. */
async function acceptAt(link: string) {
  const page = await fetch(link)
  expect(page.headers.get('content-type')).toStartWith('text/html')
  const { origin, hash } = new URL(link)
  const answer = await fetch(`${origin}/v1/admin/users/invites/accept`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: hash.slice(1), first_name: 'Ada', last_name: 'Lovelace' }),
  })
  expect(answer.status).toBe(200)
  // biome-ignore lint/suspicious/noExplicitAny: looked into by tests
  return (await answer.json()) as any
}

test('a person is invited, comes in, is changed and removed', async () => {
  const { workspace_slug: workspace } = gatehouse.made
  const { id, invite_link } = await answerOf(
    admin.users.invites.create({
      email: 'ada@example.org',
      role: 'member',
      workspaces: [{ id: workspace, role: 'manager' }],
      workspace_api_key_details: { name: 'first', scopes: ['prompts.list'] },
    }),
  )
  expect(await answerOf(admin.users.invites.retrieve({ inviteId: id }))).toMatchObject({
    id,
    email: 'ada@example.org',
    status: 'pending',
    workspaces: [{ id: workspace, workspace_id: gatehouse.made.workspace_id, role: 'manager' }],
  })
  const invites = await answerOf(admin.users.invites.list({ email: 'ada@example.org', status: 'pending' }))
  expect(invites).toMatchObject({ object: 'list', total: 1 })
  const resent = await answerOf(admin.users.invites.resend({ inviteId: id }))
  expect(resent.inviteLink).not.toBe(invite_link)

  const user = await acceptAt(resent.inviteLink)
  const userId: string = user.id
  const { prompts } = new Portkey({ apiKey: user.api_keys[0].key, baseURL: `${server.url}/v1` })
  expect(await answerOf(prompts.list())).toMatchObject({ object: 'list' })

  const listed = await answerOf(admin.users.list({ role: 'member', email: 'ada@example.org', pageSize: 10 }))
  expect(listed).toMatchObject({ total: 1, data: [{ id: userId, first_name: 'Ada', workspace_ids: [workspace] }] })
  expect(await answerOf(admin.users.update({ userId, role: 'admin' }))).toMatchObject({ id: userId, role: 'admin' })
  expect(await answerOf(admin.users.retrieve({ userId }))).toMatchObject({ email: 'ada@example.org', role: 'admin' })
  expect(await answerOf(admin.users.delete({ userId }))).toEqual({})
  expect(await statusOf(admin.users.retrieve({ userId }))).toBe(404)
  expect(await statusOf(prompts.list())).toBe(401)
})

test('an invite is taken back', async () => {
  const { id } = await answerOf(admin.users.invites.create({ email: 'bob@example.org', role: 'admin', workspaces: [] }))
  expect(await answerOf(admin.users.invites.delete({ inviteId: id }))).toEqual({})
  expect(await answerOf(admin.users.invites.retrieve({ inviteId: id }))).toMatchObject({ status: 'cancelled' })
})

test('a workspace is created, read, listed, changed and deleted, with its members', async () => {
  const { workspaces } = admin
  const made = await answerOf(
    workspaces.create({ name: 'Research', description: 'd', defaults: { metadata: { a: 'b' } } }),
  )
  const workspaceId: string = made.id
  expect(await answerOf(workspaces.retrieve({ workspaceId: made.slug }))).toMatchObject({
    id: workspaceId,
    name: 'Research',
  })
  const listed = await answerOf(workspaces.list({ exact_name: 'Research', page_size: 10, current_page: 0 }))
  expect(listed).toMatchObject({ object: 'list', total: 1, data: [{ id: workspaceId, is_default: 0 }] })
  expect(await answerOf(workspaces.update({ workspaceId, description: 'e' }))).toMatchObject({ description: 'e' })

  const invited = await answerOf(
    admin.users.invites.create({ email: 'eve@example.org', role: 'member', workspaces: [] }),
  )
  const { id: userId } = await acceptAt(invited.invite_link)
  await workspaces.users.create({ workspaceId, users: [{ id: userId, role: 'member' }] })
  const member = { workspaceId, userId }
  expect(await answerOf(workspaces.users.retrieve(member))).toMatchObject({ role: 'member', org_role: 'member' })
  await workspaces.users.update({ ...member, role: 'manager' })
  const members = await answerOf(workspaces.users.list({ workspaceId, role: 'manager', page_size: 10 }))
  expect(members).toMatchObject({ total: 1, data: [{ id: userId, role: 'manager' }] })
  expect(await answerOf(workspaces.users.delete({ ...member }))).toEqual({})
  expect(await statusOf(workspaces.users.retrieve({ ...member }))).toBe(404)

  expect(await answerOf(workspaces.delete({ workspaceId, name: 'Research' }))).toEqual({})
  expect(await statusOf(workspaces.retrieve({ workspaceId }))).toBe(404)
})
