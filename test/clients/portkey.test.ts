import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Portkey } from 'portkey-ai'
import { type Listening, startServer } from '../../src/http/server.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

// Decision 15: the public client of the ecosystem works with nothing changed but its base URL.

let gatehouse: TestGatehouse
let server: Listening
let client: Portkey

const clientOf = (apiKey: string, path = '/v1') => new Portkey({ apiKey, baseURL: `${server.url}${path}` })
const hello = '[{"role":"user","content":"Hi {{name}}"}]'

beforeAll(async () => {
  gatehouse = await openTestGatehouse('sqlite', '[server]\nport = 0')
  server = await startServer(gatehouse.gatehouse, { checkAnswers: true })
  client = clientOf(gatehouse.made.admin_key)
})
afterAll(async () => {
  await server.stop()
  await gatehouse.close()
})

async function newPrompt(fields: { string?: string; parameters?: object } = {}): Promise<string> {
  const { collection_id } = gatehouse.made
  const created = await client.prompts.create({
    name: 'Greeting',
    collection_id,
    string: hello,
    parameters: {},
    model: 'm',
    ...fields,
  })
  return created['slug']
}

/** The client adds `getHeaders` to every answer. */
async function bodyOf<T extends object>(answer: PromiseLike<T>): Promise<Omit<T, 'getHeaders'>> {
  const { getHeaders: _, ...body } = (await answer) as T & { getHeaders?: unknown }
  return body
}

describe('render', () => {
  for (const path of ['/v1', '']) {
    test(`fills the prompt under the base URL with "${path}"`, async () => {
      const promptID = await newPrompt({ parameters: { temperature: 0.2 } })
      const rendered = clientOf(gatehouse.made.admin_key, path).prompts.render({
        promptID,
        variables: { name: 'Ana' },
        max_tokens: 5,
        stream: false,
      })
      expect(await bodyOf(rendered)).toEqual({
        success: true,
        // no trace of the prompt_id that the client repeats in the body
        data: {
          model: 'm',
          messages: [{ role: 'user', content: 'Hi Ana' }],
          temperature: 0.2,
          max_tokens: 5,
          stream: false,
        },
      })
    })
  }

  test('takes a version in the id, which the client repeats in the body', async () => {
    const slug = await newPrompt()
    await client.prompts.update(slug, { string: 'Bye {{name}}', parameters: {}, model: 'm' })
    const { data } = await client.prompts.render({ promptID: `${slug}@latest`, variables: { name: 'Ana' } })
    expect(data as object).toEqual({ model: 'm', prompt: 'Bye Ana' })
  })

  test('takes thinking, since the client says that strict compliance is off', async () => {
    const rendered = client.prompts.render({
      promptID: await newPrompt(),
      variables: {},
      ...{ thinking: { type: 'enabled', budget_tokens: 1024 } },
    })
    expect(await rendered).toMatchObject({ data: { thinking: { type: 'enabled', budget_tokens: 1024 } } })
  })

  test('a refusal is the error class of its status and says why', async () => {
    const refused = client.prompts.render({ promptID: await newPrompt(), variables: {}, temperature: 99 })
    const error = await refused.then(
      () => undefined,
      (reason) => reason,
    )
    expect(error).toMatchObject({ status: 400, message: expect.stringContaining('temperature') })
    const missing = client.prompts.render({ promptID: 'pp-nothing', variables: {} })
    expect(await missing.catch((reason) => reason.status)).toBe(404)
    const stranger = clientOf('gth_a_wrong').prompts.render({ promptID: 'pp-nothing', variables: {} })
    expect(await stranger.catch((reason) => reason.status)).toBe(401)
  })
})

test('a prompt is created, read, listed, changed, published and deleted', async () => {
  const slug = await newPrompt({ parameters: { temperature: 0.2, name: 'there' } })
  expect(await client.prompts.retrieve(slug)).toMatchObject({
    slug,
    string: hello,
    prompt_version: 1,
    collection_id: gatehouse.made.collection_id,
    parameters: { temperature: 0.2, name: 'there' },
  })
  const query = { search: 'greet', page_size: 100, current_page: 0, collection_id: gatehouse.made.collection_id }
  const listed = await client.prompts.list(query)
  expect(listed['data'].map((each: { slug: string }) => each.slug)).toContain(slug)

  const updated = await client.prompts.update(slug, {
    string: 'Bye {{name}}',
    parameters: { name: 'you' },
    model: 'm2',
    version_description: 'shorter',
  })
  const { data: versions } = await client.prompts.versions.list(slug)
  expect(versions.map((each: { prompt_version: number }) => each.prompt_version)).toEqual([2, 1])
  expect(versions[0].id).toBe(updated['prompt_version_id'])
  expect(await client.prompts.versions.retrieve(slug, versions[0].id)).toMatchObject({
    string: 'Bye {{name}}',
    prompt_version_description: 'shorter',
    prompt_version_status: 'archived',
  })
  expect(await bodyOf(client.prompts.publish(slug, { version: 2 }))).toEqual({})
  expect(await client.prompts.retrieve(slug)).toMatchObject({ prompt_version: 2, string: 'Bye {{name}}', model: 'm2' })

  await client.prompts.update(slug, { name: 'Farewell' })
  expect(await client.prompts.retrieve(slug)).toMatchObject({ name: 'Farewell', prompt_version: 2 })

  expect(await bodyOf(client.prompts.delete(slug))).toEqual({})
  expect(
    await client.prompts.retrieve(slug).then(
      () => 200,
      (error) => error.status,
    ),
  ).toBe(404)
})

test('a label is created, put on a version, changed, listed and deleted', async () => {
  const slug = await newPrompt()
  const { workspace_id } = gatehouse.made
  const { id } = await client.labels.create({ name: 'canary', workspace_id, color_code: '#ffcc00' })
  const [version] = (await client.prompts.versions.list(slug)).data
  await client.prompts.versions.update(slug, version.id, { label_id: id })
  const render = { promptID: `${slug}@canary`, variables: { name: 'Ana' } }
  expect(await client.prompts.render(render)).toMatchObject({ success: true })
  await client.labels.update(id, { description: 'a few users first' })
  expect(await client.labels.retrieve(id)).toMatchObject({
    name: 'canary',
    color_code: '#ffcc00',
    description: 'a few users first',
  })
  const { data } = await client.labels.list({ workspace_id, search: 'canary' })
  expect(data.map((label: { id: string }) => label.id)).toEqual([id])
  await client.labels.delete(id)
  expect(await client.prompts.render({ ...render }).catch((error) => error.status)).toBe(404)
})

test('a partial is created, used, changed, published, listed and deleted', async () => {
  const { workspace_id } = gatehouse.made
  const created = await client.prompts.partials.create({ name: 'Tone', string: 'Be kind.', workspace_id })
  const slug: string = created['slug']
  const promptID = await newPrompt({ string: `{{>${slug}}} Hi {{name}}` })
  const rendered = async () => (await client.prompts.render({ promptID, variables: { name: 'Ana' } })).data.prompt
  expect(await rendered()).toBe('Be kind. Hi Ana')
  const { prompt_partial_version_id } = await client.prompts.partials.update(slug, {
    string: 'Be brief.',
    description: 'v2',
  })
  const { data: versions } = await client.prompts.partials.versions.list(slug)
  expect(versions[0]).toMatchObject({ prompt_partial_version_id, version: 2, string: 'Be brief.', description: 'v2' })
  expect(await rendered()).toBe('Be kind. Hi Ana')
  await client.prompts.partials.publish(slug, { version: 2 })
  expect(await rendered()).toBe('Be brief. Hi Ana')
  expect(await client.prompts.partials.retrieve(slug)).toMatchObject({ slug, string: 'Be brief.', version: 2 })
  const { data } = await client.prompts.partials.list({ collection_id: gatehouse.made.collection_id })
  expect(data.map((each: { slug: string }) => each.slug)).toContain(slug)
  expect(await client.prompts.partials.delete(slug).catch((error) => error.status)).toBe(409)
  await client.prompts.delete(promptID)
  expect(await bodyOf(client.prompts.partials.delete(slug))).toEqual({})
})

test('a collection is created, filled, changed, listed and deleted', async () => {
  const { workspace_id, collection_id: parent_collection_id } = gatehouse.made
  const { id, slug } = await client.collections.create({ name: 'Sales', workspace_id, parent_collection_id })
  await client.collections.update(slug, { name: 'Sales EU' })
  expect(await client.collections.retrieve(id)).toMatchObject({ name: 'Sales EU', parent_collection_id, is_default: 0 })
  const { data } = await client.collections.list({ workspace_id, search: 'sales', current_page: 0, page_size: 10 })
  expect(data.map((each: { id: string }) => each.id)).toEqual([id])
  expect(await bodyOf(client.collections.delete(slug))).toEqual({})
  expect(await client.collections.retrieve(id).catch((error) => error.status)).toBe(404)
})

describe('API keys', () => {
  const forms = [
    { type: 'organisation', 'sub-type': 'service' },
    { type: 'workspace', 'sub-type': 'service' },
    { type: 'workspace', 'sub-type': 'user' },
  ]
  for (const form of forms) {
    test(`of ${form.type} and ${form['sub-type']} are created, used, listed and deleted`, async () => {
      const workspace = form.type === 'workspace' ? { workspace_id: gatehouse.made.workspace_id } : {}
      const { id, key } = await client.apiKeys.create({ ...form, name: 'ci', scopes: ['prompts.render'], ...workspace })
      expect(key).toStartWith('gth_')
      const render = { promptID: await newPrompt(), variables: {} }
      const user = clientOf(String(key))
      expect(await user.prompts.render({ ...render })).toMatchObject({ success: true })
      expect(await user.prompts.list().then(undefined, (error) => error.status)).toBe(403)
      const found = await client.apiKeys.retrieve({ id: String(id) })
      expect(found).toMatchObject({ id: String(id), name: 'ci', scopes: ['prompts.render'], status: 'active' })
      expect(found.key).toContain('*****')
      const { data = [] } = await client.apiKeys.list({ page_size: 100, current_page: 0, ...workspace })
      expect(data.map((each) => each['id'])).toContain(id)
      expect(await bodyOf(client.apiKeys.delete({ id: String(id) }))).toEqual({})
      expect(await user.prompts.render({ ...render }).catch((error) => error.status)).toBe(401)
    })
  }
})
