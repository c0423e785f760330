import { afterAll, describe, expect, test } from 'bun:test'
import { DIALECTS } from '../support/database.ts'
import { type GoldenCase, parseCase, parseExact, readGoldenCases } from './golden-case.ts'
import { openGoldenRunner, type Ran } from './golden-runner.ts'

const CASES = readGoldenCases()

/** Status and code by `error.type`, written from file 00 section 4 by hand. */
const PROBLEMS: Record<string, [status: number, code: string]> = {
  invalid_request_error: [400, 'AB01'],
  template_limit: [400, 'AB01'],
  not_found_error: [404, 'AB08'],
  unsupported_media_type: [415, 'AB01'],
}

for (const dialect of DIALECTS) {
  describe(`golden cases on ${dialect}`, () => {
    const runner = openGoldenRunner(dialect)
    afterAll(() => runner.close())

    for (const golden of CASES) {
      test(golden.name.replaceAll('-', ' '), async () => {
        const ran = await runner.run(golden)
        if ('error' in golden.expected) expectFailure(golden.expected, ran)
        else expectSuccess(golden.expected, ran)
        if (golden.stored.kind !== undefined) expect(ran.kind).toBe(golden.stored.kind)
        for (const text of golden.expected.mentions ?? []) expect(ran.answer.text).toContain(text)
        for (const text of golden.expected.never ?? []) expect(ran.answer.text).not.toContain(text)
      })
    }
  })
}

type Success = Exclude<GoldenCase['expected'], { error: string }>
type Failure = Extract<GoldenCase['expected'], { error: string }>

function expectSuccess(expected: Success, { answer, refusedAt, promptId, partialNames }: Ran): void {
  expect(refusedAt, answer.text).toBeUndefined()
  expect(answer.status, answer.text).toBe(200)
  const { success, data, explain, ...rest } = parseExact(answer.text) as Record<string, unknown>
  expect({ success, data, rest }).toEqual({ success: true, data: expected.data, rest: {} })
  expect(answer.headers.get('x-gatehouse-prompt-id')).toBe(promptId)
  for (const [name, value] of Object.entries(expected.headers ?? {})) expect(answer.headers.get(name)).toBe(value)
  if (expected.explain === undefined) expect(explain).toBeUndefined()
  else expect(withoutIds(explain, promptId, partialNames)).toEqual(expected.explain)
}

interface Explanation extends Record<string, unknown> {
  partials: { slug: string; version: number; version_id: string }[]
}

function withoutIds(explain: unknown, promptId: string, names: Ran['partialNames']): Record<string, unknown> {
  const { prompt_id, prompt_slug, version_id, partials, ...rest } = explain as Explanation
  expect([prompt_id, typeof prompt_slug, typeof version_id]).toEqual([promptId, 'string', 'string'])
  return { ...rest, partials: partials.map(({ slug, version }) => `${names.get(slug)}@${version}`) }
}

function expectFailure(expected: Failure, { answer, refusedAt }: Ran): void {
  expect(refusedAt, answer.text).toBe(expected.at)
  const { error, errors = [], ...envelope } = answer.body
  const [status = 0, code = ''] = PROBLEMS[expected.error] ?? []
  expect(error.type, answer.text).toBe(expected.error)
  expect(answer.status).toBe(status)
  const { message, request_id } = envelope
  expect(envelope).toEqual({ success: false, status_code: status, errorCode: code, message, request_id })
  expect(error).toEqual({ code, errorCode: code, message, type: expected.error, param: error.param })
  // Clients take both for "gone".
  if (status !== 404) expect(answer.text).not.toMatch(/404|not found/i)
  if (expected.param !== undefined) expect(error.param).toBe(expected.param)
  if (expected.params !== undefined) expect(errors.map(({ path }: { path: string }) => path)).toEqual(expected.params)
}

describe('the format of cases', () => {
  const GOOD = ['{}', '{}', '{"data":{}}']
  const parse = (...parts: string[]) => parseCase('c', parts.join('\n----------\n'))

  test('a case has three parts and no field without a meaning', () => {
    expect(() => parse(...GOOD)).not.toThrow()
    expect(() => parse('{}', '{}')).toThrow('three parts')
    expect(() => parse(...GOOD, '{}')).toThrow('three parts')
    expect(() => parse('{"strng":""}', '{}', '{"data":{}}')).toThrow('c: stored strng: unknown field')
    expect(() => parse('{}', '{"varables":{}}', '{"data":{}}')).toThrow('c: request varables: unknown field')
    expect(() => parse('{}', '{}', '{"data":{},"mention":[]}')).toThrow('c: expected mention: unknown field')
    expect(() => parse('{}', '{}', '{"error":"x","data":{}}')).toThrow('c: expected data: unknown field')
    expect(() => parse('{}', '{}', '{}')).toThrow('c: expected data')
  })

  test('numbers keep their spelling', () => {
    for (const text of ['[-0]', '[1.0]', '[9223372036854775807]', '[1e2]', '[0.5]'])
      expect(JSON.stringify(parseExact(text))).toBe(text)
  })

  test('there are enough of them, and each is named for what would be lost', () => {
    expect(CASES.length).toBeGreaterThanOrEqual(100)
    for (const { name } of CASES) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+){2,}$/)
  })
})
