import { describe } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { scenarios, useWorld } from './support/scenario.ts'
import { addWorkspace } from './support/tenants.ts'

const prompt = { name: 'p', string: 'x', parameters: {} }

describe.each(DIALECTS)('collections: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys, newKey }) => {
    const second = await addWorkspace(gatehouse, made.organisation_id)
    Object.assign(names, { second_workspace: second.workspaceId, second_collection: second.collectionId })
    const scopes = ['prompts.create', 'prompts.list', 'prompts.read', 'prompts.update', 'prompts.delete']
    keys['workspace'] = (await newKey('workspace/service', scopes, { workspace_id: made.workspace_slug })).key
  })

  scenarios('POST /v1/collections', world, [
    {
      name: 'an id and a slug',
      body: { name: 'Team A' },
      expect: 200,
      mentions: '"slug":"co-team-a-',
      keep: { a: 'id', a_slug: 'slug' },
    },
    {
      name: 'it reads back whole',
      call: 'GET /v1/collections/$a_slug',
      expect: 200,
      answer: {
        id: '$a',
        name: 'Team A',
        workspace_id: '$workspace_id',
        parent_collection_id: null,
        is_default: 0,
        status: 'active',
        child_collections: [],
        object: 'collection',
      },
    },
    {
      name: 'a child lies in the workspace of its parent',
      body: { name: 'Child', parent_collection_id: '$a_slug' },
      expect: 200,
      keep: { child: 'id' },
    },
    {
      name: 'a parent elsewhere decides the workspace',
      body: { name: 'Far', parent_collection_id: '$second_collection' },
      expect: 200,
      keep: { far: 'id' },
    },
    {
      name: 'unless another one is named',
      body: { name: 'x', parent_collection_id: '$second_collection', workspace_id: '$workspace_id' },
      expect: 'invalid',
      mentions: '"param":"parent_collection_id"',
    },
    {
      name: 'an unknown parent is refused',
      body: { name: 'x', parent_collection_id: 'co-x' },
      expect: 'invalid',
      mentions: '"param":"parent_collection_id"',
    },
    { name: 'an unknown workspace does not exist', body: { name: 'x', workspace_id: 'ws-x' }, expect: 'not_found' },
    {
      name: 'a workspace key names no other workspace',
      as: 'workspace',
      body: { name: 'x', workspace_id: 'ws-x' },
      expect: 'forbidden',
    },
    {
      name: 'a workspace key finds no parent elsewhere',
      as: 'workspace',
      body: { name: 'x', parent_collection_id: '$second_collection' },
      expect: 'invalid',
    },
    { name: 'a name is required', body: {}, expect: 'invalid', mentions: '"param":"name"' },
    {
      name: 'nobody makes a second default',
      body: { name: 'x', is_default: 1 },
      expect: 'invalid',
      mentions: '"param":"is_default"',
    },
  ])

  scenarios('GET /v1/collections', world, [
    {
      name: 'a prompt lies in a collection',
      call: 'POST /v1/prompts',
      body: { ...prompt, collection_id: '$a' },
      expect: 200,
      keep: { p: 'id' },
    },
    {
      name: 'the defaults first, with numbers of what lies in each',
      expect: 200,
      answer: {
        object: 'list',
        total: 5,
        data: [
          { is_default: 1 },
          { is_default: 1 },
          { id: '$a', collection_details: { child_collections_count: 1, prompts_count: 1 } },
          {
            id: '$child',
            parent_collection_id: '$a',
            collection_details: { prompts_count: 0, prompts_last_updated_at: null },
          },
          { id: '$far', workspace_id: '$second_workspace' },
        ],
      },
    },
    {
      name: 'of a workspace',
      call: 'GET /v1/collections?workspace_id=$second_workspace',
      expect: 200,
      answer: { total: 2 },
    },
    {
      name: 'of the own workspace for its key',
      as: 'workspace',
      expect: 200,
      answer: { total: 3 },
      notMentions: '"Far"',
    },
    {
      name: 'by name, on a page',
      call: 'GET /v1/collections?search=ch&page_size=1',
      expect: 200,
      answer: { total: 1, data: [{ id: '$child' }] },
    },
    {
      name: 'one shows its children',
      call: 'GET /v1/collections/$a',
      expect: 200,
      answer: { child_collections: [{ id: '$child', name: 'Child' }] },
    },
  ])

  scenarios('PUT /v1/collections/$child', world, [
    { name: 'a new name', body: { name: 'Grandchild', id: '$child' }, expect: 200, answer: {} },
    { name: 'is read at once', call: 'GET /v1/collections/$child', expect: 200, answer: { name: 'Grandchild' } },
    { name: 'a name is all there is to change', body: { parent_collection_id: '$a' }, expect: 'invalid' },
    { name: 'it stays in its workspace', body: { name: 'x', workspace_id: '$second_workspace' }, expect: 'invalid' },
    {
      name: 'the path and the body name one collection',
      body: { name: 'x', id: '$a' },
      expect: 'invalid',
      mentions: '"param":"id"',
    },
  ])

  scenarios('DELETE /v1/collections/$a', world, [
    { name: 'what holds a prompt or a collection stays', expect: 'conflict' },
    { name: 'without the prompt', call: 'DELETE /v1/prompts/$p', expect: 200 },
    { name: 'it still holds a collection', expect: 'conflict' },
    { name: 'which goes', call: 'DELETE /v1/collections/$child', expect: 200, answer: {} },
    {
      name: 'a partial',
      call: 'POST /v1/prompts/partials',
      body: { name: 'x', string: '', collection_id: '$a' },
      expect: 200,
      keep: { partial: 'id' },
    },
    { name: 'holds it too', expect: 'conflict' },
    { name: 'which goes as well', call: 'DELETE /v1/prompts/partials/$partial', expect: 200 },
    { name: 'empty, it goes', expect: 200, answer: {} },
    { name: 'and is gone', call: 'GET /v1/collections/$a', expect: 'not_found' },
    {
      name: 'the default collection is not there to be deleted',
      call: 'DELETE /v1/collections/$collection_id',
      expect: 'not_found',
    },
    {
      name: 'it is there to be read',
      call: 'GET /v1/collections/$collection_id',
      expect: 200,
      answer: { is_default: 1 },
    },
  ])
})
