import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gte } from 'drizzle-orm'
import { newApiKey } from '../src/api-keys/key.ts'
import { createApiKey } from '../src/api-keys/service.ts'
import { type Listening, startServer } from '../src/http/server.ts'
import { dataOf } from './support/data.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, type Scenario, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, addPerson, defaultTenant } from './support/tenants.ts'
import { addThings } from './support/things.ts'

// What somebody hostile, or somebody careless, would try. What is proved elsewhere:
//
// forged and truncated keys                                   http/key, crypto/api-key
// a key in the query string: refused with a hint, not logged  http/key, http/canary
// a key in the URL, percent-encoded                           http/key, audit/mask
// a key of an archived workspace, of a removed person         workspaces, users, members, auth/matrix-http
// a key of a demoted person                                   auth/keys
// an admin key with `update` alone: rotates, widens           api-keys-rotation, api-keys-update
// a manager who names the owner as user_id                    api-keys
// a lesser key that replays its own Idempotency-Key           idempotency
// a used, expired, cancelled, replaced or guessed invite      invites
// duplicate keys, __proto__, 65 levels, endless numbers       http/body
// mass assignment                                             mass-assignment
// dates out of range                                          api-keys-fields, workspaces, audit/list
// 100,000 bad requests in a minute                            audit/refusals; fewer of them, over HTTP, below

describe('keys of other makes', () => {
  const world = useWorld()

  test.each([
    ['a later version', (key: string) => key.replace('gth_', 'gth2_')],
    ['a later version of the same length', (key: string) => key.replace('gth_a_', 'gt2_a_')],
    ['a letter that there is not', (key: string) => key.replace('gth_a_', 'gth_o_')],
    ['a workspace key of the same digits', (key: string) => key.replace('gth_a_', 'gth_w_')],
    ['a system key of the same digits', (key: string) => key.replace('gth_a_', 'gth_s_')],
    ['the digest of a key', (key: string) => world().gatehouse.digestKey(key)],
    ['a digest as long as a key', (key: string) => world().gatehouse.digestKey(key).padEnd(43, '=')],
    ['a key that is quoted', (key: string) => `"${key}"`],
    ['a bearer', (key: string) => `Bearer ${key}`],
    ['a token', () => 'eyJhbGciOiJub25lIn0.eyJzY29wZSI6IioifQ.'],
  ])('%s is no key, and is told what any other is told', async (_name, forge) => {
    const { call, made } = world()
    const [forged, unknown] = await Promise.all(
      [forge(made.admin_key), newApiKey('a')].map((key) => call('GET', '/v1/prompts', undefined, { key })),
    )
    expectProblem(forged!, 'unauthenticated')
    expect(forged?.body.message).toBe(unknown?.body.message)
  })
})

describe.each(DIALECTS)('an Idempotency-Key of a person: %s', (dialect) => {
  const world = useWorld(dialect)
  const newManager = async () => {
    const { gatehouse, made, call } = world()
    const userId = await addPerson(gatehouse, made.organisation_id, 'member')
    await call('POST', `/v1/admin/workspaces/${made.workspace_id}/users`, { user_id: userId, role: 'manager' })
    return { userId, key: await addKey(gatehouse, { ...defaultTenant(made), userId }, 'workspace-user') }
  }
  const mint = (key: string) => {
    const body = { name: 'k', scopes: ['prompts.read'] }
    return world().call('POST', '/v1/api-keys/workspace/service', body, { key, headers: { 'idempotency-key': 'same' } })
  }

  test('opens nothing for another one of the same rank', async () => {
    const [ann, ben] = [await newManager(), await newManager()]
    const [first, second] = [await mint(ann.key), await mint(ben.key)]
    expect([first.status, second.status]).toEqual([200, 200])
    expect(second.text).not.toContain(first.body.key)
    expect(second.body.id).not.toBe(first.body.id)
  })

  test.each([
    ['after they were demoted', 'PUT', { role: 'member' }, 'forbidden'],
    ['after they left the workspace', 'DELETE', undefined, 'unauthenticated'],
  ] as const)('opens nothing for themselves %s', async (_name, method, body, problem) => {
    const { call, made } = world()
    const { userId, key } = await newManager()
    const first = await mint(key)
    expect((await mint(key)).text).toBe(first.text)
    expect((await call(method, `/v1/admin/workspaces/${made.workspace_id}/users/${userId}`, body)).status).toBe(200)
    const again = await mint(key)
    expectProblem(again, problem)
    expect(again.text).not.toContain('gth_')
  })
})

/** A system key, and how a render with it is answered. */
async function newSystemCaller({ gatehouse, made, call }: World) {
  const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }
  const { id } = (await call('POST', '/v1/prompts', prompt)).body
  const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
  const system = { type: 'system', name: 's', scopes: [], accountableUserId: made.user_id } as const
  const { key } = await createApiKey(gatehouse, cli, system)
  return async (url: string, headers: Record<string, string> = {}): Promise<number> => {
    const body = JSON.stringify({ variables: {} })
    const sent = { 'x-service-api-key': key, 'content-type': 'application/json', ...headers }
    const answer = await fetch(`${url}/v1/prompts/${id}/render`, { method: 'POST', headers: sent, body })
    await answer.body?.cancel()
    return answer.status
  }
}

describe.each([
  ['that trusts no proxy', '', 200],
  ['that trusts a proxy on this machine', 'trusted_proxies = ["127.0.0.1"]\n', 200],
  ['that is behind a proxy, which need not say so', 'behind_proxy = true\n', 401],
])('a system key at a server %s', (_name, config, atOnce) => {
  const world = useWorld('sqlite', undefined, `[server]\nport = 0\n${config}`)
  let server: Listening
  let render: Awaited<ReturnType<typeof newSystemCaller>>
  beforeAll(async () => {
    server = await startServer(world().gatehouse)
    render = await newSystemCaller(world())
  })
  afterAll(() => server.stop())

  test(`from this machine is answered with ${atOnce}`, async () => {
    expect(await render(server.url)).toBe(atOnce)
  })

  test.each([
    ['forwarded', 'for=127.0.0.1'],
    ['via', '1.1 proxy'],
    ['x-forwarded-for', '127.0.0.1'],
    ['x-forwarded-for', '203.0.113.9, 127.0.0.1'],
    ['X-FORWARDED-FOR', '::1'],
    ['x-forwarded-host', 'gate.example'],
    ['x-vercel-forwarded-for', '203.0.113.9'],
    ['client-ip', '203.0.113.9'],
    ['cdn-loop', 'cdn'],
    ['x-forwarded-port', '443'],
    ['x-forwarded-proto', 'https'],
    ['x-real-ip', '127.0.0.1'],
    ['x-client-ip', '127.0.0.1'],
    ['cf-connecting-ip', '127.0.0.1'],
    ['true-client-ip', '127.0.0.1'],
  ])('is refused when it comes through a proxy: %s: %s', async (name, value) => {
    expect(await render(server.url, { [name]: value })).toBe(401)
  })

  test.each(['203.0.113.9', '10.0.0.1', '::ffff:10.0.0.1', '128.0.0.1', null])(
    'is refused from the peer %s',
    async (peer) => {
      const { gatehouse } = world()
      const { peerIp } = gatehouse
      gatehouse.peerIp = () => peer
      const status = await render(server.url)
      gatehouse.peerIp = peerIp
      expect(status).toBe(401)
    },
  )
})

const BIG = ['9007199254740993', '-9007199254740993', '99999999999999999999999', '1e17', '-1', '1.5', '"1"', '[1]']

/** `#` stands for the number. */
const INTEGERS: [call: string, body: string][] = [
  ['PUT /v1/admin/organisation/settings', '{"user_api_key_ttl":#}'],
  ['PUT /v1/admin/organisation/settings', '{"user_api_key_count":#}'],
  ['PUT /v1/admin/organisation/settings', '{"debug_log":#}'],
  ['PUT /v1/admin/workspaces/$workspace_id', '{"settings":{"user_api_key_max_ttl":#}}'],
  ['PUT /v1/admin/workspaces/$workspace_id', '{"rate_limits":[{"type":"requests","unit":"rpm","value":#}]}'],
  ['PUT /v1/admin/workspaces/$workspace_id', '{"usage_limits":[{"credit_limit":5,"periodic_reset_days":#}]}'],
  ['PUT /v1/api-keys/$key', '{"rate_limits":[{"type":"requests","unit":"rps","value":#}]}'],
  ['PUT /v1/api-keys/$key', '{"rotation_policy":{"rotation_period":"weekly","key_transition_period_ms":#}}'],
  ['POST /v1/api-keys/$key/rotate', '{"key_transition_period_ms":#}'],
  ['PUT /v1/secret-references/$reference', '{"cache_seconds":#}'],
  ['PUT /v1/prompts/$prompt/makeDefault', '{"version":#}'],
  ['PUT /v1/prompts/partials/$partial/makeDefault', '{"version":#}'],
]

const LISTS = [
  '/prompts',
  '/prompts/partials',
  '/collections',
  '/labels',
  '/api-keys',
  '/admin/users',
  '/admin/users/invites',
  '/admin/workspaces',
  '/admin/workspaces/$workspace_id/users',
  '/audit-logs',
  '/secret-references',
]
const BAD_PAGES = [
  ...['0', '1001', '-1', '1.5', '1e1', '', '%20', '0x10', 'all', '9007199254740993', '9'.repeat(40), '١'].map(
    (size) => `page_size=${size}`,
  ),
  ...['-1', '1.5', '', 'x', '9'.repeat(40), 'NaN'].map((page) => `current_page=${page}`),
  'page_size=1&page_size=2',
]

const FAR_DATES = ['10000-01-01T00:00:00Z', '+275760-09-13T00:00:00Z', '2999-13-01T00:00:00Z']

describe.each(DIALECTS)('beyond all bounds: %s', (dialect) => {
  const world = useWorld(dialect, addThings)

  test.each(INTEGERS)('%s %s takes no number that is none of its own', async (call, body) => {
    const { names } = world()
    const [method = '', path = ''] = call.replace(/\$(\w+)/, (_, name) => names[name] ?? '').split(' ')
    const before = await dataOf(world().gatehouse)
    for (const number of BIG) {
      // Those are versions, which could be, and are not there.
      const answer = await world().call(method, path, body.replace('#', number))
      const isNoVersion = path.endsWith('/makeDefault') && number === '1e17'
      expectProblem(answer, isNoVersion ? 'not_found' : 'invalid')
    }
    expect(await dataOf(world().gatehouse)).toEqual(before)
  })

  test.each(LISTS)('%s has no pages but those that it has', async (list) => {
    const { call, made } = world()
    const path = `/v1${list.replace('$workspace_id', made.workspace_id)}`
    for (const query of list === '/audit-logs' ? BAD_PAGES.filter((each) => each !== 'page_size=0') : BAD_PAGES)
      expectProblem(await call('GET', `${path}?${query}`), 'invalid')
    const past = await call('GET', `${path}?page_size=100&current_page=999999999`)
    expect(past.body).toMatchObject({ data: [] })
    expect(past.body.total).toBeGreaterThan(0)
  })

  test.each(FAR_DATES)('%s is no time of this world', async (time) => {
    const { call, names } = world()
    const key = `/v1/api-keys/${names['key']}`
    for (const body of [
      { expires_at: time },
      { rotation_policy: { next_rotation_at: time } },
      { usage_limits: { credit_limit: 1, next_usage_reset_at: time } },
    ])
      expectProblem(await call('PUT', key, body), 'invalid')
    for (const name of ['start_time', 'end_time'])
      expectProblem(await call('GET', `/v1/audit-logs?${name}=${encodeURIComponent(time)}`), 'invalid')
  })
})

describe('things of others by their slugs', () => {
  const world = useWorld('sqlite', addThings)
  const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }
  const key = { name: 'k', scopes: ['prompts.read'] }
  const row = (call: string, body: object | undefined, expected: Scenario['expect'], as = 'admin'): Scenario => ({
    name: `${as}: ${call} ${JSON.stringify(body) ?? ''}`,
    ...{ as, call, expect: expected, notMentions: '$far_slug' },
    ...(body && { body }),
  })
  const invited = { email: 'b@example.org', role: 'member', workspaces: [{ id: '$far_slug', role: 'member' }] }
  scenarios('stay out of reach', world, [
    row('GET /v1/admin/workspaces/$far_slug', undefined, 'not_found'),
    row('PUT /v1/admin/workspaces/$far_slug', { name: 'x' }, 'not_found'),
    row('GET /v1/admin/workspaces/$far_slug/users', undefined, 'not_found'),
    row('POST /v1/admin/workspaces/$far_slug/users', { user_id: '$person', role: 'member' }, 'not_found'),
    ...LISTS.slice(0, 5).map((list) => row(`GET /v1${list}?workspace_id=$far_slug`, undefined, 'not_found')),
    ...LISTS.slice(0, 5).map((list) =>
      row(`GET /v1${list}?workspace_id=$next_slug`, undefined, 'forbidden', 'service'),
    ),
    row('GET /v1/audit-logs?workspace_id=$far_slug', undefined, 'not_found'),
    row('POST /v1/prompts', { ...prompt, workspace_id: '$far_slug' }, 'not_found'),
    row('POST /v1/prompts', { ...prompt, workspace_id: '$next_slug' }, 'forbidden', 'service'),
    row('POST /v1/labels', { name: 'm', workspace_id: '$far_slug' }, 'not_found'),
    row('POST /v1/admin/users/invites', invited, 'invalid'),
    row(
      'PUT /v1/workspace-exclusions/input-guardrails',
      { workspaces: [{ workspace_id: '$far_slug', excluded: true }] },
      'invalid',
    ),
    row('PUT /v1/secret-references/$reference', { allowed_workspaces: ['$far_slug'] }, 'invalid'),
    row('GET /v1/admin/workspaces/$next_slug', undefined, 'not_found', 'service'),
    // Spec 5.2: a Workspace Manager creates keys of the managed workspace only.
    ...(['service', 'user'] as const).flatMap((type) => [
      row(`POST /v1/api-keys/workspace/${type}`, { ...key, workspace_id: '$next_slug' }, 'forbidden', 'manager'),
      row(`POST /v1/api-keys/workspace/${type}`, { ...key, workspace_id: '$workspace_slug' }, 200, 'manager'),
    ]),
  ])
})

describe('many bad requests', () => {
  const world = useWorld('sqlite', addThings)

  test('to ever new paths from ever new addresses leave a bounded trail, and all are counted', async () => {
    const { gatehouse, call, keys } = world()
    const { auditEvents: t } = gatehouse.read.tables
    const REQUESTS = 3_000
    const startedAt = Date.now()
    for (let i = 0; i < REQUESTS; i++) {
      gatehouse.peerIp = () => `${i % 251}.${i % 241}.${i % 239}.1`
      const path = [`/v1/admin/users/${i}`, `/v1/nothing/${i}`, `/v1/prompts/${i}?x=${i}`, `/${i}`][i % 4] ?? ''
      await call('GET', path, undefined, { key: [keys['service'], null, `${newApiKey('a')}`][i % 3] ?? null })
    }
    await gatehouse.refusals.flush()
    const minutes = Math.floor(Date.now() / 60_000) - Math.floor(startedAt / 60_000) + 1
    const rows = await gatehouse.read.select({ text: t.text }).from(t).where(gte(t.status, 400))
    expect(rows.length).toBeLessThanOrEqual(121 * minutes)
    const counts = rows.map(({ text }) => JSON.parse(text).details.count as number)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(REQUESTS)
  })
})
