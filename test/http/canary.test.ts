import { expect, test } from 'bun:test'
import { newApiKey } from '../../src/api-keys/key.ts'
import type { Answer } from '../support/gatehouse.ts'
import { useWorld } from '../support/scenario.ts'

// A secret put wherever a caller can put one: it comes back in no error and stands in no log (HT-1, OB-3).

const CANARY = `canary ${Bun.randomUUIDv7()}`
const world = useWorld()

const prompt = { name: 'p', string: 'x', parameters: {} }
const BODIES: Record<string, object> = {
  'POST /v1/prompts': prompt,
  'POST /v1/prompts/partials': { name: 'p', string: 'x' },
  'POST /v1/collections': { name: 'c' },
  'POST /v1/labels': { name: 'l' },
  'POST /v1/api-keys/organisation/service': { name: 'k', scopes: ['prompts.read'] },
}

/** The canary as text, as a name, within arrays and objects, and in shapes that fit no field. */
const PLACED = [
  CANARY,
  [CANARY],
  { [CANARY]: CANARY },
  [{ [CANARY]: [CANARY] }],
  `{{#${CANARY}`,
  `[{"role":"${CANARY}"}]`,
]

const FIELDS = [
  'name',
  'string',
  'parameters',
  'model',
  'virtual_key',
  'collection_id',
  'workspace_id',
  'parent_collection_id',
  'tools',
  'functions',
  'tool_choice',
  'version_description',
  'template_metadata',
  'is_raw_template',
  'description',
  'color_code',
  'organisation_id',
  'scopes',
  'user_id',
  'expires_at',
  'type',
  CANARY,
  '__proto__',
]

test('in any field of any body', async () => {
  const { call } = world()
  const refusals: Answer[] = []
  for (const [route, body] of Object.entries(BODIES)) {
    const [method = '', path = ''] = route.split(' ')
    for (const field of FIELDS)
      for (const value of PLACED) {
        const text = JSON.stringify({ ...body, '@': value }).replace('"@"', JSON.stringify(field))
        refusals.push(
          await call(method, path, text.replace(`"${field}":"p",`, ''), {
            headers: { 'content-type': 'application/json' },
          }),
        )
      }
  }
  const refused = refusals.filter(({ status }) => status !== 200)
  expect(refused.length).toBeGreaterThan(refusals.length / 2)
  expectNoCanary(refused)
})

test('in a render, refused or answered', async () => {
  const { call } = world()
  const { body } = await call('POST', '/v1/prompts', {
    ...prompt,
    string: '{{x}}',
    model: 'm',
    parameters: { x: CANARY },
  })
  const path = `/v1/prompts/${body.id}/render`
  const answered = await call('POST', path, { variables: { y: CANARY } })
  expect(answered.text).toContain(CANARY)
  const fields = [
    'variables',
    'temperature',
    'messages',
    'stop',
    'logit_bias',
    'n',
    'seed',
    'model',
    'best_of',
    'suffix',
    'stream',
  ]
  const refused = await Promise.all(
    fields.map((field) => call('POST', path, { variables: {}, [field]: [{ [CANARY]: { [CANARY]: CANARY } }] })),
  )
  expect(refused.map(({ status }) => status)).toEqual(fields.map(() => 400))
  expectNoCanary(refused)
})

test('in what is no body at all', async () => {
  const { call } = world()
  const headers = { 'content-type': 'application/json' }
  const texts = [
    CANARY,
    `{"${CANARY}`,
    `{"a":"${CANARY}`,
    `["${CANARY}",]`,
    `{"${CANARY}":1,"${CANARY}":2}`,
    `{"${CANARY}":"\\u0000"}`,
  ]
  const refused = await Promise.all(texts.map((text) => call('POST', '/v1/prompts', text, { headers })))
  refused.push(await call('POST', '/v1/prompts', CANARY, { headers: { 'content-type': `text/${CANARY}` } }))
  refused.push(await call('POST', '/v1/collections', CANARY.repeat(20_000), { headers }))
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 400, 415, 413])
  expectNoCanary(refused)
})

test('in any header', async () => {
  const { call } = world()
  const names = [
    'x-service-api-key',
    'authorization',
    'cookie',
    'x-request-id',
    'x-portkey-request-id',
    'user-agent',
    'x-forwarded-for',
    'content-type',
    'accept',
    'referer',
    'x-portkey-metadata',
    'x-gatehouse-strict-openai-compliance',
  ]
  const refused = await Promise.all(
    names.flatMap((name) => [
      call('GET', '/v1/prompts', undefined, { key: null, headers: { [name]: CANARY } }),
      call('POST', '/v1/prompts/x/render', '{}', { headers: { [name]: CANARY } }),
    ]),
  )
  for (const { status } of refused) expect(status).toBeGreaterThanOrEqual(400)
  expectNoCanary(refused)
})

test('in a query', async () => {
  const { call } = world()
  const value = encodeURIComponent(CANARY)
  const names = [
    'search',
    'workspace_id',
    'collection_id',
    'current_page',
    'page_size',
    'version',
    'ids',
    'force',
    'organisation_id',
    value,
  ]
  const lists = [
    '/v1/prompts',
    '/v1/prompts/partials',
    '/v1/collections',
    '/v1/labels',
    '/v1/api-keys',
    '/v1/prompts/x',
  ]
  const answers = await Promise.all(
    lists.flatMap((list) => names.map((name) => call('GET', `${list}?${name}=${value}`))),
  )
  expectNoCanary(answers.filter(({ status }) => status !== 200))
})

test('an API key, wherever it was put by mistake', async () => {
  const { call, log } = world()
  const key = newApiKey('a')
  const answers = await Promise.all([
    call('GET', `/v1/prompts/${key}`),
    call('GET', `/v1/prompts?search=${key}`),
    call('GET', `/${key}/x`),
    call('POST', '/v1/labels', { name: key, description: [key] }),
    call('POST', '/v1/api-keys/organisation/service', { name: 'k', scopes: [key] }),
  ])
  for (const { status } of answers) expect(status).toBeGreaterThanOrEqual(400)
  for (const text of [...answers.map((answer) => answer.text), ...log]) expect(text).not.toContain(key)
})

function expectNoCanary(answers: Answer[]): void {
  for (const { text, headers } of answers) {
    expect(text.includes(CANARY), text.slice(0, 300)).toBe(false)
    expect(JSON.stringify([...headers])).not.toContain(CANARY)
  }
  expect(world().log.length).toBeGreaterThanOrEqual(answers.length)
  const log = world().log.join('')
  for (const secret of [CANARY, encodeURIComponent(CANARY)]) expect(log.includes(secret)).toBe(false)
}
