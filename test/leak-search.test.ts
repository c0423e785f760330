import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { createCanaries } from './support/canaries.ts'
import { createLeakSearch } from './support/leak-search.ts'

// The search of the leak hunt can fail: a leak that is planted is found, in whatever form, wherever it begins.

const eachUnit = (text: string, write: (unit: string) => string) =>
  [...Buffer.from(text, 'utf16le').swap16().toString('hex').matchAll(/..../g)].map(([unit]) => write(unit)).join('')

/** Written without the search's own means. */
const FORMS: Record<string, (text: string) => string | Uint8Array> = {
  'as it is': (text) => text,
  'in JSON': (text) => JSON.stringify({ deep: [text] }),
  'in JSON within JSON': (text) => JSON.stringify(JSON.stringify(text)),
  'every character of JSON escaped': (text) => eachUnit(text, (unit) => `\\u${unit}`),
  'in a URL': encodeURI,
  'in a query': (text) => `?q=${encodeURIComponent(text)}&x=1`,
  'in a form': (text) => new URLSearchParams({ text }).toString(),
  'every byte of a URL escaped': (text) => Buffer.from(text).toString('hex').replace(/../g, '%$&'),
  'in base64': btoa,
  'in base64url': (text) => Buffer.from(text).toString('base64url'),
  'in base64 in JSON': (text) => JSON.stringify({ token: btoa(text) }),
  'in hex': (text) => Buffer.from(text).toHex(),
  'in hex in capitals': (text) => Buffer.from(text).toHex().toUpperCase(),
  'in UTF-16LE': (text) => Buffer.from(text, 'utf16le'),
  'in UTF-16BE': (text) => Buffer.from(text, 'utf16le').swap16(),
  'in capitals': (text) => text.toUpperCase(),
  'in HTML': (text) => text.replace(/["'<>&]/g, (c) => `&#${c.charCodeAt(0)};`),
}

describe('a canary is found', () => {
  const { secret, marks } = createCanaries()
  const search = createLeakSearch()
  search.add('secret', marks.secret)

  test.each(Object.entries(FORMS))('%s, with anything before and behind it', (form, write) => {
    for (const before of ['', 'x', 'xy', 'Bearer '])
      for (const behind of ['', 'z', 'zz', ' end'])
        for (const noise of [0, 1, 4096]) {
          const planted = Buffer.concat([
            randomBytes(noise),
            Buffer.from(write(`${before}${secret('hvs')}${behind}`) as string),
            randomBytes(noise),
          ])
          search.look(form, planted)
          expect(search.leaks.splice(0).map(({ where }) => where)).toContain(form)
        }
  })

  test('in a piece of it', () => {
    for (const piece of [secret('hvs').slice(0, 24), secret('hvs').slice(-24)]) {
      search.look('piece', piece)
      expect(search.leaks.splice(0).length).toBeGreaterThan(0)
    }
  })
})

test.each<[what: string, secret: string | Uint8Array]>([
  ['a key of 32 bytes', randomBytes(32)],
  ['a text that every form writes in another way', 'p"\\+/%<&\' é😀 0123456789'],
])('%s is found in all its forms', (_, secret) => {
  const search = createLeakSearch()
  search.add('it', secret)
  const bytes = Buffer.from(secret as string)
  const forms = [
    bytes,
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toHex(),
    bytes.toHex().toUpperCase(),
  ]
  if (typeof secret === 'string') {
    forms.push(JSON.stringify(secret), encodeURIComponent(secret), new URLSearchParams({ secret }).toString())
    forms.push(Buffer.from(secret, 'utf16le'))
  }
  for (const [i, form] of forms.entries()) {
    search.look(`${i}`, form)
    expect(search.leaks.splice(0).map(({ where }) => where)).toContain(`${i}`)
  }
})

test('what is no leak is none: another mark, a mark with one character changed, noise', () => {
  const search = createLeakSearch()
  const { marks } = createCanaries()
  search.add('secret', marks.secret)
  const changed = marks.secret.slice(0, -1) + (marks.secret.endsWith('a') ? 'b' : 'a')
  for (const content of [createCanaries().secret('x'), changed, randomBytes(1 << 20)]) search.look('nothing', content)
  search.look('where it may be', marks.secret, ['secret'])
  expect(search.leaks).toEqual([])
  expect(search.seen('nothing')).toBeGreaterThan(1 << 20)
})
