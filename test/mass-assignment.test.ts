import { expect, test } from 'bun:test'
import { PROBLEMS } from '../schema/api/errors.ts'
import { createApp } from '../src/app.ts'
import { dataOf } from './support/data.ts'
import { createFakeManager, everyManager } from './support/fake-manager.ts'
import { expectProblem, useWorld } from './support/scenario.ts'
import { addThings, SECRET_REFERENCE } from './support/things.ts'

// Nobody assigns what they may not by adding a field to a body that is good without it.

const FIELDS = {
  role: 'owner',
  organisation_id: '$far_organisation',
  workspace_id: '$far_workspace',
  status: 'active',
  id: '00000000-0000-4000-8000-000000000000',
}
type Field = keyof typeof FIELDS
/** What is answered instead of `invalid` that names the field (decision 33); `own`: it is the caller's to set. */
type Otherwise = Partial<Record<Field, 'forbidden' | 'not_found' | 'own'>>

const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }
const key = { name: 'k', scopes: ['prompts.read'] }
const inWorkspace: Otherwise = { workspace_id: 'not_found' }
const ofKey: Otherwise = { workspace_id: 'not_found', organisation_id: 'forbidden' }

const ROWS: [call: string, body: object, otherwise?: Otherwise][] = [
  ['POST /v1/prompts', prompt, inWorkspace],
  ['PUT /v1/prompts/$prompt', { name: 'q' }, inWorkspace],
  ['PUT /v1/prompts/$prompt/makeDefault', { version: 1 }],
  ['POST /v1/prompts/partials', { name: 'p', string: 'x' }, inWorkspace],
  ['PUT /v1/prompts/partials/$partial', { string: 'y' }, { ...inWorkspace, status: 'own' }],
  ['PUT /v1/prompts/partials/$partial/makeDefault', { version: 1 }],
  ['POST /v1/collections', { name: 'c' }, inWorkspace],
  ['PUT /v1/collections/$collection', { name: 'd' }, inWorkspace],
  ['POST /v1/labels', { name: 'm' }, ofKey],
  ['PUT /v1/labels/$label', { description: 'd' }],
  ['POST /v1/api-keys/organisation/service', key, { organisation_id: 'forbidden' }],
  ['POST /v1/api-keys/workspace/service', { ...key, workspace_id: '$workspace_id' }, ofKey],
  ['POST /v1/api-keys/workspace/user', { ...key, workspace_id: '$workspace_id' }, ofKey],
  ['PUT /v1/api-keys/$key', { name: 'x' }, { organisation_id: 'forbidden', workspace_id: 'own' }],
  ['POST /v1/api-keys/$key/rotate', {}],
  ['PUT /v1/admin/users/$person', { first_name: 'x' }],
  ['POST /v1/admin/users/invites', { email: 'b@example.org', role: 'member' }],
  ['POST /v1/admin/users/invites/$invite/resend', {}],
  ['POST /v1/admin/users/invites/accept', { token: '$token' }],
  ['POST /v1/admin/workspaces', { name: 'w' }],
  ['PUT /v1/admin/workspaces/$workspace_id', { description: 'x' }],
  ['POST /v1/admin/workspaces/$workspace_id/users', { user_id: '$newcomer', role: 'member' }],
  ['PUT /v1/admin/workspaces/$workspace_id/users/$person', { role: 'manager' }],
  ['PUT /v1/admin/organisation/defaults', { input_guardrails: [] }],
  ['PUT /v1/admin/organisation/settings', { debug_log: 1 }],
  ['POST /v1/secret-references', SECRET_REFERENCE, { organisation_id: 'forbidden' }],
  ['PUT /v1/secret-references/$reference', { description: 'd' }, { organisation_id: 'forbidden' }],
  ['POST /v1/secret-references/test', SECRET_REFERENCE, { organisation_id: 'forbidden' }],
  ['POST /v1/secret-references/$reference/test', {}],
  ['PUT /v1/workspace-exclusions/input-guardrails', { workspaces: [] }, { organisation_id: 'forbidden' }],
  ['PUT /v1/workspace-exclusions/output-guardrails', { workspaces: [] }, { organisation_id: 'forbidden' }],
]

/** Their further fields mean nothing, or mean something to a model. */
const OPEN = [
  'PUT /v1/prompts/:promptId/versions/:versionId',
  'POST /v1/prompts/:promptId/render',
  'POST /prompts/:promptId/render',
  'POST /v1/api-keys/organisation/user',
]

/** No key that is sent here may make the call at all; what it takes is in the tests of resolve. */
const OF_SYSTEM = ['POST /v1/secret-references/:secretReferenceId/resolve']

const world = useWorld('sqlite', addThings, '', { managers: everyManager(createFakeManager()) })
const put = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value).replaceAll(/\$(\w+)/g, (_, name) => world().names[name] ?? `$${name}`))

test('every body that is taken is here', () => {
  const served = createApp(world().gatehouse, { checkAnswers: false }).routes.flatMap(({ method, path }) =>
    method === 'POST' || method === 'PUT' ? [`${method} ${path.replaceAll(/:\w+/g, ':')}`] : [],
  )
  const listed = [
    ...ROWS.map(([call]) => call.replaceAll(/\$\w+/g, ':')),
    ...[...OPEN, ...OF_SYSTEM].map((route) => route.replaceAll(/:\w+/g, ':')),
  ]
  expect(listed.sort()).toEqual(served.sort())
})

test.each(ROWS)('%s %j', async (call, body, otherwise = {}) => {
  const [method = '', path = ''] = put(call).split(' ')
  const before = await dataOf(world().gatehouse)
  for (const field of Object.keys(FIELDS) as Field[]) {
    const problem = otherwise[field] ?? 'invalid'
    if (problem === 'own') continue
    const answer = await world().call(method, path, put({ ...body, [field]: FIELDS[field] }))
    expect([field, answer.status]).toEqual([field, PROBLEMS[problem].status])
    expectProblem(answer, problem)
    if (problem !== 'not_found') expect(answer.body.message).toContain(field)
  }
  expect(await dataOf(world().gatehouse)).toEqual(before)
  const allowed = await world().call(method, path, put(body))
  expect(allowed.status, allowed.text).toBe(200)
})

test('the fields of a version that is sent back whole change nothing but its label', async () => {
  const { call, names, gatehouse } = world()
  const path = `/v1/prompts/${names['prompt']}/versions/${names['version']}`
  const before = await dataOf(gatehouse)
  expect((await call('PUT', path, put({ label_id: null, ...FIELDS }))).status).toBe(200)
  const { prompts: _prompts, ...after } = await dataOf(gatehouse)
  expect(before).toMatchObject(after)
})
