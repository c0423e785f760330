import { describe, expect, test } from 'bun:test'
import { count, eq, sql } from 'drizzle-orm'
import { endTransition } from '../src/api-keys/rotate.ts'
import type { Database } from '../src/db/database.ts'
import type { Gatehouse } from '../src/gatehouse.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { type Answer, openTestGatehouse } from './support/gatehouse.ts'
import { auditCount, expectProblem, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, defaultTenant } from './support/tenants.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const withKey = (key: string) => ({ 'idempotency-key': key })
const isReplay = ({ headers }: Answer): boolean => headers.get('idempotent-replayed') === 'true'
const newAdmin = (world: World, scopes?: string[]) =>
  addKey(world.gatehouse, defaultTenant(world.made), 'organisation-service', scopes)

/** Makes every kept answer older, as if time had passed. */
async function age(gatehouse: Gatehouse, byMs: number): Promise<void> {
  const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
  await gatehouse.audited(actor, { action: 'test.age' }, async (tx) => {
    const { idempotentAnswers: t } = tx.tables
    await tx.update(t).set({ createdAt: sql`${t.createdAt} - ${byMs}` })
  })
}

const rowsOf = ({ read }: Gatehouse) => read.select().from(read.tables.idempotentAnswers)

async function countLabels({ read }: Gatehouse, name: string): Promise<number> {
  const { labels: t } = read.tables
  const [row] = await read.select({ n: count() }).from(t).where(eq(t.name, name))
  return row?.n ?? 0
}

describe.each(DIALECTS)('Idempotency-Key on %s', (dialect) => {
  const world = useWorld(dialect, async (opened) => {
    opened.keys['other'] = await newAdmin(opened)
  })

  scenarios('POST /v1/labels', world, [
    { name: 'the first request is done', headers: withKey('a'), body: { name: 'a' }, expect: 200, keep: { a: 'id' } },
    {
      name: 'the second one gets its answer, although the name is taken now',
      headers: withKey('a'),
      body: { name: 'a' },
      expect: 200,
      answer: { id: '$a' },
    },
    { name: 'without the header it is another request', body: { name: 'a' }, expect: 'conflict' },
    {
      name: 'another body is refused',
      headers: withKey('a'),
      body: { name: 'b' },
      expect: 'conflict',
      mentions: 'body',
    },
    {
      name: 'another query is refused',
      call: 'POST /v1/labels?x=1',
      headers: withKey('a'),
      body: { name: 'a' },
      expect: 'conflict',
    },
    {
      name: 'the header of another caller is theirs alone',
      as: 'other',
      headers: withKey('a'),
      body: { name: 'another-caller' },
      expect: 200,
      notMentions: '$a',
    },
    {
      name: 'on another path it is another request',
      call: 'POST /v1/collections',
      headers: withKey('a'),
      body: { name: 'a' },
      expect: 200,
      notMentions: '$a',
    },
    { name: 'a failure is not kept', headers: withKey('b'), body: { name: '' }, expect: 'invalid' },
    { name: 'so that the mended request is done', headers: withKey('b'), body: { name: 'b' }, expect: 200 },
    {
      name: 'the order of fields says nothing',
      headers: withKey('c'),
      body: '{"name":"c","description":"d"}',
      expect: 200,
      keep: { c: 'id' },
    },
    {
      name: 'in either order',
      headers: { ...withKey('c'), 'content-type': 'application/json' },
      body: '{"description":"d","name":"c"}',
      expect: 200,
      answer: { id: '$c' },
    },
    ...['', ' ', 'a b', 'a,b c', 'x'.repeat(256), 'é'].map((key) => ({
      name: `a header of "${key.slice(0, 5)}" (${key.length}) is refused`,
      headers: withKey(key),
      body: { name: 'x' },
      expect: 'invalid' as const,
      mentions: 'Idempotency-Key',
    })),
    { name: '255 characters are taken', headers: withKey('~'.repeat(255)), body: { name: 'long' }, expect: 200 },
    {
      name: 'a malformed header tells a stranger nothing',
      as: 'nobody',
      headers: withKey(''),
      body: { name: 'x' },
      expect: 'unauthenticated',
    },
  ])

  test('changes that are no POST go by what they say, not by the header', async () => {
    const { call } = world()
    const { body } = await call('POST', '/v1/labels', { name: 'to-rename' })
    for (const name of ['first', 'second']) {
      const answer = await call('PUT', `/v1/labels/${body.id}`, { name }, { headers: withKey('put') })
      expect(answer.status).toBe(200)
      expect((await call('GET', `/v1/labels/${body.id}`)).body.name).toBe(name)
    }
  })

  test('a render is done every time', async () => {
    const { call } = world()
    const prompt = { name: 'p', string: 'Hello {{name}}', parameters: {}, model: 'm' }
    const { body } = await call('POST', '/v1/prompts', prompt)
    for (const name of ['Ada', 'Bob']) {
      const sent = { variables: { name } }
      const { text } = await call('POST', `/v1/prompts/${body.id}/render`, sent, { headers: withKey('render') })
      expect(text).toContain(name)
    }
  })

  test('of many at once one makes the object, and all get the same answer', async () => {
    const { call, gatehouse } = world()
    const body = { name: 'at-once' }
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call('POST', '/v1/labels', body, { headers: withKey('at-once') })),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(answers.filter(isReplay)).toHaveLength(9)
    expect(await countLabels(gatehouse, 'at-once')).toBe(1)
  })

  test('of two at once with different bodies one is refused', async () => {
    const { call } = world()
    const send = (name: string) => call('POST', '/v1/labels', { name }, { headers: withKey('different') })
    const answers = await Promise.all([send('one'), send('two')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
  })

  test('a replay leaves a row that names the caller, the request and what had been made', async () => {
    const { call, gatehouse, made } = world()
    const send = () => call('POST', '/v1/labels', { name: 'audited' }, { headers: withKey('audited') })
    const first = await send()
    const again = await send()
    const [row, before] = await auditTrail(gatehouse.read)
    expect(row).toMatchObject({
      resource_type: 'labels',
      action: 'replay',
      resource_id: first.body.id,
      resource_name: 'audited',
      workspace_id: before?.workspace_id,
      organisation_id: made.organisation_id,
      user_id: before?.user_id,
      request_id: again.headers.get('x-request-id'),
      request_body: { name: 'audited' },
      details: { replayed: 'create' },
    })
  })
})

describe.each(DIALECTS)('an answer with a secret, on %s', (dialect) => {
  const world = useWorld(dialect)
  const sent = { name: 'k', scopes: ['prompts.read'] }
  const create = (key: string, as?: string) =>
    world().call('POST', '/v1/api-keys/organisation/service', sent, { headers: withKey(key), ...(as && { key: as }) })

  test('is given again within the hour, and is nowhere in clear', async () => {
    const { call, gatehouse } = world()
    const first = await create('secret')
    await age(gatehouse, HOUR_MS - MINUTE_MS)
    const again = await create('secret')
    expect(again.text).toBe(first.text)
    expect(isReplay(again)).toBe(true)
    expect((await call('GET', '/v1/prompts', undefined, { key: again.body.key })).status).toBe(403)
    const [row] = await rowsOf(gatehouse)
    expect(row?.answer).toBeNull()
    const kept =
      JSON.stringify([row, await auditTrail(gatehouse.read)]) + Buffer.from(row!.sealedAnswer!).toString('latin1')
    expect(kept).not.toContain(first.body.key)
  })

  test('is refused after an hour, with the id of what was made, and the key goes on', async () => {
    const { call, gatehouse } = world()
    const first = await create('too-late')
    await age(gatehouse, HOUR_MS)
    const late = await create('too-late')
    expectProblem(late, 'conflict')
    expect(late.headers.get('x-gatehouse-resource-id')).toBe(first.body.id)
    expect(late.text).not.toContain('gth_')
    expect((await call('GET', '/v1/api-keys', undefined, { key: first.body.key })).status).toBe(403)
  })

  test('is forgotten after an hour, and every answer after a day', async () => {
    const { gatehouse, call } = world()
    await age(gatehouse, 25 * HOUR_MS)
    await gatehouse.pruneAnswers(Date.now())
    expect(await rowsOf(gatehouse)).toEqual([])
    const before = await auditCount({ gatehouse })
    await create('to-forget')
    await call('POST', '/v1/labels', { name: 'to-keep' }, { headers: withKey('to-keep') })
    await age(gatehouse, HOUR_MS)
    await gatehouse.pruneAnswers(Date.now())
    expect((await rowsOf(gatehouse)).map(({ sealedAnswer }) => sealedAnswer)).toEqual([null, null])
    expectProblem(await create('to-forget'), 'conflict')
    expect(await call('POST', '/v1/labels', { name: 'to-keep' }, { headers: withKey('to-keep') })).toSatisfy(isReplay)
    await age(gatehouse, 23 * HOUR_MS)
    await gatehouse.pruneAnswers(Date.now())
    expect(await rowsOf(gatehouse)).toEqual([])
    expect(await auditCount({ gatehouse })).toBe(before + 5)
  })

  test('after a day the same header is a new request, also before old answers are forgotten', async () => {
    const { gatehouse } = world()
    const first = await create('a-day')
    await age(gatehouse, 24 * HOUR_MS)
    const second = await create('a-day')
    expect(second.status).toBe(200)
    expect(second.body.id).not.toBe(first.body.id)
    expect(isReplay(second)).toBe(false)
  })

  test.each([
    ['has lost what the route asks for', ['organisation_service_api_keys.read'], 'forbidden'],
    ['has lost a scope that it gave the key', ['organisation_service_api_keys.create'], 'forbidden'],
    ['is gone', null, 'unauthenticated'],
  ] as const)('stays closed for a caller that %s', async (name, scopes, problem) => {
    const opened = world()
    const caller = await newAdmin(opened, ['organisation_service_api_keys.create', 'prompts.read'])
    const header = name.replaceAll(' ', '-')
    expect((await create(header, caller)).status).toBe(200)
    expect(await create(header, caller)).toSatisfy(isReplay)
    const id = opened.gatehouse.keys.find(opened.gatehouse.digestKey(caller), Date.now())?.keyId
    const path = `/v1/api-keys/${id}`
    const changed = await (scopes === null ? opened.call('DELETE', path) : opened.call('PUT', path, { scopes }))
    expect(changed.status, changed.text).toBe(200)
    const refused = await create(header, caller)
    expectProblem(refused, problem)
    expect(refused.text).not.toContain('gth_')
  })

  test('a rotation is done once, and each answer holds the same new key', async () => {
    const { call } = world()
    const { id } = (await create('to-rotate')).body
    const rotate = () => call('POST', `/v1/api-keys/${id}/rotate`, {}, { headers: withKey('rotate') })
    const answers = [...(await Promise.all([rotate(), rotate()])), await rotate()]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(new Set(answers.map(({ body }) => body.key)).size).toBe(1)
    expectProblem(await call('POST', `/v1/api-keys/${id}/rotate`, {}), 'conflict')
  })

  describe('of a key that rotated itself and did not hear of it', () => {
    const rotateItself = async (scopes: string[]) => {
      const { call, newKey } = world()
      const { id, key: old } = await newKey('organisation/service', scopes)
      const rotate = (name: string | null, body = {}, path = `/v1/api-keys/${id}/rotate`) =>
        call('POST', path, body, { key: old, ...(name && { headers: withKey(name) }) })
      return { id, rotate, first: await rotate('lost') }
    }

    test.each([[['prompts.list']], [['prompts.list', 'organisation_service_api_keys.rotate']]])(
      'is given to the old secret again: %j',
      async (scopes) => {
        const { call, gatehouse } = world()
        const { id, rotate, first } = await rotateItself(scopes)
        expect(first.status, first.text).toBe(200)
        const again = await rotate('lost')
        expect(again.text).toBe(first.text)
        expect(again).toSatisfy(isReplay)
        const [row] = await auditTrail(gatehouse.read)
        expect(row).toMatchObject({ action: 'replay', resource_id: id, details: { replayed: 'rotate' } })
        expect((await call('GET', '/v1/prompts', undefined, { key: again.body.key })).status).toBe(200)
      },
    )

    test('of two at once both hear of it, at once or when they ask again', async () => {
      const { call, newKey } = world()
      const { id, key } = await newKey('organisation/service', ['organisation_service_api_keys.rotate'])
      const send = () => call('POST', `/v1/api-keys/${id}/rotate`, {}, { key, headers: withKey('at-once') })
      const answers = await Promise.all([send(), send()])
      for (const { status } of answers) expect([200, 503]).toContain(status)
      expect((await send()).body.key).toBe(answers.find(({ status }) => status === 200)?.body.key)
    })

    test('nothing else is: no other request, body or key, and no longer than an hour', async () => {
      const { gatehouse } = world()
      const { rotate } = await rotateItself(['prompts.list', 'organisation_service_api_keys.rotate'])
      const other = (await create('of-another-key')).body.id
      expectProblem(await rotate(null), 'forbidden')
      expectProblem(await rotate('never-sent'), 'forbidden')
      expectProblem(await rotate('lost', {}, `/v1/api-keys/${other}/rotate`), 'forbidden')
      expectProblem(await rotate('lost', {}, '/v1/api-keys/organisation/service'), 'forbidden')
      expectProblem(await rotate('lost', { key_transition_period_ms: HOUR_MS }), 'conflict')
      await age(gatehouse, HOUR_MS)
      const late = await rotate('lost')
      expectProblem(late, 'conflict')
      expect(late.text).not.toContain('gth_')
    })

    test('is not given to a secret whose window has ended, nor to a key that has less now', async () => {
      const { call, gatehouse, made } = world()
      const ended = await rotateItself(['prompts.list'])
      const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
      await endTransition(gatehouse, cli, ended.id)
      expectProblem(await ended.rotate('lost'), 'unauthenticated')
      const less = await rotateItself(['prompts.list', 'prompts.read'])
      expect((await call('PUT', `/v1/api-keys/${less.id}`, { scopes: ['prompts.list'] })).status).toBe(200)
      expectProblem(await less.rotate('lost'), 'forbidden')
    })
  })

  test('an invite is sent by mail once, and its link is given again', async () => {
    const { call, gatehouse } = world()
    const mailed: string[] = []
    const { send } = gatehouse.mailer
    gatehouse.mailer.send = ({ to }) => void mailed.push(to)
    const invite = () =>
      call('POST', '/v1/admin/users/invites', { email: 'a@b.example', role: 'member' }, { headers: withKey('invite') })
    const answers = [...(await Promise.all([invite(), invite()])), await invite()]
    gatehouse.mailer.send = send
    expect(new Set(answers.map(({ body }) => body.invite_link)).size).toBe(1)
    expect(answers[0]?.body.invite_link).toContain('/invite#')
    expect(mailed).toEqual(['a@b.example'])
    expect((await rowsOf(gatehouse)).some(({ answer }) => answer?.includes('invite#'))).toBe(false)
  })
})

test.each(DIALECTS)(
  'an answer that got lost in a restart is there after it, on %s',
  async (dialect: Database['dialect']) => {
    const { call, gatehouse, openNode, close } = await openTestGatehouse(dialect)
    const sent = { name: 'k', scopes: ['prompts.read'] }
    const first = await call('POST', '/v1/api-keys/organisation/service', sent, { headers: withKey('restart') })
    await gatehouse.close()
    gatehouse.close = async () => {}
    const restarted = await openNode()
    const again = await restarted.call('POST', '/v1/api-keys/organisation/service', sent, {
      headers: withKey('restart'),
    })
    expect(again.text).toBe(first.text)
    await restarted.gatehouse.close()
    await close()
  },
)

describe.skipIf(!DIALECTS.includes('postgres'))('two servers on one PostgreSQL', () => {
  const world = useWorld('postgres')

  test('make one object of many requests at once', async () => {
    const { call, openNode, gatehouse } = world()
    const other = await openNode()
    for (let round = 0; round < 10; round++) {
      const name = `round-${round}`
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          (i % 2 === 0 ? call : other.call)('POST', '/v1/labels', { name }, { headers: withKey(name) }),
        ),
      )
      expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(answers.filter(isReplay)).toHaveLength(7)
      expect(await countLabels(gatehouse, name)).toBe(1)
    }
    const done = (await auditTrail(gatehouse.read)).map(doneBy)
    expect(done.filter((action) => action === 'labels.create')).toHaveLength(10)
    expect(done.filter((action) => action === 'labels.replay')).toHaveLength(70)
    await other.gatehouse.close()
  })
})
