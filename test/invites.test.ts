import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import type { Tx } from '../src/db/database.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import type { Answer } from './support/gatehouse.ts'
import { startMailServer } from './support/mail-server.ts'
import { auditCount, expectProblem, scenarios, useWorld, type World } from './support/scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace } from './support/tenants.ts'

const INVITES = '/v1/admin/users/invites'
const SCOPES = ['create', 'read', 'update', 'delete', 'list'].map((verb) => `organisation_users.${verb}`)

/** What stands behind the # of a link. */
const tokenOf = (link: string): string => link.split('#')[1] ?? ''

async function invite({ call }: World, body: object, key?: string): Promise<{ id: string; token: string }> {
  const { status, body: made, text } = await call('POST', INVITES, body, key === undefined ? {} : { key })
  expect(status, text).toBe(200)
  return { id: made.id, token: tokenOf(made.invite_link) }
}

const accept = ({ call }: World, token: string, names = {}) =>
  call('POST', `${INVITES}/accept`, { token, ...names }, { key: null })

const newEmail = (): string => `${Bun.randomUUIDv7()}@example.org`

/** A change that no call of the API makes. */
const change = ({ gatehouse, made }: World, work: (tx: Tx) => PromiseLike<unknown>): Promise<unknown> =>
  gatehouse.audited(
    { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' },
    { action: 'test.set_up' },
    async (tx) => void (await work(tx)),
  )

const expire = (world: World, id: string) =>
  change(world, (tx) => {
    const { invites: t } = tx.tables
    return tx
      .update(t)
      .set({ expiresAt: tx.now - 1 })
      .where(eq(t.id, id))
      .returning({ id: t.id })
  })

describe.each(DIALECTS)('invites: %s', (dialect) => {
  const world = useWorld(dialect, async ({ gatehouse, made, names, keys }) => {
    const second = await addWorkspace(gatehouse, made.organisation_id)
    Object.assign(names, { second_workspace: second.workspaceId, second_slug: second.workspaceSlug })
    const stranger = await addOrganisation(gatehouse)
    names['foreign_workspace'] = stranger.workspaceId
    keys['stranger'] = stranger.adminKey
    const tenant = { organisationId: made.organisation_id, workspaceId: made.workspace_id, userId: made.user_id }
    const of = { ...tenant, collectionId: made.collection_id }
    keys['narrow'] = await addKey(gatehouse, of, 'organisation-service', [...SCOPES, 'prompts.read'])
    keys['empty'] = await addKey(gatehouse, of, 'organisation-service', SCOPES)
    keys['workspace'] = await addKey(gatehouse, of, 'workspace-user')
    const admin = await addPerson(gatehouse, made.organisation_id, 'admin')
    names['admin_person'] = admin
    keys['of_admin'] = await addKey(gatehouse, { ...of, userId: admin }, 'organisation-service')
  })

  scenarios(`POST ${INVITES}`, world, [
    {
      name: 'everything that clients read is in the answer, ids as they were written',
      body: {
        email: 'New@Example.org',
        role: 'member',
        workspaces: [
          { id: '$workspace_slug', role: 'manager' },
          { id: '$second_workspace', role: 'member' },
        ],
        workspace_api_key_details: {
          scopes: ['prompts.read', 'completions.write'],
          name: 'laptop',
          expiry: '2099-01-02T03:04:05+02:00',
          metadata: { team: 'a' },
        },
        first_name: 'New',
      },
      expect: 200,
      answer: {
        object: 'invite',
        email: 'New@Example.org',
        role: 'member',
        status: 'pending',
        accepted_at: null,
        invited_by: '$user_id',
        workspaces: [
          { id: '$workspace_slug', workspace_id: '$workspace_id', role: 'manager' },
          { id: '$second_workspace', workspace_id: '$second_workspace', role: 'member' },
        ],
      },
      mentions: '/invite#',
      keep: { invite: 'id' },
    },
    {
      name: 'it reads back without link, scopes or token',
      call: `GET ${INVITES}/$invite`,
      expect: 200,
      answer: { id: '$invite', status: 'pending', email: 'New@Example.org' },
      notMentions: ['invite_link', 'scopes', 'token', '#'],
    },
    {
      name: 'a second one to the same address is a conflict, in any case',
      body: { email: 'new@example.ORG', role: 'admin' },
      expect: 'conflict',
    },
    { name: 'a user needs none', body: { email: 'OWNER@example.com', role: 'member' }, expect: 'conflict' },
    {
      name: 'every unknown workspace is named, foreign ones too',
      body: {
        email: 'a@example.org',
        role: 'member',
        workspaces: [
          { id: 'ws-x', role: 'member' },
          { id: '$foreign_workspace', role: 'member' },
        ],
      },
      expect: 'invalid',
      mentions: ['"path":"workspaces[0].id"', '"path":"workspaces[1].id"'],
    },
    {
      name: 'a workspace is named once, by id or by slug',
      body: {
        email: 'a@example.org',
        role: 'member',
        workspaces: [
          { id: '$workspace_id', role: 'member' },
          { id: '$workspace_slug', role: 'admin' },
        ],
      },
      expect: 'invalid',
      mentions: 'workspaces[1].id',
    },
    {
      name: 'scopes are those of user keys',
      body: {
        email: 'a@example.org',
        role: 'member',
        workspace_api_key_details: { scopes: ['prompts.read', 'organisation_users.list', 'prompt.read'] },
      },
      expect: 'invalid',
      mentions: ['workspace_api_key_details.scopes[1]', 'workspace_api_key_details.scopes[2]'],
    },
    {
      name: 'a key does not begin in the past',
      body: {
        email: 'a@example.org',
        role: 'member',
        workspace_api_key_details: { scopes: ['prompts.read'], expiry: '2020-01-01T00:00:00Z' },
      },
      expect: 'invalid',
      mentions: '"param":"workspace_api_key_details.expiry"',
    },
    {
      name: 'nobody is invited to own the organisation',
      body: { email: 'a@example.org', role: 'owner' },
      expect: 'invalid',
    },
    ...['status', 'organisation_id', 'id', 'invited_by', 'expires_at'].map((field) => ({
      name: `${field} is not the caller's to set`,
      body: { email: 'a@example.org', role: 'member', [field]: 'x' },
      expect: 'invalid' as const,
    })),
    ...['a', 'a@b@c', 'a b@example.org', 'a@example.org\r\nBcc: b@example.org', 'A <a@example.org>', 'a@x,b@y'].map(
      (email) => ({
        name: `${JSON.stringify(email)} is no address`,
        body: { email, role: 'member' },
        expect: 'invalid' as const,
        mentions: '"param":"email"',
      }),
    ),
    {
      name: 'a narrow key gives no more than it has',
      as: 'narrow',
      body: {
        email: 'a@example.org',
        role: 'member',
        workspaces: [{ id: '$workspace_id', role: 'member' }],
        workspace_api_key_details: { scopes: ['prompts.read', 'prompts.update'] },
      },
      expect: 'forbidden',
      mentions: 'prompts.update',
    },
    {
      name: 'a workspace key invites nobody',
      as: 'workspace',
      body: { email: 'a@example.org', role: 'member' },
      expect: 'forbidden',
    },
  ])

  scenarios(`GET ${INVITES}`, world, [
    {
      name: 'by address and status',
      call: `GET ${INVITES}?email=NEW@example.org&status=pending&role=member`,
      expect: 200,
      answer: { total: 1, data: [{ id: '$invite' }] },
    },
    { name: 'none has expired yet', call: `GET ${INVITES}?status=expired`, expect: 200, answer: { total: 0 } },
    {
      name: 'on pages, in either spelling',
      call: `GET ${INVITES}?pageSize=1&currentPage=1`,
      expect: 200,
      answer: { total: 1, data: [] },
    },
    { name: 'a strange status is refused', call: `GET ${INVITES}?status=gone`, expect: 'invalid' },
    { name: 'another organisation sees none', as: 'stranger', expect: 200, answer: { total: 0 } },
    { name: 'nor this one', as: 'stranger', call: `GET ${INVITES}/$invite`, expect: 'not_found' },
    { name: 'nor takes it back', as: 'stranger', call: `DELETE ${INVITES}/$invite`, expect: 'not_found' },
    { name: 'nor sends it again', as: 'stranger', call: `POST ${INVITES}/$invite/resend`, expect: 'not_found' },
    {
      name: 'the path and the body name one invite',
      call: `DELETE ${INVITES}/$invite`,
      body: { invite_id: 'x' },
      expect: 'invalid',
    },
  ])

  test('acceptance makes user, memberships and keys, once, and says who did it', async () => {
    const { call, gatehouse } = world()
    const email = newEmail()
    const { id, token } = await invite(world(), {
      email,
      role: 'member',
      workspaces: [{ id: world().names['workspace_slug'], role: 'member' }],
      workspace_api_key_details: { scopes: ['prompts.list', 'prompts.update'], name: 'mine', metadata: { team: 'a' } },
      first_name: 'Ada',
      last_name: 'Of the invite',
    })
    const before = await auditCount(world())
    const { status, body, text } = await accept(world(), token, { last_name: 'Lovelace' })
    expect(status, text).toBe(200)
    expect(body).toMatchObject({
      object: 'user',
      email,
      first_name: 'Ada',
      last_name: 'Lovelace',
      role: 'member',
      status: 'active',
      workspace_ids: [world().made.workspace_slug],
      api_keys: [{ workspace_id: world().made.workspace_id }],
    })
    const [{ key, id: keyId }] = body.api_keys
    expect((await call('GET', '/v1/prompts', undefined, { key })).status).toBe(200)
    expectProblem(await call('GET', '/v1/labels/x', undefined, { key }), 'forbidden')
    expect((await call('GET', `/v1/api-keys/${keyId}`)).body).toMatchObject({
      name: 'mine',
      type: 'workspace-user',
      user_id: body.id,
      scopes: ['prompts.list', 'prompts.update'],
      defaults: { metadata: { team: 'a' } },
    })
    expect((await call('GET', `${INVITES}/${id}`)).body).toMatchObject({
      status: 'accepted',
      accepted_at: expect.any(String),
    })
    expect(await auditCount(world())).toBe(before + 1)
    const row = (await auditTrail(gatehouse.read)).find((each) => doneBy(each) === 'organisation_users.accept')
    expect(row).toMatchObject({ user_type: 'user', user_id: body.id, resource_id: body.id, resource_name: email })
    expect(row?.details).toMatchObject({ invite_id: id, created_keys: [{ id: keyId }] })
    expect(JSON.stringify(row)).not.toContain(token)
    expect(JSON.stringify(row)).not.toContain(key)

    expectProblem(await accept(world(), token), 'not_found')
    expectProblem(await call('DELETE', `${INVITES}/${id}`), 'invalid')
    expectProblem(await call('POST', `${INVITES}/${id}/resend`), 'invalid')
  })

  test('the token is stored nowhere, and logged nowhere', async () => {
    const { gatehouse, log } = world()
    const { token } = await invite(world(), { email: newEmail(), role: 'member' })
    await accept(world(), token)
    const { invites, auditEvents } = gatehouse.read.tables
    const stored = [await gatehouse.read.select().from(invites), await gatehouse.read.select().from(auditEvents), log]
    expect(JSON.stringify(stored)).not.toContain(token)
  })

  test('whatever is wrong with a token, the answer is the same', async () => {
    const used = await invite(world(), { email: newEmail(), role: 'member' })
    expect((await accept(world(), used.token)).status).toBe(200)
    const expired = await invite(world(), { email: newEmail(), role: 'member' })
    await expire(world(), expired.id)
    expect((await world().call('GET', `${INVITES}/${expired.id}`)).body.status).toBe('expired')
    const cancelled = await invite(world(), { email: newEmail(), role: 'member' })
    expect((await world().call('DELETE', `${INVITES}/${cancelled.id}`)).body).toEqual({})
    expect((await world().call('GET', `${INVITES}/${cancelled.id}`)).body.status).toBe('cancelled')
    const replaced = await invite(world(), { email: newEmail(), role: 'member' })
    const again = await world().call('POST', `${INVITES}/${replaced.id}/resend`, {})
    expect(again.body.inviteLink).toBe(again.body.invite_link)
    const tokens = [used, expired, cancelled, replaced].map(({ token }) => token)
    const answers = new Set<string>()
    for (const token of [...tokens, 'guess', '', 'x'.repeat(43)]) {
      const answer = await accept(world(), token)
      expectProblem(answer, 'not_found')
      answers.add(answer.text.replace(answer.headers.get('x-request-id') ?? '', ''))
    }
    expect(answers.size).toBe(1)
    expect((await accept(world(), tokenOf(again.body.invite_link))).status).toBe(200)
  })

  test('a person whose invite has expired may be invited again', async () => {
    const email = newEmail()
    const { id } = await invite(world(), { email, role: 'member' })
    await expire(world(), id)
    expectProblem(await world().call('POST', `${INVITES}/${id}/resend`), 'invalid')
    await invite(world(), { email, role: 'member' })
  })

  test('of many that accept at once, one gets in', async () => {
    const email = newEmail()
    const { token } = await invite(world(), { email, role: 'admin' })
    const before = await auditCount(world())
    const answers = await Promise.all(Array.from({ length: 8 }, () => accept(world(), token)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(7).fill(404)])
    expect((await world().call('GET', `/v1/admin/users?email=${email}`)).body.total).toBe(1)
    expect(await auditCount(world())).toBe(before + 1)
  })

  test('of many invites to one person at once, one is made', async () => {
    const email = newEmail()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => world().call('POST', INVITES, { email, role: 'member' })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array<number>(7).fill(409)])
  })

  describe('without key details', () => {
    const keysOf = async (body: object, as = 'admin') => {
      const { token } = await invite(world(), { email: newEmail(), ...body }, world().keys[as])
      const { body: user } = await accept(world(), token)
      const keys: { workspace_id: string; id: string }[] = user.api_keys
      return Promise.all(
        keys.map(async ({ workspace_id, id }) => ({
          workspace_id,
          scopes: (await world().call('GET', `/v1/api-keys/${id}`)).body.scopes as string[],
        })),
      )
    }
    const workspaces = (role: string) => [{ id: world().made.workspace_id, role }]

    test('a member gets what members read and list, and nothing of keys', async () => {
      const [key] = await keysOf({ role: 'member', workspaces: workspaces('member') })
      expect(key?.scopes).toContain('prompts.read')
      expect(key?.scopes.filter((scope) => !/\.(read|list)$/.test(scope))).toEqual([])
      expect(key?.scopes.filter((scope) => scope.includes('api_keys'))).toEqual([])
    })

    test('a manager sees the keys as well', async () => {
      const [key] = await keysOf({ role: 'member', workspaces: workspaces('manager') })
      expect(key?.scopes).toContain('workspace_user_api_keys.list')
    })

    test('an admin of the organisation begins in the default workspace', async () => {
      const keys = await keysOf({ role: 'admin' })
      expect(keys.map(({ workspace_id }) => workspace_id)).toEqual([world().made.workspace_id])
    })

    test('a member without workspaces gets none', async () => {
      expect(await keysOf({ role: 'member' })).toEqual([])
    })

    test('a key that has nothing of that invites nobody to a key without scopes', async () => {
      const { call, keys } = world()
      const email = newEmail()
      const body = { email, role: 'member', workspaces: workspaces('member') }
      const refused = await call('POST', INVITES, body, { key: keys['empty'] ?? '' })
      expectProblem(refused, 'forbidden')
      expect(refused.body.message).toContain('prompts.read')
      expect((await call('GET', `${INVITES}?email=${email}`)).body.total).toBe(0)
    })

    test('where no key comes with it, such a one may invite', async () => {
      expect(await keysOf({ role: 'member' }, 'empty')).toEqual([])
    })

    test('a narrow key gives of that what it has', async () => {
      expect(await keysOf({ role: 'member', workspaces: workspaces('member') }, 'narrow')).toEqual([
        { workspace_id: world().made.workspace_id, scopes: ['prompts.read'] },
      ])
    })
  })

  test('who stands no higher than a member any more lets nobody in, and another admin can answer for it', async () => {
    const { names, call, keys } = world()
    const { id, token } = await invite(world(), { email: newEmail(), role: 'admin' }, keys['of_admin'])
    expect((await call('PUT', `/v1/admin/users/${names['admin_person']}`, { role: 'member' })).status).toBe(200)
    expectProblem(await accept(world(), token), 'forbidden')
    expect((await call('GET', `${INVITES}/${id}`)).body).toMatchObject({
      status: 'pending',
      invited_by: names['admin_person'],
    })
    expectProblem(
      await call('POST', INVITES, { email: newEmail(), role: 'member' }, { key: keys['of_admin'] ?? '' }),
      'forbidden',
    )
    const again = await call('POST', `${INVITES}/${id}/resend`)
    expectProblem(await accept(world(), token), 'not_found')
    expect((await accept(world(), tokenOf(again.body.invite_link))).status).toBe(200)
    expect((await call('GET', `${INVITES}/${id}`)).body.invited_by).toBe(world().made.user_id)
  })

  test('a workspace that is gone by then is left out', async () => {
    const { workspaceId } = await addWorkspace(world().gatehouse, world().made.organisation_id)
    const workspaces = [world().made.workspace_id, workspaceId].map((id) => ({ id, role: 'member' }))
    const { token } = await invite(world(), { email: newEmail(), role: 'member', workspaces })
    await change(world(), (tx) => {
      const { workspaces: t } = tx.tables
      return tx.update(t).set({ status: 'archived' }).where(eq(t.id, workspaceId)).returning({ id: t.id })
    })
    const { body } = await accept(world(), token)
    expect(body.workspace_ids).toEqual([world().made.workspace_slug])
    expect(body.api_keys).toHaveLength(1)
  })

  test('a person who became a user in between is not made twice', async () => {
    const { gatehouse, made } = world()
    const { id, token } = await invite(world(), { email: newEmail(), role: 'member' })
    const userId = await addPerson(gatehouse, made.organisation_id, 'member')
    await change(world(), (tx) => {
      const { invites: t } = tx.tables
      return tx
        .update(t)
        .set({ email: `${userId}@EXAMPLE.com` })
        .where(eq(t.id, id))
        .returning({ id: t.id })
    })
    expectProblem(await accept(world(), token), 'conflict')
  })
})

describe('guessing tokens', () => {
  const world = useWorld()

  test('is bounded for a network, and never in the way of a right one', async () => {
    const { token } = await invite(world(), { email: newEmail(), role: 'member' })
    const answers = []
    for (let i = 0; i < 45; i++) answers.push(await accept(world(), `guess-${i}`))
    const limited = answers.filter(({ status }) => status === 429)
    expect(limited.length).toBeGreaterThanOrEqual(5)
    expectProblem(limited[0]!, 'rate_limited')
    expect(Number(limited[0]?.headers.get('retry-after'))).toBeWithin(1, 61)
    expect((await accept(world(), token)).status).toBe(200)
  })
})

describe('where a mail server is set', () => {
  const server = startMailServer()
  afterAll(server.stop)
  const world = useWorld(
    'sqlite',
    undefined,
    `[smtp]\nurl = "smtp://127.0.0.1:${server.port}"\nfrom = "us@example.com"`,
  )
  const metricOf = async (outcome: string) =>
    (await world().call('GET', '/metrics')).text.match(`gatehouse_mails_total{outcome="${outcome}"} (\\d+)`)?.[1]

  test('the link goes there, too', async () => {
    const arrived = server.nextMail()
    const { token } = await invite(world(), { email: 'to@example.org', role: 'member' })
    expect((await arrived).replace(/=\n/g, '')).toContain(`/invite#${token}`)
    expect(server.lines).toContain('RCPT TO:<to@example.org>')
    await world().gatehouse.mailer.close()
    expect(await metricOf('sent')).toBe('1')
  })

  test('an invite that is asked for twice under one Idempotency-Key is sent once', async () => {
    const send = () =>
      world().call(
        'POST',
        INVITES,
        { email: 'once@example.org', role: 'member' },
        { headers: { 'idempotency-key': 'k' } },
      )
    const [first, again] = [await send(), await send()]
    expect(again.body).toEqual(first.body)
    await world().gatehouse.mailer.close()
    expect(server.lines.filter((line) => line === 'RCPT TO:<once@example.org>')).toHaveLength(1)
  })

  test('one that fails keeps nobody from being invited, and is counted', async () => {
    server.stop()
    const { token } = await invite(world(), { email: newEmail(), role: 'member' })
    await world().gatehouse.mailer.close()
    expect(await metricOf('failed')).toBe('1')
    expect(world().log.join('')).toContain('"event":"mail_failed"')
    expect((await accept(world(), token)).status).toBe(200)
  })
})

describe('the page behind the link', () => {
  const world = useWorld('sqlite', undefined, '[server]\npublic_url = "https://gatehouse.example.com"')
  let link: string
  beforeAll(async () => {
    link = (await world().call('POST', INVITES, { email: newEmail(), role: 'member' })).body.invite_link
  })

  test('the link begins with server.public_url, and the token stays out of what is sent', () => {
    expect(link).toMatch(/^https:\/\/gatehouse\.example\.com\/invite#[A-Za-z0-9_-]{43}$/)
  })

  test.each(['/invite', '/invite/page.js', '/invite/page.css'])('%s loads nothing from elsewhere', async (path) => {
    const { status, headers, text } = await world().call('GET', path, undefined, { key: null })
    expect(status).toBe(200)
    expect(headers.get('content-security-policy')).toStartWith("default-src 'none'; script-src 'self';")
    expect(headers.get('referrer-policy')).toBe('no-referrer')
    expect(headers.get('cache-control')).toBe('no-store')
    expect(text).not.toMatch(/https?:|innerHTML|eval\(| on[a-z]+=/)
  })

  test('it sends the token with the names, keeps it out of the history, and shows the keys once they are there', async () => {
    const { call } = world()
    const invited = await call('POST', INVITES, { email: newEmail(), role: 'admin' })
    const script = (await call('GET', '/invite/page.js', undefined, { key: null })).text
    const page = openPage(script, tokenOf(invited.body.invite_link), (path, body) =>
      call('POST', path, body, { key: null }),
    )
    expect(page.history).toEqual(['/invite'])
    await page.submit()
    expect(page.elements['form']?.hidden).toBe(true)
    expect(page.shown[1]).toMatch(/^gth_w_/)
    await page.submit()
    expect(page.elements['said']?.textContent).toContain('not valid')
  })
})

/** The few things of a browser that the page's script uses. */
function openPage(script: string, token: string, post: (path: string, body: string) => Promise<Answer>) {
  const history: string[] = []
  const shown: string[] = []
  let listener = async (_: { preventDefault(): void }): Promise<void> => {}
  const elements: Record<string, { hidden?: boolean; textContent?: string }> = {
    form: {
      addEventListener: (_: string, heard: typeof listener) => {
        listener = heard
      },
      querySelector: () => ({}),
    } as object,
    said: {},
    keys: {
      append: (...added: { textContent: string }[]) => shown.push(...added.map((each) => each.textContent)),
    } as object,
  }
  const browser = {
    location: { hash: `#${token}`, pathname: '/invite' },
    history: { replaceState: (_state: null, _title: string, path: string) => history.push(path) },
    document: { getElementById: (id: string) => elements[id], createElement: () => ({}) },
    FormData: function entries() {
      return new Map([['first_name', 'Ada']])
    },
    fetch: async (path: string, { body }: { body: string }) => {
      const answer = await post(path, JSON.parse(body))
      return { ok: answer.status === 200, status: answer.status, json: () => answer.body }
    },
  }
  new Function(...Object.keys(browser), script)(...Object.values(browser))
  return { history, shown, elements, submit: () => listener({ preventDefault: () => {} }) }
}
