import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describeConfig } from '../../src/config/describe.ts'
import { END, START, withSettings } from '../../src/config/write-readme.ts'

const path = join(import.meta.dir, '../../README.md')

test.skipIf(!existsSync(path))("the README's table of settings is the one of schema/config.ts", async () => {
  const readme = await Bun.file(path).text()
  expect(readme).toContain(START)
  // else: bun src/config/write-readme.ts
  expect(withSettings(readme)).toBe(readme)
})

test('the table has every setting, and nothing around it changes', () => {
  const written = withSettings(`# A\n${START}\nold\n${END}\ntail\n`)
  expect(written).toStartWith(`# A\n${START}\n| Setting |`)
  expect(written).toEndWith(`\n${END}\ntail\n`)
  for (const { name } of describeConfig()) expect(written).toContain(`| \`${name}\` |`)
  expect(withSettings(written)).toBe(written)
  expect(withSettings('no markers')).toBe('no markers')
})
