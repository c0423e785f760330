import { afterAll, beforeAll, expect, test } from 'bun:test'
import { count, lt } from 'drizzle-orm'
import { PROBLEMS, type ProblemCode } from '../../schema/api/errors.ts'
import type { Database } from '../../src/db/database.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from './gatehouse.ts'

/** What the rows of a table share: an installation, the clear keys that act in it, and names for the ids in it. */
export interface World extends TestGatehouse {
  keys: Record<string, string>
  /** `$name` in a row stands for this text */
  names: Record<string, string>
}

/** One call, and what would be lost if it were answered otherwise. */
export interface Scenario {
  name: string
  /** which of the world's keys is sent: the admin key when absent, none for `nobody` */
  as?: string
  /** `PUT /v1/prompts/$greeting`; the table's title when absent */
  call?: string
  body?: unknown
  headers?: Record<string, string>
  expect: number | ProblemCode
  /** the body holds at least this */
  answer?: object
  mentions?: string | string[]
  notMentions?: string | string[]
  /** new audit rows; when absent, one for a change that was made and none for a read or a refusal */
  audit?: number
  /** names for fields of the answer, for the rows below: `{ greeting: 'id' }` */
  keep?: Record<string, string>
}

/** A world of its own for the tests of the current block. */
export function useWorld(
  dialect: Database['dialect'] = 'sqlite',
  setUp: (world: World) => Promise<unknown> = async () => {},
  config = '',
  options: Parameters<typeof openTestGatehouse>[2] = {},
): () => World {
  let world: World | undefined
  beforeAll(async () => {
    const opened = await openTestGatehouse(dialect, config, options)
    world = { ...opened, keys: { admin: opened.made.admin_key }, names: { ...opened.made } }
    await setUp(world)
  })
  afterAll(() => world?.close())
  return () => world!
}

/** A table of calls, made in order, each one a test. */
export function scenarios(title: string, getWorld: () => World, rows: readonly Scenario[]): void {
  test.each(rows.map((row) => [row.name, row] as const))(`${title}: %s`, async (_name, row) => {
    const world = getWorld()
    const before = await auditCount(world)
    const answer = await callAs(world, row, title)
    expectAnswer(answer, withNames(world, row))
    const isChange = answer.status === 200 && !/^(?:GET|HEAD) |\/render/.test(row.call ?? title)
    expect((await auditCount(world)) - before, 'audit rows').toBe(row.audit ?? (isChange ? 1 : 0))
    for (const [name, field] of Object.entries(row.keep ?? {})) world.names[name] = answer.body[field]
  })
}

function callAs(world: World, { as = 'admin', call, body, headers = {} }: Scenario, title: string): Promise<Answer> {
  const [method = '', path = ''] = withNames(world, call ?? title).split(' ')
  const key = as === 'nobody' ? null : world.keys[as]
  if (key === undefined) throw new Error(`this world has no key ${as}`)
  return world.call(method, path, withNames(world, body), { key, headers })
}

function expectAnswer(answer: Answer, row: Scenario): void {
  if (typeof row.expect === 'string') expectProblem(answer, row.expect)
  else expect(answer.status, answer.text).toBe(row.expect)
  if (row.answer !== undefined) expect(answer.body).toMatchObject(row.answer)
  for (const text of [row.mentions ?? []].flat()) expect(answer.text).toContain(text)
  for (const text of [row.notMentions ?? []].flat()) expect(answer.text).not.toContain(text)
}

/** The whole envelope of decision 3, and no word in it that a client takes for "gone" where nothing is. */
export function expectProblem({ status, body, headers, text }: Answer, code: ProblemCode): void {
  const problem = PROBLEMS[code]
  expect(body).toMatchObject({
    success: false,
    status_code: problem.status,
    errorCode: problem.code,
    request_id: headers.get('x-request-id'),
    error: { code: problem.code, errorCode: problem.code, message: body.message, type: problem.type },
  })
  expect(body.message).toBeString()
  expect(status).toBe(problem.status)
  expect(body.error.param).toBe(body.errors?.[0].path || null)
  if (problem.status !== 404) expect(text).not.toMatch(/404|not found/i)
}

/** The rows that changes left: those of refusals are written in their own time. */
export async function auditCount({ gatehouse: { read } }: Pick<World, 'gatehouse'>): Promise<number> {
  const { auditEvents: t } = read.tables
  const [row] = await read.select({ n: count() }).from(t).where(lt(t.status, 400))
  return row?.n ?? 0
}

/** `$name` in any string of a value becomes the text of that name; an unknown one is a slip in the table. */
function withNames<T>(world: Pick<World, 'names'>, value: T): T {
  const put = (text: string) =>
    text.replace(/\$([a-z][a-z_0-9]*)/g, (_, name: string) => {
      const meant = world.names[name]
      if (meant === undefined) throw new Error(`nothing is named $${name} yet`)
      return meant
    })
  const walk = (part: unknown): unknown => {
    if (typeof part === 'string') return put(part)
    if (Array.isArray(part)) return part.map(walk)
    const isPlain = typeof part === 'object' && part !== null && Object.getPrototypeOf(part) === Object.prototype
    return isPlain ? Object.fromEntries(Object.entries(part).map(([key, member]) => [key, walk(member)])) : part
  }
  return walk(value) as T
}
