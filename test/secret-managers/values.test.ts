import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { PROBLEMS } from '../../schema/api/errors.ts'
import { GatehouseError } from '../../src/errors.ts'
import { type FetchedSecret, ManagerError, type ManagerFailure } from '../../src/secret-managers/manager.ts'
import { problemOf } from '../../src/secret-managers/problem.ts'
import type { ManagerCallEnded, SecretValues } from '../../src/secret-managers/values.ts'
import { failing, openFakeValues, reference, text } from '../support/fake-manager.ts'

const SECOND = 1000
const contentOf = async (values: SecretValues, of = reference(), refresh = false) =>
  (await values.fetch(of, { refresh })).secret.content

/** The failure of a fetch, or `ok`. */
const outcomeOf = async (values: SecretValues, of = reference(), refresh = false): Promise<string> =>
  values.fetch(of, { refresh }).then(
    ({ stale }) => (stale ? 'stale' : 'ok'),
    (error) => (error instanceof ManagerError ? error.failure : String(error)),
  )

/** An answer that comes when it is let go. */
function held() {
  const { promise, resolve } = Promise.withResolvers<FetchedSecret>()
  return { answer: () => promise, letGo: (content = 'late') => resolve(text(content)) }
}

describe('a value that is held', () => {
  test('is given without a call until it expires, and fetched again after that', async () => {
    const { values, manager, clock } = openFakeValues()
    const ref = reference()
    const first = await values.fetch(ref)
    expect(first).toMatchObject({ fromCache: false, stale: false, staleReason: null, fetchedAt: clock.now })
    expect(first.expiresAt).toBe(clock.now + 300 * SECOND)
    clock.now += 300 * SECOND - 1
    expect(await values.fetch(ref)).toMatchObject({ fromCache: true, fetchedAt: first.fetchedAt })
    expect(values.cached(ref)).toBe(values.cached(ref)!)
    clock.now += 1
    expect(values.cached(ref)).toBeUndefined()
    expect(await values.fetch(ref)).toMatchObject({ fromCache: false, fetchedAt: clock.now })
    expect(manager.calls).toBe(2)
  })

  test.each<[string, number | null, number]>([
    ['the setting counts', null, 300],
    ['the reference overrides it', 7, 7],
    ['a day at most', 86_400, 86_400],
  ])('lives as long as it may: %s', async (_name, cacheSeconds, seconds) => {
    const { values, clock } = openFakeValues()
    expect((await values.fetch(reference({ cacheSeconds }))).expiresAt).toBe(clock.now + seconds * SECOND)
  })

  test('never lives longer than it may, and at least nine tenths of it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 86_400 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        async (ttl, chance) => {
          const { values, clock } = openFakeValues({}, { random: () => chance })
          const lives = (await values.fetch(reference({ cacheSeconds: ttl }))).expiresAt - clock.now
          expect(lives).toBeLessThanOrEqual(ttl * SECOND)
          expect(lives).toBeGreaterThanOrEqual(Math.floor(ttl * SECOND * 0.9))
        },
      ),
      { numRuns: 30 },
    )
  })

  test('is none with cache_seconds = 0, yet callers at the same time share one call', async () => {
    const { values, manager } = openFakeValues({ serve_stale_seconds: 60 })
    const ref = reference({ cacheSeconds: 0 })
    await Promise.all([values.fetch(ref), values.fetch(ref)])
    expect(manager.calls).toBe(1)
    expect(values.cached(ref)).toBeUndefined()
    expect(values.health(ref.id)).toMatchObject({ cached: false, stale: false, ageSeconds: null })
    manager.answer = failing('manager_unreachable')
    expect(await outcomeOf(values, ref)).toBe('manager_unreachable')
  })

  test('ends when the clock is set back before it was fetched', async () => {
    const { values, manager, clock } = openFakeValues()
    await values.fetch(reference())
    clock.now -= 86_400 * SECOND
    await values.fetch(reference())
    expect(manager.calls).toBe(2)
  })

  test('of the references asked last is kept, and the clients of the others are closed', async () => {
    const { values, manager } = openFakeValues({ cache_entries: 2 })
    const [a, b, c] = ['a', 'b', 'c'].map((id) => reference({ id })) as [Ref, Ref, Ref]
    await values.fetch(a)
    await values.fetch(b)
    expect(values.cached(a)).toBeDefined()
    await values.fetch(c)
    expect([a, b, c].map((each) => values.cached(each) !== undefined)).toEqual([true, false, true])
    expect(manager).toMatchObject({ opened: 3, closed: 1, transportsClosed: 1 })
    expect(values.counts()).toMatchObject({ held: 2, logins: 2 })
  })
})

type Ref = ReturnType<typeof reference>

describe('nobody gets what belongs to another', () => {
  test('two references to one path share neither value nor login', async () => {
    const { values, manager } = openFakeValues()
    await values.fetch(reference({ id: 'a' }))
    await values.fetch(reference({ id: 'b' }))
    expect(manager).toMatchObject({ opened: 2, calls: 2 })
  })

  test('a changed reference is fetched anew, with a login of its own', async () => {
    const { values, manager } = openFakeValues({}, { answer: () => text('old') })
    await values.fetch(reference())
    manager.answer = () => text('new')
    expect(await contentOf(values, reference({ revision: 2 }))).toBe('new')
    expect(manager).toMatchObject({ opened: 2, closed: 1 })
  })

  test.each<[string, (values: SecretValues) => unknown]>([
    ['the reference has changed', (values) => values.fetch(reference({ revision: 2 }))],
    ['it was dropped', (values) => values.drop('reference-1')],
    ['everything was dropped', (values) => values.clear()],
  ])('what comes late is kept for nobody: %s', async (_name, meanwhile) => {
    const late = held()
    const { values, manager } = openFakeValues({}, { answer: late.answer })
    const waiting = values.fetch(reference())
    manager.answer = () => text('new')
    await meanwhile(values)
    expect(manager.closed, 'a client with a call under way').toBe(0)
    late.letGo('old')
    expect((await waiting).secret.content).toBe('old')
    expect(values.cached(reference())).toBeUndefined()
    expect(await contentOf(values, reference({ revision: 2 }))).toBe('new')
    expect(manager.closed, 'once the late call is over').toBe(1)
  })

  test('who still holds an older revision leaves nothing of it behind', async () => {
    const { values, manager } = openFakeValues({}, { answer: () => text('new') })
    const now = reference({ revision: 2 })
    await values.fetch(now)
    manager.answer = () => text('old')
    expect(await contentOf(values, reference({ revision: 1 }))).toBe('old')
    expect(values.cached(now)?.secret.content).toBe('new')
    expect(manager).toMatchObject({ opened: 2, closed: 1 })
  })
})

describe('one call for all', () => {
  test('a thousand callers at once on a cold reference make one, and one of them is told that it was theirs', async () => {
    const late = held()
    const { values, manager } = openFakeValues({}, { answer: late.answer })
    const all = Promise.all(Array.from({ length: 1000 }, () => values.fetch(reference())))
    late.letGo('once')
    const answers = await all
    expect(manager).toMatchObject({ opened: 1, calls: 1 })
    expect(answers.every(({ secret }) => secret.content === 'once')).toBe(true)
    expect(answers.filter(({ fromCache }) => !fromCache)).toHaveLength(1)
  })

  test('a failure is told to all of them', async () => {
    const { values, manager } = openFakeValues({}, { answer: failing('manager_denied') })
    const all = await Promise.all(Array.from({ length: 100 }, () => outcomeOf(values)))
    expect(new Set(all)).toEqual(new Set(['manager_denied']))
    expect(manager.calls).toBe(1)
  })

  test('each call is told once, with how it ended', async () => {
    const ended: ManagerCallEnded[] = []
    const { values, manager, clock } = openFakeValues({}, { onCall: (call) => ended.push(call) })
    await Promise.all([values.fetch(reference()), values.fetch(reference())])
    clock.now += 300 * SECOND
    manager.answer = failing('manager_sealed')
    await outcomeOf(values)
    expect(ended.map(({ managerType, outcome }) => [managerType, outcome])).toEqual([
      ['hashicorp_vault', 'ok'],
      ['hashicorp_vault', 'manager_sealed'],
    ])
    expect(ended.every(({ seconds }) => seconds >= 0 && seconds < 5)).toBe(true)
  })
})

describe('refresh', () => {
  test('asks the manager although a value is held, once in 5 s', async () => {
    const { values, manager, clock } = openFakeValues()
    const ref = reference()
    await values.fetch(ref)
    manager.answer = () => text('rotated')
    expect(await contentOf(values, ref, true)).toBe('rotated')
    for (let i = 0; i < 100; i++) await values.fetch(ref, { refresh: true })
    expect(manager.calls).toBe(2)
    clock.now += 5 * SECOND
    await values.fetch(ref, { refresh: true })
    expect(manager.calls).toBe(3)
  })

  test('that meets an outage gives the value that has not expired, and says that it is not new', async () => {
    const { values, manager } = openFakeValues()
    await values.fetch(reference())
    manager.answer = failing('manager_sealed')
    expect(await values.fetch(reference(), { refresh: true })).toMatchObject({
      stale: true,
      staleReason: 'manager_sealed',
      fromCache: true,
    })
    expect(await values.fetch(reference())).toMatchObject({ stale: false })
  })

  test('that is refused ends the value for everybody', async () => {
    const { values, manager } = openFakeValues()
    await values.fetch(reference())
    manager.answer = failing('manager_denied')
    expect(await outcomeOf(values, reference(), true)).toBe('manager_denied')
    expect(values.cached(reference())).toBeUndefined()
    expect(await outcomeOf(values)).toBe('manager_denied')
  })
})

const failures = Object.keys(PROBLEMS).filter((code): code is ManagerFailure => code.startsWith('manager_'))
const OUTAGES = ['manager_throttled', 'manager_sealed', 'manager_standby', 'manager_unreachable', 'manager_timeout']

describe('a manager that fails', () => {
  test.each(failures)(
    '%s: an expired value is used for the seconds that are set, in an outage alone',
    async (failure) => {
      const { values, manager, clock } = openFakeValues({ serve_stale_seconds: 60 })
      await values.fetch(reference())
      manager.answer = failing(failure)
      const isOutage = OUTAGES.includes(failure)
      clock.now += 300 * SECOND
      expect(await outcomeOf(values)).toBe(isOutage ? 'stale' : failure)
      clock.now += 59 * SECOND
      expect(await outcomeOf(values)).toBe(isOutage ? 'stale' : failure)
      clock.now += 1 * SECOND
      expect(await outcomeOf(values)).toBe(failure)
      expect(values.health('reference-1')).toMatchObject({ cached: false, stale: false, ageSeconds: null })
    },
  )

  test('an expired value is never used where nothing is set', async () => {
    const { values, manager, clock } = openFakeValues()
    await values.fetch(reference())
    manager.answer = failing('manager_timeout')
    clock.now += 300 * SECOND
    expect(await outcomeOf(values)).toBe('manager_timeout')
  })

  test('a value that was denied once does not come back in a later outage', async () => {
    const { values, manager, clock } = openFakeValues({ serve_stale_seconds: 3600 })
    await values.fetch(reference())
    clock.now += 300 * SECOND
    manager.answer = failing('manager_denied')
    await outcomeOf(values)
    clock.now += 10 * SECOND
    manager.answer = failing('manager_unreachable')
    expect(await outcomeOf(values)).toBe('manager_unreachable')
  })

  test.each<[ManagerFailure, number | undefined, number]>([
    ['manager_auth_failed', undefined, 5],
    ['manager_auth_expired', undefined, 5],
    ['manager_denied', undefined, 1],
    ['manager_secret_missing', undefined, 1],
    ['manager_bad_response', undefined, 1],
    ['manager_throttled', undefined, 1],
    ['manager_throttled', 20, 20],
    ['manager_throttled', 86_400, 60],
    ['manager_throttled', 0, 1],
    ['manager_throttled', -5, 1],
  ])('%s (retry after %p) answers callers for %p s without a call', async (failure, retryAfterSeconds, seconds) => {
    const { values, manager, clock } = openFakeValues(
      {},
      { answer: failing(failure, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) },
    )
    for (let i = 0; i < 10; i++) expect(await outcomeOf(values, reference(), i % 2 === 0)).toBe(failure)
    clock.now += seconds * SECOND - 1
    await outcomeOf(values)
    expect(manager.calls).toBe(1)
    clock.now += 1
    manager.answer = () => text('back')
    expect(await contentOf(values)).toBe('back')
    expect(manager.calls).toBe(2)
  })

  test('a refusal of an older revision does not meet the repaired one', async () => {
    const { values, manager } = openFakeValues({}, { answer: failing('manager_auth_failed') })
    await outcomeOf(values)
    manager.answer = () => text('repaired')
    expect(await contentOf(values, reference({ revision: 2 }))).toBe('repaired')
  })

  test('a clock that is set back does not lengthen a refusal', async () => {
    const { values, manager, clock } = openFakeValues({}, { answer: failing('manager_auth_failed') })
    await outcomeOf(values)
    clock.now -= 3600 * SECOND
    manager.answer = () => text('repaired')
    expect(await contentOf(values)).toBe('repaired')
  })

  test('keeps its login, but for a TLS failure: the file of authorities may have been mended', async () => {
    const { values, manager, clock } = openFakeValues({}, { answer: failing('manager_denied') })
    await outcomeOf(values)
    clock.now += SECOND
    manager.answer = failing('manager_tls')
    manager.loginExpiresAt = clock.now
    await outcomeOf(values)
    expect(manager).toMatchObject({ opened: 1, closed: 1 })
    expect(values.health('reference-1').loginExpiresAt).toBeNull()
    clock.now += SECOND
    manager.answer = () => text('mended')
    expect(await contentOf(values)).toBe('mended')
    expect(manager).toMatchObject({ opened: 2, closed: 1 })
  })

  test('an error that is not of ours is not handed on, nor anything it says', async () => {
    const answer = () => {
      throw Object.assign(new TypeError('token canary'), { request: { headers: { 'x-vault-token': 'canary' } } })
    }
    const { values } = openFakeValues({}, { answer })
    const error: unknown = await values.fetch(reference()).catch((thrown) => thrown)
    expect(error).toMatchObject({ failure: 'manager_bad_response' })
    expect((error as Error).cause).toBeUndefined()
    expect(Bun.inspect(error)).not.toContain('canary')
  })

  test('a seal that does not open is no failure of the manager', async () => {
    const { values, manager } = openFakeValues()
    const broken = reference({
      authConfig() {
        throw new GatehouseError('internal', 'sealed for another row')
      },
    })
    expect(await outcomeOf(values, broken)).toContain('sealed for another row')
    await expect(values.test(broken, { secretKey: null })).rejects.toThrow('sealed for another row')
    expect(manager.opened).toBe(0)
  })

  test('a client that cannot be made leaves no connection open', async () => {
    const { values, manager } = openFakeValues()
    manager.open = () => {
      throw new ManagerError('login', 'manager_config', 'no region')
    }
    expect(await outcomeOf(values)).toBe('manager_config')
    expect(manager.transportsClosed).toBe(1)
  })

  test('a file of authorities that cannot be read names its setting, and leaves no connection open', async () => {
    const { values, manager } = openFakeValues({ vault_ca_file: '/nonexistent/ca.pem' })
    const error: unknown = await values.fetch(reference()).catch((thrown) => thrown)
    expect(error).toMatchObject({ step: 'tls', failure: 'manager_config' })
    expect((error as Error).message).toContain('secret_managers.vault_ca_file')
    expect(manager.opened).toBe(0)
    expect(values.counts()).toMatchObject({ logins: 0, underWay: 0, failing: 1 })
  })
})

describe('the deadline', () => {
  const quick = { timeout_seconds: 0.05 }

  test('answers although the adapter never does; its client is closed and replaced', async () => {
    const { values, manager, clock } = openFakeValues(quick, { answer: () => new Promise(() => {}) })
    const startedAt = performance.now()
    const error: unknown = await values.fetch(reference()).catch((thrown) => thrown)
    expect(error).toMatchObject({ failure: 'manager_timeout', step: 'address' })
    expect(performance.now() - startedAt).toBeLessThan(550)
    expect(manager).toMatchObject({ opened: 1, closed: 1, transportsClosed: 1 })
    expect(values.counts()).toMatchObject({ logins: 0, underWay: 0 })
    clock.now += SECOND
    manager.answer = () => text('back')
    expect(await contentOf(values)).toBe('back')
    expect(manager.opened).toBe(2)
  })

  test.each<[string, ('address' | 'connect' | 'tls' | 'login' | 'read' | 'parse')[], string]>([
    ['connecting', ['address'], 'connect'],
    ['logging in', ['address', 'connect', 'tls'], 'login'],
    ['reading, over a second connection', ['address', 'connect', 'tls', 'login', 'address', 'connect', 'tls'], 'read'],
    ['parsing', ['login', 'read', 'parse'], 'parse'],
  ])('names the step that was under way: %s', async (_name, passed, step) => {
    const { values } = openFakeValues(quick, {
      answer: (call) => {
        for (const each of passed) call.passed(each, 1)
        return new Promise(() => {})
      },
    })
    await expect(values.fetch(reference())).rejects.toMatchObject({ failure: 'manager_timeout', step })
  })

  test('leaves the client to an adapter that heeds the signal, and takes the step from it', async () => {
    const { values, manager, clock } = openFakeValues(quick, {
      answer: ({ signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () =>
            setTimeout(() => reject(new ManagerError('login', 'manager_timeout', String(signal.reason.name))), 5),
          )
        }),
    })
    const error: unknown = await values.fetch(reference()).catch((thrown) => thrown)
    expect(error).toMatchObject({ step: 'login', message: 'TimeoutError' })
    expect(manager.closed).toBe(0)
    clock.now += SECOND
    manager.answer = () => text('back')
    await values.fetch(reference())
    expect(manager.opened).toBe(1)
  })

  test('is not met by what takes no time, and leaves no timer behind', async () => {
    let signal: AbortSignal | undefined
    const { values } = openFakeValues(quick, {
      answer: (call) => {
        signal = call.signal
        return text('quick')
      },
    })
    await values.fetch(reference())
    await Bun.sleep(120)
    expect(signal?.aborted).toBe(false)
  })

  test('fetches that never settle are forgotten by the memory, too', async () => {
    const { values } = openFakeValues({ timeout_seconds: 0.001 }, { answer: () => new Promise(() => {}) })
    const gone = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const of = reference({ id: `r${i}`, organisationId: `o${i}` })
        await outcomeOf(values, of)
        values.drop(of.id)
        return new WeakRef(of)
      }),
    )
    for (let i = 0; i < 20 && gone.filter((each) => each.deref() !== undefined).length > 3; i++) {
      Bun.gc(true)
      await Bun.sleep(5)
    }
    expect(gone.filter((each) => each.deref() !== undefined).length).toBeLessThanOrEqual(3)
  })
})

describe('the breaker', () => {
  const other = (id: string, changes = {}) => reference({ id, ...changes })

  test('leaves a host alone after five calls without an answer, for all references of the organisation', async () => {
    const { values, manager, clock } = openFakeValues({}, { answer: failing('manager_unreachable') })
    for (let i = 0; i < 5; i++) await outcomeOf(values, other(`r${i}`))
    const error: unknown = await values.fetch(other('r5')).catch((thrown) => thrown)
    expect(error).toMatchObject({ failure: 'manager_unreachable', step: 'connect', retryAfterSeconds: 30 })
    expect(manager.calls).toBe(5)
    expect(values.counts().breakersOpen).toBe(1)

    const elsewhere = { vault_auth_type: 'token', vault_addr: 'https://other.int:8200', vault_token: 't' } as const
    await outcomeOf(values, other('r6', { authConfig: () => elsewhere }))
    await outcomeOf(values, other('r7', { organisationId: 'organisation-2' }))
    expect(manager.calls).toBe(7)

    manager.answer = () => text('back')
    clock.now += 30 * SECOND
    expect(await outcomeOf(values, other('r5'))).toBe('ok')
    expect(await outcomeOf(values, other('r0'))).toBe('ok')
  })

  test.each(failures.filter((failure) => failure !== 'manager_unreachable' && failure !== 'manager_timeout'))(
    'does not count %s',
    async (failure) => {
      const { values, manager } = openFakeValues({}, { answer: failing(failure) })
      for (let i = 0; i < 20; i++) await outcomeOf(values, other(`r${i}`))
      expect(manager.calls).toBe(20)
    },
  )

  test('keeps counting over a reference that is refused before its host is asked', async () => {
    const { values, manager } = openFakeValues({}, { answer: failing('manager_unreachable') })
    for (let i = 0; i < 4; i++) await outcomeOf(values, other(`r${i}`))
    manager.answer = failing('manager_config')
    await outcomeOf(values, other('r4'))
    manager.answer = failing('manager_unreachable')
    await outcomeOf(values, other('r5'))
    expect(values.counts().breakersOpen).toBe(1)
  })

  test('while it is open, an expired value is used as in any outage', async () => {
    const { values, manager, clock } = openFakeValues({ serve_stale_seconds: 60 })
    await values.fetch(other('kept'))
    clock.now += 300 * SECOND
    manager.answer = failing('manager_timeout')
    for (let i = 0; i < 5; i++) await outcomeOf(values, other(`r${i}`))
    const calls = manager.calls
    expect(await values.fetch(other('kept'))).toMatchObject({ stale: true, staleReason: 'manager_unreachable' })
    expect(manager.calls).toBe(calls)
  })
})

describe('the machine’s own identity', () => {
  const kubernetes = {
    vault_auth_type: 'kubernetes',
    vault_addr: 'https://vault.int:8200',
    vault_role: 'gateway',
  } as const
  const grant = {
    kind: 'vault_kubernetes',
    workspaces: ['prod'],
    paths: ['kv/*'],
    vault_addr: [kubernetes.vault_addr],
    vault_roles: ['gateway'],
  } as const
  const settings = { machine_identity: [{ ...grant }] as never }
  const prod = { id: 'w1', slug: 'prod' }
  const ambient = (changes = {}) => reference({ authConfig: () => kubernetes, workspaces: [prod], ...changes })

  test('is used with a grant, and not without one: nothing is opened, nothing called', async () => {
    const granted = openFakeValues(settings)
    expect(await outcomeOf(granted.values, ambient())).toBe('ok')
    const { values, manager } = openFakeValues()
    const error: unknown = await values.fetch(ambient()).catch((thrown) => thrown)
    expect(error).toMatchObject({ step: 'grant', failure: 'machine_identity_not_granted' })
    expect((error as Error).message).toContain('[[secret_managers.machine_identity]]\nkind = "vault_kubernetes"')
    expect(manager.opened).toBe(0)
    expect(values.health('reference-1').lastError).toMatchObject({ step: 'grant' })
  })

  test('is checked before the cache: a workspace more, in the same revision, and the held value is out of reach', async () => {
    const { values } = openFakeValues(settings)
    await values.fetch(ambient())
    const wider = ambient({ workspaces: [prod, { id: 'w2', slug: 'dev' }] })
    expect(values.cached(wider)).toBeUndefined()
    expect(await outcomeOf(values, wider)).toBe('machine_identity_not_granted')
    expect(values.cached(wider)).toBeUndefined()
    expect(values.health(wider.id)).toMatchObject({ cached: false, ageSeconds: null })
  })

  test('the seal is opened once for an object that is asked often', async () => {
    const { values } = openFakeValues(settings)
    let opened = 0
    const ref = ambient({
      authConfig: () => {
        opened++
        return kubernetes
      },
    })
    await values.fetch(ref)
    const before = opened
    for (let i = 0; i < 50; i++) expect(values.cached(ref) ?? (await values.fetch(ref))).toBeDefined()
    expect(opened).toBe(before)
  })

  test('is checked by a test, which then goes no further', async () => {
    const { values, manager } = openFakeValues()
    const report = await values.test(ambient(), { secretKey: null })
    expect(report).toMatchObject({ ok: false, failedStep: 'grant', value: null, usedCachedLogin: false })
    expect(report.steps.map(({ code }) => code)).toEqual([
      'machine_identity_not_granted',
      ...Array.from({ length: 7 }, () => 'not_reached'),
    ] as never)
    expect(manager.opened).toBe(0)
  })
})

describe('a test', () => {
  test('says of each step whether it was passed, and gives the value that was meant', async () => {
    const { values } = openFakeValues(
      {},
      {
        answer: (call) => {
          for (const step of ['address', 'connect', 'tls', 'login', 'address', 'read'] as const) call.passed(step, 2.6)
          return text('{"key":"sk-1"}', 'v7')
        },
      },
    )
    const report = await values.test(reference(), { secretKey: 'key' })
    expect(report).toMatchObject({ ok: true, failedStep: null, version: 'v7', usedCachedLogin: false })
    expect(report.value?.reveal()).toBe('sk-1')
    expect(Bun.inspect(report)).not.toContain('sk-1')
    expect(report.steps.map(({ step, ok, code }) => [step, ok, code])).toEqual([
      ['grant', true, null],
      ['address', true, null],
      ['connect', true, null],
      ['tls', true, null],
      ['login', true, null],
      ['read', true, null],
      ['parse', null, 'not_told_apart'],
      ['field', true, null],
    ])
    expect(report.steps[1]?.ms, 'times of a step that comes twice add up').toBe(5)
  })

  test('names the step that failed, in our words and the manager’s; those after it were not reached', async () => {
    const { values } = openFakeValues(
      {},
      {
        answer: (call) => {
          call.passed('connect', 1)
          throw new ManagerError('login', 'manager_auth_failed', 'ours', { managerMessage: 'theirs' })
        },
      },
    )
    const report = await values.test(reference(), { secretKey: null })
    expect(report).toMatchObject({ ok: false, failedStep: 'login', value: null, version: null })
    expect(report.steps.map(({ ok, code }) => [ok, code])).toEqual([
      [true, null],
      [null, 'not_told_apart'],
      [true, null],
      [null, 'not_told_apart'],
      [false, 'manager_auth_failed'],
      [null, 'not_reached'],
      [null, 'not_reached'],
      [null, 'not_reached'],
    ])
    expect(report.steps[4]).toMatchObject({ message: 'ours', manager_message: 'theirs' })
  })

  test('counts what its connections tell, and not what those of another reference do', async () => {
    const { values, manager } = openFakeValues()
    await values.fetch(reference({ id: 'another' }))
    const elsewhere = manager.connected
    manager.answer = () => {
      manager.connected('connect', 3)
      elsewhere('tls', 5)
      return text('a secret')
    }
    const { steps } = await values.test(reference(), { secretKey: null })
    expect(steps.slice(2, 4).map(({ ok, ms }) => [ok, ms])).toEqual([
      [true, 3],
      [null, null],
    ])
  })

  test('fails at the field that is not there', async () => {
    const { values } = openFakeValues({}, { answer: () => text('{"a":1}') })
    const report = await values.test(reference(), { secretKey: 'b' })
    expect(report).toMatchObject({ ok: false, failedStep: 'field', value: null, version: null })
    expect(report.steps.at(-1)).toMatchObject({ ok: false, code: 'manager_field_missing' })
  })

  test('passes by value, refusal and breaker, and leaves none', async () => {
    const { values, manager } = openFakeValues()
    const ref = reference()
    const { fetchedAt } = await values.fetch(ref)
    manager.answer = failing('manager_unreachable')
    for (let i = 0; i < 6; i++) expect(await values.test(ref, { secretKey: null })).toMatchObject({ ok: false })
    expect(manager.calls).toBe(7)
    expect(values.cached(ref)).toMatchObject({ fetchedAt })
    expect(values.counts()).toMatchObject({ breakersOpen: 0, failing: 0, healthy: 1, logins: 1 })

    manager.answer = () => text('a secret')
    const cold = reference({ id: 'cold' })
    expect(await values.test(cold, { secretKey: null })).toMatchObject({ ok: true })
    expect(values.cached(cold)).toBeUndefined()
    expect(values.health('cold')).toMatchObject({ lastSuccessAt: null, lastError: null })
  })

  test('goes through where callers are refused, and where the host is left alone', async () => {
    const { values, manager } = openFakeValues({}, { answer: failing('manager_timeout') })
    for (let i = 0; i < 5; i++) await outcomeOf(values, reference({ id: `r${i}` }))
    expect(values.counts().breakersOpen).toBe(1)
    manager.answer = () => text('back')
    expect(await values.test(reference({ id: 'r0' }), { secretKey: null })).toMatchObject({ ok: true })
    expect(values.counts().breakersOpen, 'tests tell the breaker nothing').toBe(1)
  })

  test.each<[string, boolean, { fresh?: boolean; ends?: number; revision?: number; fetched?: boolean }]>([
    ['the one that is held', true, {}],
    ['one of its own, with fresh', false, { fresh: true }],
    ['one of its own, where the held one has ended', false, { ends: -1 }],
    ['the one that is held, before it ends', true, { ends: 60 * SECOND }],
    ['one of its own, for another revision', false, { revision: 2 }],
    ['one of its own, where none is held', false, { fetched: false }],
  ])(
    'uses a login and says which: %s',
    async (_name, usedCachedLogin, { fresh = false, ends, revision = 1, fetched = true }) => {
      const { values, manager, clock } = openFakeValues()
      if (fetched) await values.fetch(reference())
      manager.loginExpiresAt = ends === undefined ? null : clock.now + ends
      const before = manager.opened
      const report = await values.test(reference({ revision }), { fresh, secretKey: null })
      expect(report).toMatchObject({ ok: true, usedCachedLogin })
      expect(manager.opened - before).toBe(usedCachedLogin ? 0 : 1)
      expect(manager.closed).toBe(usedCachedLogin ? 0 : 1)
    },
  )

  test('logs in for itself where no login has succeeded yet', async () => {
    const { values, manager } = openFakeValues({}, { answer: failing('manager_auth_failed') })
    await outcomeOf(values)
    expect(await values.test(reference(), { secretKey: null })).toMatchObject({ usedCachedLogin: false })
    expect(manager).toMatchObject({ opened: 2, closed: 1 })
  })

  test('that never ends on the held login does not take it from a fetch under way', async () => {
    const { values, manager, clock } = openFakeValues({ timeout_seconds: 0.05 })
    await values.fetch(reference())
    clock.now += 300 * SECOND
    manager.answer = () => new Promise(() => {})
    const report = values.test(reference(), { secretKey: null })
    await Bun.sleep(100)
    const late = held()
    manager.answer = late.answer
    const fetching = values.fetch(reference())
    expect(await report).toMatchObject({ ok: false, failedStep: 'address' })
    expect(manager.closed).toBe(0)
    late.letGo('unharmed')
    expect((await fetching).secret.content).toBe('unharmed')
    expect(manager.closed).toBe(1)
  })

  test('is made ten times a minute, for each reference', async () => {
    const { values, manager, clock } = openFakeValues()
    const run = (id = 'reference-1') => values.test(reference({ id }), { secretKey: null })
    for (let i = 0; i < 10; i++) {
      await run()
      clock.now += SECOND
    }
    const refused: unknown = await run().catch((error) => error)
    expect(refused).toBeInstanceOf(GatehouseError)
    expect(refused).toMatchObject({ code: 'rate_limited', retryAfterSeconds: 50 })
    expect(manager.calls).toBe(10)
    await run('another')
    clock.now += 50 * SECOND
    await run()
    await expect(run()).rejects.toMatchObject({ retryAfterSeconds: 1 })
    clock.now -= 3600 * SECOND
    expect(await run()).toMatchObject({ ok: true })
  })

  test('never more than ten in any minute, whenever they come', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 }), async (gaps) => {
        const { values, clock } = openFakeValues()
        const made: number[] = []
        for (const gap of gaps) {
          clock.now += gap
          const through = await values.test(reference(), { secretKey: null }).catch(() => undefined)
          if (through !== undefined) made.push(clock.now)
        }
        for (const end of made) {
          expect(made.filter((at) => at > end - 60_000 && at <= end).length).toBeLessThanOrEqual(10)
        }
      }),
      { numRuns: 30 },
    )
  })
})

describe('health', () => {
  test('of a reference that was never asked for holds nothing', () => {
    expect(
      Object.values(openFakeValues().values.health('unknown')).every((each) => each === null || each === false),
    ).toBe(true)
  })

  test('tells of success, failure, age, change and login', async () => {
    const { values, manager, clock } = openFakeValues({ serve_stale_seconds: 600 })
    const ref = reference()
    const begun = clock.now
    manager.loginExpiresAt = begun + 3600 * SECOND
    manager.answer = () => {
      clock.now += 12
      return text('first')
    }
    await values.fetch(ref)
    clock.now += 10_500
    expect(values.health(ref.id)).toEqual({
      lastSuccessAt: begun + 12,
      lastError: null,
      latencyMs: 12,
      cached: true,
      ageSeconds: 10,
      stale: false,
      valueChangedAt: null,
      loginExpiresAt: begun + 3600 * SECOND,
    })
    clock.now += 300 * SECOND
    manager.answer = failing('manager_sealed')
    await values.fetch(ref)
    expect(values.health(ref.id)).toMatchObject({
      lastSuccessAt: begun + 12,
      lastError: { step: 'read', code: 'manager_sealed', at: clock.now },
      cached: false,
      ageSeconds: 310,
      stale: true,
    })
    expect(values.counts()).toMatchObject({ held: 1, healthy: 0, failing: 1 })
    clock.now += SECOND
    manager.answer = () => text('first')
    await values.fetch(ref)
    expect(values.health(ref.id)).toMatchObject({ valueChangedAt: null, cached: true, stale: false })
    expect(values.counts()).toMatchObject({ healthy: 1, failing: 0 })
    clock.now += 300 * SECOND
    manager.answer = () => text('second')
    await values.fetch(ref)
    expect(values.health(ref.id)).toMatchObject({ valueChangedAt: clock.now })
  })

  test('knows a change even when the value was dropped in between', async () => {
    const { values, manager, clock } = openFakeValues({}, { answer: () => text('first') })
    await values.fetch(reference())
    manager.answer = failing('manager_secret_disabled')
    clock.now += 300 * SECOND
    await outcomeOf(values)
    clock.now += SECOND
    manager.answer = () => text('second')
    await values.fetch(reference())
    expect(values.health('reference-1').valueChangedAt).toBe(clock.now)
  })
})

test('after close nothing is held, nothing is called, and what was under way is over', async () => {
  const { values, manager } = openFakeValues({}, { answer: () => new Promise(() => {}) })
  values.fetch(reference({ id: 'under way' })).catch(() => {})
  manager.answer = () => text('held')
  await values.fetch(reference())
  values.close()
  expect(manager).toMatchObject({ opened: 2, closed: 2, transportsClosed: 2 })
  expect(values.cached(reference())).toBeUndefined()
  await expect(values.fetch(reference())).rejects.toMatchObject({ code: 'draining' })
  await expect(values.test(reference(), { secretKey: null })).rejects.toMatchObject({ code: 'draining' })
})

describe('a failure as its caller is told of it', () => {
  test.each(failures)('%s keeps its reason and our words', (failure) => {
    const problem = problemOf(
      new ManagerError('read', failure, 'what to do', { managerMessage: 'theirs', retryAfterSeconds: 7 }),
    )
    expect(problem).toBeInstanceOf(GatehouseError)
    expect(problem).toMatchObject({ code: failure, message: 'what to do', retryAfterSeconds: 7 })
    expect(problem.cause).toBeUndefined()
    expect(Bun.inspect(problem)).not.toContain('theirs')
  })

  test.each(['vault404.int refused', 'the path was Not Found'])(
    'nothing in it is taken for our own 404: %s',
    (message) => {
      expect(problemOf(new ManagerError('read', 'manager_denied', message)).message).not.toMatch(/404|not found/i)
    },
  )
})
