import { describe, expect, test } from 'bun:test'
import type { GatehouseError } from '../../src/errors.ts'
import type { CompletionKind } from '../../src/prompts/completion-fields.ts'
import {
  checkSavedParameters,
  explainMerge,
  mergeCompletion,
  prepareVersion,
  splitParameters,
} from '../../src/prompts/hyperparameters.ts'

type Root = Record<string, unknown>

const MESSAGES = [{ role: 'user', content: 'hi' }]

function prepared(parameters: Root, { kind = 'chat', variables = [], ...columns }: Prepared = {}) {
  const unset = { model: 'saved-model', functions: null, tools: null, toolChoice: null }
  return prepareVersion(kind, { ...unset, ...columns, parameters }, new Set(variables))
}
interface Prepared {
  kind?: CompletionKind
  variables?: string[]
  model?: string | null
  functions?: unknown
  tools?: unknown
  toolChoice?: unknown
}

const merged = (parameters: Root, body: Root, options: Prepared = {}) =>
  mergeCompletion(prepared(parameters, options), options.kind === 'text' ? 'hi' : MESSAGES, body)

describe('saved parameters are sorted into defaults and hyperparameters', () => {
  const cases: [
    why: string,
    kind: CompletionKind,
    saved: Root,
    variables: string[],
    hyperparameters: Root,
    defaults: Root,
  ][] = [
    ['a variable is a default and not sent', 'chat', { name: 'Ana' }, ['name'], {}, { name: 'Ana' }],
    ['a hyperparameter is no default', 'chat', { temperature: 1 }, ['name'], { temperature: 1 }, {}],
    ['an unknown key passes', 'chat', { top_k: { a: 1 } }, [], { top_k: { a: 1 } }, {}],
    ['a scalar can be both', 'chat', { user: 'ana' }, ['user'], { user: 'ana' }, { user: 'ana' }],
    [
      "an array under a variable's name is only a default",
      'chat',
      { tools: ['saw'] },
      ['tools'],
      {},
      { tools: ['saw'] },
    ],
    [
      "an object under a variable's name is only a default",
      'chat',
      { user: { id: 1 } },
      ['user'],
      {},
      { user: { id: 1 } },
    ],
    [
      "a variable's name is never a field of the other kind",
      'chat',
      { prompt: 'x', suffix: 'y' },
      ['prompt', 'suffix'],
      {},
      { prompt: 'x', suffix: 'y' },
    ],
    ["the template's own field is a variable's name too", 'text', { prompt: 'x' }, ['prompt'], {}, { prompt: 'x' }],
    ['an unknown variable with a scalar is only a default', 'text', { tone: 'dry' }, ['tone'], {}, { tone: 'dry' }],
  ]
  for (const [why, kind, saved, variables, hyperparameters, defaults] of cases) {
    test(why, () => {
      expect(splitParameters(kind, saved, new Set(variables))).toEqual({ hyperparameters, defaults })
    })
  }

  test('a default keeps its text while the hyperparameter of that name becomes a number', () => {
    const version = prepared({ n: '2' }, { variables: ['n'] })
    expect(version.defaults).toEqual({ n: '2' })
    expect(version.saved).toHaveProperty('n', 2)
  })
})

describe('the body is laid over what is saved', () => {
  const cases: [why: string, saved: Root, body: Root, data: Root, options?: Prepared][] = [
    ['what is saved stays', { temperature: 0.2 }, {}, { temperature: 0.2 }],
    ['what is sent replaces', { temperature: 0.2 }, { temperature: 1 }, { temperature: 1 }],
    ['whole values, no deep merge', { logit_bias: { '1': 1 } }, { logit_bias: { '2': 2 } }, { logit_bias: { '2': 2 } }],
    ['null replaces where it is allowed', { temperature: 0.2 }, { temperature: null }, { temperature: null }],
    ['null elsewhere counts as not sent', { user: 'ana' }, { user: null }, { user: 'ana' }],
    ['null for the model keeps the saved one', {}, { model: null }, {}],
    ['null for messages keeps the rendered ones', {}, { messages: null }, {}],
    ['unknown keys pass with their null', { top_k: 1 }, { top_k: null, extra: [null] }, { top_k: null, extra: [null] }],
    ['a saved null is sent where it is allowed', { stop: null, user: null }, {}, { stop: null }],
    ['stream is sent when sent', {}, { stream: false }, { stream: false }],
    ['stream is sent when saved', { stream: true }, {}, { stream: true }],
    ['messages of the body replace the rendered ones', {}, { messages: [] }, { messages: [] }],
    [
      'what speaks to us is never sent',
      { virtual_key: 'v', prompt_id: 'p' },
      { variables: { a: 1 }, prompt_id: 'p', virtual_key: 'v', strict_openai_compliance: false },
      {},
    ],
    ['a default of a variable is never sent', { name: 'Ana' }, {}, {}, { variables: ['name'] }],
    ["the version's model goes before parameters.model", { model: 'other' }, {}, {}],
    ['parameters.model counts where the version has none', { model: 'other' }, {}, { model: 'other' }, { model: '' }],
    ["the body's model goes before both", { model: 'other' }, { model: 'mine' }, { model: 'mine' }],
    [
      "the version's tools are added",
      { tools: [] },
      {},
      { tools: [1], functions: [2], tool_choice: 'auto' },
      { tools: [1], functions: [2], toolChoice: 'auto' },
    ],
    ["the body's tools replace them", {}, { tools: [3] }, { tools: [3] }, { tools: [1] }],
    ['empty columns are unset columns', {}, {}, {}, { tools: [], functions: [], toolChoice: '' }],
    ['a prompt of null replaces the text', {}, { prompt: null }, { prompt: null }, { kind: 'text' }],
  ]
  for (const [why, saved, body, expected, options] of cases) {
    test(why, () => {
      const base =
        options?.kind === 'text' ? { model: 'saved-model', prompt: 'hi' } : { model: 'saved-model', messages: MESSAGES }
      expect(merged(saved, body, options)).toEqual({ ...base, ...expected })
    })
  }

  test('no documented default appears of its own accord', () => {
    expect(JSON.stringify(merged({}, {}, { kind: 'text' }))).toBe('{"model":"saved-model","prompt":"hi"}')
  })

  test('no model anywhere leaves none', () => {
    expect(merged({}, {}, { model: null })).not.toHaveProperty('model')
  })

  test('the order of keys is model, messages, saved, sent', () => {
    expect(Object.keys(merged({ top_p: 1, temperature: 1 }, { n: 2, model: 'x', top_p: 0 }))).toEqual([
      'model',
      'messages',
      'top_p',
      'temperature',
      'n',
    ])
  })

  test('a render changes neither the version nor the body', () => {
    const version = prepared({ temperature: 0.2 })
    const body = JSON.parse('{"variables":{},"temperature":1,"x":null}')
    mergeCompletion(version, MESSAGES, body)
    expect(version.saved).toEqual({ model: 'saved-model', messages: null, temperature: 0.2 })
    expect(body).toEqual({ variables: {}, temperature: 1, x: null })
  })

  test('a key __proto__ is a key like any other and lends nothing', () => {
    const data = merged({}, JSON.parse('{"__proto__":{"temperature":99}}'))
    expect(data['temperature']).toBeUndefined()
    expect(JSON.stringify(data)).toEndWith('"__proto__":{"temperature":99}}')
  })

  for (const nested of [{}, null, { temperature: 1 }]) {
    test(`hyperparameters: ${JSON.stringify(nested)} is refused with the way out`, () => {
      expect(() => merged({}, { hyperparameters: nested })).toThrow(
        'put hyperparameters at the root, next to variables',
      )
    })
  }

  test('explain names what the body replaced and what no table knows', () => {
    const version = prepared({ temperature: 0.2, user: 'ana', top_k: 1 })
    const body = { variables: {}, temperature: 1, user: null, n: 2, extra: 1, model: 'x' }
    expect(explainMerge(version, body, mergeCompletion(version, MESSAGES, body))).toEqual({
      overridden_parameters: ['temperature', 'model'],
      unknown_parameters: ['top_k', 'extra'],
    })
  })
})

describe('parameters are checked at save', () => {
  const refusals: [why: string, kind: CompletionKind, saved: Root, path: string, message: string][] = [
    [
      'a field of the other kind names the kinds',
      'chat',
      { best_of: 2 },
      'parameters.best_of',
      'is a field of text prompts and this is a chat prompt; remove it',
    ],
    [
      'and the other way round',
      'text',
      { tools: [] },
      'parameters.tools',
      'is a field of chat prompts and this is a text prompt; remove it',
    ],
    [
      "the template's own field",
      'chat',
      { messages: MESSAGES },
      'parameters.messages',
      'is what the template itself gives; write it into the template',
    ],
    [
      'nested hyperparameters',
      'text',
      { hyperparameters: {} },
      'parameters.hyperparameters',
      'put hyperparameters directly into parameters',
    ],
    [
      'text that is no number',
      'chat',
      { temperature: 'warm' },
      'parameters.temperature',
      'must be a number from 0 to 2 or null',
    ],
    ['empty text', 'chat', { n: '' }, 'parameters.n', 'must be an integer from 1 to 128 or null'],
    [
      'a number of hexadecimal digits',
      'chat',
      { n: '0x10' },
      'parameters.n',
      'must be an integer from 1 to 128 or null',
    ],
    [
      'a number as text out of range',
      'chat',
      { temperature: '2.5' },
      'parameters.temperature',
      'must be a number from 0 to 2 or null',
    ],
  ]
  for (const [why, kind, saved, path, message] of refusals) {
    test(why, () => {
      let thrown: unknown
      try {
        checkSavedParameters(kind, saved)
      } catch (error) {
        thrown = error
      }
      expect((thrown as GatehouseError).complaints).toEqual([{ path, message }])
    })
  }

  test('every complaint comes at once', () => {
    const work = () => checkSavedParameters('text', { temperature: 9, logprobs: true, tools: [1] })
    expect(work).toThrow(
      expect.objectContaining({ complaints: [expect.anything(), expect.anything(), expect.anything()] }),
    )
  })

  test('numbers as text become numbers, other text stays', () => {
    const saved = {
      temperature: '0.7',
      n: ' 2 ',
      seed: '9223372036854775807',
      user: '5',
      stop: '7',
      top_k: '40',
      max_tokens: '1e2',
    }
    expect(JSON.stringify(checkSavedParameters('chat', saved))).toBe(
      '{"temperature":0.7,"n":2,"seed":9223372036854775807,"user":"5","stop":"7","top_k":"40","max_tokens":100}',
    )
  })

  test("a version's columns are named without parameters", () => {
    const work = () => checkSavedParameters('chat', { tools: [{}], tool_choice: 'x' }, '')
    const paths = ['tools[0].type', 'tools[0].function', 'tool_choice'].map((path) => expect.objectContaining({ path }))
    expect(work).toThrow(expect.objectContaining({ complaints: paths }))
  })
})
