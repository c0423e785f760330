/**
 * Development only, run by hand or by `bun run schema`: puts the table of settings between the README's two markers.
 * `test/config/readme.test.ts` fails while the two differ.
 */
import { join } from 'node:path'
import { settingsTable } from './describe.ts'

export const START = '<!-- settings: written by src/config/write-readme.ts -->'
export const END = '<!-- end of settings -->'

/** The README's text with the current table; unchanged where it has no markers. */
export function withSettings(readme: string): string {
  const [before, rest] = readme.split(START)
  const after = rest?.split(END)[1]
  return before === undefined || after === undefined ? readme : `${before}${START}\n${settingsTable()}\n${END}${after}`
}

if (import.meta.main) {
  const path = join(import.meta.dir, '../../README.md')
  Bun.file(path)
    .text()
    .then((readme) => Bun.write(path, withSettings(readme)))
}
