import { describe, expect } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'

describe.each(DIALECTS)('the fields of a new API key: %s', (dialect) => {
  const world = useWorld(dialect)
  const key = { name: 'k', scopes: ['prompts.read'] }

  scenarios('POST /v1/api-keys/organisation/service', world, [
    {
      name: 'all that can be said of a key',
      body: {
        ...key,
        rate_limits: [
          { type: 'tokens', unit: 'rpd', value: 0 },
          { type: 'requests', unit: 'rpw', value: 7 },
        ],
        usage_limits: { credit_limit: 10.5, alert_threshold: 10.5, periodic_reset: 'monthly' },
        defaults: { metadata: { team: 'a', b: '' }, config_id: null },
        alert_emails: ['b@example.com', 'a@example.com'],
        expires_at: '2999-01-31T12:00:00.5+05:30',
        rotation_policy: { next_rotation_at: '2998-12-31T05:30:00+05:30', key_transition_period_ms: 1_800_000 },
      },
      expect: 200,
      keep: { rich: 'id' },
    },
    {
      name: 'is read back as it was said, in its order and its words',
      call: 'GET /v1/api-keys/$rich',
      expect: 200,
      answer: {
        rate_limits: [
          { type: 'tokens', unit: 'rpd', value: 0 },
          { type: 'requests', unit: 'rpw', value: 7 },
        ],
        usage_limits: {
          type: 'cost',
          credit_limit: 10.5,
          alert_threshold: 10.5,
          periodic_reset: 'monthly',
          periodic_reset_days: null,
          next_usage_reset_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
        },
        next_usage_reset_at: expect.stringMatching(/-01T00:00:00\.000Z$/),
        defaults: { metadata: { team: 'a', b: '' }, config_id: null, allow_config_override: true },
        allow_config_override: 1,
        alert_emails: ['b@example.com', 'a@example.com'],
        expires_at: '2999-01-31T12:00:00.5+05:30',
        rotation_policy: {
          rotation_period: null,
          next_rotation_at: '2998-12-31T05:30:00+05:30',
          key_transition_period_ms: 1_800_000,
          status: 'active',
        },
      },
    },
    {
      name: 'nulls stand for nothing',
      body: {
        ...key,
        description: null,
        rate_limits: null,
        usage_limits: null,
        defaults: null,
        alert_emails: null,
        expires_at: null,
        rotation_policy: null,
      },
      expect: 200,
    },
    ...[
      ['name', { ...key, name: '' }],
      ['name', { ...key, name: 'x'.repeat(256) }],
      ['name', { scopes: key.scopes }],
      ['description', { ...key, description: 'x'.repeat(201) }],
      ['scopes', { name: 'k' }],
      ['scopes', { ...key, scopes: [] }],
      ['scopes', { ...key, scopes: 'prompts.read' }],
      ['scopes[0]', { ...key, scopes: ['prompts.raed'] }],
      ['scopes[1]', { ...key, scopes: ['prompts.read', 'completions.write'] }],
      ['scopes[0]', { ...key, scopes: ['*'] }],
      ['expires_at', { ...key, expires_at: '2020-01-01T00:00:00Z' }],
      ['expires_at', { ...key, expires_at: '2999-01-01' }],
      ['expires_at', { ...key, expires_at: '2999-02-31T25:00:00Z' }],
      ['expires_at', { ...key, expires_at: '' }],
      ['rate_limits', { ...key, rate_limits: { type: 'requests', unit: 'rpm', value: 1 } }],
      ['rate_limits[0].unit', { ...key, rate_limits: [{ type: 'requests', unit: 'rpy', value: 1 }] }],
      ['rate_limits[0].value', { ...key, rate_limits: [{ type: 'requests', unit: 'rpm', value: -1 }] }],
      ['rate_limits[0].value', { ...key, rate_limits: [{ type: 'requests', unit: 'rpm', value: 1.5 }] }],
      ['rate_limits[1]', { ...key, rate_limits: [1, 2].map((value) => ({ type: 'requests', unit: 'rpm', value })) }],
      ['usage_limits', { ...key, usage_limits: [{ credit_limit: 1 }] }],
      ['usage_limits.credit_limit', { ...key, usage_limits: {} }],
      ['usage_limits.credit_limit', { ...key, usage_limits: { credit_limit: 0 } }],
      ['usage_limits.alert_threshold', { ...key, usage_limits: { credit_limit: 1, alert_threshold: 2 } }],
      [
        'usage_limits.periodic_reset_days',
        { ...key, usage_limits: { credit_limit: 1, periodic_reset: 'weekly', periodic_reset_days: 7 } },
      ],
      ['defaults.config_id', { ...key, defaults: { config_id: 'pc-1' } }],
      ['defaults.metadata.team', { ...key, defaults: { metadata: { team: 1 } } }],
      ['defaults.allow_config_override', { ...key, defaults: { allow_config_override: 'no' } }],
      ['alert_emails[1]', { ...key, alert_emails: ['a@example.com', 'nobody'] }],
      ['rotation_policy', { ...key, rotation_policy: {} }],
      [
        'rotation_policy',
        { ...key, rotation_policy: { rotation_period: 'weekly', next_rotation_at: '2999-01-01T00:00:00Z' } },
      ],
      ['rotation_policy.rotation_period', { ...key, rotation_policy: { rotation_period: 'daily' } }],
      ['rotation_policy.next_rotation_at', { ...key, rotation_policy: { next_rotation_at: '2999-01-01T00:00:01Z' } }],
      ['rotation_policy.next_rotation_at', { ...key, rotation_policy: { next_rotation_at: '2020-01-01T00:00:00Z' } }],
      ['rotation_policy.next_rotation_at', { ...key, rotation_policy: { next_rotation_at: 'soon' } }],
      [
        'rotation_policy.key_transition_period_ms',
        { ...key, rotation_policy: { rotation_period: 'weekly', key_transition_period_ms: 1_799_999 } },
      ],
      [
        'rotation_policy.key_transition_period_ms',
        { ...key, rotation_policy: { rotation_period: 'weekly', key_transition_period_ms: 604_800_000 } },
      ],
      ['reset_usage', { ...key, reset_usage: true }],
      ['role', { ...key, role: 'owner' }],
      ['accountable_user_id', { ...key, accountable_user_id: '9d1e0000-0000-4000-8000-000000000000' }],
      ['key', { ...key, key: 'gth_a_chosen' }],
      ['id', { ...key, id: 'x' }],
      ['status', { ...key, status: 'active' }],
      ['creation_mode', { ...key, creation_mode: 'auto' }],
      ['type', { ...key, type: 'workspace' }],
      ['sub-type', { ...key, 'sub-type': 'user' }],
    ].map(([param, body]) => ({
      name: `${JSON.stringify(body).slice(0, 60)} is refused by ${param}`,
      body,
      expect: 'invalid' as const,
      mentions: `"param":"${param}"`,
      notMentions: ['chosen', 'raed'],
    })),
  ])
})
