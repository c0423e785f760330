import { describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { isWellFormedKey, KEY_LENGTH, KEY_PATTERN, maskKey, newApiKey } from '../../src/api-keys/key.ts'

const LETTERS = ['a', 'w', 's'] as const
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** The checksum once more, written another way: zlib's CRC-32 of the 37 characters before it, in base62. */
function checksum(body: string): string {
  let rest = BigInt(crc32(body))
  const digits = Array.from({ length: 6 }, () => {
    const digit = BASE62[Number(rest % 62n)]
    rest /= 62n
    return digit
  })
  return digits.reverse().join('')
}

describe('a new key', () => {
  test.each(LETTERS)('gth_%s_…: 43 characters, no dots, found by secret scanners, checksum at the end', (letter) => {
    for (let i = 0; i < 500; i++) {
      const key = newApiKey(letter)
      expect(key).toMatch(new RegExp(`^gth_${letter}_[0-9A-Za-z]{30}_[0-9A-Za-z]{6}$`))
      expect(key).toHaveLength(KEY_LENGTH)
      expect(key.slice(37)).toBe(checksum(key.slice(0, 37)))
      expect(isWellFormedKey(key)).toBe(true)
      expect(`"${key}",`.match(KEY_PATTERN)?.[0]).toBe(key)
    }
    expect(KEY_LENGTH).toBe(43)
  })

  test('draws each character alike', () => {
    const counts = new Map<string, number>()
    for (let i = 0; i < 4000; i++) for (const c of newApiKey('w').slice(6, 36)) counts.set(c, (counts.get(c) ?? 0) + 1)
    expect(counts.size).toBe(62)
    // 120,000 characters, 1,935 each on average, 44 the deviation: 7 deviations either way
    for (const count of counts.values()) expect(Math.abs(count - 1935)).toBeLessThan(310)
  })

  test('is shown as two and three characters at most', () => {
    expect(maskKey('gth_w_0123456789ABCDEFGHIJKLMNOPQRST_abcdef')).toBe('01*****def')
  })
})

test('100,000 damaged keys are refused without a look-up', () => {
  const alphabet = `${BASE62}_-. \u00e9\u{1F511}\0`
  const random = (below: number) => Math.floor(Math.random() * below)
  const letter = () => alphabet[random(alphabet.length)]!
  const damages: ((key: string, at: number) => string)[] = [
    (key, at) => key.slice(0, at) + letter() + key.slice(at + 1),
    (key, at) => key.slice(0, at) + key.slice(at + 1),
    (key, at) => key.slice(0, at) + letter() + key.slice(at),
    (key, at) => key.slice(0, at) + (key[at + 1] ?? '') + (key[at] ?? '') + key.slice(at + 2),
    (key, at) =>
      key.slice(0, at) + (key[at]! < 'a' ? key[at]!.toLowerCase() : key[at]!.toUpperCase()) + key.slice(at + 1),
    (key) => key + letter(),
    (key, at) => newApiKey('a').slice(0, at) + key.slice(at),
  ]
  const keys = Array.from({ length: 200 }, (_, i) => newApiKey(LETTERS[i % 3]!))
  const known = new Set(keys)
  let refused = 0
  for (let i = 0; i < 100_000; i++) {
    const key = keys[i % keys.length]!
    const damaged = damages[i % damages.length]!(key, random(KEY_LENGTH))
    if (known.has(damaged)) continue
    // splicing two keys right before a checksum can make a new valid key; nothing else can but by 1 in 4 billion
    if (isWellFormedKey(damaged)) expect(damaged.slice(37)).toBe(checksum(damaged.slice(0, 37)))
    else refused++
  }
  expect(refused).toBeGreaterThan(90_000)
})

test.each([
  '',
  'gth_',
  'gth_a_',
  'x'.repeat(43),
  'gth_x_0123456789ABCDEFGHIJKLMNOPQRST_000000',
  'GTH_a_0123456789ABCDEFGHIJKLMNOPQRST_000000',
])('%p is no key', (text) => expect(isWellFormedKey(text)).toBe(false))
