import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseStrict } from '../../src/json.ts'
import { mergeCompletion, prepareVersion } from '../../src/prompts/hyperparameters.ts'
import { compileTemplate } from '../../src/templates/template.ts'
import { DIALECTS } from '../support/database.ts'
import type { Answer } from '../support/gatehouse.ts'
import { type Scenario, scenarios, useWorld, type World } from '../support/scenario.ts'
import { addKey, addOrganisation, addWorkspace } from '../support/tenants.ts'

// What golden cases cannot say: who may render, by which paths and names, and how much.

const chat = '[{"role":"user","content":"Hi {{name}}"}]'
const ana = { variables: { name: 'Ana' } }
const renders = (text: string) => ({ success: true, data: { model: 'm', messages: [{ role: 'user', content: text }] } })

/** A prompt of three versions, `staging` on the second, the first published. */
async function addPrompt({ call, names }: World): Promise<void> {
  const { body: prompt } = await call('POST', '/v1/prompts', { name: 'p', string: chat, parameters: {}, model: 'm' })
  const put = (path: string, body: unknown) => call('PUT', `/v1/prompts/${prompt.id}${path}`, body)
  const second = await put('', { patch: true, string: chat.replace('Hi', 'Hello') })
  await put('', { patch: true, string: chat.replace('Hi', 'Good day,') })
  const { body: labels } = await call('GET', '/v1/labels')
  const { id } = labels.data.find((label: { name: string }) => label.name === 'staging')
  await put(`/versions/${second.body.prompt_version_id}`, { label_id: id })
  Object.assign(names, { id: prompt.id, slug: prompt.slug })
}

async function addCallers({ gatehouse, made, keys }: World): Promise<void> {
  const { organisation_id: organisationId, user_id: userId, workspace_id: workspaceId } = made
  const own = { organisationId, userId, workspaceId, collectionId: made.collection_id }
  keys['renderer'] = await addKey(gatehouse, own, 'workspace-user', ['prompts.render'])
  keys['service'] = await addKey(gatehouse, own, 'workspace-service', ['prompts.render'])
  const others = [
    'prompts.create',
    'prompts.read',
    'prompts.update',
    'prompts.delete',
    'prompts.list',
    'prompts.publish',
  ]
  keys['author'] = await addKey(gatehouse, own, 'workspace-service', others)
  const second = await addWorkspace(gatehouse, organisationId)
  keys['neighbour'] = await addKey(gatehouse, { ...own, ...second }, 'workspace-service')
  keys['stranger'] = (await addOrganisation(gatehouse)).adminKey
}

describe.each(DIALECTS)('render: %s', (dialect) => {
  const world = useWorld(dialect, async (opened) => {
    await addPrompt(opened)
    await addCallers(opened)
  })

  const reference = (path: string, text: string, name = path): Scenario => ({
    name,
    call: `POST ${path}`,
    body: ana,
    expect: 200,
    answer: renders(text),
  })
  scenarios('a path names the version', world, [
    reference('/v1/prompts/$id/render', 'Hi Ana'),
    reference('/v1/prompts/$slug/render', 'Hi Ana'),
    reference('/prompts/$id/render', 'Hi Ana', 'without /v1, as a self-hosted address (spec 4)'),
    reference('/prompts/$slug@latest/render', 'Good day, Ana'),
    reference('/v1/prompts/$id@2/render', 'Hello Ana'),
    reference('/v1/prompts/$slug%402/render', 'Hello Ana', 'an @ that a client encodes'),
    reference('/v1/prompts/$slug@staging/render', 'Hello Ana'),
    reference('/v1/prompts/$id@default/render', 'Hi Ana'),
    {
      name: 'no such prompt',
      call: 'POST /v1/prompts/pp-nothing/render',
      body: ana,
      expect: 'not_found',
      notMentions: 'pp-nothing',
    },
    {
      name: 'no such version',
      call: 'POST /v1/prompts/$id@17/render',
      body: ana,
      expect: 'not_found',
    },
    {
      name: 'no such label',
      call: 'POST /v1/prompts/$id@canary/render',
      body: ana,
      expect: 'not_found',
      notMentions: 'canary',
    },
    {
      name: 'a label that this prompt does not carry',
      call: 'POST /v1/prompts/$id@production/render',
      body: ana,
      expect: 'not_found',
    },
    { name: 'two suffixes', call: 'POST /v1/prompts/$id@2@3/render', body: ana, expect: 'not_found' },
    { name: 'GET', call: 'GET /v1/prompts/$id/render', expect: 'method_not_allowed' },
  ])

  scenarios('POST /v1/prompts/$id/render', world, [
    { name: 'an admin key renders (decision 10)', body: ana, expect: 200 },
    { name: 'a user key renders', as: 'renderer', body: ana, expect: 200 },
    { name: 'a service key renders', as: 'service', body: ana, expect: 200 },
    { name: 'without a key nothing is told of the body', as: 'nobody', body: 'no JSON', expect: 'unauthenticated' },
    {
      name: 'a key without the scope is refused before its body is read',
      as: 'author',
      body: 'no JSON',
      expect: 'forbidden',
      mentions: 'prompts.render',
    },
    {
      name: 'for a key of another workspace the prompt does not exist',
      as: 'neighbour',
      body: ana,
      expect: 'not_found',
      notMentions: '$id',
    },
    {
      name: 'for another organisation the prompt does not exist',
      as: 'stranger',
      body: ana,
      expect: 'not_found',
      notMentions: '$id',
    },
    {
      name: 'the prompt_id that a client repeats is dropped',
      body: { ...ana, prompt_id: '$id' },
      expect: 200,
      notMentions: 'prompt_id',
    },
    {
      name: 'a prompt_id of another prompt is refused',
      body: { ...ana, prompt_id: '$slug' },
      expect: 'invalid',
      mentions: '"param":"prompt_id"',
    },
  ])

  test('another tenant cannot tell a prompt from none by the answer', async () => {
    const { call, keys, names } = world()
    const answerFor = async (id: string) => {
      const { text, body } = await call('POST', `/v1/prompts/${id}/render`, ana, { key: keys['neighbour'] ?? null })
      return text.replace(body.request_id, '')
    }
    expect(await answerFor(`${names['id']}`)).toBe(await answerFor(Bun.randomUUIDv7()))
    expect(await answerFor(`${names['id']}@2`)).toBe(await answerFor(`${Bun.randomUUIDv7()}@2`))
  })

  test('every answer names prompt and version, and is kept by nobody on the way', async () => {
    const { call, names } = world()
    const { headers } = await call('POST', `/v1/prompts/${names['slug']}@staging/render`, ana)
    expect(headers.get('x-gatehouse-prompt-id')).toBe(`${names['id']}`)
    expect(headers.get('x-gatehouse-prompt-version')).toBe('2')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('etag')).toBeNull()
    expect(headers.get('x-request-id')).toMatch(/^[a-z]{20}$/)
  })

  test('a streaming call is answered by one JSON object', async () => {
    const { call, names } = world()
    const { text, headers } = await call('POST', `/v1/prompts/${names['id']}/render`, { ...ana, stream: true })
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
    expect(JSON.parse(text)).toMatchObject({ data: { stream: true } })
  })

  test('neither a refused nor an overriding render changes the prompt', async () => {
    const { call, names } = world()
    const before = (await call('GET', `/v1/prompts/${names['id']}`)).text
    await call('POST', `/v1/prompts/${names['id']}/render`, { ...ana, temperature: 99 })
    await call('POST', `/v1/prompts/${names['id']}/render`, { ...ana, messages: [{ role: 'user', content: 'other' }] })
    expect((await call('GET', `/v1/prompts/${names['id']}`)).text).toBe(before)
  })
})

describe('limits (decision 28)', () => {
  const world = useWorld('sqlite', async ({ call, names }) => {
    const string = '{{a}}{{#l}}{{text}}{{/l}}{{#n}}{{#n}}{{#n}}{{#n}}.{{/n}}{{/n}}{{/n}}{{/n}}'
    names['id'] = (await call('POST', '/v1/prompts', { name: 'p', string, parameters: {}, model: 'm' })).body.id
  })
  const MIB = 1024 * 1024
  const render = (body: string): Promise<Answer> =>
    world().call('POST', `/v1/prompts/${world().names['id']}/render`, body)
  const withText = (length: number) => `{"variables":{"a":"${'x'.repeat(length)}"}}`
  const frame = withText(0).length

  test('a body of 4 MiB is taken, one byte more is not', async () => {
    const { status, body } = await render(withText(4 * MIB - frame))
    expect([status, body.data.prompt.length]).toEqual([200, 4 * MIB - frame])
    const refused = await render(withText(4 * MIB - frame + 1))
    expect([refused.status, refused.body.error.type]).toEqual([413, 'payload_too_large'])
  })

  const tooMuch = [
    { name: 'rendered text beyond 8 MiB', variables: { l: [1, 2, 3], text: 'x'.repeat(3 * MIB) }, mentions: '8 MiB' },
    {
      name: 'more than a million steps',
      variables: { n: Array.from({ length: 100 }, (_, i) => i + 1) },
      mentions: '1000000 steps',
    },
  ]
  for (const { name, variables, mentions } of tooMuch) {
    test(`${name} is refused, within a second`, async () => {
      const before = performance.now()
      const { status, body } = await render(JSON.stringify({ variables }))
      expect([status, body.error.type]).toEqual([400, 'template_limit'])
      expect(body.message).toContain(mentions)
      expect(performance.now() - before).toBeLessThan(1000)
    })
  }

  test('variables nested 64 levels deep are refused as a whole, not as our failure', async () => {
    const { status, body } = await render(`{"variables":{"a":${'['.repeat(64)}${']'.repeat(64)}}}`)
    expect([status, body.errorCode]).toEqual([400, 'AB01'])
  })
})

describe('a render limit of the config', () => {
  const world = useWorld(
    'sqlite',
    async ({ call, names }) => {
      names['id'] = (await call('POST', '/v1/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' })).body.id
    },
    '[limits]\nrender_body_bytes = 1024',
  )
  const bytes = (count: number) => `{"variables":{}}${' '.repeat(count - 16)}`

  scenarios('POST /v1/prompts/$id/render', world, [
    { name: 'as many bytes', body: bytes(1024), expect: 200 },
    { name: 'one byte more', body: bytes(1025), expect: 'payload_too_large', mentions: '1024' },
  ])
})

describe('for any variables the program renders what its parts do', () => {
  const template = [
    { role: 'system', content: 'a={{a}} b={{{b.c}}} {{#l}}[{{.}}|{{a}}]{{/l}}{{^l}}none{{/l}}' },
    { role: 'assistant', function_call: { name: 'f', arguments: '{"a":{{a}},"b":"{{b}}"}' } },
  ]
  const parameters = { a: 'default {{b}}', temperature: 0.5, top_k: 3 }
  const compiled = compileTemplate(JSON.stringify(template), false, 'chat', () => undefined)
  const saved = { model: 'm', functions: null, tools: null, toolChoice: null, parameters }
  const prepared = prepareVersion('chat', saved, compiled.variableNames)
  const world = useWorld('sqlite')
  let id = ''
  beforeAll(async () => {
    const fields = { name: 'p', string: JSON.stringify(template), parameters, model: 'm' }
    id = (await world().call('POST', '/v1/prompts', fields)).body.id
  })

  const hostile = fc.constantFrom(
    '{{a}}',
    '{{>p}}',
    '{{=<% %>=}}',
    '"}],"x":[{"',
    '\\',
    '\\u0041',
    '\u2028',
    '</script>',
    '$&',
    '__proto__',
  )
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    hostile,
    fc.jsonValue(),
    fc.bigInt().map(String).map(JSON.rawJSON),
  )
  const variables = fc.record(
    { a: value, b: fc.oneof(value, fc.record({ c: value })), l: fc.oneof(value, fc.array(value)) },
    { requiredKeys: [] },
  )

  test('to the byte', async () => {
    await fc.assert(
      fc.asyncProperty(variables, async (sent) => {
        // lone surrogates and NUL are refused at the door (HT-4), and -0 is 0 (decision 25)
        const text = JSON.stringify({ variables: sent, seed: 7 })
        fc.pre(!/\\u0000|\\ud[89a-f]|"__proto__":/i.test(text) && text.isWellFormed())
        const { status, text: answered } = await world().call('POST', `/v1/prompts/${id}/render`, text)
        const body = parseStrict(text).value as { variables: Record<string, unknown> }
        const data = mergeCompletion(prepared, compiled.fill(body.variables, prepared.defaults), body)
        expect([status, answered]).toEqual([200, JSON.stringify({ success: true, data })])
      }),
      { numRuns: 300 },
    )
  })
})
