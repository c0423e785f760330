import { beforeEach, describe, expect, test } from 'bun:test'
import { STEPS } from '../src/secret-managers/manager.ts'
import { DIALECTS } from './support/database.ts'
import { createFakeManager, everyManager, failing, text } from './support/fake-manager.ts'
import { expectProblem, type Scenario, scenarios, useWorld } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'
import { addOrganisation } from './support/tenants.ts'
import { SECRET_REFERENCE } from './support/things.ts'

// File 04: a test says how far one gets at the manager, of a stored reference and of one that is not stored.

const BASE = '/v1/secret-references'
const VALUE = 'canary-of-the-manager'
const TOKEN = SECRET_REFERENCE.auth_config.vault_token

describe.each(DIALECTS)('test: %s', (dialect) => {
  const manager = createFakeManager()
  const world = useWorld(
    dialect,
    async (opened) => {
      opened.keys['system'] = await addSystemKey(opened)
      const far = await addOrganisation(opened.gatehouse)
      opened.keys['far'] = far.adminKey
      opened.names['far_organisation'] = far.organisationId
      opened.names['id'] = (await opened.call('POST', BASE, SECRET_REFERENCE)).body.id
    },
    '',
    { managers: everyManager(manager) },
  )
  beforeEach(() => {
    manager.answer = (call) => {
      call.passed('login', 2)
      call.passed('read', 3)
      call.passed('parse', 1)
      return text(VALUE, 'v7')
    }
  })

  const newReference = async (body: object = {}): Promise<string> =>
    (await world().call('POST', BASE, { ...SECRET_REFERENCE, ...body })).body.id
  const tested = async (id: string, body: object = {}) => (await world().call('POST', `${BASE}/${id}/test`, body)).body
  const testedNew = async (body: object) =>
    (await world().call('POST', `${BASE}/test`, { ...SECRET_REFERENCE, ...body })).body

  test('every step is told in its order, and the value by its fingerprint alone', async () => {
    const { body, text: answered, headers } = await world().call('POST', `${BASE}/${world().names['id']}/test`, {})
    expect(body).toMatchObject({
      object: 'secret-reference-test',
      ok: true,
      failed_step: null,
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
      version: 'v7',
      used_cached_login: false,
    })
    expect(body.steps.map(({ step }: { step: string }) => step)).toEqual([...STEPS])
    const done = { ok: true, code: null, message: null, manager_message: null }
    expect(body.steps.find(({ step }: { step: string }) => step === 'read')).toEqual({ step: 'read', ms: 3, ...done })
    expect(answered).not.toContain(VALUE)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('a manager that fails is an answer, not an error: where, why, and what the manager said', async () => {
    manager.answer = failing('manager_denied')
    expect(await tested(await newReference())).toMatchObject({
      ok: false,
      failed_step: 'read',
      fingerprint: null,
      version: null,
      steps: STEPS.map((step) =>
        step === 'read'
          ? { step, ok: false, code: 'manager_denied', message: 'refused: manager_denied' }
          : { step, ...(step === 'parse' || step === 'field' ? { ok: null, code: 'not_reached' } : {}) },
      ),
    })
  })

  test('the field of the reference is part of it', async () => {
    expect(await tested(await newReference({ secret_key: 'api_key' }))).toMatchObject({
      ok: false,
      failed_step: 'field',
      fingerprint: null,
    })
  })

  test('a machine identity that is not granted is the first step', async () => {
    const ofMachine = {
      manager_type: 'aws_sm',
      secret_path: 'prod/openai',
      auth_config: { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' },
    }
    const { calls } = manager
    for (const body of [await tested(await newReference(ofMachine)), await testedNew(ofMachine)]) {
      expect(body).toMatchObject({ ok: false, failed_step: 'grant' })
      expect(body.steps[0].message).toContain('paths = ["prod/openai"]')
    }
    expect(manager.calls).toBe(calls)
  })

  test('the fingerprint is the same for the same value, and another one for another value or reference', async () => {
    const [one, two] = [await newReference(), await newReference()]
    const { fingerprint } = await tested(one)
    expect((await tested(one)).fingerprint).toBe(fingerprint)
    expect((await tested(two)).fingerprint).not.toBe(fingerprint)
    const ofNew = (await testedNew({})).fingerprint
    expect((await testedNew({ name: 'renamed' })).fingerprint).toBe(ofNew)
    expect((await testedNew({ secret_path: 'secret/other' })).fingerprint).not.toBe(ofNew)
    manager.answer = () => text('another value')
    expect((await tested(one)).fingerprint).not.toBe(fingerprint)
  })

  test('it goes past what is in memory, and leaves nothing there', async () => {
    const { call, keys } = world()
    const id = await newReference()
    const resolve = () => call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key: keys['system'] ?? '' })
    await tested(id)
    const { calls } = manager
    manager.answer = () => text('of a resolve')
    expect((await resolve()).body.value).toBe('of a resolve')
    expect(manager.calls).toBe(calls + 1)
    manager.answer = failing('manager_secret_missing')
    expect((await tested(id, { fresh: null })).ok).toBe(false)
    expect((await resolve()).body.value).toBe('of a resolve')
  })

  test('it uses the login at hand unless it is to be fresh, and says which', async () => {
    const { call, keys } = world()
    const id = await newReference()
    await call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key: keys['system'] ?? '' })
    const { opened } = manager
    expect((await tested(id)).used_cached_login).toBe(true)
    expect(manager.opened).toBe(opened)
    expect((await tested(id, { fresh: true })).used_cached_login).toBe(false)
    expect(manager.opened).toBe(opened + 1)
  })

  test('10 a minute of one reference, and of one tester what is not stored', async () => {
    const id = await newReference()
    for (let i = 0; i < 10; i++) expect((await tested(id)).ok).toBe(true)
    const answer = await world().call('POST', `${BASE}/${id}/test`, {})
    expectProblem(answer, 'rate_limited')
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await tested(await newReference())).ok).toBe(true)
    const { key } = await world().newKey('organisation/service', ['secret_references.test'])
    const statuses: number[] = []
    for (let i = 0; i < 11; i++)
      statuses.push((await world().call('POST', `${BASE}/test`, SECRET_REFERENCE, { key })).status)
    expect(statuses).toEqual([...Array(10).fill(200), 429])
  })

  test('nothing is stored of what is only tested', async () => {
    const { secretReferences } = world().gatehouse.read.tables
    const count = async () => (await world().gatehouse.read.select().from(secretReferences)).length
    const before = await count()
    await testedNew({ name: 'only tested', tags: { a: 1 } })
    expect(await count()).toBe(before)
  })

  scenarios(`POST ${BASE}/$id/test`, world, [
    { name: 'no body says as much as an empty one', expect: 200, answer: { ok: true } },
    { name: 'fresh is yes or no', body: { fresh: 1 }, expect: 'invalid', mentions: '"param":"fresh"' },
    {
      name: 'what is misspelt is told',
      body: { frehs: true },
      expect: 'invalid',
      mentions: 'did you mean \\"fresh\\"',
    },
    { name: 'a stranger learns nothing', as: 'nobody', body: '{', expect: 'unauthenticated' },
    { name: 'the system caller tests nothing', as: 'system', body: {}, expect: 'forbidden' },
    { name: 'another organisation has no such reference', as: 'far', body: {}, expect: 'not_found' },
    { name: 'one that is not there', call: `POST ${BASE}/nowhere/test`, body: {}, expect: 'not_found' },
  ])

  const refused = (name: string, body: object, mentions: string): Scenario => ({
    name,
    call: `POST ${BASE}/test`,
    body: { ...SECRET_REFERENCE, ...body },
    expect: 'invalid',
    mentions,
    notMentions: TOKEN,
  })
  scenarios(`POST ${BASE}/test`, world, [
    refused('what could not be stored is not tested', { secret_path: 'a/../b' }, '"param":"secret_path"'),
    refused('with all that is wrong', { auth_config: { vault_auth_type: 'token' } }, '"path":"auth_config.vault_addr"'),
    refused('an unknown workspace', { allowed_workspaces: ['nowhere'] }, '"path":"allowed_workspaces[0]"'),
    refused(
      'all workspaces and some',
      { allow_all_workspaces: true, allowed_workspaces: ['$workspace_id'] },
      '"param":"allowed_workspaces"',
    ),
    {
      name: 'another organisation is out of bounds',
      body: { ...SECRET_REFERENCE, organisation_id: '$far_organisation' },
      expect: 'forbidden',
    },
    { name: 'a stranger learns nothing', as: 'nobody', body: {}, expect: 'unauthenticated' },
  ])
})
