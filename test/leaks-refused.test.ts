import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { newApiKey } from '../src/api-keys/key.ts'
import { auditTrail } from './support/audit.ts'
import { type Canaries, createCanaries } from './support/canaries.ts'
import { openTestGatehouse, type TestGatehouse } from './support/gatehouse.ts'
import { createLeakSearch, filesBelow } from './support/leak-search.ts'
import { refusedRequests } from './support/refused-requests.ts'
import { addSystemKey } from './support/system-key.ts'

// The leak hunt among requests that are refused: what was sent by mistake is in no answer, no log and no audit row, nor
// in any file (SE-6, HT-1, OB-3). In this process, where each refusal can be made to leave a row of its own.

const BASE = '/v1/secret-references'
let canaries: Canaries
let opened: TestGatehouse
let id: string
let system: string
const search = createLeakSearch()

beforeAll(async () => {
  canaries = createCanaries()
  opened = await openTestGatehouse()
  system = await addSystemKey(opened)
  id = (await opened.call('POST', BASE, { name: 'r', ...canaries.shapes.token })).body.id
  for (const [name, mark] of Object.entries(canaries.marks)) search.add(name, mark)
  search.add('the master key', Buffer.from(masterKey().split(' ').at(-1) ?? '', 'base64'))
  search.add('the admin key', opened.made.admin_key)
  search.add('the system key', system)
})
afterAll(() => opened.close())

const masterKey = () => readFileSync(join(opened.dir, 'master.key'), 'utf8').trim()

/** Sends it, and has its refusal written down. */
async function refused(...request: Parameters<TestGatehouse['call']>): Promise<number> {
  const { status, text, headers } = await opened.call(...request)
  search.look('answers', text)
  search.look('headers', JSON.stringify([...headers]))
  await opened.gatehouse.refusals.flush()
  return status
}

/** @param except what may stand in the trail, where the database and the sink have it from */
async function lookEverywhere(except: string[]): Promise<void> {
  search.look('log', opened.log.join(''))
  const rows = await auditTrail(opened.gatehouse.read)
  for (const row of rows) search.look('trail', JSON.stringify(row), except)
  for (const { path, bytes } of filesBelow(join(opened.dir, 'data'))) search.look(path, bytes, except)
  search.look('metrics', (await opened.call('GET', '/metrics')).text)
}

test('in any field, under any name, in what is no JSON, of any type, in the query', async () => {
  const stray = `stray ${createCanaries().marks.secret}`
  search.add('stray', stray)
  const requests = refusedRequests(canaries, id, stray)
  const accepted: string[] = []
  for (const { name, method, path, body, headers = { 'content-type': 'application/json' } } of requests) {
    const key = path.endsWith('/resolve') ? system : opened.made.admin_key
    const status = await refused(method, path, body, { key, headers })
    if (status < 400 || status >= 500) accepted.push(`${status} ${method} ${path.split('?')[0]}: ${name}`)
  }
  expect(accepted).toEqual([])
  await lookEverywhere(['stray'])
  expect(search.leaks).toEqual([])
  const rows = (await auditTrail(opened.gatehouse.read)).filter((row) => row.response_status_code >= 400)
  expect(rows.length).toBeGreaterThanOrEqual(requests.length)
}, 60_000)

test('an API key in the path, in the query, in headers and in bodies', async () => {
  const key = newApiKey('a')
  const [, secretPart = ''] = /^gth_(.+)$/.exec(key) ?? []
  search.add('a misplaced key', secretPart)
  const { token } = canaries.shapes
  const bodies = [
    { [key]: key },
    { name: 'r', ...token, slug: `${key} ` },
    { name: 'r', ...token, [key]: { key } },
    { name: 'r', ...token, allowed_workspaces: [key] },
    { name: 'r', ...token, description: [key] },
    { name: 'r', ...token, tags: [{ [key]: key }] },
    { name: 'r', ...token, manager_type: key },
    { name: 'r', ...token, secret_path: [key] },
    { name: 'r', ...token, auth_config: { ...token.auth_config, [key]: key } },
    { name: 'r', ...token, auth_config: { ...token.auth_config, vault_addr: `https://${key}@vault.example.com` } },
  ]
  const headers = [
    'x-service-api-key',
    'authorization',
    'cookie',
    'referer',
    'user-agent',
    'origin',
    'accept',
    'content-type',
    'x-request-id',
    'idempotency-key',
    'x-forwarded-for',
  ]
  const statuses = [
    await refused('GET', `${BASE}/${key}`),
    await refused('GET', `${BASE}?search=${key}`),
    await refused('POST', `${BASE}/${key}/resolve`, { workspace_id: key }, { key: system }),
    await refused('POST', `${BASE}/${id}/resolve`, { workspace_id: key }, { key: system }),
    await refused('POST', `${BASE}/${id}/resolve`, { workspace_id: null, key }, { key: system }),
    await refused('POST', `${BASE}/${id}/test`, { fresh: key }),
  ]
  for (const body of bodies)
    statuses.push(await refused('POST', BASE, body), await refused('POST', `${BASE}/test`, body))
  for (const name of headers) statuses.push(await refused('POST', BASE, { name: 'r' }, { headers: { [name]: key } }))
  expect(statuses.filter((status) => status < 400 || status >= 500)).toEqual([])
  await lookEverywhere(['stray'])
  expect(search.leaks).toEqual([])
})

test('requests that are sent again', async () => {
  const body = { name: 'again', ...canaries.shapes.approle }
  const headers = { 'idempotency-key': 'the-same' }
  const send = (changes: object) => opened.call('POST', BASE, { ...body, ...changes }, { headers })
  const answers = [await send({}), await send({}), await send({ auth_config: canaries.shapes.token.auth_config })]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 409])
  for (const { text, headers } of answers) search.look('answers', `${text} ${JSON.stringify([...headers])}`)
  await opened.gatehouse.refusals.flush()
  await lookEverywhere(['stray'])
  expect(search.leaks).toEqual([])
})
