import { randomBytes } from 'node:crypto'

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
