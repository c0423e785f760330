import { describe, expect, test } from 'bun:test'
import { convertDeveloperRole, type ModelRow, modelFacts, modelTable } from '../../src/prompts/models.ts'

describe('the developer role is kept only where provider and model are known to take it', () => {
  const cases: [model: string, provider: string | null, kept: boolean, configured?: ModelRow[]][] = [
    ['o3', null, true],
    ['o3-mini-2025-01-31', null, true],
    ['gpt-5.1', null, true],
    ['@openai/gpt-5', null, true],
    ['@openai-production/o4-mini', null, true],
    ['gpt-5', 'azure-openai', true],
    ['gpt-5', '@openai-team', true],
    ['gpt-5', 'openrouter', false],
    ['@openrouter/openai/gpt-5', 'openai', false],
    ['@openai/o1', 'openrouter', true],
    ['o1-mini', null, false],
    ['o1-preview-2024-09-12', 'openai', false],
    ['text-o3', 'openai', false],
    ['gpt-4o', 'openai', false],
    ['claude-3-7-sonnet', null, false],
    ['m', null, false],
    ['', null, false],
    ['m', null, true, [{ match: 'm', developer_role: true }]],
    ['o3', null, false, [{ match: 'o3', developer_role: false }]],
    ['gpt-5', 'corp', true, [{ match: 'gpt-5', provider: 'corp', developer_role: true }]],
    ['gpt-5', 'corporate', false, [{ match: 'gpt-5', provider: 'corp', developer_role: true }]],
    ['gpt-5', null, true, [{ match: 'gpt-5', provider: 'corp', developer_role: false }]],
    ['o3-mini', null, true, [{ match: 'o3', developer_role: false }]],
    ['vendor/m', null, true, [{ match: 'vendor/*', developer_role: true }]],
    ['o3', null, true, [{ match: 'o3', context_length: 1 }]],
  ]
  for (const [model, provider, kept, configured] of cases) {
    test(`${model} of ${provider} ${kept ? 'keeps' : 'converts'}${configured ? ` with ${JSON.stringify(configured)}` : ''}`, () => {
      const data = {
        model,
        messages: [
          { role: 'developer', content: 'd', name: 'n' },
          { role: 'user', content: 'u' },
        ],
      }
      const first = { role: kept ? 'developer' : 'system', content: 'd', name: 'n' }
      expect(convertDeveloperRole(data, provider, modelTable(configured))).toBe(kept ? 0 : 1)
      expect(data.messages).toEqual([first, { role: 'user', content: 'u' }])
    })
  }

  test("the template's own messages are not changed", () => {
    const shared = Object.freeze([Object.freeze({ role: 'developer', content: 'd' })])
    const data: Record<string, unknown> = { model: 'm', messages: shared }
    expect(convertDeveloperRole(data, null, modelTable())).toBe(1)
    expect(shared[0]?.role).toBe('developer')
  })
})

test('of several rows the more specific decides each fact, and the config goes before the shipped table', () => {
  const table = modelTable([
    { match: 'gpt*', context_length: 1, suffix: false },
    { match: 'gpt-3.5-turbo-instruct*', context_length: 4 },
    { match: 'gpt-3.5-turbo-instruct', context_length: 2 },
    { match: 'gpt-3.5-turbo-instruct', provider: 'corp', context_length: 3 },
  ])
  expect(modelFacts(table, 'gpt-3.5-turbo-instruct', null)).toEqual({ context_length: 2, suffix: false })
  expect(modelFacts(table, 'vendor/gpt-3.5-turbo-instruct-0914', null)).toEqual({ context_length: 4, suffix: false })
  expect(modelFacts(table, '@corp/gpt-3.5-turbo-instruct', null)).toEqual({ context_length: 3, suffix: false })
})
