import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Listening, startServer } from '../src/http/server.ts'
import { resolveTarget } from '../src/secret-references/resolve-routes.ts'
import { createFakeManager, everyManager, text } from './support/fake-manager.ts'
import { openTestGatehouse, type TestGatehouse } from './support/gatehouse.ts'
import { addSystemKey } from './support/system-key.ts'
import { SECRET_REFERENCE } from './support/things.ts'

// Resolve as the gateway asks for it: over HTTP, where the server answers it before the framework is asked.

/** Bun looks at its timeouts every few seconds, so what it lets go on for so long goes on for as long as it is let. */
const LONGER_THAN_IDLE_MS = 5_000

const manager = createFakeManager(() => text('value'))
let opened: TestGatehouse
let server: Listening
let socket: string
let key: string
let id: string
const newReference = async (): Promise<string> =>
  (await opened.call('POST', '/v1/secret-references', SECRET_REFERENCE)).body.id

beforeAll(async () => {
  const config = '[server]\nport = 0\nidle_timeout_seconds = 1'
  opened = await openTestGatehouse('sqlite', config, { managers: everyManager(manager) })
  socket = join(opened.dir, 'api.sock')
  opened.gatehouse.config.server.unix_socket = socket
  key = await addSystemKey(opened)
  server = await startServer(opened.gatehouse, { checkAnswers: true })
  id = await newReference()
})
afterAll(async () => {
  await server.stop()
  await opened.close()
})

interface Sent {
  body?: unknown
  headers?: Record<string, string>
  method?: string
  unix?: string
}
async function ask(path: string, { body = { workspace_id: null }, headers = {}, method = 'POST', unix }: Sent = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { 'x-service-api-key': key, 'content-type': 'application/json', ...headers },
    ...(method !== 'GET' && { body: JSON.stringify(body) }),
    ...(unix !== undefined && { unix }),
  })
  return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
}
const pathOf = (reference: string): string => `/v1/secret-references/${reference}/resolve`

test.each([
  ['http://h/v1/secret-references/openai-prod/resolve', 'openai-prod'],
  ['https://h:8787/v1/secret-references/5f0c/resolve', '5f0c'],
  ['http://h/v1/secret-references//resolve', undefined],
  ['http://h/v1/secret-references/resolve', undefined],
  ['http://h/v1/secret-references/a/b/resolve', undefined],
  ['http://h/v1/secret-references/a%20b/resolve', undefined],
  ['http://h/v1/secret-references/a?x=/resolve', undefined],
  ['http://h/v1/secret-references/a/resolve?x', undefined],
  ['http://h/v1/secret-references/a/resolve/', undefined],
  ['http://h/secret-references/a/resolve', undefined],
  ['http://h/x/v1/secret-references/a/resolve', undefined],
])('the reference of %s is %s', (url, target) => {
  expect(resolveTarget(url)).toBe(target)
})

describe('over HTTP', () => {
  test('the value is the same, whether the framework was asked or not', async () => {
    const plain = await ask(pathOf(id))
    expect(plain.status).toBe(200)
    expect(plain.body).toMatchObject({ object: 'secret-value', id, value: 'value' })
    for (const path of [`${pathOf(id)}?x`, pathOf(`%${id.charCodeAt(0).toString(16)}${id.slice(1)}`)])
      expect((await ask(path)).body).toEqual(plain.body)
  })

  test.each<[string, (reference: string) => string, Sent, number]>([
    ['no workspace', pathOf, { body: {} }, 400],
    ['a stranger', pathOf, { headers: { 'x-service-api-key': 'none' } }, 401],
    ['a proxy in between', pathOf, { headers: { 'x-forwarded-for': '192.0.2.1' } }, 401],
    ['no such reference', () => pathOf('nowhere'), {}, 404],
    ['another method', pathOf, { method: 'GET' }, 405],
    ['another content type', pathOf, { headers: { 'content-type': 'text/plain' } }, 415],
  ])('%s fails alike: %#', async (_what, path, sent, status) => {
    const plain = await ask(path(id), sent)
    const framed = await ask(`${path(id)}?x`, sent)
    expect(plain.status).toBe(status)
    const { request_id: one, ...body } = plain.body
    const { request_id: other, ...same } = framed.body
    expect(body).toEqual(same)
    expect(one).not.toBe(other)
  })

  test('1,000 callers on a cold reference make one call to the manager', async () => {
    const cold = await newReference()
    const { calls } = manager
    const answers = await Promise.all(Array.from({ length: 1000 }, () => ask(pathOf(cold))))
    expect(answers.filter(({ status, body }) => status === 200 && body.value === 'value')).toHaveLength(1000)
    expect(manager.calls).toBe(calls + 1)
  })

  test('over the unix socket, too', async () => {
    expect((await ask(pathOf(id), { unix: socket })).status).toBe(200)
  })

  test(
    'a manager that takes longer than a connection may be idle is waited for: resolve, test, at the port and the socket',
    async () => {
      const cold = [await newReference(), await newReference(), await newReference()]
      const admin = { headers: { 'x-service-api-key': opened.made.admin_key }, body: {} }
      manager.answer = async () => {
        await Bun.sleep(LONGER_THAN_IDLE_MS)
        return text('late')
      }
      const answers = await Promise.all([
        ask(pathOf(cold[0]!)),
        ask(pathOf(cold[1]!), { unix: socket }),
        ask(`/v1/secret-references/${cold[2]}/test`, admin),
      ])
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(answers.map(({ body }) => body.value ?? body.ok)).toEqual(['late', 'late', true])
    },
    4 * LONGER_THAN_IDLE_MS,
  )
})

test('only what asked a manager leaves a line in the log; all of it is counted', async () => {
  manager.answer = () => text('value')
  const cold = await newReference()
  const lines = () => opened.log.filter((line) => line.includes('/resolve')).length
  const before = lines()
  for (let i = 0; i < 5; i++) await ask(pathOf(cold))
  expect(lines()).toBe(before + 1)
  const metrics = (await opened.call('GET', '/metrics')).text
  expect(metrics).toMatch(/route="\/v1\/secret-references\/:secretReferenceId\/resolve",status="200"\} \d{4}/)
})
