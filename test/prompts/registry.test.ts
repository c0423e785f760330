import { describe } from 'bun:test'
import { DIALECTS } from '../support/database.ts'
import { scenarios, useWorld } from '../support/scenario.ts'
import { addWorkspace } from '../support/tenants.ts'

const chat = '[{"role":"user","content":"Hi {{name}}, {{>intro}}{{#vip}}{{title}}{{/vip}}"}]'
const prompt = { name: 'Greeter', string: 'Hello {{who}}', parameters: {} }
const ABSENT = '00000000-0000-7000-8000-000000000000'

describe.each(DIALECTS)('the prompt registry: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, names, made }) => {
    const second = await addWorkspace(gatehouse, made.organisation_id)
    names['second_workspace'] = second.workspaceId
    names['second_collection'] = second.collectionId
  })

  scenarios('POST /v1/prompts', world, [
    {
      name: 'an id, a slug made of the name, and version 1',
      body: { ...prompt, name: 'Greet User 1 – “ä”', string: chat },
      expect: 200,
      mentions: ['"slug":"pp-greet-user-', '"object":"prompt"'],
      keep: { greeting: 'id', slug: 'slug', version_1: 'version_id' },
    },
    {
      name: 'the same name again is another prompt',
      body: { ...prompt, name: 'Greet User 1 – “ä”' },
      expect: 200,
      keep: { twin: 'id' },
    },
    {
      name: 'a collection decides the workspace',
      body: { ...prompt, collection_id: '$second_collection' },
      expect: 200,
      keep: { elsewhere: 'id' },
    },
    {
      name: 'a workspace decides the collection',
      body: { ...prompt, workspace_id: '$second_workspace' },
      expect: 200,
      keep: { also_elsewhere: 'id' },
    },
    {
      name: 'a collection that is not in the named workspace is refused',
      body: { ...prompt, collection_id: '$second_collection', workspace_id: '$workspace_slug' },
      expect: 'invalid',
      mentions: '"param":"collection_id"',
    },
    {
      name: 'an unknown collection is refused by its field',
      body: { ...prompt, collection_id: 'co-nowhere-4fa31c' },
      expect: 'invalid',
      mentions: '"param":"collection_id"',
      notMentions: 'co-nowhere',
    },
    {
      name: 'an unknown workspace does not exist',
      body: { ...prompt, workspace_id: 'ws-nowhere-4fa31c' },
      expect: 'not_found',
    },
    {
      name: 'a misspelt field is refused with the name that was meant',
      body: { ...prompt, sting: 'x' },
      expect: 'invalid',
      mentions: 'did you mean \\"string\\"',
    },
    {
      name: 'all complaints come at once',
      body: { name: '', parameters: [], is_raw_template: 2 },
      expect: 'invalid',
      mentions: ['"path":"name"', '"path":"string"', '"path":"parameters"', '"path":"is_raw_template"'],
    },
    ...['id', 'slug', 'organisation_id', 'status', 'created_at', 'default_version', 'prompt_version'].map((field) => ({
      name: `nobody sets ${field}`,
      body: { ...prompt, [field]: 'x' },
      expect: 'invalid' as const,
      mentions: `"param":"${field}"`,
    })),
    ...['line\nbreak', 'bell\u0007', '\u007f', 'x'.repeat(256)].map((name) => ({
      name: `the name ${JSON.stringify(name).slice(0, 20)} is refused`,
      body: { ...prompt, name },
      expect: 'invalid' as const,
      mentions: '"param":"name"',
    })),
    {
      name: 'broken chat JSON is refused with line and column',
      body: { ...prompt, string: '[{"role":"user",\n"content":}]' },
      expect: 'invalid',
      mentions: ['line 2', 'column'],
    },
    {
      name: 'hyperparameters are checked at save',
      body: { ...prompt, parameters: { temperature: 9 } },
      expect: 'invalid',
      mentions: 'temperature',
    },
    {
      name: 'numbers saved as text become numbers',
      body: { ...prompt, parameters: { temperature: '0.2', top_p: '1', who: '7' } },
      expect: 200,
      keep: { numbers: 'id' },
    },
    {
      name: 'they read back as numbers; a default of a variable stays text',
      call: 'GET /v1/prompts/$numbers',
      expect: 200,
      answer: { parameters: { temperature: 0.2, top_p: 1, who: '7' } },
    },
    {
      name: 'tools, functions and tool_choice are kept',
      body: {
        ...prompt,
        string: chat,
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: 'auto',
        functions: [{ name: 'g' }],
      },
      expect: 200,
      keep: { tooled: 'id' },
    },
    {
      name: 'they read back as they were sent',
      call: 'GET /v1/prompts/$tooled',
      expect: 200,
      answer: {
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: 'auto',
        functions: [{ name: 'g' }],
      },
    },
  ])

  scenarios('GET /v1/prompts/$greeting', world, [
    {
      name: 'the text to the letter, its parts, and nulls where nothing was set',
      expect: 200,
      answer: {
        id: '$greeting',
        string: chat,
        template_type: 'chat',
        is_raw_template: 0,
        prompt_version: 1,
        prompt_version_status: 'active',
        prompt_version_description: null,
        prompt_version_label_id: null,
        prompt_version_labels: [],
        functions: null,
        tools: null,
        tool_choice: null,
        template_metadata: {},
        virtual_key: null,
        allow_all_workspaces: 0,
        variable_components: {
          partials: ['intro'],
          sections: ['vip'],
          variables: ['name'],
          sectionVariables: { vip: ['title'] },
          variablePartials: [],
        },
      },
    },
    { name: 'a slug names the same prompt', call: 'GET /v1/prompts/$slug', expect: 200, mentions: '$greeting' },
    { name: 'so does a trailing slash', call: 'GET /v1/prompts/$slug/', expect: 200, mentions: '$greeting' },
    { name: 'an unknown id does not exist', call: `GET /v1/prompts/${ABSENT}`, expect: 'not_found' },
    { name: 'neither does the beginning of an id', call: 'GET /v1/prompts/pp-greet', expect: 'not_found' },
  ])

  scenarios('GET /v1/prompts', world, [
    {
      name: 'all of the organisation, newest first, with their count',
      expect: 200,
      answer: {
        object: 'list',
        total: 6,
        data: [
          { id: '$tooled' },
          { id: '$numbers' },
          { id: '$also_elsewhere' },
          { id: '$elsewhere' },
          { id: '$twin' },
          { id: '$greeting' },
        ],
      },
    },
    {
      name: 'one workspace',
      call: 'GET /v1/prompts?workspace_id=$second_workspace',
      expect: 200,
      answer: { total: 2 },
      notMentions: '$greeting',
    },
    {
      name: 'one collection, by its id',
      call: 'GET /v1/prompts?collection_id=$second_collection',
      expect: 200,
      answer: { total: 2 },
    },
    {
      name: 'a part of the name, in any case',
      call: 'GET /v1/prompts?search=GREET%20us',
      expect: 200,
      answer: { total: 2 },
    },
    {
      name: 'a wildcard in a search stands for itself',
      call: 'GET /v1/prompts?search=%25',
      expect: 200,
      answer: { total: 0, data: [] },
    },
    {
      name: 'a page counts from 0 and knows the whole count',
      call: 'GET /v1/prompts?current_page=1&page_size=4',
      expect: 200,
      answer: { total: 6, data: Array(2).fill({}) },
    },
    {
      name: 'the other spelling of paging',
      call: 'GET /v1/prompts?currentPage=0&pageSize=1',
      expect: 200,
      answer: { total: 6, data: [{}] },
    },
    {
      name: 'a page past the end is empty',
      call: 'GET /v1/prompts?current_page=9&page_size=4',
      expect: 200,
      answer: { total: 6, data: [] },
    },
    ...['current_page=-1', 'current_page=x', 'page_size=0', 'page_size=1001', 'page_size=1.5', 'page_size='].map(
      (query) => ({
        name: `${query} is refused`,
        call: `GET /v1/prompts?${query}`,
        expect: 'invalid' as const,
      }),
    ),
    {
      name: 'an unknown filter is refused, not ignored',
      call: 'GET /v1/prompts?colection_id=x',
      expect: 'invalid',
      mentions: 'collection_id',
    },
    { name: 'an unknown workspace does not exist', call: 'GET /v1/prompts?workspace_id=ws-x', expect: 'not_found' },
    { name: 'an empty query is none', call: 'GET /v1/prompts?', expect: 200, answer: { total: 6 } },
  ])

  scenarios('DELETE /v1/prompts/$twin', world, [
    {
      name: 'a version suffix is refused, so nobody deletes a prompt for a version',
      call: 'DELETE /v1/prompts/$twin@1',
      expect: 'invalid',
    },
    { name: 'a body that clients send along is tolerated', body: { id: '$twin' }, expect: 200 },
    { name: 'it is gone for reads', call: 'GET /v1/prompts/$twin', expect: 'not_found' },
    {
      name: 'it is gone for renders',
      call: 'POST /v1/prompts/$twin/render',
      body: { variables: {} },
      expect: 'not_found',
    },
    { name: 'a second delete finds nothing', expect: 'not_found' },
  ])
})
