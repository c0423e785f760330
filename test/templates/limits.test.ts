import { describe, expect, test } from 'bun:test'
import { compileTemplate } from '../../src/templates/template.ts'
import { failureOf, partialsOf, save } from './support.ts'

const user = (content: unknown) => [{ role: 'user', content }]

describe('limits', () => {
  const list = (length: number) => Array.from({ length }, () => 1)

  test.each([
    ['lists in lists', '{{#l}}{{#l}}{{#l}}x{{/l}}{{/l}}{{/l}}', { l: list(500) }],
    ['output that grows in a list', '{{#l}}{{big}}{{/l}}', { l: list(1_000), big: 'x'.repeat(100_000) }],
    ['output of many tags', '{{big}}'.repeat(60), { big: 'x'.repeat(1_000_000) }],
    ['output of an object', '{{#l}}{{big}}{{/l}}', { l: list(100), big: { a: 'x'.repeat(1_000_000) } }],
    [
      'many texts to parse',
      '{{#l}}{{>>t}}{{/l}}',
      { l: Array.from({ length: 300 }, (_, i) => ({ t: `{{a}}${i}${'x'.repeat(10_000)}` })) },
    ],
    ['too large a text for a private partial', '{{>>t}}', { t: 'x'.repeat(512 * 1024 + 1) }],
  ])('%s', (_name, template, variables) => {
    for (const kind of [template, user(template)])
      expect(failureOf(() => save(kind).fill(variables, {})).code).toBe('template_limit')
  })

  test('the same long text may stand often', () => {
    expect(save('{{#l}}{{>>t}}{{/l}}').fill({ l: list(300), t: `{{a}}${'x'.repeat(10_000)}` }, {})).toHaveLength(
      3_000_000,
    )
  })

  test('partials that multiply by indentation end in a refusal, not in memory', () => {
    const partials = { p: ' {{>p}}\n\t{{>p}}\n'.repeat(2) }
    expect(failureOf(() => compileTemplate('{{>p}}', false, 'text', partialsOf(partials))).code).toBe('template_limit')
  })

  test('a value nested too deeply to be written out is refused, not our failure', () => {
    // The engine takes over a second to run out of stack on a really deep value, so this one says so at once.
    const deep = {
      get inside() {
        throw new RangeError('Maximum call stack size exceeded.')
      },
    }
    expect(failureOf(() => save('{{deep}}').fill({ deep }, {})).code).toBe('template_limit')
  })
})
