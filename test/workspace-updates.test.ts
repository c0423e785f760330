import { describe, expect, test } from 'bun:test'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, defaultTenant } from './support/tenants.ts'

describe.each(DIALECTS)('updates of workspaces: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys, call }) => {
    const make = async (body: object) => (await call('POST', '/v1/admin/workspaces', body)).body.id
    const limit = { type: 'requests', unit: 'rpm', value: 60 }
    names['core'] = await make({ name: 'core', defaults: { metadata: { env: 'dev' } } })
    names['limited'] = await make({ name: 'limited', rate_limits: [limit] })
    names['member'] = await addPerson(gatehouse, made.organisation_id, 'member')
    keys['service'] = await addKey(gatehouse, defaultTenant(made), 'workspace-service')
    keys['owner'] = await addKey(gatehouse, defaultTenant(made), 'workspace-user')
    keys['other'] = (await addOrganisation(gatehouse)).adminKey
  })

  scenarios('PUT /v1/admin/workspaces/$core', world, [
    {
      name: 'what is not sent stays',
      body: { description: 'the core', workspace_id: '$core' },
      expect: 200,
      answer: { id: '$core', name: 'core', description: 'the core', defaults: { metadata: { env: 'dev' } } },
    },
    {
      name: 'a client that sends null for limits it does not know of changes nothing',
      body: { name: 'core', icon: '', usage_limits: null, rate_limits: null },
      expect: 200,
      answer: { name: 'core', icon: null, usage_limits: null, rate_limits: null, description: 'the core' },
    },
    { name: 'null clears a description', body: { description: null }, expect: 200, answer: { description: null } },
    { name: 'null keeps a name', body: { name: null }, expect: 200, answer: { name: 'core' } },
    { name: 'an icon', body: { icon: '🌰' }, expect: 200, answer: { name: '🌰 core', icon: '🌰' } },
    {
      name: 'is not displayed twice when the name is sent back as it reads',
      body: { name: '🌰 core', icon: '🌰' },
      expect: 200,
      answer: { name: '🌰 core', icon: '🌰' },
    },
    { name: 'stays with another name', body: { name: 'kern' }, expect: 200, answer: { name: '🌰 kern', icon: '🌰' } },
    {
      name: 'an empty one clears it',
      body: { name: 'core', icon: '' },
      expect: 200,
      answer: { name: 'core', icon: null },
    },
    {
      name: 'defaults are merged by key',
      body: { defaults: { input_guardrails: [], user_api_key_config: null } },
      expect: 200,
      answer: { defaults: { metadata: { env: 'dev' } } },
    },
    {
      name: 'metadata is one value',
      body: { defaults: { metadata: { team: 'a' }, is_default: false } },
      expect: 200,
      mentions: '"metadata":{"team":"a"}',
    },
    { name: 'null clears it', body: { defaults: { metadata: null } }, expect: 200, notMentions: 'metadata' },
    {
      name: 'no guardrail exists yet',
      body: { defaults: { output_guardrails: ['pg-x'] } },
      expect: 'invalid',
      mentions: '"param":"defaults.output_guardrails[0]"',
    },
    {
      name: 'nor a config',
      body: { defaults: { user_api_key_config: 'pc-x' } },
      expect: 'invalid',
      mentions: '"param":"defaults.user_api_key_config"',
    },
    {
      name: 'limits are set',
      body: {
        usage_limits: [{ type: 'tokens', credit_limit: 100 }],
        rate_limits: [{ type: 'tokens', unit: 'rpd', value: 0 }],
      },
      expect: 200,
      answer: { usage_limits: [{ type: 'tokens', credit_limit: 100, next_usage_reset_at: null }] },
    },
    {
      name: 'and kept',
      body: { description: 'x' },
      expect: 200,
      answer: { usage_limits: [{ credit_limit: 100 }], rate_limits: [{ value: 0 }] },
    },
    {
      name: 'an empty list clears them',
      body: { usage_limits: [], rate_limits: [] },
      expect: 200,
      answer: { usage_limits: null, rate_limits: null },
    },
    {
      name: 'settings of its own',
      body: { settings: { user_api_key_ttl: 60, user_api_key_count: 2, debug_log: true } },
      expect: 200,
    },
    {
      name: 'one by one',
      body: { settings: { user_api_key_ttl: null } },
      expect: 200,
    },
    {
      name: 'read back',
      call: 'GET /v1/admin/workspaces/$core',
      expect: 200,
      answer: { settings: { user_api_key_ttl: null, user_api_key_count: 2, debug_log: 1 } },
    },
    {
      name: 'no key is born older than it may get',
      body: { settings: { user_api_key_ttl: 61, user_api_key_max_ttl: 60 } },
      expect: 'invalid',
      mentions: '"param":"settings.user_api_key_ttl"',
    },
    {
      name: 'security settings of its own, one by one',
      body: { security_settings: { membersViewLogs: false, membersViewAnalytics: false } },
      expect: 200,
      answer: { security_settings: { membersViewLogs: false, membersViewAnalytics: false } },
    },
    {
      name: 'the others stay',
      body: { security_settings: { membersViewLogs: true } },
      expect: 200,
      answer: { security_settings: { membersViewLogs: true, membersViewAnalytics: false } },
    },
    {
      name: 'null hands one back',
      body: { security_settings: { membersViewAnalytics: null, managersViewLogs: null } },
      expect: 200,
      mentions: '"security_settings":{"membersViewLogs":true}',
    },
    {
      name: 'null hands them back',
      body: { security_settings: null, settings: null },
      expect: 200,
      mentions: '"security_settings":{}',
    },
    { name: 'a setting is a known one', body: { security_settings: { membersRule: true } }, expect: 'invalid' },
    { name: 'an update of nothing', body: {}, expect: 'invalid' },
    { name: 'the slug stays', body: { slug: 'mine' }, expect: 'invalid', mentions: '"param":"slug"' },
    {
      name: 'nobody archives by an update',
      body: { status: 'archived' },
      expect: 'invalid',
      mentions: '"param":"status"',
    },
    {
      name: 'members have their own path',
      body: { users: ['$member'] },
      expect: 'invalid',
      mentions: '"param":"users"',
    },
    {
      name: 'the default workspace stays the default',
      call: 'PUT /v1/admin/workspaces/$workspace_id',
      body: { defaults: { is_default: 0 } },
      expect: 'invalid',
    },
    {
      name: 'the body names the workspace of the path',
      body: { name: 'x', workspace_id: '$limited' },
      expect: 'invalid',
    },
    { name: 'another organisation finds nothing', as: 'other', body: { name: 'x' }, expect: 'not_found' },
  ])

  scenarios('PUT /v1/admin/workspaces/$workspace_id', world, [
    {
      name: 'no workspace key changes its workspace (spec 5.4)',
      as: 'service',
      body: { name: 'x' },
      expect: 'forbidden',
    },
    { name: 'not even the one of the owner', as: 'owner', body: { name: 'x' }, expect: 'forbidden' },
    { name: 'unless a setting says so', body: { security_settings: { managersUpdateWs: true } }, expect: 200 },
    { name: 'then it may', as: 'service', body: { description: 'by its key' }, expect: 200 },
    {
      name: 'but not the settings that bind it',
      as: 'service',
      body: { security_settings: { managersWriteWsUsers: true } },
      expect: 'forbidden',
    },
    { name: 'nor those of keys', as: 'service', body: { settings: { user_api_key_count: 0 } }, expect: 'forbidden' },
    {
      name: 'nor another workspace',
      as: 'service',
      call: 'PUT /v1/admin/workspaces/$core',
      body: { name: 'x' },
      expect: 'not_found',
    },
    { name: 'until the setting is taken back', body: { security_settings: { managersUpdateWs: null } }, expect: 200 },
    { name: 'at once', as: 'service', body: { description: 'x' }, expect: 'forbidden' },
  ])

  test('the audit trail says what an update changed, from what to what', async () => {
    const { call, gatehouse, names } = world()
    await call('PUT', `/v1/admin/workspaces/${names['limited']}`, { name: 'less', rate_limits: null })
    const [event] = await auditTrail(gatehouse.read)
    expect(event && doneBy(event)).toBe('workspaces.update')
    expect(event).toMatchObject({
      workspace_id: names['limited'],
      resource_id: names['limited'],
      resource_name: 'limited',
      details: {
        before: { name: 'limited', rateLimits: [{ type: 'requests', unit: 'rpm', value: 60 }] },
        after: { name: 'less', rateLimits: null },
      },
    })
  })

  test('an interval that is sent again and again does not put its reset off', async () => {
    const { call, names } = world()
    const path = `/v1/admin/workspaces/${names['limited']}`
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const send = async (limits: object) =>
      (await call('PUT', path, { usage_limits: [limits] })).body.usage_limits[0].next_usage_reset_at
    await send({ credit_limit: 5, periodic_reset_days: 30, next_usage_reset_at: soon })
    expect(await send({ credit_limit: 6, periodic_reset_days: 30 })).toBe(soon)
    expect(Date.parse(await send({ credit_limit: 6, periodic_reset_days: 29 }))).toBeGreaterThan(
      Date.now() + 27 * 86_400_000,
    )
  })

  test('updates at the same time all count', async () => {
    const { call, names } = world()
    const path = `/v1/admin/workspaces/${names['limited']}`
    const flags = ['membersViewLogs', 'membersViewConfigs', 'membersViewPrompts', 'membersViewGuardrails']
    await Promise.all(flags.map((flag) => call('PUT', path, { security_settings: { [flag]: false } })))
    const expected = Object.fromEntries(flags.map((flag) => [flag, false]))
    expect((await call('GET', path)).body.security_settings).toEqual(expected)
  })
})
