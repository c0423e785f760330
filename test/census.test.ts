import { beforeAll, describe, expect, test } from 'bun:test'
import { GRANTABLE, PERMISSIONS, type Permission } from '../schema/api/permissions.ts'
import { createApp } from '../src/app.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { createFakeManager, everyManager } from './support/fake-manager.ts'
import { auditCount, expectProblem, useWorld, type World } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, revokeUnnoticed, type Tenant } from './support/tenants.ts'
import { SECRET_REFERENCE } from './support/things.ts'

interface Row {
  needs: readonly Permission[]
  /** what a successful call is sent; `$workspace` is an id, `$unique` a new name, `$person` a new person */
  body?: object
  /** the action of the one audit row that a change leaves; absent for reads */
  audits?: string
  /** workspace keys do it only where a setting lets them (decision 34) */
  optIn?: true
  /** a scope of the key that is made anew: nobody gives what they do not hold (decision 31) */
  mints?: Permission
  /** no key that holds the scope gets a 200, but perhaps a system key */
  alwaysRefused?: 'invalid' | 'forbidden'
  /** concerns no workspace: its audit row names none */
  ofOrganisation?: true
  /** concerns nothing that is stored: its audit row has no id */
  ofNothing?: true
}

const families = ['organisation_service_api_keys', 'workspace_service_api_keys', 'workspace_user_api_keys'] as const
const anyOf = (verb: 'list' | 'read' | 'update' | 'rotate' | 'delete') =>
  families.map((family) => `${family}.${verb}` as const)
const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }
const keyWith = (scope: Permission) => ({ name: 'k', scopes: [scope] })

/** Written by hand: a new route is public or guarded because somebody said so here, too. */
const PUBLIC = [
  'GET /livez',
  'GET /readyz',
  'GET /metrics',
  'GET /openapi.json',
  'GET /docs',
  'GET /docs/start.js',
  'GET /docs/swagger-ui.js',
  'GET /docs/swagger-ui.css',
  'GET /invite',
  'GET /invite/page.js',
  'GET /invite/page.css',
]
/** Public as well; what proves the caller is in the body. */
const PROVED_BY_BODY = ['POST /v1/admin/users/invites/accept']

const GUARDED: Record<string, Row> = {
  'POST /v1/prompts': { needs: ['prompts.create'], body: prompt, audits: 'prompts.create' },
  'GET /v1/prompts': { needs: ['prompts.list'] },
  'GET /v1/prompts/:promptId': { needs: ['prompts.read'] },
  'PUT /v1/prompts/:promptId': { needs: ['prompts.update'], body: { name: 'q' }, audits: 'prompts.update' },
  'DELETE /v1/prompts/:promptId': { needs: ['prompts.delete'], audits: 'prompts.delete' },
  'GET /v1/prompts/:promptId/versions': { needs: ['prompts.read'] },
  'GET /v1/prompts/:promptId/versions/:versionId': { needs: ['prompts.read'] },
  'PUT /v1/prompts/:promptId/versions/:versionId': {
    needs: ['prompts.update'],
    body: { label_id: null },
    audits: 'prompts.update',
  },
  'PUT /v1/prompts/:promptId/makeDefault': {
    needs: ['prompts.publish'],
    body: { version: 1 },
    audits: 'prompts.publish',
  },
  'POST /v1/prompts/:promptId/render': { needs: ['prompts.render'], body: { variables: {} } },
  'POST /prompts/:promptId/render': { needs: ['prompts.render'], body: { variables: {} } },
  'POST /v1/prompts/partials': { needs: ['prompts.create'], body: { name: 'p', string: '' }, audits: 'prompts.create' },
  'GET /v1/prompts/partials': { needs: ['prompts.list'] },
  'GET /v1/prompts/partials/:partialId': { needs: ['prompts.read'] },
  'PUT /v1/prompts/partials/:partialId': { needs: ['prompts.update'], body: { string: 'y' }, audits: 'prompts.update' },
  'DELETE /v1/prompts/partials/:partialId': { needs: ['prompts.delete'], audits: 'prompts.delete' },
  'GET /v1/prompts/partials/:partialId/versions': { needs: ['prompts.read'] },
  'PUT /v1/prompts/partials/:partialId/makeDefault': {
    needs: ['prompts.publish'],
    body: { version: 1 },
    audits: 'prompts.publish',
  },
  'POST /v1/collections': { needs: ['prompts.create'], body: { name: 'c' }, audits: 'collections.create' },
  'GET /v1/collections': { needs: ['prompts.list'] },
  'GET /v1/collections/:collectionId': { needs: ['prompts.read'] },
  'PUT /v1/collections/:collectionId': { needs: ['prompts.update'], body: { name: 'd' }, audits: 'collections.update' },
  'DELETE /v1/collections/:collectionId': { needs: ['prompts.delete'], audits: 'collections.delete' },
  'POST /v1/labels': { needs: ['prompts.create'], body: { name: '$unique' }, audits: 'labels.create' },
  'GET /v1/audit-logs': { needs: ['audit_logs.list'] },
  'GET /v1/labels': { needs: ['prompts.list'] },
  'GET /v1/labels/:labelId': { needs: ['prompts.read'] },
  'PUT /v1/labels/:labelId': { needs: ['prompts.update'], body: { description: 'd' }, audits: 'labels.update' },
  'DELETE /v1/labels/:labelId': { needs: ['prompts.delete'], audits: 'labels.delete' },
  'POST /v1/api-keys/organisation/service': {
    needs: ['organisation_service_api_keys.create'],
    body: keyWith('organisation_service_api_keys.create'),
    audits: 'organisation_service_api_keys.create',
  },
  'POST /v1/api-keys/workspace/service': {
    needs: ['workspace_service_api_keys.create'],
    body: { ...keyWith('workspace_service_api_keys.create'), workspace_id: '$workspace' },
    audits: 'workspace_service_api_keys.create',
  },
  'POST /v1/api-keys/workspace/user': {
    needs: ['workspace_user_api_keys.create'],
    body: { ...keyWith('workspace_user_api_keys.create'), workspace_id: '$workspace' },
    audits: 'workspace_user_api_keys.create',
  },
  'POST /v1/api-keys/organisation/user': {
    needs: ['organisation_service_api_keys.create', 'workspace_user_api_keys.create'],
    body: keyWith('prompts.read'),
    alwaysRefused: 'invalid',
  },
  'GET /v1/api-keys': { needs: anyOf('list') },
  'GET /v1/api-keys/:apiKeyId': { needs: anyOf('read') },
  'GET /v1/admin/users': { needs: ['organisation_users.list'] },
  'GET /v1/admin/users/:userId': { needs: ['organisation_users.read'] },
  'PUT /v1/admin/users/:userId': {
    needs: ['organisation_users.update'],
    body: { first_name: 'x' },
    audits: 'organisation_users.update',
    ofOrganisation: true,
  },
  'DELETE /v1/admin/users/:userId': {
    needs: ['organisation_users.delete'],
    audits: 'organisation_users.delete',
    ofOrganisation: true,
  },
  'POST /v1/admin/users/invites': {
    needs: ['organisation_users.create'],
    body: { email: '$unique@example.com', role: 'member' },
    audits: 'organisation_users.invite',
    ofOrganisation: true,
  },
  'GET /v1/admin/users/invites': { needs: ['organisation_users.list'] },
  'GET /v1/admin/users/invites/:inviteId': { needs: ['organisation_users.read'] },
  'DELETE /v1/admin/users/invites/:inviteId': {
    needs: ['organisation_users.delete'],
    audits: 'organisation_users.delete',
    ofOrganisation: true,
  },
  'POST /v1/admin/users/invites/:inviteId/resend': {
    needs: ['organisation_users.create'],
    audits: 'organisation_users.resend',
    ofOrganisation: true,
  },
  'POST /v1/admin/workspaces': { needs: ['workspaces.create'], body: { name: 'w' }, audits: 'workspaces.create' },
  'GET /v1/admin/workspaces': { needs: ['workspaces.list'] },
  'GET /v1/admin/workspaces/:workspaceId': { needs: ['workspaces.read'] },
  'PUT /v1/admin/workspaces/:workspaceId': {
    needs: ['workspaces.update'],
    body: { name: 'v' },
    audits: 'workspaces.update',
    optIn: true,
  },
  'DELETE /v1/admin/workspaces/:workspaceId': { needs: ['workspaces.delete'], audits: 'workspaces.delete' },
  'POST /v1/admin/workspaces/:workspaceId/users': {
    needs: ['workspace_users.create'],
    body: { user_id: '$person', role: 'member' },
    audits: 'workspace_users.create',
    optIn: true,
  },
  'GET /v1/admin/workspaces/:workspaceId/users': { needs: ['workspace_users.list'] },
  'GET /v1/admin/workspaces/:workspaceId/users/:userId': { needs: ['workspace_users.read'] },
  'PUT /v1/admin/workspaces/:workspaceId/users/:userId': {
    needs: ['workspace_users.update'],
    body: { role: 'manager' },
    audits: 'workspace_users.update',
    optIn: true,
  },
  'DELETE /v1/admin/workspaces/:workspaceId/users/:userId': {
    needs: ['workspace_users.delete'],
    audits: 'workspace_users.delete',
    optIn: true,
  },
  'GET /v1/admin/organisation/defaults': { needs: ['organisation_settings.read'] },
  'PUT /v1/admin/organisation/defaults': {
    needs: ['organisation_settings.update'],
    body: { input_guardrails: [] },
    audits: 'organisation_settings.update',
    ofOrganisation: true,
  },
  'GET /v1/admin/organisation/settings': { needs: ['organisation_settings.read'] },
  'PUT /v1/admin/organisation/settings': {
    needs: ['organisation_settings.update'],
    body: { debug_log: 1 },
    audits: 'organisation_settings.update',
    ofOrganisation: true,
  },
  'GET /v1/workspace-exclusions/input-guardrails': { needs: ['organisation_exclusions.list'] },
  'PUT /v1/workspace-exclusions/input-guardrails': {
    needs: ['organisation_exclusions.update'],
    body: { workspaces: [] },
    audits: 'organisation_exclusions.update',
    ofOrganisation: true,
  },
  'GET /v1/workspace-exclusions/output-guardrails': { needs: ['organisation_exclusions.list'] },
  'PUT /v1/workspace-exclusions/output-guardrails': {
    needs: ['organisation_exclusions.update'],
    body: { workspaces: [] },
    audits: 'organisation_exclusions.update',
    ofOrganisation: true,
  },
  'POST /v1/secret-references': {
    needs: ['secret_references.create'],
    body: SECRET_REFERENCE,
    audits: 'secret_references.create',
    ofOrganisation: true,
  },
  'GET /v1/secret-references': { needs: ['secret_references.list'] },
  'GET /v1/secret-references/:secretReferenceId': { needs: ['secret_references.read'] },
  'PUT /v1/secret-references/:secretReferenceId': {
    needs: ['secret_references.update'],
    body: { description: 'd' },
    audits: 'secret_references.update',
    ofOrganisation: true,
  },
  'DELETE /v1/secret-references/:secretReferenceId': {
    needs: ['secret_references.delete'],
    audits: 'secret_references.delete',
    ofOrganisation: true,
  },
  'POST /v1/secret-references/test': {
    needs: ['secret_references.test'],
    body: SECRET_REFERENCE,
    audits: 'secret_references.test',
    ofOrganisation: true,
    ofNothing: true,
  },
  'POST /v1/secret-references/:secretReferenceId/test': {
    needs: ['secret_references.test'],
    body: {},
    audits: 'secret_references.test',
    ofOrganisation: true,
  },
  'GET /v1/secret-references/:secretReferenceId/health': { needs: ['secret_references.read'] },
  'POST /v1/secret-references/:secretReferenceId/resolve': {
    needs: ['secret_references.read'],
    body: { workspace_id: null },
    alwaysRefused: 'forbidden',
  },
  'PUT /v1/api-keys/:apiKeyId': {
    needs: anyOf('update'),
    body: { description: 'd' },
    audits: 'workspace_service_api_keys.update',
  },
  'POST /v1/api-keys/:apiKeyId/rotate': {
    needs: [...anyOf('rotate'), ...anyOf('update')],
    audits: 'workspace_service_api_keys.rotate',
    mints: 'prompts.read',
  },
  'DELETE /v1/api-keys/:apiKeyId': { needs: anyOf('delete'), audits: 'workspace_service_api_keys.delete' },
}

const rows = Object.entries(GUARDED).map(([route, row]) => {
  const [method = '', path = ''] = route.split(' ')
  return { route, method, path, ...row }
})
type Guarded = (typeof rows)[number]
const withIds = rows.filter(({ path }) => path.includes(':'))
const changes = rows.filter(({ audits }) => audits !== undefined)

describe('every route', () => {
  let tenant: Tenant
  let elsewhere: Tenant
  let stranger: Tenant
  const setUp = async ({ gatehouse, made }: World) => {
    const {
      organisation_id: organisationId,
      user_id: userId,
      workspace_id: workspaceId,
      collection_id: collectionId,
    } = made
    tenant = { organisationId, userId, workspaceId, collectionId }
    elsewhere = { organisationId, userId, ...(await addWorkspace(gatehouse, organisationId)) }
    stranger = await addOrganisation(gatehouse)
  }
  const world = useWorld('sqlite', setUp, '', { managers: everyManager(createFakeManager()) })
  const adminKey = (scopes: readonly Permission[]) => addKey(world().gatehouse, tenant, 'organisation-service', scopes)

  test('is in one of the two lists above', () => {
    const served = createApp(world().gatehouse, { checkAnswers: false }).routes
    expect(served.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(
      [...PUBLIC, ...PROVED_BY_BODY, ...Object.keys(GUARDED)].sort(),
    )
  })

  test('declares the permissions of the list, and only public ones declare none', () => {
    const served = createApp(world().gatehouse, { checkAnswers: false }).routes
    const declared = served.map(({ method, path, hooks }) => [`${method} ${path}`, hooks.detail?.['x-permissions']])
    const listed = [
      ...[...PUBLIC, ...PROVED_BY_BODY].map((route) => [route, undefined]),
      ...rows.map(({ route, needs }) => [route, needs]),
    ]
    expect(Object.fromEntries(declared)).toEqual(Object.fromEntries(listed))
  })

  test.each(PUBLIC)('is public and answers without a key: %s', async (route) => {
    const [method = '', path = ''] = route.split(' ')
    expect((await world().call(method, path, undefined, { key: null })).status).toBe(200)
  })

  test.each(rows)('learns nobody about its body without a key: $route', async (row) => {
    const { call } = world()
    const [path] = await fillPath(world(), row)
    for (const body of BAD_BODIES) expectProblem(await call(row.method, path, body, { key: null }), 'unauthenticated')
  })

  test.each(rows)('refuses a key without its scope before it looks at the body or the id: $route', async (row) => {
    const { call, gatehouse } = world()
    const key = await adminKey(PERMISSIONS.filter((scope) => !row.needs.includes(scope)))
    const [path] = await fillPath(world(), row)
    const before = await auditCount({ gatehouse })
    for (const each of [path, row.path.replace(/:\w+/g, 'nowhere')]) {
      for (const body of BAD_BODIES) {
        const answer = await call(row.method, each, body, { key })
        expectProblem(answer, 'forbidden')
        expect(answer.body.message).toContain(row.needs.join(' or '))
      }
    }
    expect(await auditCount({ gatehouse })).toBe(before)
  })

  test.each(rows)('needs no more than the scope it declares: $route', async (row) => {
    const { call } = world()
    const [path, body] = await fillPath(world(), row)
    const needed =
      row.path.includes(':apiKeyId') && row.audits ? [row.audits as Permission] : row.needs.slice(0, row.audits ? 1 : 3)
    const key = await adminKey([...needed, ...(row.mints ? [row.mints] : [])])
    const answer = await call(row.method, path, body, { key })
    if (row.alwaysRefused) expectProblem(answer, row.alwaysRefused)
    else expect(answer.status, answer.text).toBe(200)
  })

  describe.each([
    ['another workspace', 'workspace-service', () => addKey(world().gatehouse, elsewhere, 'workspace-service')],
    ['another organisation', 'organisation-service', () => addKey(world().gatehouse, stranger, 'organisation-service')],
  ] as const)('for a key of %s', (_, type, newKey) => {
    let key: string
    beforeAll(async () => {
      key = await newKey()
    })

    // What no key of the type may do is refused before anything is looked up.
    const mayReach = ({ needs, optIn, alwaysRefused }: Guarded) =>
      alwaysRefused !== 'forbidden' &&
      needs.some((scope) => GRANTABLE[type].has(scope)) &&
      !(optIn && type === 'workspace-service')
    const reachable = withIds.filter(mayReach)

    test.each(reachable)('knows nothing: $route', async (row) => {
      const { call, gatehouse } = world()
      const [path, body] = await fillPath(world(), row)
      const before = await auditCount({ gatehouse })
      const foreign = await call(row.method, path, body, { key })
      const missing = await call(
        row.method,
        row.path.replace(/:\w+/g, () => Bun.randomUUIDv7()),
        body,
        { key },
      )
      expectProblem(foreign, 'not_found')
      expect(withoutRequestId(foreign.text)).toBe(withoutRequestId(missing.text))
      expect(await auditCount({ gatehouse })).toBe(before)
      expect(
        (
          await call(
            'GET',
            path
              .replace(/\/(?:makeDefault|render|resend|rotate|test|health)$/, '')
              .replace(/^\/prompts/, '/v1/prompts'),
          )
        ).status,
      ).toBe(200)
    })
  })

  /** In which workspace a change happened. */
  function workspaceOf(row: Guarded, path: string, answer: { id: string }): string | null {
    if (row.ofOrganisation || row.route.includes('/organisation/service')) return null
    if (path === '/v1/admin/workspaces') return answer.id
    return /^\/v1\/admin\/workspaces\/([^/]+)/.exec(path)?.[1] ?? tenant.workspaceId
  }

  test.each(changes)('leaves one audit row that says who did what: $route', async (row) => {
    const { call, gatehouse } = world()
    const [path, body] = await fillPath(world(), row)
    const key = await addKey(gatehouse, tenant, 'organisation-service')
    const keyId = gatehouse.keys.find(gatehouse.digestKey(key), Date.now())?.keyId
    const before = await auditCount({ gatehouse })
    const answer = await call(row.method, path, body, { key })
    const [event] = await auditTrail(gatehouse.read)
    expect(await auditCount({ gatehouse })).toBe(before + 1)
    expect(event && doneBy(event)).toBe(row.audits)
    expect(event).toMatchObject({
      user_type: 'api_key',
      organisation_id: tenant.organisationId,
      workspace_id: workspaceOf(row, path, answer.body),
      user_id: keyId,
      accountable_user_id: tenant.userId,
      request_id: answer.headers.get('x-request-id'),
      method: row.method,
      uri: path,
      response_status_code: 200,
    })
    if (row.ofNothing) expect(event?.resource_id).toBeNull()
    else expect(event?.resource_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(event?.resource_name).toBeString()
  })

  test.each(changes.filter(({ method }) => method === 'POST'))(
    'is done once under one Idempotency-Key, also at the same time, and answers the same again: $route',
    async (row) => {
      const { call, gatehouse } = world()
      const [path, body] = await fillPath(world(), row)
      const key = await addKey(gatehouse, tenant, 'organisation-service')
      const before = await auditCount({ gatehouse })
      const send = () => call(row.method, path, body, { key, headers: { 'idempotency-key': 'k' } })
      const answers = [...(await Promise.all([send(), send()])), await send()]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(answers.map(({ headers }) => headers.get('idempotent-replayed')).sort()).toEqual([null, 'true', 'true'])
      const trail = (await auditTrail(gatehouse.read)).slice(0, 3)
      const [resource] = row.audits?.split(/\.(?=[a-z_]+$)/) ?? []
      expect(trail.map(doneBy)).toEqual([`${resource}.replay`, `${resource}.replay`, row.audits ?? ''])
      expect(new Set(trail.map(({ resource_id }) => resource_id)).size).toBe(1)
      expect(await auditCount({ gatehouse })).toBe(before + 3)
    },
  )

  test.each(changes)('changes nothing for a key that another node revoked a moment ago: $route', async (row) => {
    const { call, gatehouse } = world()
    const [path, body] = await fillPath(world(), row)
    const key = await addKey(gatehouse, tenant, 'organisation-service')
    await revokeUnnoticed(gatehouse, key)
    const before = await auditCount({ gatehouse })
    expectProblem(await call(row.method, path, body, { key }), 'unauthenticated')
    expect(await auditCount({ gatehouse })).toBe(before)
  })
})

/** Not JSON, of the wrong shape, too large: none of it may be noticed before 401 and 403. */
const BAD_BODIES = ['{', '[]', JSON.stringify({ name: 'x'.repeat(5_000_000) })]

const withoutRequestId = (text: string): string => text.replace(/"request_id":"[a-z]{20}"/, '')

/** The route's path and body with ids of fresh things, so that rows do not depend on each other. */
async function fillPath(
  { call, newKey, made, gatehouse }: World,
  { path, body }: Guarded,
): Promise<[path: string, body?: object]> {
  const make = async (at: string, sent: object): Promise<string> => (await call('POST', at, sent)).body.id
  const fresh: Record<string, () => Promise<string>> = {
    promptId: () => make('/v1/prompts', prompt),
    partialId: () => make('/v1/prompts/partials', { name: 'p', string: 'x' }),
    collectionId: () => make('/v1/collections', { name: 'c' }),
    userId: async () => {
      const person = await addPerson(gatehouse, made.organisation_id, 'member')
      if (path.includes(':workspaceId'))
        await call('POST', filled.replace('/:userId', ''), { user_id: person, role: 'member' })
      return person
    },
    workspaceId: () => make('/v1/admin/workspaces', { name: 'w' }),
    inviteId: () => make('/v1/admin/users/invites', { email: `${Bun.randomUUIDv7()}@example.com`, role: 'member' }),
    labelId: () => make('/v1/labels', { name: `l-${Bun.randomUUIDv7()}` }),
    secretReferenceId: () => make('/v1/secret-references', SECRET_REFERENCE),
    apiKeyId: async () => (await newKey('workspace/service', ['prompts.read'], { workspace_id: made.workspace_id })).id,
  }
  let filled = path
  for (const [, name = ''] of path.matchAll(/:(\w+)/g)) {
    const promptId = /prompts\/([^/:]+)/.exec(filled)?.[1]
    const id =
      name === 'versionId'
        ? (await call('GET', `/v1/prompts/${promptId}`)).body.prompt_version_id
        : await fresh[name]?.()
    filled = filled.replace(`:${name}`, id)
  }
  const sent = JSON.stringify(body ?? null)
    .replace('$workspace', made.workspace_id)
    .replace('$unique', Bun.randomUUIDv7())
    .replace('$person', await addPerson(gatehouse, made.organisation_id, 'member'))
  return [filled, JSON.parse(sent) ?? undefined]
}
