import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import type { KeyRateLimit } from '../schema/api/limits.ts'
import { createLimiters, type Limiter } from '../src/auth/rate-limit.ts'
import type { GatehouseError } from '../src/errors.ts'
import { expectProblem, useWorld } from './support/scenario.ts'

const SECONDS = { rps: 1, rpm: 60, rph: 3600, rpd: 86_400, rpw: 604_800 } as const
type Unit = keyof typeof SECONDS

const requests = (unit: Unit, value: number): KeyRateLimit => ({ type: 'requests', unit, value })

function limiterOf(...limits: KeyRateLimit[]): Limiter {
  const limiter = createLimiters().of('key', JSON.stringify(limits))
  if (limiter === undefined) throw new Error('no limits')
  return limiter
}

/** undefined when the request may pass */
function refusal(limiter: Limiter, now: number): GatehouseError | undefined {
  try {
    limiter.take(now)
    return undefined
  } catch (error) {
    return error as GatehouseError
  }
}

describe('a rate limit', () => {
  test('never lets more through than its burst and what has come since', () => {
    const steps = fc.array(fc.double({ min: 0, max: 3000, noNaN: true }), { minLength: 1, maxLength: 300 })
    const limits = fc.record({
      unit: fc.constantFrom<Unit>('rps', 'rpm', 'rph'),
      value: fc.integer({ min: 0, max: 40 }),
    })
    fc.assert(
      fc.property(limits, steps, fc.double({ min: 0, max: 1e12, noNaN: true }), ({ unit, value }, pauses, start) => {
        const limiter = limiterOf(requests(unit, value))
        const passed: number[] = []
        let now = start
        for (const pause of pauses) {
          now += pause
          if (refusal(limiter, now) === undefined) passed.push(now)
        }
        // Of every stretch of time, not only of that from the start.
        const excess = passed.flatMap((from, i) =>
          passed.slice(i).map((to, n) => n + 1 - value - (value * (to - from)) / 1000 / SECONDS[unit]),
        )
        expect(Math.max(0, ...excess)).toBeLessThan(1e-3)
      }),
      { numRuns: 200 },
    )
  })

  test('of 100,000 requests in a minute lets through what it says', () => {
    const limiter = limiterOf(requests('rpm', 60))
    let passed = 0
    for (let i = 0; i < 100_000; i++) if (refusal(limiter, i * 0.6) === undefined) passed++
    expect(passed).toBeWithin(118, 121)
  })

  test('admits again after the time that it asks to wait', () => {
    for (const [unit, value] of [
      ['rps', 3],
      ['rpm', 1],
      ['rpd', 7],
    ] as const) {
      const limiter = limiterOf(requests(unit, value))
      for (let i = 0; i < value; i++) expect(refusal(limiter, 0)).toBeUndefined()
      const wait = refusal(limiter, 0)?.retryAfterSeconds ?? 0
      expect(wait).toBeGreaterThan(0)
      expect(wait).toBe(Math.ceil(SECONDS[unit] / value))
      expect(refusal(limiter, wait * 1000)).toBeUndefined()
    }
  })

  test('a refused request costs nothing, of any of several limits', () => {
    const limiter = limiterOf(requests('rps', 1), requests('rph', 3))
    for (const second of [0, 1, 2]) {
      expect(refusal(limiter, second * 1000)).toBeUndefined()
      for (let i = 0; i < 50; i++) expect(refusal(limiter, second * 1000)).toBeDefined()
    }
    expect(refusal(limiter, 10_000)?.retryAfterSeconds).toBeGreaterThan(60)
  })

  test('of nothing lets nothing through', () => {
    const limiter = limiterOf(requests('rpm', 0))
    expect(refusal(limiter, 0)?.retryAfterSeconds).toBe(60)
    expect(refusal(limiter, 1e9)).toBeDefined()
  })

  test('of tokens alone costs requests nothing', () => {
    expect(createLimiters().of('key', JSON.stringify([{ type: 'tokens', unit: 'rps', value: 0 }]))).toBeUndefined()
    expect(createLimiters().of('key', null)).toBeUndefined()
  })

  test('that changes does not forget what was used', () => {
    const limiters = createLimiters()
    const first = limiters.of('key', JSON.stringify([requests('rph', 5)]))
    expect(limiters.of('key', JSON.stringify([requests('rph', 5)]))).toBe(first)
    for (let i = 0; i < 5; i++) first?.take(0)
    const same = limiters.of('key', JSON.stringify([requests('rph', 5), requests('rpw', 1000)]))
    expect(refusal(same ?? limiterOf(), 0)).toBeDefined()
    const more = limiters.of('key', JSON.stringify([requests('rph', 6)]))
    expect(refusal(more ?? limiterOf(), 0)).toBeUndefined()
    expect(refusal(more ?? limiterOf(), 0)).toBeDefined()
  })
})

describe('a key with a rate limit', () => {
  const world = useWorld()
  const SCOPES = ['prompts.list', 'organisation_service_api_keys.rotate']
  const limited = (value: number) =>
    world().newKey('organisation/service', SCOPES, {
      rate_limits: [requests('rpw', value), { type: 'tokens', unit: 'rps', value: 0 }],
    })
  const list = (key: string) => world().call('GET', '/v1/prompts', undefined, { key })

  test('is told what is left, and when it may come back', async () => {
    const { key } = await limited(2)
    const first = await list(key)
    expect(first.headers.get('ratelimit-policy')).toBe('"rpw";q=2;w=604800')
    expect(first.headers.get('ratelimit')).toMatch(/^"rpw";r=1;t=3024\d\d$/)
    await list(key)
    const third = await list(key)
    expectProblem(third, 'rate_limited')
    expect(third.headers.get('ratelimit')).toMatch(/^"rpw";r=0;t=60480\d$|^"rpw";r=0;t=6047\d\d$/)
    expect(Number(third.headers.get('retry-after'))).toBeWithin(302_300, 302_401)
  })

  test('has one count for both its secrets, and for what it is refused', async () => {
    const { id, key: old } = await limited(3)
    expectProblem(await world().call('GET', '/v1/labels/x', undefined, { key: old }), 'forbidden')
    const { key } = (await world().call('POST', `/v1/api-keys/${id}/rotate`, undefined, { key: old })).body
    expect((await list(key)).status).toBe(200)
    expectProblem(await list(old), 'rate_limited')
    expectProblem(await list(key), 'rate_limited')
  })

  test('is free at once when the limit is lifted, and a key without one is told of none', async () => {
    const { id, key } = await limited(0)
    expectProblem(await list(key), 'rate_limited')
    await world().call('PUT', `/v1/api-keys/${id}`, { rate_limits: null })
    const answer = await list(key)
    expect(answer.status).toBe(200)
    expect(answer.headers.has('ratelimit')).toBe(false)
  })

  test('renders count as well', async () => {
    const { key } = await world().newKey('organisation/service', ['prompts.render'], {
      rate_limits: [requests('rpw', 1)],
    })
    const render = () => world().call('POST', '/v1/prompts/none/render', { variables: {} }, { key })
    expectProblem(await render(), 'not_found')
    expectProblem(await render(), 'rate_limited')
  })
})
