import { describe } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addKey, addWorkspace } from './support/tenants.ts'

describe.each(DIALECTS)('labels: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, call, names, keys, newKey }) => {
    const scopes = ['create', 'read', 'update', 'delete', 'list', 'render'].map((verb) => `prompts.${verb}`)
    const second = await addWorkspace(gatehouse, made.organisation_id)
    const elsewhere = { organisationId: made.organisation_id, userId: made.user_id, ...second }
    keys['workspace'] = (await newKey('workspace/service', scopes, { workspace_id: made.workspace_id })).key
    keys['elsewhere'] = await addKey(gatehouse, elsewhere, 'workspace-service')
    names['second_workspace'] = second.workspaceId
    const { body } = await call('POST', '/v1/prompts', { name: 'p', string: 'one', parameters: {}, model: 'm' })
    const two = await call('PUT', `/v1/prompts/${body.id}`, { patch: true, string: 'two' })
    Object.assign(names, { p: body.id, v1: body.version_id, v2: two.body.prompt_version_id })
    for (const { name, id } of (await call('GET', '/v1/labels')).body.data) names[name] = id
  })

  scenarios('POST /v1/labels', world, [
    {
      name: 'a label of the default workspace',
      body: { name: 'beta', description: 'd', color_code: '#00ff00' },
      expect: 200,
      keep: { beta: 'id' },
    },
    {
      name: 'it reads back whole',
      call: 'GET /v1/labels/$beta',
      expect: 200,
      answer: {
        name: 'beta',
        description: 'd',
        color_code: '#00ff00',
        organisation_id: '$organisation_id',
        workspace_id: '$workspace_id',
        is_universal: false,
        status: 'active',
        object: 'label',
      },
    },
    { name: 'its name is taken there', body: { name: 'beta' }, expect: 'conflict', notMentions: 'beta' },
    { name: 'so are the universal names', body: { name: 'production' }, expect: 'conflict' },
    {
      name: 'another workspace may use the name',
      as: 'elsewhere',
      body: { name: 'beta' },
      expect: 200,
      keep: { far: 'id' },
    },
    {
      name: 'the organisation may not: a prompt could then carry two labels of one name',
      body: { name: 'beta', organisation_id: '$organisation_id' },
      expect: 'conflict',
    },
    {
      name: 'a label of the whole organisation, in either spelling',
      body: { name: 'shared', organization_id: '$organisation_id' },
      expect: 200,
      keep: { shared: 'id' },
    },
    { name: 'its name is taken in each workspace', as: 'workspace', body: { name: 'shared' }, expect: 'conflict' },
    {
      name: 'a workspace key works in its own workspace',
      as: 'workspace',
      body: { name: 'own' },
      expect: 200,
      keep: { own: 'id' },
    },
    {
      name: 'a workspace key names no other',
      as: 'workspace',
      body: { name: 'x', workspace_id: '$second_workspace' },
      expect: 'forbidden',
    },
    {
      name: 'nobody names another organisation',
      body: { name: 'x', organisation_id: '$workspace_id' },
      expect: 'forbidden',
    },
    ...['latest', 'default', '1', '0042', '', 'a b', 'a@b', 'a!b!c', 'x'.repeat(256), 'a\u0000b', 7, null].map(
      (name) => ({
        name: `${JSON.stringify(name).slice(0, 12)} is no name of a label`,
        body: { name },
        expect: 'invalid' as const,
      }),
    ),
    ...['latest2', 'v1', '1a', 'a.b', 'Latest', '-'].map((name) => ({
      name: `${name} is one`,
      body: { name },
      expect: 200,
    })),
    {
      name: 'an unknown field is refused',
      body: { name: 'x', colour: '#fff' },
      expect: 'invalid',
      mentions: 'color_code',
    },
  ])

  scenarios('GET /v1/labels', world, [
    {
      name: 'the universal ones first',
      expect: 200,
      answer: { object: 'list', total: 13 },
      mentions: ['$beta', '$far', '$shared', '$own'],
    },
    {
      name: 'of one workspace, with those that stand above it',
      call: 'GET /v1/labels?workspace_id=$second_workspace',
      expect: 200,
      answer: { total: 5, data: [{ is_universal: true }, { is_universal: true }, { is_universal: true }, {}, {}] },
      mentions: ['$far', '$shared'],
    },
    {
      name: 'a workspace key sees no other workspace',
      as: 'elsewhere',
      expect: 200,
      answer: { total: 5 },
      notMentions: '"own"',
    },
    { name: 'a search', call: 'GET /v1/labels?search=BET', expect: 200, answer: { total: 2 } },
    {
      name: 'a page',
      call: 'GET /v1/labels?page_size=2&current_page=6',
      expect: 200,
      answer: { total: 13, data: [{}] },
    },
    {
      name: 'a foreign organisation is refused',
      call: 'GET /v1/labels?organisation_id=$workspace_id',
      expect: 'forbidden',
    },
    { name: 'a label elsewhere does not exist', as: 'elsewhere', call: 'GET /v1/labels/$own', expect: 'not_found' },
    { name: 'a label is named by its id alone', call: 'GET /v1/labels/beta', expect: 'not_found' },
  ])

  scenarios('PUT /v1/prompts/$p/versions/$v1', world, [
    { name: 'a version gets a label', body: { label_id: '$beta' }, expect: 200, answer: {} },
    {
      name: 'other fields of a version are ignored, as clients send it back whole',
      body: { label_id: '$production', id: '$v1', prompt_version: 1 },
      expect: 200,
    },
    {
      name: 'reads show all of them, the first one on its own',
      call: 'GET /v1/prompts/$p',
      expect: 200,
      answer: {
        prompt_version_label_id: '$beta',
        prompt_version_label_name: 'beta',
        prompt_version_labels: [
          { id: '$beta', name: 'beta' },
          { id: '$production', name: 'production' },
        ],
      },
    },
    {
      name: 'render finds the version by its label',
      call: 'POST /v1/prompts/$p@beta/render',
      body: { variables: {} },
      expect: 200,
      mentions: 'one',
    },
    {
      name: 'a label moves to another version',
      call: 'PUT /v1/prompts/$p/versions/$v2',
      body: { label_id: '$beta' },
      expect: 200,
    },
    {
      name: 'render follows it at once',
      call: 'POST /v1/prompts/$p@beta/render',
      body: { variables: {} },
      expect: 200,
      mentions: 'two',
    },
    { name: 'so does a read', call: 'GET /v1/prompts/$p@beta', expect: 200, answer: { prompt_version: 2 } },
    {
      name: 'lists of versions show the label',
      call: 'GET /v1/prompts/$p/versions',
      expect: 200,
      answer: {
        data: [
          { id: '$v2', label_id: '$beta' },
          { id: '$v1', label_id: '$production' },
        ],
      },
    },
    {
      name: 'a label of another workspace is refused',
      body: { label_id: '$far' },
      expect: 'invalid',
      mentions: '"param":"label_id"',
    },
    {
      name: 'an unknown label is refused',
      body: { label_id: '$p' },
      expect: 'invalid',
      mentions: '"param":"label_id"',
    },
    {
      name: 'a missing label is refused, or a slip would take labels away',
      body: {},
      expect: 'invalid',
      mentions: '"param":"label_id"',
    },
    {
      name: 'an unknown version does not exist',
      call: 'PUT /v1/prompts/$p/versions/$p',
      body: { label_id: '$beta' },
      expect: 'not_found',
    },
    { name: 'null takes all labels off the version', body: { label_id: null }, expect: 200 },
    {
      name: 'which render then does not find',
      call: 'POST /v1/prompts/$p@production/render',
      body: { variables: {} },
      expect: 'not_found',
    },
  ])

  scenarios('PUT /v1/labels/$beta', world, [
    { name: 'a new name', body: { name: 'gamma', description: null }, expect: 200 },
    {
      name: 'is what finds the version now',
      call: 'POST /v1/prompts/$p@gamma/render',
      body: { variables: {} },
      expect: 200,
      mentions: 'two',
    },
    {
      name: 'the old one finds nothing',
      call: 'POST /v1/prompts/$p@beta/render',
      body: { variables: {} },
      expect: 'not_found',
    },
    { name: 'its own name is no conflict', body: { name: 'gamma' }, expect: 200 },
    { name: 'a taken name is one', body: { name: 'own' }, expect: 'conflict' },
    { name: 'nothing to change is refused', body: {}, expect: 'invalid' },
    {
      name: 'a universal label stays as it is',
      call: 'PUT /v1/labels/$staging',
      body: { name: 'x' },
      expect: 'forbidden',
    },
    { name: 'and where it is', call: 'DELETE /v1/labels/$staging', expect: 'forbidden' },
    {
      name: 'a label of the organisation is not for a workspace key',
      as: 'workspace',
      call: 'PUT /v1/labels/$shared',
      body: { name: 'x' },
      expect: 'forbidden',
    },
    { name: 'a label elsewhere does not exist', as: 'elsewhere', body: { name: 'x' }, expect: 'not_found' },
    { name: 'not for a delete either', as: 'elsewhere', call: 'DELETE /v1/labels/$beta', expect: 'not_found' },
    { name: 'a deleted label', call: 'DELETE /v1/labels/$beta', expect: 200, answer: {} },
    { name: 'leaves its versions', call: 'GET /v1/prompts/$p@2', expect: 200, answer: { prompt_version_labels: [] } },
    {
      name: 'and finds nothing any more',
      call: 'POST /v1/prompts/$p@gamma/render',
      body: { variables: {} },
      expect: 'not_found',
    },
    { name: 'a second delete finds nothing', call: 'DELETE /v1/labels/$beta', expect: 'not_found' },
  ])
})
