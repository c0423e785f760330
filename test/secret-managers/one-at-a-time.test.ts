import { describe, expect, test } from 'bun:test'
import { type ManagerCall, ManagerError } from '../../src/secret-managers/manager.ts'
import { oneAtATime } from '../../src/secret-managers/one-at-a-time.ts'

const tooLate = () => new ManagerError('login', 'manager_timeout', 'did not end in time')
const within = (ms: number): ManagerCall => ({ signal: AbortSignal.timeout(ms), passed() {} })
const failureOf = (work: Promise<unknown>): Promise<ManagerError> =>
  work.then(
    () => Promise.reject(new Error('it ended well')),
    (error: ManagerError) => error,
  )

describe('a login whose time is up', () => {
  test('says itself where it was: which host was silent is what an operator needs', async () => {
    const join = oneAtATime(async ({ signal }: ManagerCall) => {
      const { promise, reject } = Promise.withResolvers<never>()
      signal.addEventListener('abort', () => reject(new ManagerError('tls', 'manager_timeout', 'host:443 is silent')))
      // an SDK has hands of its own between the connection and us
      return promise.catch(async (error) => {
        for (let i = 0; i < 50; i++) await null
        throw error
      })
    }, tooLate)
    expect(await failureOf(join(within(20)))).toMatchObject({ step: 'tls', message: 'host:443 is silent' })
  })

  test('is left behind where it does not heed that', async () => {
    const join = oneAtATime(() => new Promise(() => {}), tooLate)
    const startedAt = performance.now()
    expect((await failureOf(join(within(20)))).message).toBe('did not end in time')
    expect(performance.now() - startedAt).toBeLessThan(1_000)
  })

  test('does not take those with it who have time left', async () => {
    let calls = 0
    const join = oneAtATime(async ({ signal }: ManagerCall) => {
      if (++calls > 1) return 'token'
      const { promise, reject } = Promise.withResolvers<never>()
      signal.addEventListener('abort', () => reject(tooLate()))
      return promise
    }, tooLate)
    const [first, second] = [failureOf(join(within(20))), join(within(5_000))]
    expect((await first).failure).toBe('manager_timeout')
    expect(await second).toBe('token')
  })
})
