import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createBreaker } from '../../src/secret-managers/breaker.ts'

const HOST = 'organisation-1 vault.int:8200'
const at = 1_800_000_000_000

/** A breaker whose host did not answer so many calls in a row, at the time `at`. */
function failed(times: number) {
  const breaker = createBreaker()
  for (let i = 0; i < times; i++) {
    breaker.enter(HOST, at)
    breaker.leave(HOST, false, at)
  }
  return breaker
}

describe('a host that does not answer', () => {
  test('is called five times, and then left alone for 30 s', () => {
    expect(failed(4).enter(HOST, at)).toBeUndefined()
    const open = failed(5)
    expect(open.enter(HOST, at)).toBe(30)
    expect(open.enter(HOST, at + 29_001)).toBe(1)
    expect(open.open(at)).toBe(1)
  })

  test('is then asked by one caller, whose success lets all in', () => {
    const breaker = failed(5)
    const later = at + 30_000
    expect(breaker.enter(HOST, later)).toBeUndefined()
    expect(breaker.enter(HOST, later)).toBe(1)
    breaker.leave(HOST, true, later)
    expect(breaker.enter(HOST, later)).toBeUndefined()
    expect(breaker.enter(HOST, later)).toBeUndefined()
  })

  test('is left alone for another 30 s when that caller fails', () => {
    const breaker = failed(5)
    const later = at + 30_000
    breaker.enter(HOST, later)
    breaker.leave(HOST, false, later)
    expect(breaker.enter(HOST, later + 1)).toBe(30)
  })

  test('is asked by the next one when that caller never got as far as the host', () => {
    const breaker = failed(5)
    breaker.enter(HOST, at + 30_000)
    breaker.leave(HOST, undefined, at + 30_000)
    expect(breaker.enter(HOST, at + 30_000)).toBeUndefined()
  })

  test('one answer in between begins the count anew', () => {
    const breaker = failed(4)
    breaker.leave(HOST, true, at)
    breaker.leave(HOST, false, at)
    expect(breaker.enter(HOST, at)).toBeUndefined()
  })

  test('calls that began before, and fail late, do not keep it closed for longer', () => {
    const breaker = failed(5)
    for (let i = 0; i < 20; i++) breaker.leave(HOST, false, at + 9000)
    expect(breaker.enter(HOST, at + 30_000)).toBeUndefined()
  })

  test('a clock that is set back does not keep it closed for ever', () => {
    expect(failed(5).enter(HOST, at - 86_400_000)).toBeUndefined()
  })

  test('is another one for another organisation', () => {
    expect(failed(5).enter('organisation-2 vault.int:8200', at)).toBeUndefined()
  })
})

test('of a million hosts that fail, a thousand are remembered', () => {
  const breaker = createBreaker()
  for (let host = 0; host < 3000; host++) for (let i = 0; i < 5; i++) breaker.leave(`host ${host}`, false, at)
  expect(breaker.open(at)).toBe(1000)
  expect(breaker.enter('host 2999', at)).toBe(30)
})

test('the host that failed longest ago is forgotten first, not the one that has failed for longest', () => {
  const breaker = failed(5)
  for (let host = 0; host < 999; host++) breaker.leave(`host ${host}`, false, at)
  breaker.enter(HOST, at + 30_000)
  breaker.leave(HOST, false, at + 30_000)
  breaker.leave('one more', false, at + 30_000)
  expect(breaker.enter(HOST, at + 30_000)).toBe(30)
})

test('whatever happens in whatever order, nobody waits for more than 30 s, and one probe is out at most', () => {
  const outcome = fc.constantFrom(true, false, undefined)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(20_000), outcome), { maxLength: 60 }), (events) => {
      const breaker = createBreaker()
      let now = at
      for (const [ms, answered] of events) {
        now += ms
        const wait = breaker.enter(HOST, now)
        expect(wait ?? 1).toBeGreaterThanOrEqual(1)
        expect(wait ?? 30).toBeLessThanOrEqual(30)
        if (wait === undefined) breaker.leave(HOST, answered, now)
      }
      expect(breaker.enter(HOST, now + 30_000)).toBeUndefined()
    }),
  )
})
