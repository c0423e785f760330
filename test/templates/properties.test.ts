import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findJsonError } from '../../src/templates/json-error.ts'
import { stripTrailingCommas } from '../../src/templates/json-state.ts'
import { evaluate, type Item, insideArguments, insideJson, partialTexts, print, spell, type Tree } from './reference.ts'
import { argumentsOf, callOf, failureOf, rawCall, save } from './support.ts'

const NAMES = [
  'a',
  'b',
  'list',
  'a.b',
  'b.a.list',
  'list.0',
  '__proto__',
  'constructor',
  'toString',
  'length',
  'valueOf.call',
]
const NASTY = [
  '"',
  '\\',
  '{{a}}',
  '{{>p}}',
  '{{>>a}}',
  '{{#a}}',
  '}}',
  '{{=<% %>=}}',
  '"}]',
  ',]',
  '\n',
  '\u2028',
  '\ud83d\ude00',
  '$' + '{a}',
  '$&',
  "$'",
  '\\u0022',
  '<&>',
]

/** Any text, hostile pieces more often than chance has them; whole code points and no NUL, as the body parser guarantees. */
const text = fc
  .array(fc.oneof(fc.string({ unit: 'binary', maxLength: 5 }), fc.constantFrom(...NASTY)), { maxLength: 6 })
  .map((pieces) => pieces.join('').replaceAll('\0', '').toWellFormed())

const key = fc.constantFrom('a', 'b', 'list', 'x', '__proto__', 'constructor', 'toString')
const { value } = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.constantFrom(0, 1, -0, 1.5, 1e21, true, false, null, ''),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc
    .array(fc.tuple(key, tie('value')), { maxLength: 4 })
    .map((entries) => Object.fromEntries(entries) as Record<string, unknown>),
}))
const variables = fc
  .array(fc.tuple(key, value), { maxLength: 6 })
  .map((entries) => Object.fromEntries(entries) as Record<string, unknown>)

/** Template text between letters, so that no tag has its line to itself (the specification's cases cover those). */
const literal = fc
  .array(fc.constantFrom('x', ' ', '"', '\\', '\n', '{', '}', 'é', ',', ']', '<'), { maxLength: 4 })
  .map((pieces) => `x${pieces.join('').replace(/([{}])[{}]+/g, '$1')}x`)
const name = fc.constantFrom(...NAMES, '.')
let partials = 0
const { tree } = fc.letrec<{ tree: Tree; item: Item }>((tie) => ({
  tree: fc
    .array(tie('item'), { maxLength: 4 })
    .map((items) => items.flatMap((item) => [item, { kind: 'text' as const, text: 'x' }])),
  item: fc.oneof(
    { maxDepth: 4 },
    literal.map((text): Item => ({ kind: 'text', text })),
    name.map((name): Item => ({ kind: 'variable', name })),
    fc.tuple(name, tie('tree')).map(([name, inside]): Item => ({ kind: 'section', name, inside })),
    fc.tuple(name, tie('tree')).map(([name, inside]): Item => ({ kind: 'inverted', name, inside })),
    tie('tree').map((inside): Item => ({ kind: 'partial', name: `p${partials++}`, inside })),
  ),
}))

/** The root is one scope when `.` is printed, else request before defaults. */
const scopesOf = (requested: Record<string, unknown>, defaults: Record<string, unknown>) => [
  { ...defaults, ...requested },
]
/** How an author may write the characters of a string literal, in turn. */
const spelling = fc.array(fc.constantFrom('short' as const, 'unicode' as const), { minLength: 1, maxLength: 7 })
const user = (content: string) => [{ role: 'user', content }]

describe('for any template and any values', () => {
  test('the compiled form is the reference, as text, in a chat string, and in a raw string literal', () => {
    fc.assert(
      fc.property(tree, variables, variables, (tree, requested, defaults) => {
        const expected = evaluate(tree, scopesOf(requested, defaults))
        const partials = partialTexts(tree)
        const template = `x${print(tree)}`
        expect(save(template, { partials }).fill(requested, defaults)).toBe(`x${expected}`)
        expect(save(user(template), { partials }).fill(requested, defaults)).toEqual(user(`x${expected}`))
        const rawText = `[{"role":"user","content":"x${print(tree, insideJson)}"}]`
        expect(save(rawText, { raw: true, partials }).fill(requested, defaults)).toEqual(user(`x${expected}`))
      }),
      { numRuns: 500 },
    )
  })

  test('the compiled form is the reference inside the arguments of a raw call too', () => {
    fc.assert(
      fc.property(tree, variables, spelling, (tree, requested, ways) => {
        const expected = evaluate(tree, scopesOf(requested, {}), insideArguments)
        const key = spell('arguments', ways)
        const rawText = rawCall(`"${key}":"{\\"s\\":\\"x${print(tree, insideArguments.literal)}\\"}"`)
        const filled = save(rawText, { raw: true, partials: partialTexts(tree) }).fill(requested, {})
        expect(argumentsOf(filled)).toBe(JSON.parse(`"{\\"s\\":\\"x${expected}\\"}"`))
        expect(JSON.parse(argumentsOf(filled))).toEqual({ s: `x${evaluate(tree, scopesOf(requested, {}))}` })
      }),
      { numRuns: 500 },
    )
  })

  test('collecting names changes no answer', () => {
    fc.assert(
      fc.property(tree, variables, (tree, requested) => {
        const template = save(`x${print(tree)}`, { partials: partialTexts(tree) })
        const lookups = { used: new Set<string>(), missing: new Set<string>() }
        expect(template.fill(requested, {}, lookups)).toBe(template.fill(requested, {}) as string)
        for (const name of lookups.used) expect(template.variableNames.has(name)).toBe(true)
        for (const name of lookups.missing) expect(template.variableNames.has(name)).toBe(true)
      }),
      { numRuns: 200 },
    )
  })
})

describe('for any value', () => {
  test('the messages keep their structure, and the value is there as it was', () => {
    const template = save([
      { role: 'system', content: 'fixed' },
      { role: 'user', content: [{ type: 'text', text: 'a{{v}}b' }], name: '{{v}}' },
    ])
    fc.assert(
      fc.property(text, (v) => {
        expect(template.fill({ v, a: 'LEAK' }, {})).toEqual([
          { role: 'system', content: 'fixed' },
          { role: 'user', content: [{ type: 'text', text: `a${v}b` }], name: v },
        ])
      }),
    )
  })

  test('a raw template keeps its structure, through sections, partials and private partials too', () => {
    const template = save(
      '[{"role":"user","content":"{{v}}","x":{{w}}},{{#list}}{"k":"{{.}}","p":"{{>p}}","t":"{{>>t}}"},{{/list}}]',
      {
        raw: true,
        partials: { p: '"{{v}}"' },
      },
    )
    fc.assert(
      fc.property(text, value.filter(isAcceptable), fc.array(text, { maxLength: 3 }), (v, w, list) => {
        const filled = template.fill({ v, w, list, t: '{{v}}' }, {})
        expect(filled).toEqual([
          { role: 'user', content: v, x: asJson(w) },
          ...list.map((k) => ({ k, p: `"${v}"`, t: v })),
        ])
      }),
    )
  })

  test('arguments of a call stay the JSON that the author wrote', () => {
    const template = save([
      {
        role: 'assistant',
        function_call: { name: 'f', arguments: '{"s":"{{v}}","w":{{w}},"l":[{{#list}}"{{.}}",{{/list}}]}' },
      },
    ])
    fc.assert(
      fc.property(text, value, fc.array(text, { maxLength: 3 }), (v, w, list) => {
        const [message] = template.fill({ v, w, list }, {}) as [{ function_call: { arguments: string } }]
        expect(JSON.parse(message.function_call.arguments)).toEqual({ s: v, w: asJson(w), l: list })
      }),
    )
  })

  test('arguments of a raw call stay the JSON that the author wrote, however he spelled it', () => {
    const author =
      '{"s":"{{v}}","w":{{w}},"l":[{{#list}}"{{.}}",{{/list}}],"p":"{{>words}}","o":{{>object}},"t":"{{>>t}}",{{#on}}"{{v}}":1,{{/on}}}'
    const partials = { words: '"{{v}}"\\', object: '{"k":"{{v}}","w":{{w}}}' }
    fc.assert(
      fc.property(text, value, fc.array(text, { maxLength: 3 }), spelling, (v, w, list, ways) => {
        const rawText = rawCall(`"${spell('arguments', ways)}" : "${spell(author, ways)}"`)
        const filled = save(rawText, { raw: true, partials }).fill({ v, w, list, t: '<{{v}}>', on: false }, {})
        expect(JSON.parse(argumentsOf(filled))).toEqual({
          s: v,
          w: asJson(w),
          l: list,
          p: `"${v}"\\`,
          o: { k: v, w: asJson(w) },
          t: `<${v}>`,
        })
      }),
    )
  })

  test('no key that a value makes becomes arguments whose value is only text', () => {
    const template = save(rawCall('"{{k}}{{l}}":"{\\"to\\":\\"{{v}}\\"}"'), { raw: true })
    const piece = fc.constantFrom('arguments', 'argu', 'ments', '', 'x', '\u0000')
    fc.assert(
      fc.property(piece, piece, text, (k, l, v) => {
        const fill = () => template.fill({ k, l, v }, {})
        if (k + l === 'arguments') expect(failureOf(fill).message).toContain('a key with a tag became arguments')
        else if (!`${k}${l}`.includes('\0')) expect(callOf(fill())[k + l]).toBe(`{"to":"${v}"}`)
        else expect(failureOf(fill).code).toBe('invalid')
      }),
    )
  })

  test("the caller's own text is filled, and what it puts in is not", () => {
    const template = save(user('{{>>t}}'))
    fc.assert(
      fc.property(text, (v) => expect(template.fill({ t: '<{{v}}>', v, a: 'LEAK' }, {})).toEqual(user(`<${v}>`))),
    )
  })
})

describe('for any JSON', () => {
  const json = fc.tuple(value, fc.constantFrom(0, 1)).map(([v, indent]) => JSON.stringify(v, null, indent))

  test('a place is told for exactly the texts that the engine refuses', () => {
    const broken = fc
      .tuple(json, fc.nat(), fc.constantFrom(...'[]{}":,\\0-.eut \n'), fc.boolean())
      .map(([text, at, char, replace]) => {
        const i = at % (text.length + 1)
        return text.slice(0, i) + char + text.slice(replace ? i + 1 : i)
      })
    fc.assert(
      fc.property(fc.oneof(json, broken), (text) => expect(findJsonError(text) === undefined).toBe(isJson(text))),
      { numRuns: 2_000 },
    )
  })

  test('taking trailing commas off changes nothing else', () => {
    fc.assert(fc.property(json, (text) => expect(stripTrailingCommas(text)).toBe(text)))
    fc.assert(
      fc.property(json, json, (a, b) =>
        expect(stripTrailingCommas(`[${a},{"k":${b}, } ,\n]`)).toBe(`[${a},{"k":${b} } \n]`),
      ),
    )
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Bodies with this key are refused before they get here, and so is what a raw template is filled to. */
const isAcceptable = (value: unknown): boolean => !JSON.stringify(value).includes('"__proto__":')

/** What a value is after it went through JSON: minus zero loses its sign. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
