import { describe } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { type Scenario, scenarios, useWorld } from './support/scenario.ts'
import { addWorkspace } from './support/tenants.ts'

const ofPrompt = { name: 'p', parameters: {}, model: 'm' }

/** What a prompt renders to, which is where a change of a partial must show. */
const renders = (name: string, reference: string, text: string): Scenario => ({
  name,
  call: `POST /v1/prompts/${reference}/render`,
  body: { variables: { x: 1 } },
  expect: 200,
  answer: { data: { prompt: text } },
})

describe.each(DIALECTS)('partials: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names }) => {
    names['second_workspace'] = (await addWorkspace(gatehouse, made.organisation_id)).workspaceId
  })

  scenarios('POST /v1/prompts/partials', world, [
    {
      name: 'an id, a slug and version 1',
      body: { name: 'Intro Text', string: 'one {{x}}', version_description: 'first' },
      expect: 200,
      mentions: '"slug":"pp-intro-text-',
      keep: { intro: 'id', slug: 'slug', v1: 'version_id' },
    },
    {
      name: 'it reads back to the letter',
      call: 'GET /v1/prompts/partials/$slug',
      expect: 200,
      answer: {
        id: '$intro',
        name: 'Intro Text',
        string: 'one {{x}}',
        version: 1,
        version_description: 'first',
        prompt_partial_version_id: '$v1',
        prompt_partial_version_status: 'active',
        workspace_id: '$workspace_id',
        collection_id: '$collection_id',
        status: 'active',
        object: 'partial',
      },
    },
    { name: 'an empty text is a text', body: { name: 'empty', string: '' }, expect: 200, keep: { empty: 'slug' } },
    {
      name: 'a broken tag is refused',
      body: { name: 'x', string: '{{#a}}' },
      expect: 'invalid',
      mentions: '"param":"string"',
    },
    { name: 'a text is required', body: { name: 'x' }, expect: 'invalid', mentions: '"param":"string"' },
    { name: 'a misspelt field is refused', body: { name: 'x', string: '', descripton: 'd' }, expect: 'invalid' },
    {
      name: 'an unknown workspace does not exist',
      body: { name: 'x', string: '', workspace_id: 'ws-x' },
      expect: 'not_found',
    },
    {
      name: 'another workspace has partials of its own',
      body: { name: 'far', string: 'far', workspace_id: '$second_workspace' },
      expect: 200,
      keep: { far: 'slug' },
    },
  ])

  scenarios('PUT /v1/prompts/partials/$intro', world, [
    {
      name: 'a prompt uses it',
      call: 'POST /v1/prompts',
      body: { ...ofPrompt, string: 'A {{>$slug}}' },
      expect: 200,
      keep: { p: 'id', p1: 'version_id', p_slug: 'slug' },
    },
    renders('and renders its default version', '$p', 'A one 1'),
    {
      name: 'a name alone makes no version',
      body: { name: 'Renamed' },
      expect: 200,
      answer: { prompt_partial_version_id: '$v1' },
    },
    {
      name: 'new text makes one',
      body: { string: 'two {{x}}', description: 'second' },
      expect: 200,
      keep: { v2: 'prompt_partial_version_id' },
    },
    {
      name: 'which is not the default',
      call: 'GET /v1/prompts/partials/$intro',
      expect: 200,
      answer: { version: 1, name: 'Renamed' },
    },
    renders('and not rendered', '$p', 'A one 1'),
    {
      name: 'it can be read',
      call: 'GET /v1/prompts/partials/$intro?version=latest',
      expect: 200,
      answer: { version: 2, version_description: 'second', prompt_partial_version_status: 'archived' },
    },
    { name: 'an unknown version cannot', call: 'GET /v1/prompts/partials/$intro?version=9', expect: 'not_found' },
    { name: 'an odd version is refused', call: 'GET /v1/prompts/partials/$intro?version=two', expect: 'invalid' },
    {
      name: 'versions are listed, newest first, with numbers',
      call: 'GET /v1/prompts/partials/$intro/versions',
      expect: 200,
      answer: {
        object: 'list',
        total: 2,
        data: [
          { prompt_partial_version_id: '$v2', version: 2, string: 'two {{x}}', prompt_version_status: 'archived' },
          {
            prompt_partial_version_id: '$v1',
            version: 1,
            prompt_version_status: 'active',
            prompt_partial_id: '$intro',
            slug: '$slug',
          },
        ],
      },
    },
    {
      name: 'publishing an unknown version changes nothing',
      call: 'PUT /v1/prompts/partials/$intro/makeDefault',
      body: { version: 3 },
      expect: 'not_found',
    },
    {
      name: 'publishing makes it the default',
      call: 'PUT /v1/prompts/partials/$intro/makeDefault',
      body: { version: 2, slug: '$intro' },
      expect: 200,
      answer: {},
    },
    renders('and renders change at once', '$p', 'A two 1'),
    { name: 'nothing to change is refused', body: {}, expect: 'invalid' },
    { name: 'a broken text is refused', body: { string: '{{/a}}' }, expect: 'invalid' },
    {
      name: 'it stays in its workspace',
      body: { name: 'x', workspace_id: '$second_workspace' },
      expect: 'invalid',
      mentions: '"param":"workspace_id"',
    },
  ])

  scenarios('GET /v1/prompts/partials', world, [
    {
      name: 'all of the organisation, newest first',
      expect: 200,
      answer: { object: 'list', total: 3, data: [{ id: '$intro' }, {}, {}] },
      notMentions: 'two',
    },
    {
      name: 'of a workspace',
      call: 'GET /v1/prompts/partials?workspace_id=$second_workspace',
      expect: 200,
      answer: { total: 1 },
      mentions: '$far',
    },
    {
      name: 'of a collection',
      call: 'GET /v1/prompts/partials?collection_id=$collection_id',
      expect: 200,
      answer: { total: 2 },
    },
    {
      name: 'by name, on a page',
      call: 'GET /v1/prompts/partials?search=E&page_size=1&current_page=1',
      expect: 200,
      answer: { total: 2, data: [{}] },
    },
    { name: 'a prompt is no partial', call: 'GET /v1/prompts/partials/$p', expect: 'not_found' },
    { name: 'a partial is no prompt', call: 'GET /v1/prompts/$intro', expect: 'not_found' },
  ])

  scenarios('DELETE /v1/prompts/partials/$intro', world, [
    { name: 'a partial that a published prompt uses stays', expect: 'conflict', mentions: ['$p_slug', 'force=true'] },
    {
      name: 'a partial between them',
      call: 'POST /v1/prompts/partials',
      body: { name: 'outer', string: '[{{>$slug}}]' },
      expect: 200,
      keep: { outer: 'slug' },
    },
    {
      name: 'and a version that uses only that',
      call: 'PUT /v1/prompts/$p',
      body: { patch: true, string: 'B {{>$outer}}' },
      expect: 200,
    },
    { name: 'published', call: 'PUT /v1/prompts/$p/makeDefault', body: { version: 2 }, expect: 200 },
    renders('renders through both', '$p', 'B [two 1]'),
    { name: 'use through another partial counts', expect: 'conflict', mentions: '$p_slug' },
    { name: 'a version without it', call: 'PUT /v1/prompts/$p', body: { patch: true, string: 'C' }, expect: 200 },
    { name: 'published', call: 'PUT /v1/prompts/$p/makeDefault', body: { version: 3 }, expect: 200 },
    {
      name: 'a label on the old version',
      call: 'POST /v1/labels',
      body: { name: 'old' },
      expect: 200,
      keep: { old: 'id' },
    },
    { name: 'is set', call: 'PUT /v1/prompts/$p/versions/$p1', body: { label_id: '$old' }, expect: 200 },
    { name: 'a labelled version counts as published', expect: 'conflict', mentions: '$p_slug' },
    { name: 'an odd force is refused', call: 'DELETE /v1/prompts/partials/$intro?force=1', expect: 'invalid' },
    {
      name: 'force deletes it all the same',
      call: 'DELETE /v1/prompts/partials/$intro?force=true',
      expect: 200,
      answer: {},
    },
    { name: 'it is gone', call: 'GET /v1/prompts/partials/$intro', expect: 'not_found' },
    {
      name: 'the version that names it cannot be rendered, at once',
      call: 'POST /v1/prompts/$p@old/render',
      body: { variables: {} },
      expect: 'not_found',
      mentions: 'partial',
    },
    renders('other versions can', '$p', 'C'),
    { name: 'an unused partial goes without force', call: 'DELETE /v1/prompts/partials/$empty', expect: 200 },
    {
      name: 'a partial of another workspace is unknown to a render',
      call: 'POST /v1/prompts',
      body: { ...ofPrompt, string: '{{>$far}}' },
      expect: 200,
      keep: { stranger: 'id' },
    },
    {
      name: 'so its text does not leak',
      call: 'POST /v1/prompts/$stranger/render',
      body: { variables: {} },
      expect: 'not_found',
    },
  ])
})
