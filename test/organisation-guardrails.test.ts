import { describe } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addOrganisation, addWorkspace, defaultTenant } from './support/tenants.ts'

const defaults = '/v1/admin/organisation/defaults'
const exclusions = '/v1/workspace-exclusions/input-guardrails'

describe.each(DIALECTS)('guardrails of the organisation: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys }) => {
    const second = await addWorkspace(gatehouse, made.organisation_id)
    const other = await addOrganisation(gatehouse)
    Object.assign(names, {
      second: second.workspaceId,
      second_slug: second.workspaceSlug,
      other_organisation: other.organisationId,
      other_workspace: other.workspaceId,
    })
    keys['service'] = await addKey(gatehouse, defaultTenant(made), 'workspace-service')
  })

  scenarios(`PUT ${defaults}`, world, [
    {
      name: 'empty lists are what there is',
      body: { input_guardrails: [], output_guardrails: null },
      expect: 200,
      answer: { input_guardrails: [], output_guardrails: [] },
    },
    { name: 'and read', call: `GET ${defaults}`, expect: 200, answer: { input_guardrails: [], output_guardrails: [] } },
    {
      name: 'no guardrail exists yet',
      body: { input_guardrails: ['pg-a'], output_guardrails: ['pg-b'] },
      expect: 'invalid',
      mentions: ['"path":"input_guardrails[0]"', '"path":"output_guardrails[0]"'],
      notMentions: 'pg-a',
    },
    { name: 'an update of nothing', body: {}, expect: 'invalid' },
    { name: 'for no workspace key', as: 'service', body: { input_guardrails: [] }, expect: 'forbidden' },
    { name: 'nor to read', as: 'service', call: `GET ${defaults}`, expect: 'forbidden' },
  ])

  scenarios(`PUT ${exclusions}`, world, [
    { name: 'nobody is excluded at first', call: `GET ${exclusions}`, expect: 200, answer: { workspaces: [] } },
    {
      name: 'a workspace by slug',
      body: { organisation_id: '$organisation_id', workspaces: [{ workspace_id: '$second_slug', excluded: true }] },
      expect: 200,
      answer: {},
    },
    {
      name: 'is read by id',
      call: `GET ${exclusions}?organisation_id=$organisation_id`,
      expect: 200,
      answer: { workspaces: [{ workspace_id: '$second', excluded: true }] },
    },
    {
      name: 'another is added',
      body: {
        workspaces: [
          { workspace_id: '$workspace_id', excluded: true },
          { workspace_id: '$second', excluded: true },
        ],
      },
      expect: 200,
    },
    {
      name: 'in the order of the caller',
      call: `GET ${exclusions}`,
      expect: 200,
      answer: { workspaces: [{ workspace_id: '$second' }, { workspace_id: '$workspace_id' }] },
    },
    { name: 'one is taken out', body: { workspaces: [{ workspace_id: '$second', excluded: false }] }, expect: 200 },
    {
      name: 'the other stays',
      call: `GET ${exclusions}`,
      expect: 200,
      answer: { workspaces: [{ workspace_id: '$workspace_id' }] },
    },
    {
      name: 'a list that replaces',
      body: { workspaces: [{ workspace_id: '$second', excluded: true }], override_existing: true },
      expect: 200,
    },
    {
      name: 'is all there is',
      call: `GET ${exclusions}`,
      expect: 200,
      answer: { workspaces: [{ workspace_id: '$second' }] },
    },
    {
      name: 'the other kind has its own list',
      call: 'GET /v1/workspace-exclusions/output-guardrails',
      expect: 200,
      answer: { workspaces: [] },
    },
    {
      name: 'workspaces of others are unknown',
      body: { workspaces: [{ workspace_id: '$other_workspace', excluded: true }] },
      expect: 'invalid',
      mentions: '"param":"workspaces[0].workspace_id"',
    },
    {
      name: 'and nothing of a refused list is kept',
      call: `GET ${exclusions}`,
      expect: 200,
      answer: { workspaces: [{ workspace_id: '$second' }] },
    },
    {
      name: 'another organisation is not named',
      body: { organisation_id: '$other_organisation', workspaces: [] },
      expect: 'forbidden',
    },
    { name: 'nor asked for', call: `GET ${exclusions}?organisation_id=$other_organisation`, expect: 'forbidden' },
    { name: 'workspaces are required', body: {}, expect: 'invalid', mentions: '"param":"workspaces"' },
    { name: 'for no workspace key', as: 'service', body: { workspaces: [] }, expect: 'forbidden' },
    { name: 'an archived workspace', call: 'DELETE /v1/admin/workspaces/$second', expect: 200 },
    { name: 'is excluded no more', call: `GET ${exclusions}`, expect: 200, answer: { workspaces: [] } },
    { name: 'nor can be', body: { workspaces: [{ workspace_id: '$second', excluded: true }] }, expect: 'invalid' },
  ])
})
