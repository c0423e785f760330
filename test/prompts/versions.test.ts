import { describe, expect, test } from 'bun:test'
import { DIALECTS } from '../support/database.ts'
import { scenarios, useWorld } from '../support/scenario.ts'

const whole = { string: 'two {{x}}', parameters: { temperature: 1 }, model: 'm-2' }

describe.each(DIALECTS)('versions of a prompt: %s', (dialect) => {
  const world = useWorld(dialect, async ({ call, names }) => {
    const created = await call('POST', '/v1/prompts', {
      name: 'Versioned',
      string: 'one {{x}}',
      parameters: { temperature: 0.5, x: 'saved' },
      model: 'm-1',
      virtual_key: 'acme',
      version_description: 'first',
      template_metadata: { owner: 'a' },
    })
    Object.assign(names, { p: created.body.id, slug: created.body.slug, v1: created.body.version_id })
    names['spare'] = (await call('POST', '/v1/collections', { name: 'Spare' })).body.id
  })

  scenarios('PUT /v1/prompts/$p', world, [
    {
      name: 'a name alone makes no version, even beside null parameters',
      body: { name: 'Renamed', parameters: null, string: null },
      expect: 200,
      answer: { id: '$p', slug: '$slug', prompt_version_id: '$v1', object: 'prompt' },
    },
    {
      name: 'metadata goes to the latest version',
      body: { collection_id: '$spare', version_description: 'still first', virtual_key: 'other' },
      expect: 200,
      answer: { prompt_version_id: '$v1' },
    },
    {
      name: 'and is read at once',
      call: 'GET /v1/prompts/$p',
      expect: 200,
      answer: {
        name: 'Renamed',
        collection_id: '$spare',
        prompt_version: 1,
        prompt_version_description: 'still first',
        virtual_key: 'other',
        string: 'one {{x}}',
      },
    },
    ...[{}, { patch: true }, { name: null }, { workspace_id: '$workspace_id' }].map((body) => ({
      name: `${JSON.stringify(body)} changes nothing and is refused`,
      body,
      expect: 'invalid' as const,
    })),
    ...[
      ['string', { parameters: {}, model: 'm' }],
      ['parameters', { string: 'x', model: 'm' }],
      ['model', { string: 'x', parameters: {} }],
      ['string', { template_metadata: {} }],
      ['string', { string: null, parameters: {}, model: 'm', patch: false }],
    ].map(([missing, body]) => ({
      name: `half a version (${JSON.stringify(body)}) names ${missing}`,
      body,
      expect: 'invalid' as const,
      mentions: [`"param":"${missing}"`, 'patch: true'],
    })),
    { name: 'a whole version is number 2', body: whole, expect: 200, keep: { v2: 'prompt_version_id' } },
    {
      name: 'but not the default',
      call: 'GET /v1/prompts/$p',
      expect: 200,
      answer: { prompt_version: 1, prompt_version_status: 'active', model: 'm-1' },
    },
    {
      name: 'it holds what was sent and nothing of the version before',
      call: 'GET /v1/prompts/$p?version=2',
      expect: 200,
      answer: {
        prompt_version_id: '$v2',
        prompt_version_status: 'archived',
        parameters: { temperature: 1, model: 'm-2' },
        prompt_version_description: null,
        virtual_key: null,
        template_metadata: {},
      },
      notMentions: 'saved',
    },
    { name: 'the same body again is version 3', body: whole, expect: 200, keep: { v3: 'prompt_version_id' } },
    {
      name: 'a patch keeps from the latest version what it leaves out',
      body: { patch: true, prompt_metadata: { owner: 'b' }, version_description: 'patched' },
      expect: 200,
      keep: { v4: 'prompt_version_id' },
    },
    {
      name: 'which is not the default one',
      call: 'GET /v1/prompts/$p@latest',
      expect: 200,
      answer: {
        prompt_version_id: '$v4',
        prompt_version: 4,
        string: 'two {{x}}',
        model: 'm-2',
        parameters: { temperature: 1 },
        template_metadata: { owner: 'b' },
        prompt_version_description: 'patched',
      },
    },
    {
      name: 'a patch is checked whole',
      body: { patch: true, parameters: { temperature: 9 } },
      expect: 'invalid',
      mentions: 'temperature',
    },
    { name: 'a patch takes no broken template', body: { patch: true, string: '{{#a}}' }, expect: 'invalid' },
    { name: 'a suffix is refused', call: 'PUT /v1/prompts/$p@2', body: { name: 'x' }, expect: 'invalid' },
    { name: 'the id may be repeated in the body', body: { prompt_id: '$p', name: 'Again' }, expect: 200 },
    {
      name: 'another id in the body is refused',
      body: { prompt_id: '$v1', name: 'x' },
      expect: 'invalid',
      mentions: '"param":"prompt_id"',
    },
    {
      name: 'an unknown prompt does not exist',
      call: 'PUT /v1/prompts/pp-x',
      body: { name: 'x' },
      expect: 'not_found',
    },
  ])

  scenarios('GET /v1/prompts/$p/versions', world, [
    {
      name: 'newest first, the default one active',
      expect: 200,
      answer: {
        total: 4,
        data: [
          { id: '$v4', prompt_version: 4, prompt_description: 'patched', prompt_template: 'two {{x}}' },
          { id: '$v3', prompt_version: 3, status: 'archived' },
          { id: '$v2', prompt_version: 2, status: 'archived' },
          { id: '$v1', prompt_version: 1, status: 'active', prompt_id: '$p', object: 'prompt' },
        ],
      },
      notMentions: 'null',
    },
    {
      name: 'one version whole',
      call: 'GET /v1/prompts/$slug/versions/$v2',
      expect: 200,
      answer: { prompt_version: 2 },
    },
    { name: 'an unknown version does not exist', call: 'GET /v1/prompts/$p/versions/$p', expect: 'not_found' },
  ])

  scenarios('PUT /v1/prompts/$p/makeDefault', world, [
    { name: 'an unknown number changes nothing', body: { version: 9 }, expect: 'not_found' },
    ...[0, -1, 1.5, '2', null, 9007199254740993n].map((version) => ({
      name: `version ${typeof version} ${version} is refused`,
      body: `{"version":${typeof version === 'string' ? `"${version}"` : version}}`,
      headers: { 'content-type': 'application/json' },
      expect: 'invalid' as const,
      mentions: '"param":"version"',
    })),
    { name: 'a version becomes the default', body: { version: 2, id: '$p' }, expect: 200, answer: {} },
    {
      name: 'reads show it at once',
      call: 'GET /v1/prompts/$slug',
      expect: 200,
      answer: { prompt_version_id: '$v2', prompt_version_status: 'active' },
    },
    {
      name: 'lists show its model at once',
      call: 'GET /v1/prompts',
      expect: 200,
      answer: { data: [{ model: 'm-2' }] },
    },
    {
      name: 'renders use it at once',
      call: 'POST /v1/prompts/$p/render',
      body: { variables: { x: 1 } },
      expect: 200,
      answer: { data: { prompt: 'two 1', model: 'm-2' } },
    },
    {
      name: 'the one before stays within reach by its number',
      call: 'POST /v1/prompts/$slug@1/render',
      body: { variables: {} },
      expect: 200,
      answer: { data: { prompt: 'one saved', temperature: 0.5 } },
    },
    ...['@99', '@', '@nope', '@1@2', '@Latest', '@-1', '@0', '@1e0', '@constructor', '@__proto__'].map((suffix) => ({
      name: `render knows no version ${suffix}`,
      call: `POST /v1/prompts/$p${suffix}/render`,
      body: { variables: {} },
      expect: 'not_found' as const,
    })),
    ...['@99', '@', '@nope', '@1@2', '@Latest', '@-1', '@0', '@1e0', '@99999999999999999999'].map((suffix) => ({
      name: `a read knows no version ${suffix}`,
      call: `GET /v1/prompts/$p${suffix}`,
      expect: 'not_found' as const,
    })),
    {
      name: 'a version in the path and another in the query is one too many',
      call: 'GET /v1/prompts/$p@1?version=2',
      expect: 'invalid',
    },
  ])

  test('renders and reads agree with the version just published, fifty times over', async () => {
    const { call, names } = world()
    for (let i = 1; i <= 50; i++) {
      const version = (i % 4) + 1
      await call('PUT', `/v1/prompts/${names['p']}/makeDefault`, { version })
      const [read, render] = await Promise.all([
        call('GET', `/v1/prompts/${names['slug']}`),
        call('POST', `/v1/prompts/${names['p']}/render`, { variables: {} }),
      ])
      expect([read.body.prompt_version, render.headers.get('x-gatehouse-prompt-version')]).toEqual([
        version,
        `${version}`,
      ])
    }
  })

  test('writers at the same time get version numbers of their own, and no patch is lost', async () => {
    const { call, names } = world()
    const { body } = await call('POST', '/v1/prompts', { name: 'Raced', string: 'x', parameters: {} })
    const patches = Array.from({ length: 12 }, (_, i) => ({ patch: true, parameters: { [`unknown_${i}`]: i } }))
    const answers = await Promise.all(patches.map((patch) => call('PUT', `/v1/prompts/${body.id}`, patch)))
    const versions = (await call('GET', `/v1/prompts/${body.id}/versions`)).body.data
    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
    expect(versions.map((row: { prompt_version: number }) => row.prompt_version)).toEqual(
      Array.from({ length: 13 }, (_, i) => 13 - i),
    )
    const ids: string[] = versions.map((row: { id: string }) => row.id)
    expect(answers.every((answer) => ids.includes(answer.body.prompt_version_id))).toBe(true)
    expect(names['p']).not.toBe(body.id)
  })
})
