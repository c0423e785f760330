import { describe, expect, test } from 'bun:test'
import { newApiKey } from '../../src/api-keys/key.ts'
import { auditTrail } from '../support/audit.ts'
import { expectProblem, useWorld } from '../support/scenario.ts'

const HEADER = 'x-service-api-key'
const ALIAS = 'x-portkey-api-key'

describe('how a key is sent', () => {
  const world = useWorld()
  const get = (headers: Record<string, string>, path = '/v1/prompts') =>
    world().call('GET', path, undefined, { key: null, headers })

  test('in either header, and in both when they agree', async () => {
    const key = world().made.admin_key
    for (const headers of [
      { [HEADER]: key },
      { [ALIAS]: key },
      { [HEADER]: key, [ALIAS]: key },
      { [HEADER.toUpperCase()]: ` ${key} ` },
    ])
      expect((await get(headers)).status).toBe(200)
  })

  test('two that differ are refused, and so is one header sent twice: nobody can tell which one counts', async () => {
    const key = world().made.admin_key
    for (const headers of [
      { [HEADER]: key, [ALIAS]: newApiKey('a') },
      { [HEADER]: key, [ALIAS]: '' },
      { [HEADER]: `${key}, ${key}` },
    ])
      expectProblem(await get(headers), 'invalid')
  })

  test('a key in the URL is refused even beside a good one, since URLs are logged everywhere', async () => {
    const { made, log } = world()
    const key = newApiKey('a')
    for (const path of [`/v1/prompts?api_key=${key}`, `/v1/prompts/${key}`, `/v1/prompts/${key}/versions?x`]) {
      const answer = await get({ [HEADER]: made.admin_key }, path)
      expectProblem(answer, 'key_in_url')
      expect(answer.text).not.toContain(key)
    }
    expect(log.join('')).not.toContain(key)
  })

  test('nor does percent-encoding hide it, from the refusal, the log or the trail', async () => {
    const { made, log, gatehouse } = world()
    const key = newApiKey('a')
    const rest = key.slice(6)
    for (const path of [
      `/v1/labels?x=%67${key.slice(1)}`,
      `/v1/labels/%67th_a_${rest}`,
      `/v1/labels/g%74h%5Fa_${rest}?x`,
      `/v1/labels?x=%2567th_a_${rest}`,
    ])
      expectProblem(await get({ [HEADER]: made.admin_key }, path), 'key_in_url')
    expect((await get({ [HEADER]: made.admin_key }, `/nothing/%67th_a_${rest}`)).status).toBe(404)
    await gatehouse.refusals.flush()
    const trail = JSON.stringify(await auditTrail(gatehouse.read))
    expect(trail).toContain('/v1/labels?x=[key]')
    expect(log.join('')).toContain('/nothing/[key]')
    for (const text of [trail, log.join('')]) expect(text).not.toContain(rest)
  })

  test('a key that is sent as the id of a request is not logged', async () => {
    const { made, log } = world()
    const key = newApiKey('a')
    await get({ [HEADER]: made.admin_key, 'x-request-id': key })
    expect(log.join('')).toContain('"client_request_id":"[key]"')
    expect(log.join('')).not.toContain(key)
  })

  test('nowhere else', async () => {
    const { made, call } = world()
    const key = made.admin_key
    for (const headers of [{ authorization: `Bearer ${key}` }, { cookie: `${HEADER}=${key}` }, { 'x-api-key': key }])
      expectProblem(await get(headers), 'unauthenticated')
    expectProblem(await call('POST', '/v1/prompts', { [HEADER]: key, name: 'p' }, { key: null }), 'unauthenticated')
  })

  test('one wrong character anywhere is no key', async () => {
    const key = world().made.admin_key
    for (let i = 0; i < key.length; i++) {
      const wrong = key.slice(0, i) + (key[i] === 'a' ? 'b' : 'a') + key.slice(i + 1)
      expectProblem(await get({ [HEADER]: wrong }), 'unauthenticated')
    }
    for (const wrong of [
      '',
      key.slice(1),
      key.slice(0, -1),
      `${key}a`,
      key.toLowerCase(),
      'x'.repeat(5000),
      newApiKey('a'),
      newApiKey('w'),
    ])
      expectProblem(await get({ [HEADER]: wrong }), 'unauthenticated')
  })

  test('an unknown, a mistyped and a deleted key are told the same', async () => {
    const { newKey, call } = world()
    const { id, key } = await newKey('organisation/service', ['prompts.list'])
    await call('DELETE', `/v1/api-keys/${id}`)
    const answers = await Promise.all([key, newApiKey('a'), 'gth_a_x'].map((each) => get({ [HEADER]: each })))
    expect(new Set(answers.map(({ body }) => body.message)).size).toBe(1)
  })
})

describe('the names of the headers are settings', () => {
  const world = useWorld(
    'sqlite',
    undefined,
    '[server]\nkey_headers = ["x-own-key"]\nrequest_id_headers = ["x-own-id", "x-request-id"]\n',
  )

  test('the own one alone is read, and written', async () => {
    const { made, call } = world()
    const send = (name: string) =>
      call('GET', '/v1/prompts', undefined, { key: null, headers: { [name]: made.admin_key } })
    const answer = await send('x-own-key')
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-own-id')).toMatch(/^[a-z]{20}$/)
    expect(answer.headers.has('x-portkey-request-id')).toBe(false)
    expectProblem(await send(HEADER), 'unauthenticated')
  })
})
