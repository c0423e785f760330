import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

// Looks for secrets in whatever came out, in every form that something on the way may have given them.

export interface Leak {
  where: string
  /** which secret, and the form that it was found in */
  what: string
  /** what stands there, as far as it can be printed */
  around: string
}

export interface LeakSearch {
  /** @param secret text or bytes, 8 bytes at least: chance would find less */
  add(name: string, secret: string | Uint8Array): void
  /**
   * Looks through what came out.
   *
   * @param except names of secrets that may be there
   */
  look(where: string, content: string | Uint8Array, except?: readonly string[]): void
  readonly leaks: Leak[]
  /** bytes that were looked through: a search that saw nothing proves nothing */
  seen(where: string): number
}

interface Needle {
  secret: string
  form: string
  bytes: Buffer
}

export function createLeakSearch(): LeakSearch {
  const needles: Needle[] = []
  const leaks: Leak[] = []
  const seen = new Map<string, number>()
  return {
    leaks,
    seen: (where) => seen.get(where) ?? 0,
    add(name, secret) {
      for (const [form, bytes] of formsOf(secret)) {
        const isKnown = needles.some((needle) => needle.secret === name && needle.bytes.equals(bytes))
        if (!isKnown) needles.push({ secret: name, form, bytes })
      }
    },
    look(where, content, except = []) {
      const bytes = Buffer.from(content as string)
      seen.set(where, (seen.get(where) ?? 0) + bytes.length)
      for (const needle of needles) {
        const at = except.includes(needle.secret) ? -1 : bytes.indexOf(needle.bytes)
        if (at === -1) continue
        leaks.push({
          where,
          what: `${needle.secret}, ${needle.form}`,
          around: printable(bytes, at, needle.bytes.length),
        })
      }
    },
  }
}

/** The bytes that give a secret away, by the name of the form. */
export function formsOf(secret: string | Uint8Array): Map<string, Buffer> {
  const raw = Buffer.from(secret as string)
  const forms = new Map<string, Buffer>([['as it is', raw]])
  const add = (form: string, text: string) => forms.set(form, Buffer.from(text))
  const hex = raw.toString('hex')
  add('hex', hex)
  add('hex in capitals', hex.toUpperCase())
  add('every byte URL-escaped', hex.replace(/../g, '%$&'))
  add('every byte URL-escaped in capitals', hex.toUpperCase().replace(/../g, '%$&'))
  for (const offset of [0, 1, 2]) {
    const inner = innerBase64(raw, offset)
    add(`base64 at ${offset}`, inner)
    add(`base64url at ${offset}`, inner.replaceAll('+', '-').replaceAll('/', '_'))
  }
  if (typeof secret !== 'string') return forms
  const units = [...Buffer.from(secret, 'utf16le').swap16().toString('hex').matchAll(/..../g)].map(([unit]) => unit)
  add('JSON-escaped', JSON.stringify(secret).slice(1, -1))
  add('every character JSON-escaped', units.map((unit) => `\\u${unit}`).join(''))
  add('every character JSON-escaped in capitals', units.map((unit) => `\\u${unit.toUpperCase()}`).join(''))
  add('URL-escaped', encodeURIComponent(secret))
  add('form-escaped', new URLSearchParams([['', secret]]).toString().slice(1))
  add('in small letters', secret.toLowerCase())
  add('in capitals', secret.toUpperCase())
  forms.set('UTF-16LE', Buffer.from(secret, 'utf16le'))
  forms.set('UTF-16BE', Buffer.from(secret, 'utf16le').swap16())
  return forms
}

/** The characters of base64 that the bytes before and after have no part in. */
function innerBase64(raw: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), raw])
  const first = Math.ceil((offset * 8) / 6)
  const last = Math.floor((whole.length * 8) / 6)
  return whole.toString('base64').slice(first, last)
}

const printable = (bytes: Buffer, at: number, length: number): string =>
  bytes.toString('latin1', Math.max(0, at - 60), at + length + 40).replace(/[^\x20-\x7e]/g, '.')

/** Files below a folder, or a file; sockets and FIFOs hold nothing. */
export function filesBelow(path: string): { path: string; bytes: Buffer }[] {
  if (statSync(path).isFile()) return [{ path, bytes: readFileSync(path) }]
  if (!statSync(path).isDirectory()) return []
  return readdirSync(path).flatMap((name) => filesBelow(join(path, name)))
}
