import { afterAll, describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import { EXTENSIONS, OPERATIONS } from '../../src/auth/operations.ts'
import { CALLERS, type CallerKind, makeCallers } from '../support/callers.ts'
import { dataOf } from '../support/data.ts'
import { DIALECTS } from '../support/database.ts'
import { createFakeManager, everyManager } from '../support/fake-manager.ts'
import { expectProblem, useWorld, type World } from '../support/scenario.ts'
import { addPerson } from '../support/tenants.ts'
import { SECRET_REFERENCE } from '../support/things.ts'

// Spec 5.2 to 5.4 over HTTP: every operation that has a route, by every kind of caller, to the status.

// By hand, from spec 5, file 00 sections 2 and 3, and decisions 16, 29 to 36. Paths and bodies name the default
// workspace, or things in it, wherever they can.
const TABLE = `
                                 admin owner orgadmin manager member service system old  next far  expired deleted archived removed none

a list of a workspace            200   200   200      200     200    200     403    200  403  404  401     401     401      401     401
  GET /prompts?workspace_id=$workspace
  GET /prompts/partials?workspace_id=$workspace
  GET /collections?workspace_id=$workspace
  GET /labels?workspace_id=$workspace
something new in a workspace     200   200   200      200     200    200     403    200  403  404  401     401     401      401     401
  POST /prompts
  POST /prompts/partials
  POST /collections
  POST /labels
a thing of a workspace           200   200   200      200     200    200     403    200  404  404  401     401     401      401     401
  GET /prompts/:promptId
  PUT /prompts/:promptId
  DELETE /prompts/:promptId
  GET /prompts/:promptId/versions
  GET /prompts/:promptId/versions/:versionId
  PUT /prompts/:promptId/versions/:versionId
  PUT /prompts/:promptId/makeDefault
  GET /prompts/partials/:partialId
  PUT /prompts/partials/:partialId
  DELETE /prompts/partials/:partialId
  GET /prompts/partials/:partialId/versions
  PUT /prompts/partials/:partialId/makeDefault
  GET /collections/:collectionId
  PUT /collections/:collectionId
  DELETE /collections/:collectionId
  GET /labels/:labelId
  PUT /labels/:labelId
  DELETE /labels/:labelId
render                           200   200   200      200     200    200     200    200  404  404  401     401     401      401     401
  POST /prompts/:promptId/render

an admin key                     200   403   403      403     403    403     403    403  403  403  401     401     401      401     401
  POST /api-keys/organisation/service
a workspace key                  200   200   200      200     403    200     403    403  403  404  401     401     401      401     401
  POST /api-keys/workspace/service
  POST /api-keys/workspace/user
  GET /api-keys?workspace_id=$workspace
a key that nobody can make       400   400   400      400     403    400     403    403  400  400  401     401     401      401     401
  POST /api-keys/organisation/user
a key of a workspace             200   200   200      200     403    200     403    403  404  404  401     401     401      401     401
  GET /api-keys/:apiKeyId
  PUT /api-keys/:apiKeyId
  POST /api-keys/:apiKeyId/rotate
  DELETE /api-keys/:apiKeyId

the people of one's own          200   403   403      403     403    403     403    403  403  200  401     401     401      401     401
  GET /admin/users
  GET /admin/users/invites
a person                         200   403   403      403     403    403     403    403  403  404  401     401     401      401     401
  GET /admin/users/:userId
  PUT /admin/users/:userId
  DELETE /admin/users/:userId
  GET /admin/users/invites/:inviteId
  DELETE /admin/users/invites/:inviteId
  POST /admin/users/invites/:inviteId/resend
a person for a workspace         200   403   403      403     403    403     403    403  403  400  401     401     401      401     401
  POST /admin/users/invites
who has been invited             200   200   200      200     200    200     200    200  200  200  200     200     200      200     200
  POST /admin/users/invites/accept

a new workspace                  200   403   403      403     403    403     403    200  403  200  401     401     401      401     401
  POST /admin/workspaces
the workspaces of one's own      200   200   200      200     200    200     403    200  200  200  401     401     401      401     401
  GET /admin/workspaces
a workspace, to look at          200   200   200      200     200    200     403    200  404  404  401     401     401      401     401
  GET /admin/workspaces/:workspaceId
a workspace, to change           200   403   403      403     403    403     403    200  403  404  401     401     401      401     401
  PUT /admin/workspaces/:workspaceId
  DELETE /admin/workspaces/:workspaceId
members, to look at              200   200   200      200     200    200     403    403  404  404  401     401     401      401     401
  GET /admin/workspaces/:workspaceId/users
  GET /admin/workspaces/:workspaceId/users/:userId
members, to change               200   403   403      403     403    403     403    403  403  404  401     401     401      401     401
  POST /admin/workspaces/:workspaceId/users
  PUT /admin/workspaces/:workspaceId/users/:userId
  DELETE /admin/workspaces/:workspaceId/users/:userId

the organisation of one's own    200   403   403      403     403    403     403    200  403  200  401     401     401      401     401
  GET /admin/organisation/defaults
  PUT /admin/organisation/defaults
  GET /admin/organisation/settings
  PUT /admin/organisation/settings
  GET /audit-logs
secret references, new           200   403   403      403     403    403     403    200  403  200  401     401     401      401     401
  POST /secret-references
  POST /secret-references/test
secret references, to list       200   403   403      403     403    403     200    200  403  200  401     401     401      401     401
  GET /secret-references
a secret reference, to look at   200   403   403      403     403    403     200    200  403  404  401     401     401      401     401
  GET /secret-references/:secretReferenceId
a secret reference, to care for  200   403   403      403     403    403     403    200  403  404  401     401     401      401     401
  PUT /secret-references/:secretReferenceId
  DELETE /secret-references/:secretReferenceId
  POST /secret-references/:secretReferenceId/test
  GET /secret-references/:secretReferenceId/health
the secret itself                403   403   403      403     403    403     200    403  403  403  401     401     401      401     401
  POST /secret-references/:secretReferenceId/resolve

an organisation by its id        200   403   403      403     403    403     403    200  403  403  401     401     401      401     401
  GET /workspace-exclusions/input-guardrails?organisation_id=$organisation
  PUT /workspace-exclusions/input-guardrails
  GET /workspace-exclusions/output-guardrails?organisation_id=$organisation
  PUT /workspace-exclusions/output-guardrails
`

/** What is sent; `$unique` is a new word each time, `$person` a new person. */
const BODIES: Record<string, object> = {
  'POST /prompts': { name: 'p', string: 'x', parameters: {}, model: 'm', workspace_id: '$workspace' },
  'PUT /prompts/:promptId': { name: 'q' },
  'PUT /prompts/:promptId/versions/:versionId': { label_id: null },
  'PUT /prompts/:promptId/makeDefault': { version: 1 },
  'POST /prompts/:promptId/render': { variables: {} },
  'POST /prompts/partials': { name: 'p', string: 'x', workspace_id: '$workspace' },
  'PUT /prompts/partials/:partialId': { string: 'y' },
  'PUT /prompts/partials/:partialId/makeDefault': { version: 1 },
  'POST /collections': { name: 'c', workspace_id: '$workspace' },
  'PUT /collections/:collectionId': { name: 'd' },
  'POST /labels': { name: 'l-$unique', workspace_id: '$workspace' },
  'PUT /labels/:labelId': { description: 'd' },
  'POST /api-keys/organisation/service': { name: 'k', scopes: ['prompts.read'], organisation_id: '$organisation' },
  'POST /api-keys/workspace/service': { name: 'k', scopes: ['prompts.read'], workspace_id: '$workspace' },
  'POST /api-keys/workspace/user': { name: 'k', scopes: ['prompts.read'], workspace_id: '$workspace' },
  'POST /api-keys/organisation/user': { name: 'k', scopes: ['prompts.read'] },
  'PUT /api-keys/:apiKeyId': { name: 'x' },
  'POST /api-keys/:apiKeyId/rotate': {},
  'PUT /admin/users/:userId': { first_name: 'x' },
  'POST /admin/users/invites/:inviteId/resend': {},
  'POST /admin/users/invites': {
    email: '$unique@example.com',
    role: 'member',
    workspaces: [{ id: '$workspace', role: 'member' }],
  },
  'POST /admin/users/invites/accept': { token: '$token' },
  'POST /admin/workspaces': { name: 'w' },
  'PUT /admin/workspaces/:workspaceId': { description: 'x' },
  'POST /admin/workspaces/:workspaceId/users': { user_id: '$person', role: 'member' },
  'PUT /admin/workspaces/:workspaceId/users/:userId': { role: 'manager' },
  'POST /secret-references': SECRET_REFERENCE,
  'PUT /secret-references/:secretReferenceId': { description: 'd' },
  'POST /secret-references/test': SECRET_REFERENCE,
  'POST /secret-references/:secretReferenceId/test': {},
  'POST /secret-references/:secretReferenceId/resolve': { workspace_id: '$workspace' },
  'PUT /admin/organisation/defaults': { input_guardrails: [] },
  'PUT /admin/organisation/settings': { debug_log: 1 },
  'PUT /workspace-exclusions/input-guardrails': { workspaces: [], organisation_id: '$organisation' },
  'PUT /workspace-exclusions/output-guardrails': { workspaces: [], organisation_id: '$organisation' },
}

/** One of each kind, for the dialect that costs more. */
const SAMPLE = new Set([
  'GET /prompts',
  'POST /prompts/:promptId/render',
  'DELETE /prompts/:promptId',
  'POST /api-keys/workspace/user',
  'POST /api-keys/:apiKeyId/rotate',
  'DELETE /admin/users/:userId',
  'POST /admin/users/invites',
  'PUT /admin/workspaces/:workspaceId/users/:userId',
  'PUT /admin/organisation/settings',
  'GET /secret-references/:secretReferenceId',
  'POST /secret-references/:secretReferenceId/resolve',
])

interface Row {
  /** as the list of operations has it */
  name: string
  method: string
  /** below `/v1`, with its query */
  path: string
  body: object | undefined
  statuses: Record<string, number>
}

const ROWS = readTable(TABLE)

function readTable(table: string): Row[] {
  const [columns = '', ...lines] = table.split('\n').filter((line) => line.trim() !== '')
  if (columns.trim().split(/\s+/).join() !== CALLERS.join()) throw new Error('the table has other columns')
  let statuses: Record<string, number> = {}
  return lines.flatMap((line) => {
    const [, method = '', path = ''] = /^ {2}([A-Z]+) (\S+)$/.exec(line) ?? []
    const name = `${method} ${path.split('?')[0]}`
    if (method !== '') return [{ name, method, path, body: BODIES[name], statuses }]
    const cells = line.slice(32).trim().split(/\s+/).map(Number)
    statuses = Object.fromEntries(CALLERS.map((caller, i) => [caller, cells[i] ?? Number.NaN]))
    return []
  })
}

const PROBLEM = { 400: 'invalid', 401: 'unauthenticated', 403: 'forbidden', 404: 'not_found' } as const

const listed = new Set(ROWS.map(({ name }) => name))
const pending = [...OPERATIONS, ...EXTENSIONS]
  .map(({ method, path }) => `${method} ${path}`)
  .filter((name) => !listed.has(name))
afterAll(() => {
  process.stdout.write(`callers over HTTP are pending for:\n${pending.map((name) => `  ${name}\n`).join('')}`)
})

describe.each(DIALECTS)('who may do what: %s', (dialect) => {
  let keys: Record<CallerKind, string | null>
  const setUp = async (opened: World) => {
    keys = await makeCallers(opened)
  }
  const world = useWorld(dialect, setUp, '', { managers: everyManager(createFakeManager()) })

  test('every route below /v1 has its row, and every other operation of the contract waits for its route', () => {
    const served = createApp(world().gatehouse, { checkAnswers: false }).routes.flatMap(({ method, path }) =>
      path.startsWith('/v1/') ? [`${method} ${path.slice('/v1'.length)}`] : [],
    )
    expect([...listed].sort()).toEqual(served.sort())
    expect(ROWS).toHaveLength(74)
    // 149 of the contract, 9 of ours
    expect(ROWS.length + pending.length).toBe(158)
  })

  const rows = ROWS.filter(({ name }) => dialect === 'sqlite' || SAMPLE.has(name))

  test.each(rows)('$method $path', async (row) => {
    const statuses: Record<string, number> = {}
    let things: Awaited<ReturnType<typeof makeThings>> | undefined
    for (const caller of CALLERS) {
      things ??= await makeThings(world(), row)
      const { path, body, data } = things
      const answer = await world().call(row.method, `/v1${path}`, body, { key: keys[caller] })
      statuses[caller] = answer.status
      const problem = PROBLEM[answer.status as keyof typeof PROBLEM]
      if (problem !== undefined) expectProblem(answer, problem)
      if (problem === undefined && row.method !== 'GET') things = undefined
      else expect(await dataOf(world().gatehouse), `changed for ${caller}`).toEqual(data)
    }
    expect(statuses).toEqual(row.statuses)
  })
})

/** A row's path and body over new things in the default workspace, and all data as it is then. */
async function makeThings(world: World, { name, path, body }: Row) {
  const { gatehouse, made } = world
  const make = async (at: string, sent: object) => {
    const answer = await world.call('POST', `/v1${at}`, sent)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body
  }
  const unique = Bun.randomUUIDv7()
  const person = () => addPerson(gatehouse, made.organisation_id, 'member')
  const member = async () => {
    const userId = await person()
    await make(`/admin/workspaces/${made.workspace_id}/users`, { user_id: userId, role: 'member' })
    return userId
  }
  const invite = () => make('/admin/users/invites', { email: `${unique}@example.org`, role: 'member' })
  const things: Record<string, () => string | Promise<string>> = {
    $workspace: () => made.workspace_id,
    $organisation: () => made.organisation_id,
    $unique: () => unique,
    $person: person,
    $token: async () => (await invite()).invite_link.split('#')[1],
    // the one that the callers are of, unless it would be gone
    ':workspaceId': async () =>
      name.startsWith('DELETE /admin/workspaces/:workspaceId') && !name.endsWith(':userId')
        ? (await make('/admin/workspaces', { name: 'w' })).id
        : made.workspace_id,
    ':userId': () => (path.includes(':workspaceId') ? member() : person()),
    ':inviteId': async () => (await invite()).id,
    ':promptId': async () => prompt.id,
    ':versionId': async () => prompt.version_id,
    ':partialId': async () => (await make('/prompts/partials', { name: 'p', string: 'x' })).id,
    ':collectionId': async () => (await make('/collections', { name: 'c' })).id,
    ':labelId': async () => (await make('/labels', { name: unique })).id,
    ':secretReferenceId': async () => (await make('/secret-references', SECRET_REFERENCE)).id,
    ':apiKeyId': async () => {
      const key = { name: 'k', scopes: ['prompts.read'], workspace_id: made.workspace_id }
      return (await make('/api-keys/workspace/service', key)).id
    },
  }
  const prompt = path.includes(':promptId')
    ? await make('/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' })
    : undefined
  let text = JSON.stringify({ path, body })
  for (const [placeholder, thing] of Object.entries(things))
    if (text.includes(placeholder)) text = text.replaceAll(placeholder, await thing())
  const filled = JSON.parse(text)
  return { path: filled.path as string, body: filled.body as unknown, data: await dataOf(gatehouse) }
}
