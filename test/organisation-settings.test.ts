import { describe, expect, test } from 'bun:test'
import { type KeySettings, keySettings } from '../src/organisation/settings.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, defaultTenant } from './support/tenants.ts'

const settings = '/v1/admin/organisation/settings'

describe.each(DIALECTS)('organisation settings: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, keys, names }) => {
    const other = await addOrganisation(gatehouse)
    keys['service'] = await addKey(gatehouse, defaultTenant(made), 'workspace-service')
    keys['other'] = other.adminKey
    names['other_organisation'] = other.organisationId
  })

  scenarios(`GET ${settings}`, world, [
    {
      name: 'nothing is bounded, and members have nothing to do with keys, until somebody says so',
      expect: 200,
      answer: {
        user_api_key_ttl: 0,
        user_api_key_max_ttl: 0,
        user_api_key_count: 0,
        user_api_key_rotation_period: null,
        user_api_key_auto_create: false,
        default_workspace_user_api_key_auto_create: false,
        api_key_metadata_schema: null,
        workspace_metadata_schema: null,
        debug_log: 0,
        export_settings: { deniedFields: [] },
        security_settings: {
          membersWritePrompts: true,
          membersWriteConfigs: true,
          membersViewApiKeys: false,
          membersWriteApiKeys: false,
          managersWriteApiKeys: true,
          managersUpdateWs: false,
          managersWriteWsUsers: false,
        },
        object: 'organisation-settings',
      },
    },
    { name: 'for no workspace key (spec 5.4)', as: 'service', expect: 'forbidden' },
    {
      name: 'of another organisation',
      call: `GET ${settings}?organisation_id=$other_organisation`,
      expect: 'forbidden',
    },
    { name: 'of another one, as others spell it', call: `GET ${settings}?organization_id=x`, expect: 'forbidden' },
    { name: 'of its own, named', call: `GET ${settings}?organisation_id=$organisation_id`, expect: 200 },
  ])

  scenarios(`PUT ${settings}`, world, [
    {
      name: 'what is not sent stays',
      body: { user_api_key_ttl: 60, user_api_key_rotation_period: 'weekly', debug_log: true },
      expect: 200,
      answer: { user_api_key_ttl: 60, user_api_key_rotation_period: 'weekly', debug_log: 1, user_api_key_count: 0 },
    },
    {
      name: 'of the next update too',
      body: { user_api_key_count: 3 },
      expect: 200,
      answer: { user_api_key_ttl: 60, user_api_key_count: 3 },
    },
    {
      name: 'it is read at once',
      call: `GET ${settings}`,
      expect: 200,
      answer: { user_api_key_ttl: 60, user_api_key_count: 3 },
    },
    {
      name: 'the other organisation has its own',
      as: 'other',
      call: `GET ${settings}`,
      expect: 200,
      answer: { user_api_key_ttl: 0 },
    },
    {
      name: 'null sets one back',
      body: { user_api_key_rotation_period: null, debug_log: null },
      expect: 200,
      answer: { user_api_key_rotation_period: null, debug_log: 0 },
    },
    {
      name: 'security settings are merged',
      body: { security_settings: { membersViewLogs: false } },
      expect: 200,
      answer: { security_settings: { membersViewLogs: false, membersViewPrompts: true } },
    },
    {
      name: 'one by one',
      body: { security_settings: { membersViewPrompts: false } },
      expect: 200,
      answer: { security_settings: { membersViewLogs: false, membersViewPrompts: false } },
    },
    {
      name: 'null sets one back to its default',
      body: { security_settings: { membersViewPrompts: null } },
      expect: 200,
      answer: { security_settings: { membersViewLogs: false, membersViewPrompts: true } },
    },
    {
      name: 'and set back as one',
      body: { security_settings: null },
      expect: 200,
      answer: { security_settings: { membersViewLogs: true, membersViewPrompts: true } },
    },
    {
      name: 'no key is born older than it may get',
      body: { user_api_key_max_ttl: 59 },
      expect: 'invalid',
      mentions: '"param":"user_api_key_ttl"',
    },
    { name: 'an update of nothing', body: {}, expect: 'invalid' },
    {
      name: 'a life is not negative',
      body: { user_api_key_ttl: -1 },
      expect: 'invalid',
      mentions: '"param":"user_api_key_ttl"',
    },
    { name: 'nor half a second', body: { user_api_key_ttl: 0.5 }, expect: 'invalid' },
    { name: 'nor beyond all bounds', body: { user_api_key_ttl: 1e15 }, expect: 'invalid' },
    {
      name: 'a setting is a known one',
      body: { security_settings: { membersViewLog: false } },
      expect: 'invalid',
      mentions: 'membersViewLogs',
    },
    ...['object', 'id', 'organisation_id', 'name'].map((field) => ({
      name: `${field} is no setting`,
      body: { [field]: 'x' },
      expect: 'invalid' as const,
      mentions: `"param":"${field}"`,
    })),
    { name: 'for no workspace key', as: 'service', body: { debug_log: 1 }, expect: 'forbidden' },
  ])

  scenarios(`PUT ${settings}`, world, [
    {
      name: 'a schema for the metadata of workspaces',
      body: {
        workspace_metadata_schema: {
          type: 'object',
          properties: { env: { type: 'string', enum: ['dev', 'prod'] }, team: { minLength: 2, maxLength: 3 } },
          required: ['env'],
          additionalProperties: false,
        },
      },
      expect: 200,
    },
    {
      name: 'takes what it allows',
      call: 'POST /v1/admin/workspaces',
      body: { name: 'x', defaults: { metadata: { env: 'dev', team: 'ab' } } },
      expect: 200,
      keep: { ws: 'id' },
    },
    {
      name: 'names all that it does not',
      call: 'POST /v1/admin/workspaces',
      body: { name: 'x', defaults: { metadata: { env: 'test', team: 'a', other: 'x' } } },
      expect: 'invalid',
      mentions: [
        '"path":"defaults.metadata.env"',
        '"path":"defaults.metadata.team"',
        '"path":"defaults.metadata.other"',
      ],
    },
    {
      name: 'misses what it requires',
      call: 'POST /v1/admin/workspaces',
      body: { name: 'x' },
      expect: 'invalid',
      mentions: '"param":"defaults.metadata.env"',
    },
    {
      name: 'lets other updates be',
      call: 'PUT /v1/admin/workspaces/$workspace_id',
      body: { description: 'x' },
      expect: 200,
    },
    {
      name: 'binds updates of metadata',
      call: 'PUT /v1/admin/workspaces/$ws',
      body: { defaults: { metadata: null } },
      expect: 'invalid',
    },
    {
      name: 'a keyword that would be ignored is refused',
      body: { workspace_metadata_schema: { patternProperties: {} } },
      expect: 'invalid',
      mentions: '"param":"workspace_metadata_schema.patternProperties"',
    },
    { name: 'null ends it', body: { workspace_metadata_schema: null }, expect: 200 },
    { name: 'at once', call: 'POST /v1/admin/workspaces', body: { name: 'x' }, expect: 200 },
  ])

  test('a security setting binds the keys of all workspaces from the next request on, unless one overrides it', async () => {
    const { call, gatehouse, made } = world()
    const userId = await addPerson(gatehouse, made.organisation_id, 'member')
    const other = (await call('POST', '/v1/admin/workspaces', { name: 'open', users: [userId] })).body.id
    await call('POST', `/v1/admin/workspaces/${made.workspace_id}/users`, { user_id: userId, role: 'member' })
    const tenant = { ...defaultTenant(made), userId }
    const keys = [
      await addKey(gatehouse, tenant, 'workspace-user'),
      await addKey(gatehouse, { ...tenant, workspaceId: other }, 'workspace-user'),
    ]
    const statuses = () =>
      Promise.all(keys.map(async (key) => (await call('GET', '/v1/prompts', undefined, { key })).status))
    expect(await statuses()).toEqual([200, 200])
    await call('PUT', `/v1/admin/workspaces/${other}`, { security_settings: { membersViewPrompts: true } })
    await call('PUT', settings, { security_settings: { membersViewPrompts: false } })
    expect(await statuses()).toEqual([403, 200])
    await call('PUT', settings, { security_settings: null })
    expect(await statuses()).toEqual([200, 200])
  })

  test('the settings of keys are those of the organisation, overridden by those of the workspace', async () => {
    const { call, gatehouse, made } = world()
    const of = (workspaceId: string) => keySettings(gatehouse.read, made.organisation_id, workspaceId)
    const own = (await call('POST', '/v1/admin/workspaces', { name: 'own' })).body.id
    await call('PUT', settings, {
      user_api_key_ttl: 60,
      user_api_key_max_ttl: 600,
      user_api_key_count: 2,
      user_api_key_rotation_period: 'monthly',
      default_workspace_user_api_key_auto_create: true,
    })
    const general: KeySettings = {
      ttlSeconds: 60,
      maxTtlSeconds: 600,
      maxCount: 2,
      rotationPeriod: 'monthly',
      autoCreate: true,
      metadataSchema: null,
    }
    expect(await of(made.workspace_id)).toEqual(general)
    await call('PUT', `/v1/admin/workspaces/${own}`, { settings: { user_api_key_max_ttl: 120, user_api_key_count: 0 } })
    expect(await of(own)).toEqual({ ...general, maxTtlSeconds: 120, maxCount: null, autoCreate: false })
  })

  test('the audit trail says what was changed, from what to what', async () => {
    const { call, gatehouse, made } = world()
    await call('PUT', settings, { user_api_key_count: 7 })
    const [event] = await auditTrail(gatehouse.read)
    expect(event && doneBy(event)).toBe('organisation_settings.update')
    expect(event).toMatchObject({
      workspace_id: null,
      resource_id: made.organisation_id,
      resource_name: 'Test',
      details: { before: { user_api_key_count: 2 }, after: { user_api_key_count: 7 } },
    })
  })

  test('updates at the same time all count', async () => {
    const { call } = world()
    await call('PUT', settings, { user_api_key_ttl: 1 })
    const sent = { user_api_key_max_ttl: 9, user_api_key_count: 4, debug_log: 1 }
    await Promise.all(Object.entries(sent).map(([name, value]) => call('PUT', settings, { [name]: value })))
    expect((await call('GET', settings)).body).toMatchObject(sent)
  })
})
