import { afterEach, describe, expect, setSystemTime, test } from 'bun:test'
import { DIALECTS } from './support/database.ts'
import { expectProblem, useWorld } from './support/scenario.ts'
import { addPerson } from './support/tenants.ts'

const DAY_SECONDS = 86_400
const inDays = (days: number) => new Date(Date.now() + days * DAY_SECONDS * 1000).toISOString()
afterEach(() => setSystemTime())

describe.each(DIALECTS)('settings that bind user keys: %s', (dialect) => {
  const world = useWorld(dialect)

  const set = async (settings: object, workspace = false) => {
    const { call, made } = world()
    const path = workspace ? `/v1/admin/workspaces/${made.workspace_id}` : '/v1/admin/organisation/settings'
    const { status, text } = await call('PUT', path, workspace ? { settings } : settings)
    expect(status, text).toBe(200)
  }
  const create = (form: 'workspace/user' | 'workspace/service', extra: object = {}) =>
    world().call('POST', `/v1/api-keys/${form}`, {
      name: 'k',
      scopes: ['prompts.list'],
      workspace_id: world().made.workspace_id,
      ...extra,
    })
  const read = async (id: string) => (await world().call('GET', `/v1/api-keys/${id}`)).body
  const made = async (form: 'workspace/user' | 'workspace/service', extra: object = {}) => {
    const { body, text } = await create(form, extra)
    expect(body.id, text).toBeString()
    return read(body.id)
  }
  const update = (id: string, body: object) => world().call('PUT', `/v1/api-keys/${id}`, body)

  test('a user key lives as long as the settings say, and not longer; other keys as long as they want', async () => {
    await set({ user_api_key_ttl: 2 * DAY_SECONDS, user_api_key_max_ttl: 10 * DAY_SECONDS })
    const byDefault = await made('workspace/user')
    expect(Date.parse(byDefault.expires_at) - Date.parse(byDefault.created_at)).toBe(2 * DAY_SECONDS * 1000)
    expect((await made('workspace/service')).expires_at).toBeNull()
    expectProblem(await create('workspace/user', { expires_at: inDays(11) }), 'invalid')
    const expires_at = inDays(9)
    const chosen = await made('workspace/user', { expires_at })
    expect(chosen.expires_at).toBe(expires_at)
    expectProblem(await update(chosen.id, { expires_at: inDays(11) }), 'invalid')
    setSystemTime(Date.now() + 5 * DAY_SECONDS * 1000)
    expectProblem(await update(chosen.id, { expires_at: inDays(9) }), 'invalid')
    expect((await update(chosen.id, { expires_at: inDays(4.5) })).status, 'counted from its birth').toBe(200)
  })

  test('null gives a user key back the life that it was born with, and never ends one that still lives', async () => {
    await set({ user_api_key_ttl: 2 * DAY_SECONDS, user_api_key_max_ttl: 10 * DAY_SECONDS })
    const key = await made('workspace/user', { expires_at: inDays(9) })
    const lifeAfter = async (expires_at: string | null) => {
      expect((await update(key.id, { expires_at })).status).toBe(200)
      return (Date.parse((await read(key.id)).expires_at) - Date.parse(key.created_at)) / (DAY_SECONDS * 1000)
    }
    expect(await lifeAfter(null), 'the default').toBe(2)
    expect(await lifeAfter(null), 'sent again it puts nothing off').toBe(2)
    await set({ user_api_key_ttl: null })
    expect(await lifeAfter(null), 'the maximum').toBe(10)
    expect(await lifeAfter(inDays(9))).toBeCloseTo(9, 2)
    await set({ user_api_key_ttl: 2 * DAY_SECONDS })
    setSystemTime(Date.now() + 5 * DAY_SECONDS * 1000)
    expect(await lifeAfter(null), 'the default is over').toBeCloseTo(9, 2)
  })

  test('a workspace may ask for another life', async () => {
    await set({ user_api_key_ttl: DAY_SECONDS, user_api_key_max_ttl: null })
    await set({ user_api_key_ttl: 3 * DAY_SECONDS }, true)
    const key = await made('workspace/user')
    expect(Date.parse(key.expires_at) - Date.parse(key.created_at)).toBe(3 * DAY_SECONDS * 1000)
    await set({ user_api_key_ttl: null }, true)
    await set({ user_api_key_ttl: null })
    expect((await made('workspace/user')).expires_at).toBeNull()
  })

  test('a person has no more keys in a workspace than the settings allow, however many are asked for at once', async () => {
    const user_id = await addPerson(world().gatehouse, world().made.organisation_id, 'admin')
    await set({ user_api_key_count: 2 })
    const answers = await Promise.all(Array.from({ length: 6 }, () => create('workspace/user', { user_id })))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
    const refused = answers.find(({ status }) => status !== 200)
    expect(refused?.body.error.param).toBe('user_id')
    const id = answers.find(({ status }) => status === 200)?.body.id
    await world().call('DELETE', `/v1/api-keys/${id}`)
    expect((await create('workspace/user', { user_id })).status, 'a deleted key makes room').toBe(200)
    await set({ user_api_key_count: null })
  })

  test('a rotation that the organisation demands cannot be slowed down or taken away', async () => {
    await set({ user_api_key_rotation_period: 'monthly' })
    const key = await made('workspace/user')
    expect(key.rotation_policy).toMatchObject({ rotation_period: 'monthly', status: 'active' })
    expect((await made('workspace/service')).rotation_policy).toBeNull()
    expectProblem(
      await create('workspace/user', { rotation_policy: { next_rotation_at: '2999-01-01T00:00:00Z' } }),
      'invalid',
    )
    expect((await update(key.id, { rotation_policy: null })).status, 'clients send null for all that is unset').toBe(
      200,
    )
    expect((await read(key.id)).rotation_policy).toEqual(key.rotation_policy)
    expect((await update(key.id, { rotation_policy: { rotation_period: 'weekly' } })).status).toBe(200)
    await set({ user_api_key_rotation_period: 'weekly' })
    expectProblem(await update(key.id, { rotation_policy: { rotation_period: 'monthly' } }), 'invalid')
    await set({ user_api_key_rotation_period: null })
    expect((await update(key.id, { rotation_policy: null })).status).toBe(200)
    expect((await read(key.id)).rotation_policy).toBeNull()
  })

  test('metadata follow the schema of the organisation', async () => {
    await set({
      api_key_metadata_schema: { type: 'object', required: ['team'], properties: { team: { enum: ['a', 'b'] } } },
    })
    expect((await create('workspace/service')).body.error.param).toBe('defaults.metadata.team')
    expectProblem(await create('workspace/service', { defaults: { metadata: { team: 'c' } } }), 'invalid')
    const key = await made('workspace/service', { defaults: { metadata: { team: 'a' } } })
    expectProblem(await update(key.id, { defaults: { metadata: null } }), 'invalid')
    expect((await update(key.id, { defaults: { allow_config_override: false } })).status).toBe(200)
    await set({ api_key_metadata_schema: null })
  })

  test('a key that was made by itself has no secret until its first rotate', async () => {
    const { call, gatehouse, made } = world()
    await set({ default_workspace_user_api_key_auto_create: true })
    const user_id = await addPerson(gatehouse, made.organisation_id, 'member')
    const members = `/v1/admin/workspaces/${made.workspace_id}/users`
    expect((await call('POST', members, { users: [{ id: user_id, role: 'member' }] })).status).toBe(200)
    const { data } = (await call('GET', '/v1/api-keys')).body
    const key = data.find((each: { user_id: string }) => each.user_id === user_id)
    expect(key).toMatchObject({ creation_mode: 'auto', type: 'workspace-user', key: '*****', status: 'active' })
    const { body } = await call('POST', `/v1/api-keys/${key.id}/rotate`)
    expect(body.id).toBe(key.id)
    expect(body.key).toStartWith('gth_w_')
    expect((await call('GET', '/v1/prompts', undefined, { key: body.key })).status).toBe(200)
    expect((await call('POST', `/v1/api-keys/${key.id}/rotate`)).status, 'there was no old secret').toBe(200)
    await set({ default_workspace_user_api_key_auto_create: null })
  })
})
