import { describe, expect, test } from 'bun:test'
import { open, type SealedPlace, type SealingKey, seal, sealingKeyId } from '../../src/crypto/cipher.ts'
import { Redacted } from '../../src/redacted.ts'

const key: SealingKey = { id: 'k1', bytes: new Redacted(Buffer.alloc(32, 1)) }
const other: SealingKey = { id: 'k2', bytes: new Redacted(Buffer.alloc(32, 2)) }
const place: SealedPlace = { table: 'secret_references', column: 'auth_config', rowId: 'r1', organisationId: 'o1' }
const keyOf = (id: string) => [key, other].find((each) => each.id === id)

describe('a sealed value', () => {
  test.each(['', 'x', 'ü\n\0', 'y'.repeat(100_000)])('comes back as it was', (clear) => {
    expect(open(seal(clear, key, place), keyOf, place).toString()).toBe(clear)
  })

  test('of the first release opens for ever', () => {
    const golden = Buffer.from('01026b31000102030405060708090a0bd3d3fb52458c3455124a0aa7dd6a24af1bf809ef3771e5', 'hex')
    expect(open(golden, keyOf, place).toString()).toBe('hunter2')
  })

  test('names its key and shows neither text nor length-equal twins', () => {
    const [a, b] = [seal('hunter2', key, place), seal('hunter2', key, place)]
    expect(sealingKeyId(a)).toBe('k1')
    expect(a.equals(b)).toBe(false)
    expect(a.includes('hunter2')).toBe(false)
    expect(a.length).toBe(2 + 2 + 12 + 7 + 16)
  })

  test.each(['table', 'column', 'rowId', 'organisationId'] as const)('moved to another %s does not open', (part) => {
    expect(() => open(seal('x', key, place), keyOf, { ...place, [part]: 'elsewhere' })).toThrow('could not be opened')
  })

  test('does not open where two parts of its place are shifted against each other', () => {
    const sealed = seal('x', key, { ...place, table: 'ab', column: 'c' })
    expect(() => open(sealed, keyOf, { ...place, table: 'a', column: 'bc' })).toThrow('could not be opened')
  })

  test('does not open with any bit flipped or any end cut off', () => {
    const sealed = seal('hunter2', key, place)
    for (let bit = 0; bit < sealed.length * 8; bit++) {
      const changed = Buffer.from(sealed)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(() => open(changed, () => key, place)).toThrow('could not be opened')
    }
    for (let length = 0; length < sealed.length; length++) {
      expect(() => open(sealed.subarray(0, length), keyOf, place)).toThrow('could not be opened')
    }
  })

  test('does not open with another key of the same id, or without its key', () => {
    const sealed = seal('x', key, place)
    expect(() => open(sealed, () => ({ ...other, id: 'k1' }), place)).toThrow('could not be opened')
    expect(() => open(sealed, () => undefined, place)).toThrow('could not be opened')
  })
})
