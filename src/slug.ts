import { randomBytes } from 'node:crypto'
import { isUniqueViolation } from './db/errors.ts'

/**
 * A slug of its own for a named thing: `pp-greet-user-4fa31c` (file 00 section 5). The suffix makes it unique, the
 * name's beginning makes it readable.
 */
export function newSlug(prefix: string, name: string): string {
  const readable = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 10)
    .replace(/^-+|-+$/g, '')
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
