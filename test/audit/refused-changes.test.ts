import { describe, expect, test } from 'bun:test'
import { newApiKey } from '../../src/api-keys/key.ts'
import { auditTrail, doneBy } from '../support/audit.ts'
import { useWorld } from '../support/scenario.ts'

describe('the row of a refused change', () => {
  const world = useWorld()

  /** The rows that `work` left, oldest first, each of another kind than the rows before. */
  async function rowsOf(work: () => Promise<unknown>) {
    const { read, refusals } = world().gatehouse
    await refusals.flush()
    const before = (await auditTrail(read))[0]?.seq ?? 0
    await work()
    await refusals.flush()
    return (await auditTrail(read)).filter(({ seq }) => seq > before).reverse()
  }
  const send = (call: string, body?: unknown, key?: string) => {
    const [method = '', path = ''] = call.split(' ')
    return world().call(method, path, body, key === undefined ? {} : { key })
  }

  test('says what was sent, masked as that of a change is, and of what', async () => {
    const { call } = world()
    const { id } = (await call('POST', '/v1/labels', { name: 'mine' })).body
    const clear = newApiKey('a')
    const body = { name: `of ${clear}`, password: 'hunter2', no_such_field: 1 }
    const [row] = await rowsOf(() => call('PUT', `/v1/labels/${id}`, body))
    expect(row).toMatchObject({
      response_status_code: 400,
      resource_type: 'labels',
      action: 'update',
      resource_id: id,
      request_body: { name: 'of [key]', password: { hmac: expect.any(String) }, no_such_field: 1 },
    })
    expect(JSON.stringify(row)).not.toContain('hunter2')
  })

  test('holds no variables of a render, and no body of somebody who is unknown', async () => {
    const { call } = world()
    const rows = await rowsOf(async () => {
      await call('POST', '/v1/prompts/none/render', { variables: { a: 'private' } })
      await call('POST', '/v1/labels', { name: 'private' }, { key: null })
      await call('POST', '/v1/admin/users/invites/accept', { token: 'private', first_name: 'private' }, { key: null })
    })
    expect(rows).toHaveLength(3)
    expect(JSON.stringify(rows)).not.toContain('private')
  })

  test('names the prompt of a version, and nothing that is no id', async () => {
    const { call } = world()
    const rows = await rowsOf(async () => {
      await call('PUT', '/v1/prompts/pp-a/versions/v-b', { label_id: null, other: 1 })
      await call('PUT', '/v1/labels/%00', { name: 'x' })
    })
    expect(new Set(rows.map(({ resource_id: id }) => id))).toEqual(new Set(['pp-a', null]))
  })

  test('names what a success would name, so that one filter finds both', async () => {
    const { call, newKey, made } = world()
    const weak = (await newKey('organisation/service', ['audit_logs.list'])).key
    const prompt = { string: 'x', parameters: {} }
    const { id: collection } = (await call('POST', '/v1/collections', { name: 'one' })).body
    const { id: label } = (await call('POST', '/v1/labels', { name: 'one' })).body
    const { id: key } = await newKey('workspace/service', ['prompts.read'], { workspace_id: made.workspace_id })
    const invite = { email: 'new@example.com', role: 'member', workspaces: [] }
    const { id: invited } = (await call('POST', '/v1/admin/users/invites', { ...invite, email: 'first@example.com' }))
      .body
    const changes: [call: string, body?: unknown][] = [
      ['POST /v1/collections', { name: 'two' }],
      [`PUT /v1/collections/${collection}`, { name: 'three' }],
      ['POST /v1/labels', { name: 'two' }],
      [`PUT /v1/labels/${label}`, { description: 'd' }],
      ['POST /v1/prompts', { name: 'p', ...prompt }],
      ['POST /v1/prompts/partials', { name: 'p', string: 'x' }],
      ['POST /v1/admin/users/invites', invite],
      [`POST /v1/admin/users/invites/${invited}/resend`, {}],
      [`DELETE /v1/admin/users/invites/${invited}`],
      [`PUT /v1/api-keys/${key}`, { name: 'renamed' }],
      [`POST /v1/api-keys/${key}/rotate`, {}],
      [`DELETE /v1/api-keys/${key}`],
      ['POST /v1/admin/workspaces', { name: 'w' }],
      [`PUT /v1/admin/workspaces/${made.workspace_id}`, { description: 'd' }],
      [`DELETE /v1/labels/${label}`],
      [`DELETE /v1/collections/${collection}`],
    ]
    for (const [change, body] of changes) {
      const rows = await rowsOf(async () => {
        expect((await send(change, body, weak)).status, change).toBe(403)
        const done = await send(change, body)
        expect(done.status, `${change}: ${done.text}`).toBe(200)
      })
      expect(rows, change).toHaveLength(2)
      const [first, second] = rows.map((row) => [doneBy(row), row.resource_id])
      expect(first?.[0], change).toBe(second?.[0])
      const isPost = /^POST \/\S+$/.test(change) && !/(?:rotate|resend)$/.test(change)
      if (!isPost) expect(rows[0]?.resource_id).toBe(rows[1]?.resource_id ?? '')
    }
  })

  test('of a key of another organisation does not tell its type', async () => {
    const { call } = world()
    const rows = await rowsOf(() => call('PUT', `/v1/api-keys/${Bun.randomUUIDv7()}`, { name: 'x' }))
    expect(rows.map(doneBy)).toEqual(['organisation_service_api_keys.update'])
  })
})

describe('the row of a change', () => {
  const world = useWorld()

  test('holds no API key that somebody used as a name', async () => {
    const { call, gatehouse } = world()
    const key = newApiKey('a')
    expect((await call('POST', '/v1/collections', { name: `my ${key}` })).status).toBe(200)
    expect((await call('POST', '/v1/labels', { name: key })).status).toBe(200)
    const trail = await auditTrail(gatehouse.read)
    expect(trail.slice(0, 2).map(({ resource_name: name }) => name)).toEqual(['[key]', 'my [key]'])
    expect(JSON.stringify(trail)).not.toContain(key.slice(6))
  })
})
