import { describe, expect, test } from 'bun:test'
import { auditTrail } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { type Scenario, scenarios, useWorld } from './support/scenario.ts'
import { addOrganisation } from './support/tenants.ts'

const FULL = {
  name: 'full',
  description: 'd',
  scopes: ['prompts.read', 'prompts.list'],
  rate_limits: [{ type: 'requests', unit: 'rpm', value: 60 }],
  usage_limits: { credit_limit: 100, periodic_reset: 'monthly' },
  defaults: { metadata: { team: 'a' }, allow_config_override: false },
  alert_emails: ['a@example.com'],
  expires_at: '2999-01-01T00:00:00+02:00',
  rotation_policy: { rotation_period: 'monthly' },
}
const rpm = (value: number) => ({ type: 'requests', unit: 'rpm', value })
const LIMITS = {
  rate_limits: [rpm(60)],
  usage_limits: { credit_limit: 100 },
}
const UNSET = {
  description: null,
  rate_limits: null,
  usage_limits: null,
  defaults: null,
  allow_config_override: null,
  alert_emails: null,
  expires_at: null,
  rotation_policy: null,
}

/** The table of file 08: what a field of an update leaves in a key that has all fields, and in one that has none. */
const THREE_STATES: [field: string, sent: unknown, full: unknown, unset: unknown][] = [
  ['name', null, 'full', 'bare'],
  ['name', 'other', 'other', 'other'],
  ['description', null, 'd', null],
  ['description', 'other', 'other', 'other'],
  ['description', '', '', ''],
  ['scopes', null, FULL.scopes, FULL.scopes],
  ['scopes', ['prompts.list'], ['prompts.list'], ['prompts.list']],
  ['rate_limits', null, null, null],
  ['rate_limits', [], [], []],
  ...[[{ type: 'tokens', unit: 'rps', value: 0 }]].map((limits): (typeof THREE_STATES)[number] => [
    'rate_limits',
    limits,
    limits,
    limits,
  ]),
  ['usage_limits', null, null, null],
  ['alert_emails', null, null, null],
  ['alert_emails', ['b@example.com'], ['b@example.com'], ['b@example.com']],
  ['expires_at', null, null, null],
  ['expires_at', '2999-06-01T00:00:00Z', '2999-06-01T00:00:00Z', '2999-06-01T00:00:00Z'],
  ['rotation_policy', null, null, null],
]

describe.each(DIALECTS)('changing an API key: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, names, keys, newKey, made }) => {
    names['foreign_organisation'] = (await addOrganisation(gatehouse)).organisationId
    const update = ['organisation_service_api_keys.update', 'prompts.read']
    const editor = await newKey('organisation/service', update)
    keys['editor'] = editor.key
    names['editor'] = editor.id
    const ending = await newKey('organisation/service', update, { expires_at: '2900-01-01T00:00:00Z' })
    keys['ending'] = ending.key
    names['ending'] = ending.id
    names['strong'] = (await newKey('organisation/service', ['prompts.read', 'prompts.delete'])).id
    names['equal'] = (
      await newKey('organisation/service', ['prompts.read'], {
        rate_limits: [{ type: 'requests', unit: 'rpm', value: 60 }],
        usage_limits: { credit_limit: 100 },
        expires_at: '2950-01-01T00:00:00Z',
      })
    ).id
    const inWorkspace = { workspace_id: made.workspace_id }
    const service = await newKey('workspace/service', ['workspace_service_api_keys.update'], inWorkspace)
    keys['service'] = service.key
    names['service'] = service.id
    const ofServices = [...update, 'workspace_service_api_keys.update']
    for (const [name, scopes, extra] of [
      ['bound', update, LIMITS],
      ['twin', update, LIMITS],
      ['maker', [...update, 'organisation_service_api_keys.create'], LIMITS],
      ['outsider', ofServices, { ...LIMITS, expires_at: '2900-01-01T00:00:00Z' }],
      ['insider', [...ofServices, 'workspace_service_api_keys.create'], LIMITS],
      ['free', update, {}],
    ] as const) {
      const { id, key } = await newKey('organisation/service', [...scopes], extra)
      keys[name] = key
      names[name] = id
    }
    const limited = { ...inWorkspace, ...LIMITS, rate_limits: [rpm(10)], expires_at: '2890-01-01T00:00:00Z' }
    names['limited'] = (await newKey('workspace/service', ['prompts.read'], limited)).id
  })

  const read = async (id: string) => (await world().call('GET', `/v1/api-keys/${id}`)).body

  async function afterUpdate(from: Record<string, unknown>, body: object) {
    const { id } = await world().newKey('organisation/service', FULL.scopes, from)
    const before = await read(id)
    const answer = await world().call('PUT', `/v1/api-keys/${id}`, body)
    expect(answer.body, answer.text).toEqual({})
    return { before, after: await read(id) }
  }

  test.each(THREE_STATES)('%s = %j in a key that has it and in one that has none', async (field, sent, full, unset) => {
    for (const [from, expected] of [
      [FULL, full],
      [{ name: 'bare' }, unset],
    ] as const) {
      const { before, after } = await afterUpdate(from, { [field]: sent })
      expect(after[field]).toEqual(expected)
      const { last_updated_at, next_usage_reset_at, [field]: _, ...rest } = before
      expect(after).toMatchObject(rest)
      expect(after.last_updated_at > last_updated_at).toBe(true)
    }
  })

  test.each(Object.keys(FULL))('without %s it keeps its value', async (field) => {
    const { [field as keyof typeof FULL]: _, ...others } = FULL
    const { before, after } = await afterUpdate(FULL, others)
    expect(after[field]).toEqual(before[field])
  })

  test('a client that sends explicit nulls for all that is unset changes nothing', async () => {
    const { name, allow_config_override: _, ...nulls } = { name: 'bare', ...UNSET }
    const { before, after } = await afterUpdate({ name }, { name, ...nulls })
    expect(after).toEqual({ ...before, last_updated_at: after.last_updated_at })
    expect(after).toMatchObject(UNSET)
  })

  const DEFAULTS: [sent: object, metadata: object | null, override: boolean][] = [
    [{ allow_config_override: true }, { team: 'a' }, true],
    [{ allow_config_override: null }, { team: 'a' }, false],
    [{ config_id: null }, { team: 'a' }, false],
    [{ metadata: { b: 'c' } }, { b: 'c' }, false],
    [{ metadata: {} }, null, false],
    [{ metadata: null }, null, false],
    [{}, { team: 'a' }, false],
  ]
  test.each(DEFAULTS)('defaults %j leave the rest of the defaults alone', async (sent, metadata, override) => {
    const { after } = await afterUpdate(FULL, { defaults: sent })
    expect(after.defaults).toEqual({ metadata, config_id: null, allow_config_override: override })
    expect(after.allow_config_override).toBe(override ? 1 : 0)
  })

  test('what was used counts no more after reset_usage', async () => {
    const { before, after } = await afterUpdate(FULL, { reset_usage: true })
    expect(before.last_reset_at).toBeNull()
    expect(Date.parse(after.last_reset_at)).toBeGreaterThan(Date.now() - 10_000)
    expect(after.reset_usage).toBeNull()
  })

  test('its audit row tells what was before and after, field by field', async () => {
    const { id } = await world().newKey('organisation/service', FULL.scopes, FULL)
    await world().call('PUT', `/v1/api-keys/${id}`, { name: 'new name', rate_limits: null })
    const [row] = await auditTrail(world().gatehouse.read)
    expect(row).toMatchObject({ action: 'update', resource_id: id, resource_name: 'new name' })
    const details = row?.details as { before: object; after: object }
    expect(details.before).toMatchObject({ name: 'full', rate_limits: FULL.rate_limits })
    expect(details.after).toMatchObject({ name: 'new name', rate_limits: null })
    expect(details.after).not.toHaveProperty('scopes')
  })

  const refused = (name: string, body: object, expected: Scenario['expect'], param?: string): Scenario => ({
    name,
    body,
    expect: expected,
    ...(param && { mentions: `"param":"${param}"` }),
  })
  scenarios('PUT /v1/api-keys/$equal', world, [
    refused('an empty update is refused', {}, 'invalid'),
    refused('so is one of things that never change', { user_id: '$user_id', type: 'workspace' }, 'invalid'),
    refused('an unknown scope', { scopes: ['x.y'] }, 'invalid', 'scopes[0]'),
    refused('a scope that the type cannot hold', { scopes: ['completions.write'] }, 'invalid', 'scopes[0]'),
    refused('no scopes at all', { scopes: [] }, 'invalid', 'scopes'),
    refused('an expiry in the past', { expires_at: '2020-01-01T00:00:00Z' }, 'invalid', 'expires_at'),
    refused('an empty expiry', { expires_at: '' }, 'invalid', 'expires_at'),
    refused('a config that does not exist', { defaults: { config_id: 'pc-x' } }, 'invalid', 'defaults.config_id'),
    refused('another id than the path says', { name: 'x', id: '$strong' }, 'invalid', 'id'),
    refused('another organisation', { name: 'x', organisation_id: '$foreign_organisation' }, 'forbidden'),
    ...['status', 'role', 'key', 'digest', 'accountable_user_id', 'creation_mode', 'created_at', 'rank'].map((field) =>
      refused(`${field} cannot be assigned`, { name: 'x', [field]: 'active' }, 'invalid', field),
    ),
    {
      name: 'what a key is, and for whom, never changes',
      body: { name: 'same', type: 'workspace', 'sub-type': 'user', user_id: '$user_id', workspace_id: '$workspace_id' },
      expect: 200,
    },
    {
      name: 'nor is a workspace looked up that nobody asked for',
      body: { name: 'same', workspace_id: 'ws-unknown' },
      expect: 200,
    },
    {
      name: 'but a workspace key that names a foreign one has lost its way',
      as: 'service',
      call: 'PUT /v1/api-keys/$service',
      body: { name: 'x', workspace_id: 'ws-unknown' },
      expect: 'forbidden',
    },
    {
      name: 'it reads as before',
      call: 'GET /v1/api-keys/$equal',
      expect: 200,
      answer: { name: 'same', type: 'organisation-service', user_id: null, workspace_id: null },
    },
    {
      name: 'an unknown key',
      call: `PUT /v1/api-keys/${Bun.randomUUIDv7()}`,
      body: { name: 'x' },
      expect: 'not_found',
    },
    { name: 'a key out of reach', as: 'service', body: { name: 'x' }, expect: 'not_found' },
  ])

  const by = (as: string, id: string, name: string, body: object, expected: Scenario['expect']): Scenario => ({
    name,
    as,
    call: `PUT /v1/api-keys/${id}`,
    body,
    expect: expected,
  })
  scenarios('the ceiling of PUT /v1/api-keys', world, [
    by('editor', '$editor', 'a key with update alone cannot widen itself', { scopes: ['prompts.delete'] }, 'forbidden'),
    by('editor', '$equal', 'nor another one', { scopes: ['prompts.read', 'audit_logs.list'] }, 'forbidden'),
    by('editor', '$strong', 'nor take a stronger one apart', { scopes: ['prompts.delete'] }, 'forbidden'),
    by('editor', '$strong', 'nor lengthen it: it has no expiry', { expires_at: null }, 200),
    by('editor', '$strong', 'it may rename it', { name: 'renamed', scopes: ['prompts.delete', 'prompts.read'] }, 200),
    by('editor', '$strong', 'and bind it', { rate_limits: [{ type: 'requests', unit: 'rpm', value: 5 }] }, 200),
    by('editor', '$strong', 'a tighter limit', { rate_limits: [{ type: 'requests', unit: 'rpm', value: 4 }] }, 200),
    by('editor', '$strong', 'but not unbind it', { rate_limits: null }, 'forbidden'),
    by(
      'editor',
      '$strong',
      'nor loosen it',
      { rate_limits: [{ type: 'requests', unit: 'rpm', value: 5 }] },
      'forbidden',
    ),
    by(
      'editor',
      '$strong',
      'nor by a unit',
      { rate_limits: [{ type: 'requests', unit: 'rph', value: 4 }] },
      'forbidden',
    ),
    by('editor', '$strong', 'a budget', { usage_limits: { credit_limit: 10 } }, 200),
    by('editor', '$strong', 'a smaller one', { usage_limits: { credit_limit: 9 } }, 200),
    by('editor', '$strong', 'no larger one', { usage_limits: { credit_limit: 10 } }, 'forbidden'),
    by(
      'editor',
      '$strong',
      'no more often',
      { usage_limits: { credit_limit: 9, periodic_reset: 'weekly' } },
      'forbidden',
    ),
    by(
      'editor',
      '$strong',
      'nor reset sooner',
      { usage_limits: { credit_limit: 9, next_usage_reset_at: '2030-01-01T00:00:00Z' } },
      'forbidden',
    ),
    by('editor', '$strong', 'nor none', { usage_limits: null }, 'forbidden'),
    by('editor', '$strong', 'nor forget what it used', { reset_usage: true }, 'forbidden'),
    by('editor', '$equal', 'of a key that is no more than itself it may do all that', { rate_limits: null }, 200),
    by('editor', '$equal', 'its budget', { usage_limits: null, expires_at: null }, 200),
    by(
      'ending',
      '$ending',
      'a key that ends cannot lengthen itself',
      { expires_at: '2901-01-01T00:00:00Z' },
      'forbidden',
    ),
    by('ending', '$ending', 'nor live for ever', { expires_at: null }, 'forbidden'),
    by('ending', '$ending', 'it may end earlier', { expires_at: '2899-01-01T00:00:00Z' }, 200),
    by('ending', '$editor', 'nor lengthen its likes, which is no change here', { expires_at: null }, 200),
    by('bound', '$bound', 'a key cannot unbind itself', { rate_limits: null }, 'forbidden'),
    by('bound', '$bound', 'nor raise its rate', { rate_limits: [rpm(61)] }, 'forbidden'),
    by('bound', '$bound', 'nor its budget', { usage_limits: { credit_limit: 101 } }, 'forbidden'),
    by('bound', '$bound', 'nor forget its budget', { usage_limits: null }, 'forbidden'),
    by('bound', '$bound', 'nor what it used', { reset_usage: true }, 'forbidden'),
    by('bound', '$bound', 'it may say again what it has', { ...LIMITS, expires_at: null }, 200),
    by('bound', '$bound', 'and bind itself', { rate_limits: [rpm(59)], usage_limits: { credit_limit: 99 } }, 200),
    by(
      'editor',
      '$editor',
      'null where it has no limits changes nothing',
      { rate_limits: null, usage_limits: null },
      200,
    ),
    by('maker', '$maker', 'not even one that makes keys', { rate_limits: null }, 'forbidden'),
    by('bound', '$twin', 'nor does another one for it: two could free each other', { rate_limits: null }, 'forbidden'),
    by('bound', '$twin', 'not by a larger budget', { usage_limits: { credit_limit: 101 } }, 'forbidden'),
    by('bound', '$twin', 'not by a new start', { reset_usage: true }, 'forbidden'),
    by('bound', '$twin', 'tighter is none of that', { rate_limits: [rpm(1)], usage_limits: { credit_limit: 9 } }, 200),
    by('bound', '$twin', 'and looser again as far as it is bound itself', { rate_limits: [rpm(59)] }, 200),
    by('bound', '$twin', 'not as far as it was', { rate_limits: [rpm(60)] }, 'forbidden'),
    by('free', '$twin', 'a key without limits frees it', { rate_limits: null, reset_usage: true }, 200),
    by(
      'outsider',
      '$limited',
      'who makes no keys of a type loosens them as far as bound',
      { rate_limits: [rpm(60)] },
      200,
    ),
    by('outsider', '$limited', 'and no further', { rate_limits: [rpm(61)] }, 'forbidden'),
    by('outsider', '$limited', 'nor longer than it lives itself', { expires_at: '2901-01-01T00:00:00Z' }, 'forbidden'),
    by('insider', '$limited', 'who makes them could make one without', { rate_limits: null, expires_at: null }, 200),
    by('outsider', '$limited', 'scopes are another matter', { scopes: ['workspace_service_api_keys.update'] }, 200),
    by('service', '$editor', 'a workspace key changes no admin key', { name: 'x' }, 'not_found'),
  ])

  const make = (as: string, name: string, body: object, expected: Scenario['expect']): Scenario => ({
    name,
    as,
    body: { name: 'made', scopes: ['prompts.read'], ...body },
    expect: expected,
  })
  scenarios('POST /v1/api-keys/organisation/service', world, [
    make('maker', 'a key with limits makes no key like itself without any', {}, 'forbidden'),
    make('maker', 'nor with looser ones', { ...LIMITS, rate_limits: [rpm(61)] }, 'forbidden'),
    make('maker', 'nor with less of them', { rate_limits: [rpm(1)] }, 'forbidden'),
    make('maker', 'it makes one that is bound as it is', LIMITS, 200),
    {
      name: 'one of another type is not like itself',
      as: 'insider',
      call: 'POST /v1/api-keys/workspace/service',
      body: { name: 'made', scopes: ['prompts.read'], workspace_id: '$workspace_id' },
      expect: 200,
    },
    {
      name: 'nor does it rotate a freer one, for it would have its secret',
      as: 'bound',
      call: 'POST /v1/api-keys/$free/rotate',
      body: {},
      expect: 'forbidden',
    },
    {
      name: 'the freer one rotates it',
      as: 'free',
      call: 'POST /v1/api-keys/$bound/rotate',
      body: {},
      expect: 200,
    },
  ])
})
