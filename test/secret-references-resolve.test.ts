import { afterAll, beforeAll, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { MANAGER_PROBLEMS, PROBLEMS, type ProblemCode } from '../schema/api/errors.ts'
import {
  type Batch,
  beginDataKeyRotation,
  type Cursor,
  finishDataKeyRotation,
  resealBatch,
} from '../src/keyring/data-key.ts'
import type { ManagerFailure } from '../src/secret-managers/manager.ts'
import { DIALECTS } from './support/database.ts'
import { createFakeManager, everyManager, failing, text } from './support/fake-manager.ts'
import { expectProblem, type Scenario, scenarios, useWorld, type World } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'
import { addOrganisation, addWorkspace } from './support/tenants.ts'
import { SECRET_REFERENCE } from './support/things.ts'

// File 04, resolve: who gets a value, where it comes from, and what is said when there is none. What it leaves in the
// trail is in `secret-references-audit`.

const BASE = '/v1/secret-references'
const SECRET = JSON.stringify({ api_key: 'sk-of-openai', tries: 3, big: 1, nested: { a: [1] }, gone: null }).replace(
  '"big":1',
  '"big":12345678901234567890',
)
const ARCHIVED = { force_delete: true }

/** The clock stands still, so that nothing expires between two calls and no minute ends. */
const NOW = new Date('2026-03-01T12:00:00Z')
beforeAll(() => void setSystemTime(NOW))
afterAll(() => void setSystemTime())

describe.each(DIALECTS)('resolve: %s', (dialect) => {
  const manager = createFakeManager()
  const world = useWorld(dialect, setUp, '', { managers: everyManager(manager) })

  async function setUp(opened: World): Promise<void> {
    const { gatehouse, made, names, keys, call } = opened
    keys['system'] = await addSystemKey(opened)
    const far = await addOrganisation(gatehouse)
    keys['far'] = far.adminKey
    for (const name of ['one', 'two', 'gone']) {
      const { workspaceId, workspaceSlug } = await addWorkspace(gatehouse, made.organisation_id)
      Object.assign(names, { [name]: workspaceId, [`${name}_slug`]: workspaceSlug })
    }
    const make = async (name: string, body: object, key?: string) => {
      const answer = await call('POST', BASE, { ...SECRET_REFERENCE, name, ...body }, key ? { key } : {})
      names[name] = answer.body.id
    }
    await make('open', {})
    await make('limited', { allowed_workspaces: [names['one'], names['gone']] })
    await make('of_gone', { allowed_workspaces: [names['gone']] })
    await make('nobody', { allow_all_workspaces: false })
    await make('keyed', { secret_key: 'api_key' })
    await make('theirs', {}, far.adminKey)
    await call('DELETE', `/v1/admin/workspaces/${names['gone']}`, ARCHIVED)
    names['far_workspace'] = far.workspaceId
  }

  beforeEach(() => {
    manager.answer = () => text(SECRET, 'v7')
  })

  const resolve = (name: string, body: object = {}, headers: Record<string, string> = {}) => {
    const { call, keys, names } = world()
    const sent = { workspace_id: names['workspace_id'], ...body }
    return call('POST', `${BASE}/${names[name] ?? name}/resolve`, sent, { key: keys['system'] ?? '', headers })
  }
  const newReference = async (body: object = {}): Promise<string> => {
    const answer = await world().call('POST', BASE, { ...SECRET_REFERENCE, ...body })
    return answer.body.id
  }
  const put = async (id: string, body: object) => {
    const answer = await world().call('PUT', `${BASE}/${id}`, body)
    expect(answer.status, answer.text).toBe(200)
  }

  test('the value comes with where and when it is from, and is kept by no cache on the way', async () => {
    const { body, headers } = await resolve('open')
    expect(body).toEqual({
      object: 'secret-value',
      id: world().names['open'],
      slug: 'open',
      value: SECRET,
      encoding: 'utf-8',
      version: 'v7',
      fetched_at: NOW.toISOString(),
      expires_at: expect.stringMatching(/^2026-03-01T12:0[45]:\d\d\.\d{3}Z$/),
      stale: false,
      stale_reason: null,
    })
    expect(headers.get('cache-control')).toBe('no-store')
  })

  describe('who gets it', () => {
    // Reads no further than the first that fails, so that no row of the audit trail is counted here.
    const reached: [what: string, reference: string, workspace: string | null, isReached: boolean][] = [
      ['one that is open to all, any workspace', 'open', '$one', true],
      ['by its slug too', 'open', '$one_slug', true],
      ['and the organisation itself', 'open', null, true],
      ['a limited one, the workspace that it names', 'limited', '$one', true],
      ['by its slug too', 'limited', '$one_slug', true],
      ['no other workspace', 'limited', '$two', false],
      ['not the organisation itself', 'limited', null, false],
      ['not a workspace that was archived since', 'limited', '$gone', false],
      ['one whose only workspace was archived: nobody', 'of_gone', '$one', false],
      ['not the organisation either', 'of_gone', null, false],
      ['one without a workspace: the organisation itself', 'nobody', null, true],
      ['and no workspace', 'nobody', '$one', false],
      ['an archived workspace gets nothing', 'open', '$gone', false],
      ['an unknown one nothing', 'open', 'nowhere', false],
      ['one of another organisation nothing', 'open', '$far_workspace', false],
      ['a reference of another organisation is not there', 'theirs', null, false],
      ['nor is one that never was', '0190b8c4-0000-7000-8000-000000000000', null, false],
      ['nor one by a slug in another case', 'OPEN', null, false],
    ]
    test.each(reached)('%s (%s for %s)', async (_what, reference, workspace, isReached) => {
      const { names } = world()
      const answer = await resolve(reference, { workspace_id: workspace && (names[workspace.slice(1)] ?? workspace) })
      if (isReached) expect(answer.body).toMatchObject({ value: SECRET })
      else {
        expectProblem(answer, 'not_found')
        expect(answer.body.message).toBe('secret reference not found')
      }
    })

    test('reach is looked at before memory: who is out of it gets nothing of what others fetched', async () => {
      await resolve('limited', { workspace_id: world().names['one'] })
      const { calls } = manager
      expectProblem(await resolve('limited', { workspace_id: world().names['two'] }), 'not_found')
      expectProblem(await resolve('limited', { workspace_id: world().names['two'], refresh: true }), 'not_found')
      expect(manager.calls).toBe(calls)
    })
  })

  const asked = (
    name: string,
    body: unknown,
    expected: ProblemCode | 200,
    mentions: string | string[] = [],
  ): Scenario => ({
    name,
    as: 'system',
    body,
    expect: expected,
    mentions,
  })
  scenarios(`POST ${BASE}/$open/resolve`, world, [
    { name: 'a stranger learns nothing about the body', as: 'nobody', body: '{', expect: 'unauthenticated' },
    { name: 'an admin key gets no value, whatever it may do', body: '{', expect: 'forbidden', mentions: 'system key' },
    { name: 'nor does one of another organisation', as: 'far', body: {}, expect: 'forbidden' },
    asked('who it is for must be said', {}, 'invalid', '"param":"workspace_id"'),
    asked(
      'the organisation itself, too: an absent name is a slip',
      { secret_key: 'api_key' },
      'invalid',
      'workspace_id',
    ),
    asked('a workspace is a name', { workspace_id: 1 }, 'invalid', '"param":"workspace_id"'),
    asked('or an id', { workspace_id: '' }, 'invalid', '"param":"workspace_id"'),
    asked('a big number is none', '{"workspace_id":123456789012345678901}', 'invalid', '"param":"workspace_id"'),
    asked('a field has a name', { workspace_id: null, secret_key: '' }, 'invalid', '"param":"secret_key"'),
    asked('refresh is yes or no', { workspace_id: null, refresh: 'yes' }, 'invalid', '"param":"refresh"'),
    asked(
      'what is misspelt is told',
      { workspace_id: null, secret_kye: 'a' },
      'invalid',
      'did you mean \\"secret_key\\"',
    ),
    asked('the body is JSON', '{', 'invalid'),
    asked('an object', '[]', 'invalid'),
    asked('an id that is not the one of the path', { workspace_id: null, id: 'x' }, 'invalid', '"param":"id"'),
    // A row for it is there already: the organisation itself has asked in this minute.
    { ...asked('nulls say nothing', { workspace_id: null, secret_key: null, refresh: null }, 200), audit: 0 },
  ])

  test.each([
    ['a text is as it is', 'api_key', 'sk-of-openai'],
    ['a number is text', 'tries', '3'],
    ['of any length', 'big', '12345678901234567890'],
    ['an object is JSON text', 'nested', '{"a":[1]}'],
  ])('of a field %s', async (_what, secretKey, value) => {
    expect((await resolve('open', { secret_key: secretKey })).body).toMatchObject({ value, encoding: 'utf-8' })
  })

  test('the field of the reference counts, unless the call names another one', async () => {
    expect((await resolve('keyed')).body.value).toBe('sk-of-openai')
    expect((await resolve('keyed', { secret_key: 'tries' })).body.value).toBe('3')
  })

  test('bytes come in base64', async () => {
    manager.answer = () => ({ content: new Uint8Array([0, 255, 10]), version: null })
    expect((await resolve(await newReference())).body).toMatchObject({
      value: 'AP8K',
      encoding: 'base64',
      version: null,
    })
  })

  describe('what is in memory', () => {
    test('is asked for once, whoever asks: for another field, another workspace, 1,000 at a time', async () => {
      const id = await newReference()
      const { calls } = manager
      const answers = await Promise.all(Array.from({ length: 1000 }, () => resolve(id)))
      expect(new Set(answers.map(({ body }) => body.value))).toEqual(new Set([SECRET]))
      await resolve(id, { secret_key: 'api_key' })
      await resolve(id, { workspace_id: world().names['one'] })
      await resolve((await world().call('GET', `${BASE}/${id}`)).body.slug)
      expect(manager.calls).toBe(calls + 1)
    })

    test('refresh asks the manager, at most once in 5 s', async () => {
      const id = await newReference()
      await resolve(id)
      manager.answer = () => text('rotated')
      expect((await resolve(id)).body.value).toBe(SECRET)
      expect((await resolve(id, { refresh: true })).body.value).toBe('rotated')
      manager.answer = () => text('rotated again')
      expect((await resolve(id, { refresh: true })).body.value).toBe('rotated')
    })

    const changes: [what: string, change: (id: string) => Promise<unknown>, then: ProblemCode | 'fetched again'][] = [
      ['another path', (id) => put(id, { secret_path: 'secret/other' }), 'fetched again'],
      ['a new login', (id) => put(id, { auth_config: { vault_token: 'hvs.another-one' } }), 'fetched again'],
      ['the reference is deleted', (id) => world().call('DELETE', `${BASE}/${id}`), 'not_found'],
      ['its access is narrowed', (id) => put(id, { allowed_workspaces: [world().names['two']] }), 'not_found'],
      ['its access is closed', (id) => put(id, { allow_all_workspaces: false }), 'not_found'],
    ]
    test.each(changes)('goes with the answer to a change: %s', async (_what, change, then) => {
      const id = await newReference()
      expect((await resolve(id)).body.value).toBe(SECRET)
      manager.answer = () => text('new')
      await change(id)
      const answer = await resolve(id)
      if (then === 'fetched again') expect(answer.body.value).toBe('new')
      else expectProblem(answer, then)
    })

    test('a change of access takes effect without another fetch', async () => {
      const { names } = world()
      const id = await newReference({ allowed_workspaces: [names['two']] })
      expectProblem(await resolve(id), 'not_found')
      await put(id, { allowed_workspaces: [names['workspace_id']] })
      expect((await resolve(id)).status).toBe(200)
    })

    test('a slug that another reference takes over is that one at once', async () => {
      const first = await newReference({ slug: 'taken-over' })
      await resolve('taken-over')
      await world().call('DELETE', `${BASE}/${first}`)
      const second = await newReference({ slug: 'taken-over' })
      expect((await resolve('taken-over')).body.id).toBe(second)
    })

    test('an archived workspace loses it at once', async () => {
      const { call, gatehouse, made } = world()
      const { workspaceId } = await addWorkspace(gatehouse, made.organisation_id)
      const id = await newReference()
      expect((await resolve(id, { workspace_id: workspaceId })).status).toBe(200)
      await call('DELETE', `/v1/admin/workspaces/${workspaceId}`, ARCHIVED)
      expectProblem(await resolve(id, { workspace_id: workspaceId }), 'not_found')
    })

    test('cache_seconds = 0 keeps nothing', async () => {
      const id = await newReference({ cache_seconds: 0 })
      const { calls } = manager
      await resolve(id)
      await resolve(id)
      expect(manager.calls).toBe(calls + 2)
    })
  })

  test('an Idempotency-Key stores no value', async () => {
    const headers = { 'idempotency-key': 'again' }
    expect((await resolve('open', {}, headers)).status).toBe(200)
    const { idempotentAnswers } = world().gatehouse.read.tables
    expect(await world().gatehouse.read.select().from(idempotentAnswers)).toEqual([])
  })

  test('a rotated data key opens what was sealed before, in memory and not', async () => {
    const { gatehouse, made } = world()
    const ids = [await newReference(), await newReference()]
    await resolve(ids[0]!)
    const actor = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
    await resolve(ids[1]!)
    for (let at: Cursor | null = null; ; ) {
      const batch: Batch = await resealBatch(gatehouse, actor, at)
      at = batch.next
      if (at === null) break
    }
    await finishDataKeyRotation(gatehouse, actor)
    for (const id of ids) expect((await resolve(id)).body.value).toBe(SECRET)
    gatehouse.secretReferences.clear()
    gatehouse.secretValues.clear()
    for (const id of ids) expect((await resolve(id)).body.value).toBe(SECRET)
  })

  test('a login that was damaged in the database is used by nobody', async () => {
    const { gatehouse, made } = world()
    const id = await newReference()
    const actor = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    await gatehouse.audited(actor, { action: 'test.damage' }, async (tx) => {
      const { secretReferences: t } = tx.tables
      await tx
        .update(t)
        .set({ authConfig: Buffer.alloc(80, 1) })
        .where(eq(t.id, id))
        .returning({ id: t.id })
    })
    const { calls } = manager
    expectProblem(await resolve(id), 'internal')
    expect(manager.calls).toBe(calls)
  })

  test.skipIf(dialect === 'sqlite')('what another node changes is forgotten here within a second', async () => {
    const { openNode, names } = world()
    const node = await openNode()
    node.gatehouse.peerIp = () => '127.0.0.1'
    const id = await newReference()
    const there = async () => {
      const body = { workspace_id: names['workspace_id'] }
      return (await node.call('POST', `${BASE}/${id}/resolve`, body, { key: world().keys['system'] ?? '' })).status
    }
    try {
      expect(await there()).toBe(200)
      await put(id, { allowed_workspaces: [names['two']] })
      const startedAt = performance.now()
      while ((await there()) === 200 && performance.now() - startedAt < 5000) await Bun.sleep(10)
      expect(performance.now() - startedAt).toBeLessThan(1000)
    } finally {
      await node.gatehouse.close()
    }
  })

  describe('when there is none', () => {
    const others = ['manager_field_missing', 'manager_not_json', 'manager_binary', 'machine_identity_not_granted']
    const failures = MANAGER_PROBLEMS.filter((code) => !others.includes(code)) as ManagerFailure[]
    test.each(failures)('%s has its status, its reason and our words', async (failure) => {
      manager.answer = failing(failure, { retryAfterSeconds: 7 })
      const answer = await resolve(await newReference())
      expectProblem(answer, failure)
      expect(answer.body.message).toBe(`refused: ${failure}`)
      expect(answer.headers.get('retry-after')).toBe('7')
    })

    test.each(['manager_throttled', 'manager_sealed', 'manager_standby', 'manager_unreachable'] as const)(
      '%s says when to come back, though the manager does not',
      async (failure) => {
        manager.answer = failing(failure)
        const { headers } = await resolve(await newReference())
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      },
    )

    test.each([
      ['manager_field_missing', SECRET, 'nothing'],
      ['manager_field_missing', SECRET, 'gone'],
      ['manager_not_json', 'plain text', 'api_key'],
      ['manager_binary', new Uint8Array([1]), 'api_key'],
    ] as const)('%s, and the whole secret is in memory all the same', async (failure, content, secretKey) => {
      manager.answer = () => ({ content, version: null })
      const id = await newReference()
      const { calls } = manager
      expectProblem(await resolve(id, { secret_key: secretKey }), failure)
      expectProblem(await resolve(id, { secret_key: secretKey }), failure)
      expect((await resolve(id)).status).toBe(200)
      expect(manager.calls).toBe(calls + 1)
    })

    test('the machine has an identity, and nobody granted it: the lines to add are said', async () => {
      const id = await newReference({
        manager_type: 'aws_sm',
        secret_path: 'prod/openai',
        auth_config: { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' },
      })
      const { calls } = manager
      const answer = await resolve(id)
      expectProblem(answer, 'machine_identity_not_granted')
      expect(answer.body.message).toContain('[[secret_managers.machine_identity]]\nkind = "aws_service_role"')
      expect(manager.calls).toBe(calls)
    })

    test('a failed login is not tried again by every caller', async () => {
      manager.answer = failing('manager_auth_failed', { step: 'login' })
      const id = await newReference()
      const { calls } = manager
      for (let i = 0; i < 5; i++) expectProblem(await resolve(id), 'manager_auth_failed')
      expect(manager.calls).toBe(calls + 1)
    })
  })
})

describe('a machine identity', () => {
  const manager = createFakeManager(() => text('granted'))
  const grants = `[[secret_managers.machine_identity]]
kind = "aws_service_role"
workspaces = ["*"]
paths = ["prod/*"]`
  const world = useWorld(
    'sqlite',
    async (opened) => {
      opened.keys['system'] = await addSystemKey(opened)
    },
    grants,
    {
      managers: everyManager(manager),
    },
  )

  test('that is granted reads what the grant names, and nothing else', async () => {
    const { call, keys } = world()
    const auth_config = { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' }
    const make = async (secret_path: string) =>
      (await call('POST', BASE, { ...SECRET_REFERENCE, manager_type: 'aws_sm', auth_config, secret_path })).body.id
    const status = async (id: string) =>
      (await call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key: keys['system'] ?? '' })).status
    const id = await make('prod/openai')
    expect(await status(id)).toBe(200)
    expect(await status(await make('staging/openai'))).toBe(PROBLEMS.machine_identity_not_granted.status)
    await call('PUT', `${BASE}/${id}`, { secret_path: 'staging/openai' })
    expect(await status(id)).toBe(PROBLEMS.machine_identity_not_granted.status)
  })
})
