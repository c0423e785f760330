import { describe, expect, test } from 'bun:test'
import { GatehouseError } from '../../src/errors.ts'
import { checkCompletion, strictCompliance } from '../../src/prompts/completion-rules.ts'
import { checkSavedParameters, mergeCompletion, prepareVersion } from '../../src/prompts/hyperparameters.ts'
import { modelTable } from '../../src/prompts/models.ts'
import { BOUNDS, type Bound } from './bounds.table.ts'

const HEADER = 'x-gatehouse-strict-openai-compliance'
const MODELS = modelTable()
const VERSION = { model: 'm', functions: null, tools: null, toolChoice: null }
const TEMPLATE = { chat: [{ role: 'user', content: 'hi' }], text: 'hi' }

/** A render without its template: merge and check. */
function render(kind: Bound['kind'], parameters: Record<string, unknown>, body: Record<string, unknown>) {
  const data = mergeCompletion(prepareVersion(kind, { ...VERSION, parameters }, new Set()), TEMPLATE[kind], body)
  const strictOpenAiCompliance = strictCompliance(body, undefined, HEADER, true)
  const call = { strictOpenAiCompliance, strictHeader: HEADER, models: MODELS, provider: null }
  checkCompletion(kind, data, { ...call, hasLiterals: false })
  expect(() => checkCompletion(kind, data, { ...call, hasLiterals: true })).not.toThrow()
  return data
}

function complaintsOf(work: () => unknown): { path: string; message: string }[] {
  try {
    work()
  } catch (error) {
    if (error instanceof GatehouseError && error.code === 'invalid') return error.complaints
    throw error
  }
  return []
}

const title = ({ kind, field, why, expect, extra }: Bound) =>
  `${kind} ${field}: ${why} is ${expect}${extra === undefined ? '' : ` with ${Object.keys(extra)}`}`

describe('a field of the body', () => {
  for (const row of BOUNDS) {
    test(title(row), () => {
      const body = { variables: {}, ...row.extra, [row.field]: row.value }
      if (row.expect === 'refused') {
        const [first] = complaintsOf(() => render(row.kind, {}, body))
        expect(first?.path).toStartWith(row.field)
        expect(first?.message).not.toBeEmpty()
        return
      }
      const data = render(row.kind, {}, body)
      const without = render(row.kind, {}, { variables: {}, ...row.extra })
      expect(data).toEqual(row.expect === 'dropped' ? without : { ...without, [row.field]: row.value })
    })
  }
})

describe('a saved parameter', () => {
  const isOfSavedField = (row: Bound) => row.field !== 'messages' && row.field !== 'prompt' && row.extra === undefined

  for (const row of BOUNDS.filter(isOfSavedField)) {
    test(title(row), () => {
      const saved = { [row.field]: row.value }
      const found = complaintsOf(() => checkSavedParameters(row.kind, saved))
      if (row.expect === 'refused' && row.savedAs === undefined) {
        expect(found[0]?.path).toStartWith(`parameters.${row.field}`)
        return
      }
      expect(found).toEqual([])
      const without = render(row.kind, {}, {})
      const value = row.savedAs ?? row.value
      if (row.field === 'model' || row.expect === 'dropped') expect(render(row.kind, saved, {})).toEqual(without)
      else expect(render(row.kind, saved, {})).toEqual({ ...without, [row.field]: value })
    })
  }
})
