import { describe, expect, test } from 'bun:test'
import { type TSchema, Type } from '@sinclair/typebox'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import fc from 'fast-check'
import { ChatCompletionRequest } from '../schema/api/chat-completion.ts'
import { TextCompletionRequest } from '../schema/api/text-completion.ts'
import { complaints, nearest } from '../src/http/complaints.ts'
import { BOUNDS } from './completions/bounds.table.ts'

const Name = Type.String({ minLength: 1, maxLength: 255 })
const Closed = Type.Object(
  {
    name: Name,
    temperature: Type.Optional(Type.Number()),
    tags: Type.Optional(Type.Array(Name, { uniqueItems: true })),
  },
  { additionalProperties: false },
)
const Shape = Type.Union([
  Type.Object({ type: Type.Literal('circle'), radius: Type.Number({ exclusiveMinimum: 0 }) }),
  Type.Object({ type: Type.Literal('square'), side: Type.Integer({ minimum: 1 }) }),
])
const Level = Type.Union([Type.Literal('auto'), Type.Literal('low'), Type.Literal('high')])

describe('a complaint names the place and what it takes', () => {
  const cases: [schema: TSchema, value: unknown, complaints: string[]][] = [
    [Closed, { name: 'x' }, []],
    [Closed, [], [': must be an object']],
    [Closed, null, [': must be an object']],
    [Closed, {}, ['name: is required']],
    [Closed, { name: '' }, ['name: must be a string of 1 to 255 characters']],
    [Closed, { name: 'x', temprature: 1 }, ['temprature: unknown field; did you mean "temperature"?']],
    [Closed, { name: 'x', zzz: 1 }, ['zzz: unknown field; known are name, temperature, tags']],
    [
      Closed,
      { name: 5, tags: ['a', ''], wrong: 1 },
      [
        'name: must be a string of 1 to 255 characters',
        'tags[1]: must be a string of 1 to 255 characters',
        'wrong: unknown field; known are name, temperature, tags',
      ],
    ],
    [Closed, { name: 'x', tags: ['a', 'a'] }, ['tags: must be an array of strings without repeats']],
    [Type.Array(Shape, { minItems: 1 }), [], [': must be an array of 1 or more objects']],
    [
      Type.Array(Shape),
      [{ type: 'circle', radius: 0 }, { type: 'cube' }, {}, 'x'],
      [
        '[0].radius: must be a number above 0',
        '[1].type: must be one of circle, square',
        '[2].type: is required',
        '[3]: must be an object',
      ],
    ],
    [Level, 'medium', [': must be one of auto, low, high']],
    [Type.Union([Level, Type.Null()]), 1, [': must be one of auto, low, high or null']],
    [
      Type.Union([Type.Literal('all'), Type.Array(Type.String(), { maxItems: 2 })]),
      ['a', 'b', 'c'],
      [': must be an array of at most 2 strings'],
    ],
    [Type.Literal(true), false, [': must be true']],
    [
      Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.Boolean(), { additionalProperties: false }),
      { a: 1, A: true },
      ['a: must be a boolean', 'A: unknown field; names must match ^[a-z]+$'],
    ],
    [Type.Object({}, { maxProperties: 1 }), { a: 1, b: 2 }, [': must have at most 1 fields']],
    [Type.Intersect([Type.Object({ a: Name }), Type.Object({ b: Name })]), { a: 'x' }, ['b: is required']],
    [
      Type.Integer({ minimum: -(2 ** 63), exclusiveMaximum: 2 ** 63 }),
      'x',
      [': must be an integer from -9223372036854775808 to below 9223372036854775808'],
    ],
    [
      Type.Array(Type.Array(Type.Integer(), { minItems: 1 })),
      5,
      [': must be an array of arrays of 1 or more integers'],
    ],
  ]
  for (const [schema, value, expected] of cases) {
    test(`${JSON.stringify(value)} → ${expected.join(' + ') || 'nothing'}`, () => {
      expect(complaints(schema, value).map(({ path, message }) => `${path}: ${message}`)).toEqual(expected)
    })
  }

  test('a root stands before every path', () => {
    expect(complaints(Closed, {}, 'parameters')).toEqual([{ path: 'parameters.name', message: 'is required' }])
  })
})

describe('a complaint tells nothing that it should not', () => {
  test('values are not shown', () => {
    expect(JSON.stringify(complaints(Closed, { name: { secret: 'sk-1' }, tags: 'sk-1' }))).not.toContain('sk-1')
  })

  test('names that are no plain names are not shown', () => {
    const found = complaints(Closed, { name: 'x', 'sk 1': 1, ['k'.repeat(65)]: 1 })
    expect(found.map(({ path }) => path)).toEqual(['*', '*'])
  })

  test('the digits 404 are not shown: clients read them as "gone"', () => {
    const found = complaints(
      Type.Array(Type.Object({})),
      Array.from({ length: 405 }, (_, index) => (index < 404 ? {} : 1)),
    )
    expect(found).toEqual([{ path: '[*]', message: 'must be an object' }])
  })

  test('a million wrong items get a hundred complaints', () => {
    expect(complaints(Type.Array(Type.String()), Array(1_000_000).fill(1))).toHaveLength(100)
    expect(complaints(Type.Union([Type.Null(), Type.Array(Type.String())]), Array(1_000).fill(1))).toHaveLength(100)
  })
})

test('a kind or keyword without a rule throws instead of accepting anything', () => {
  expect(() => complaints(Type.Date(), 1)).toThrow('Date')
  expect(() => complaints(Type.String({ format: 'uuid' }), 'x')).toThrow('format')
  expect(() => complaints(Type.Number({ multipleOf: 2 }), 3)).toThrow('multipleOf')
  expect(() => complaints(Type.Transform(Type.String()).Decode(Number).Encode(String), 'x')).toThrow('transform')
})

describe('the nearest name is what was meant', () => {
  const names = ['temperature', 'top_p', 'max_tokens', 'n']
  const cases: [typed: string, meant: string | undefined][] = [
    ['temprature', 'temperature'],
    ['Temperature', 'temperature'],
    ['tepmerature', 'temperature'],
    ['maxTokens', 'max_tokens'],
    ['topp', 'top_p'],
    ['colour', undefined],
    ['', 'n'],
    ['t'.repeat(100_000), undefined],
  ]
  for (const [typed, meant] of cases)
    test(`${typed.slice(0, 20)} → ${meant}`, () => expect(nearest(typed, names)).toBe(meant))
})

describe('complaints are empty exactly where TypeBox accepts the value', () => {
  const contracts = { chat: ChatCompletionRequest, text: TextCompletionRequest }
  const base = { chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] }, text: { model: 'm', prompt: 'hi' } }

  for (const kind of ['chat', 'text'] as const) {
    const compiled = TypeCompiler.Compile(contracts[kind])
    const agrees = (value: unknown) =>
      expect(complaints(contracts[kind], value).length === 0).toBe(compiled.Check(value))

    test(`${kind}: every row of the table`, () => {
      for (const { field, value, extra } of BOUNDS.filter((row) => row.kind === kind))
        agrees({ ...base[kind], ...extra, [field]: value })
    })

    test(`${kind}: rows combined, and damaged in one place`, () => {
      const rows = BOUNDS.filter((row) => row.kind === kind)
      const nearValid = fc
        .array(fc.constantFrom(...rows), { maxLength: 6 })
        .map((chosen) => Object.assign({}, base[kind], ...chosen.map(({ field, value }) => ({ [field]: value }))))
      const damage = fc.record({ at: fc.nat(), by: fc.oneof(fc.jsonValue(), fc.constant(undefined)) })
      fc.assert(
        fc.property(nearValid, damage, (value, { at, by }) => {
          agrees(value)
          agrees(damaged(value, at, by))
        }),
        { numRuns: 1500 },
      )
    })
  }
})

/** A copy in which one node, counted from the root, is another value. */
function damaged(value: unknown, at: number, by: unknown): unknown {
  const nodes: [holder: Record<string, unknown>, key: string][] = []
  const copy = structuredClone(value)
  const visit = (node: unknown) => {
    if (typeof node !== 'object' || node === null || nodes.length > 500) return
    for (const key of Object.keys(node)) {
      nodes.push([node as Record<string, unknown>, key])
      visit((node as Record<string, unknown>)[key])
    }
  }
  visit(copy)
  const [holder, key] = nodes[at % nodes.length] ?? []
  if (holder !== undefined && key !== undefined) holder[key] = by
  return copy
}
