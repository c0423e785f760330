import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { BOUNDS, type Bound } from '../completions/bounds.table.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

// The rows of spec 2.2 and 2.3 through the whole program: sent in the body, and kept in a saved prompt.

let gatehouse: TestGatehouse
const promptIds = { chat: '', text: '' }
const TEMPLATES = { chat: '[{"role":"user","content":"hi"}]', text: 'hi' }
/** Of a family that takes the developer role, so that no message is changed. */
const model = 'o3'
/** What the prompts render to by themselves. */
const BASE = { chat: { model, messages: [{ role: 'user', content: 'hi' }] }, text: { model, prompt: 'hi' } }

const create = (fields: Record<string, unknown>): Promise<Answer> =>
  gatehouse.call('POST', '/v1/prompts', { name: 'bounds', model, parameters: {}, ...fields })
const render = (id: string, body: Record<string, unknown>): Promise<Answer> =>
  gatehouse.call('POST', `/v1/prompts/${id}/render`, { variables: {}, ...body })

beforeAll(async () => {
  gatehouse = await openTestGatehouse()
  promptIds.chat = (await create({ string: TEMPLATES.chat })).body.id
  promptIds.text = (await create({ string: TEMPLATES.text })).body.id
})
afterAll(() => gatehouse.close())

const title = ({ kind, field, why, expect, extra }: Bound) =>
  `${kind} ${field}: ${why} is ${expect}${extra === undefined ? '' : ` with ${Object.keys(extra)}`}`

/** `strict_openai_compliance` speaks to render and is no part of what it answers. */
function split({ extra = {} }: Bound) {
  const { strict_openai_compliance: strict, ...fields } = extra
  return { fields, forRender: strict === undefined ? {} : { strict_openai_compliance: strict } }
}

function expectRefused({ field }: Bound, { status, body, text }: Answer): void {
  expect([status, body.errorCode], text).toEqual([400, 'AB01'])
  expect(body.errors.map(({ path }: { path: string }) => path)).toContainEqual(expect.stringContaining(field))
}

function expectRendered(row: Bound, { status, body, text }: Answer, value = row.value): void {
  expect(status, text).toBe(200)
  const { fields } = split(row)
  const without = { ...BASE[row.kind], ...fields }
  expect(body).toEqual({ success: true, data: row.expect === 'dropped' ? without : { ...without, [row.field]: value } })
}

describe('a field of a render body', () => {
  for (const row of BOUNDS) {
    test(title(row), async () => {
      const answer = await render(promptIds[row.kind], { ...row.extra, [row.field]: row.value })
      if (row.expect === 'refused') expectRefused(row, answer)
      else expectRendered(row, answer)
    })
  }
})

/** Saves a prompt and renders it; a refusal of either is the answer. */
async function saveAndRender(fields: Record<string, unknown>, forRender: Record<string, unknown>): Promise<Answer> {
  const saved = await create(fields)
  return saved.status === 200 ? render(saved.body.id, forRender) : saved
}

describe('a saved parameter', () => {
  for (const row of BOUNDS.filter(({ field }) => field !== 'messages' && field !== 'prompt')) {
    test(title(row), async () => {
      const { fields, forRender } = split(row)
      const string = TEMPLATES[row.kind]
      const answer = await saveAndRender({ string, parameters: { ...fields, [row.field]: row.value } }, forRender)
      if (row.expect === 'refused' && row.savedAs === undefined) return expectRefused(row, answer)
      // the version's own model goes before a saved one
      expectRendered(row.field === 'model' ? { ...row, expect: 'dropped' } : row, answer, row.savedAs ?? row.value)
    })
  }
})

/** The columns of a version; null and the empty list mean that there are none. */
const COLUMNS = ['tools', 'tool_choice', 'functions']
const isUnset = ({ value }: Bound) => value === null || (Array.isArray(value) && value.length === 0)

describe('a column of a saved version', () => {
  for (const row of BOUNDS.filter((each) => COLUMNS.includes(each.field) && each.kind === 'chat')) {
    test(title(row), async () => {
      const answer = await saveAndRender({ string: TEMPLATES.chat, ...row.extra, [row.field]: row.value }, {})
      if (row.expect === 'refused' && !isUnset(row)) return expectRefused(row, answer)
      const { tools, ...rest } = row.extra ?? {}
      const data = { ...BASE.chat, ...rest, ...(Array.isArray(tools) && tools.length > 0 && { tools }) }
      const isDropped = row.expect === 'dropped' || isUnset(row)
      expect(answer.body).toEqual({ success: true, data: isDropped ? data : { ...data, [row.field]: row.value } })
    })
  }
})

describe('messages of a saved template', () => {
  /** Decision 22: a stored list of text parts is taken for every role and becomes one string. */
  const isJoined = ({ why }: Bound) => why === 'system content as parts'

  /** Any other text is a text template (decision 20). */
  const isChat = ({ field, value }: Bound) =>
    field === 'messages' && Array.isArray(value) && value.every((item) => typeof item === 'object')

  for (const row of BOUNDS.filter(isChat)) {
    test(isJoined(row) ? `${row.why} become one string` : title(row), async () => {
      const answer = await saveAndRender({ string: JSON.stringify(row.value) }, {})
      if (isJoined(row)) expect(answer.body.data.messages).toEqual([{ role: 'system', content: 't' }])
      else if (row.expect === 'accepted') expectRendered(row, answer)
      else expect([answer.status, answer.body.errorCode], answer.text).toEqual([400, 'AB01'])
    })
  }
})
