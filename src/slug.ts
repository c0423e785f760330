import { randomBytes } from 'node:crypto'
import { isUniqueViolation } from './db/errors.ts'

/**
 * A slug of its own for a named thing: `pp-greet-user-4fa31c` (file 00 section 5). The suffix makes it unique, the
 * name's beginning makes it readable.
 */
export function newSlug(prefix: string, name: string): string {
  const readable = slugified(name, 10)
  return [prefix, readable, randomBytes(3).toString('hex')].filter((part) => part !== '').join('-')
}

/**
 * Writes a row under a new slug, and again under another where the slug is taken: six hex digits meet sooner or later.
 *
 * @param index the unique index of the slug
 */
export async function withNewSlug<T>(
  prefix: string,
  name: string,
  index: string,
  write: (slug: string) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(newSlug(prefix, name))
    } catch (error) {
      if (attempt === 5 || !isUniqueViolation(error, index)) throw error
    }
  }
}

const LONGEST = 255
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Writes a row under the slug that its whole name makes, `openai-prod`, and where that is taken, or would read as an id,
 * under one with a suffix: `openai-prod-4fa31c` (decision 49).
 *
 * @param otherwise for names without a letter or digit of ours
 * @param index     the unique index of the slug
 */
export async function withSlugOfName<T>(
  name: string,
  otherwise: string,
  index: string,
  write: (slug: string) => Promise<T>,
): Promise<T> {
  const readable = slugified(name, LONGEST) || otherwise
  for (let attempt = 1; ; attempt++) {
    const suffix = attempt > 1 || UUID.test(readable) ? `-${randomBytes(3).toString('hex')}` : ''
    try {
      return await write(readable.slice(0, LONGEST - suffix.length) + suffix)
    } catch (error) {
      if (attempt === 6 || !isUniqueViolation(error, index)) throw error
    }
  }
}

const slugified = (name: string, longest: number): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, longest)
    .replace(/^-+|-+$/g, '')
