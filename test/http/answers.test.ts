import { describe, expect, test } from 'bun:test'
import { createApp } from '../../src/app.ts'
import type { Answer } from '../support/gatehouse.ts'
import { expectProblem, scenarios, useWorld } from '../support/scenario.ts'

const world = useWorld('sqlite', async ({ call, names, newKey, keys, made }) => {
  const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }
  const created = await call('POST', '/v1/prompts', prompt)
  Object.assign(names, { p: created.body.id, slug: created.body.slug })
  keys['reader'] = (await newKey('workspace/service', ['prompts.read'], { workspace_id: made.workspace_id })).key
})

scenarios('POST /v1/prompts', world, [
  { name: 'no key', as: 'nobody', body: {}, expect: 'unauthenticated' },
  { name: 'no scope', as: 'reader', body: {}, expect: 'forbidden', mentions: 'prompts.create' },
  { name: 'a bad body', body: {}, expect: 'invalid' },
  { name: 'an unknown id', call: 'GET /v1/prompts/x', expect: 'not_found' },
  { name: 'an unknown path', call: 'GET /v1/prompt', expect: 'route_unknown' },
  { name: 'an unknown path without a key', as: 'nobody', call: 'GET /', expect: 'route_unknown' },
  { name: 'an unknown path with a bad body', call: 'POST /v2/prompts', body: '{', expect: 'route_unknown' },
  { name: 'a path in upper case', call: 'GET /V1/prompts', expect: 'route_unknown' },
  { name: 'two slashes', call: 'GET /v1//prompts', expect: 'route_unknown' },
  { name: 'a path that climbs', call: 'GET /v1/../admin', expect: 'route_unknown' },
  { name: 'a path that is not UTF-8', call: 'GET /v1/prompts/%E0%A4%A', expect: 'invalid' },
  { name: 'a path that is cut', call: 'GET /v1/prompts/%', expect: 'invalid' },
  { name: 'a slash within an id', call: 'GET /v1/prompts/a%2Fb', expect: 'not_found' },
  { name: 'an id of 10,000 characters', call: `GET /v1/prompts/${'x'.repeat(10_000)}`, expect: 'not_found' },
  { name: 'an id that holds 404', call: 'DELETE /v1/prompts/404-not-found@1', expect: 'invalid' },
  { name: 'a trailing slash is none', call: 'GET /v1/prompts/$p/', expect: 200 },
  { name: 'neither is an empty query', call: 'GET /v1/prompts/$p/versions?', expect: 200 },
  { name: 'both', call: 'GET /v1/prompts/?', expect: 200 },
  { name: 'HEAD', call: 'HEAD /v1/prompts/$p', expect: 200 },
  { name: 'HEAD needs a key too', as: 'nobody', call: 'GET /v1/prompts/$p', expect: 'unauthenticated' },
])

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'LOCK', 'TRACE']

test('each path takes its own methods, answers 405 with Allow to all others, and asks no key for that', async () => {
  const { gatehouse, call } = world()
  const byPath = Map.groupBy(createApp(gatehouse, { checkAnswers: false }).routes, ({ path }) => path)
  expect(byPath.size).toBeGreaterThan(25)
  for (const [path, routes] of byPath) {
    const taken = new Set(routes.map(({ method }) => method))
    // prompts/partials is a prompt's path to a method that partials do not have
    if (taken.has('GET')) taken.add('HEAD')
    for (const method of METHODS.filter((each) => !taken.has(each))) {
      const answer = await call(method, path.replace(/:\w+/g, 'some'), undefined, { key: null })
      if (answer.status === 401) continue
      expect(answer.status, `${method} ${path}`).toBe(405)
      if (method !== 'HEAD') expectProblem(answer, 'method_not_allowed')
      for (const own of taken) expect(answer.headers.get('allow')?.split(', ')).toContain(own)
    }
  }
})

test('every answer has the headers of every answer, whatever it is', async () => {
  const { call, names } = world()
  const answers: Record<string, Answer> = {
    read: await call('GET', '/v1/prompts'),
    change: await call('PUT', `/v1/prompts/${names['p']}`, { name: 'q' }),
    render: await call('POST', `/v1/prompts/${names['p']}/render`, { variables: {} }),
    refusal: await call('GET', '/v1/prompts', undefined, { key: null }),
    validation: await call('POST', '/v1/prompts', {}),
    syntax: await call('POST', '/v1/prompts', '{', { headers: { 'content-type': 'application/json' } }),
    'wrong type': await call('POST', '/v1/prompts', '{}', { headers: { 'content-type': 'text/plain' } }),
    'no route': await call('GET', '/nope'),
    'wrong method': await call('PATCH', '/v1/prompts'),
    ...Object.fromEntries(
      await Promise.all(
        ['/livez', '/readyz', '/metrics', '/docs', '/docs/start.js', '/docs/swagger-ui.css', '/openapi.json'].map(
          async (path) => [path, await call('GET', path)] as const,
        ),
      ),
    ),
  }
  for (const [name, { headers }] of Object.entries(answers)) {
    const {
      'x-request-id': id,
      'x-portkey-request-id': alias,
      'content-type': type,
      ...rest
    } = Object.fromEntries(headers)
    expect(id, name).toMatch(/^[a-z]{20}$/)
    expect(alias, name).toBe(id ?? '')
    expect(type, name).toMatch(/; charset=utf-8$/)
    expect(rest, name).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    for (const absent of ['server', 'x-powered-by', 'access-control-allow-origin', 'set-cookie', 'location'])
      expect(headers.has(absent), `${name}: ${absent}`).toBe(false)
  }
  expect(new Set(Object.values(answers).map(({ headers }) => headers.get('x-request-id'))).size).toBe(
    Object.keys(answers).length,
  )
})

test('a HEAD is a GET without its body', async () => {
  const { call, names } = world()
  const path = `/v1/prompts/${names['p']}`
  const [head, get] = [await call('HEAD', path), await call('GET', path)]
  expect([head.status, head.text]).toEqual([200, ''])
  expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'))
})

describe('an unexpected error', () => {
  test('is 500 without a word of it, and in the log under the same request id', async () => {
    const { call, gatehouse, log } = world()
    const { findPartial } = gatehouse.registry
    gatehouse.registry.findPartial = () => {
      throw new TypeError('the words of the error')
    }
    const answer = await call('POST', '/v1/prompts', { name: 'p', string: 'x', parameters: {} })
    gatehouse.registry.findPartial = findPartial
    expectProblem(answer, 'internal')
    expect(answer.text).not.toContain('words')
    const line = log.find((each) => each.includes(answer.body.request_id))
    expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'error', event: 'request_failed', status: 500 })
    expect(line).toContain('the words of the error')
  })

  test('of an answer that breaks its own contract is 500 too, and shows nothing of the answer', async () => {
    const { call, gatehouse, names, log } = world()
    const { prompts } = gatehouse.read.tables
    const answered = await call('GET', `/v1/prompts/${names['p']}`)
    expect(answered.status).toBe(200)
    const broken = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
    await gatehouse.audited(broken, { action: 'test.break' }, async (tx) => {
      await tx.update(prompts).set({ createdAt: 1e16 }).returning({ id: prompts.id })
    })
    const answer = await call('GET', `/v1/prompts/${names['p']}`)
    expectProblem(answer, 'internal')
    expect(answer.text).not.toContain(names['slug'] ?? '?')
    expect(log.at(-1)).toContain(answer.body.request_id)
  })
})

test('a client may send an id of its own for the log, but only one that looks like an id', async () => {
  const { call, log } = world()
  for (const [sent, logged] of [
    ['abc-1.2_3', 'abc-1.2_3'],
    ['a b', undefined],
    ['x'.repeat(65), undefined],
    ['{"a":1}', undefined],
  ] as const) {
    const answer = await call('GET', '/v1/prompts/x', undefined, { headers: { 'x-request-id': sent } })
    expect(answer.headers.get('x-request-id')).toMatch(/^[a-z]{20}$/)
    expect(JSON.parse(log.at(-1) ?? '').client_request_id).toBe(logged)
  }
})
