import { describe, expect, test } from 'bun:test'
import { GatehouseError } from '../../src/errors.ts'
import { parseStrict } from '../../src/json.ts'
import { type CompletionCall, checkCompletion, strictCompliance } from '../../src/prompts/completion-rules.ts'
import { modelTable } from '../../src/prompts/models.ts'

type Root = Record<string, unknown>

const CALL: CompletionCall = {
  strictOpenAiCompliance: false,
  strictHeader: 'x-strict',
  models: modelTable([{ match: 'house', thinking: false, suffix: false, context_length: 100 }]),
  provider: null,
  hasLiterals: false,
}
const chat = (fields: Root): Root => ({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...fields })
const text = (fields: Root): Root => ({ model: 'm', prompt: 'hi', ...fields })

function complaintsOf(data: Root, call: Partial<CompletionCall> = {}): string[] {
  try {
    checkCompletion('messages' in data && !('prompt' in data) ? 'chat' : 'text', data, { ...CALL, ...call })
  } catch (error) {
    if (error instanceof GatehouseError) return error.complaints.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
  return []
}

describe('a complaint says the field and the way out', () => {
  const cases: [data: Root, complaints: string[], call?: Partial<CompletionCall>][] = [
    [{ messages: [{ role: 'user', content: 'hi' }] }, ['model: is required']],
    [chat({ top_logprobs: 1 }), ['top_logprobs: needs logprobs = true']],
    [text({ stream_options: {} }), ['stream_options: needs stream = true']],
    [text({ best_of: 2, n: 2 }), ['best_of: must be greater than n']],
    [text({ best_of: 2, stream: true }), ['best_of: cannot be streamed; leave out best_of or stream']],
    [text({ messages: [] }), ['messages: is a field of chat prompts and this is a text prompt; remove it']],
    [
      chat({
        tools: [{ type: 'function', function: { name: 'a' } }],
        tool_choice: { type: 'function', function: { name: 'b' } },
      }),
      ['tool_choice.function.name: must name one of the tools'],
    ],
    [
      chat({ thinking: { type: 'enabled' } }),
      ['thinking: is no OpenAI field: send the header x-strict: false, or leave it out'],
      { strictOpenAiCompliance: true },
    ],
    [
      chat({ messages: [{ role: 'assistant' }] }),
      ['messages[0].content: is required unless tool_calls or function_call is present'],
    ],
    [
      chat({
        temperature: 9,
        stop: [],
        tools: [{ type: 'function', function: { name: 'a b' } }],
        best_of: 1,
        top_logprobs: 21,
      }),
      [
        'top_logprobs: must be an integer from 0 to 20 or null',
        'tools[0].function.name: must be a string that matches ^[a-zA-Z0-9_-]{1,64}$',
        'stop: must be an array of 1 to 4 strings',
        'temperature: must be a number from 0 to 2 or null',
      ],
    ],
  ]
  for (const [data, complaints, call] of cases) {
    test(complaints.join(' + '), () => {
      for (const complaint of complaints) expect(complaintsOf(data, call)).toContain(complaint)
    })
  }

  test('all at once: shape, kind, rules between fields', () => {
    const paths = complaintsOf(chat({ temperature: 9, echo: true, top_logprobs: 1, stream_options: {} })).map(
      (each) => each.split(':')[0],
    )
    expect(paths).toEqual(['temperature', 'echo', 'stream_options', 'top_logprobs'])
  })

  test('malformed neighbours do not break the rules between fields', () => {
    const broken = chat({
      messages: [null, 5],
      tools: [null],
      tool_choice: { type: 'function', function: null },
      thinking: 5,
    })
    expect(complaintsOf(broken).length).toBeGreaterThan(3)
    expect(complaintsOf(text({ best_of: '5', n: {}, max_tokens: [] })).length).toBe(3)
  })
})

describe('rules of a model hold where the table knows it', () => {
  const cases: [why: string, data: Root, refused: string | undefined][] = [
    ['an unknown model takes thinking', chat({ thinking: { type: 'enabled' } }), undefined],
    ['a known one does not', chat({ model: 'house', thinking: { type: 'enabled' } }), 'thinking'],
    ['unless thinking is disabled', chat({ model: 'house', thinking: { type: 'disabled' } }), undefined],
    [
      'a shipped one does not',
      chat({ model: '@anthropic/claude-3-haiku-20240307', thinking: { type: 'enabled' } }),
      'thinking',
    ],
    ['a newer one does', chat({ model: 'claude-3-7-sonnet-latest', thinking: { type: 'enabled' } }), undefined],
    ['an unknown model takes a suffix', text({ suffix: 'x' }), undefined],
    ['a known one does not', text({ model: 'davinci-002', suffix: 'x' }), 'suffix'],
    ['the instruct model does', text({ model: 'gpt-3.5-turbo-instruct', suffix: 'x' }), undefined],
    ['the context length is the most', text({ model: 'house', max_tokens: 100 }), undefined],
    ['one token more is refused', text({ model: 'house', max_tokens: 101 }), 'max_tokens'],
    ['an unknown model has no context length', text({ max_tokens: 1_000_000 }), undefined],
  ]
  for (const [why, data, refused] of cases) {
    test(`${data['model']}: ${why}`, () => {
      const found = complaintsOf(data)
      if (refused === undefined) expect(found).toEqual([])
      else expect(found).toEqual([expect.stringMatching(new RegExp(`^${refused}: `))])
    })
  }
})

describe('integers beyond ±(2⁵³−1) keep their text', () => {
  const cases: [fields: string, digits: string, accepted: boolean][] = [
    ['"seed":#', '9223372036854775807', true],
    ['"seed":#', '-9223372036854775808', true],
    ['"seed":#', '9007199254740993', true],
    ['"seed":#', '9223372036854775808', false],
    ['"seed":#', '-9223372036854775809', false],
    ['"max_completion_tokens":#', '9007199254740993', true],
    ['"n":#', '9007199254740993', false],
    ['"temperature":#', '9007199254740993', false],
    ['"user":#', '9007199254740993', false],
    ['"stream":true,"stream_options":#', '9007199254740993', false],
    ['"logit_bias":{"5":#}', '9007199254740993', false],
    [
      '"tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":#}}}]',
      '123456789012345678901234567890',
      true,
    ],
    ['"tools":[{"type":"function","function":{"name":"f","parameters":#}}]', '9007199254740993', false],
    ['"unknown":{"a.b":[#]}', '123456789012345678901234567890', true],
  ]
  for (const [fields, digits, accepted] of cases) {
    test(`${fields} ${digits} is ${accepted ? 'printed as sent' : 'refused'}`, () => {
      const { value, hasBigIntegers } = parseStrict(`{${fields.replace('#', digits)}}`)
      const body = chat(value as Root)
      expect(hasBigIntegers).toBe(true)
      const found = complaintsOf(body, { hasLiterals: hasBigIntegers })
      expect(found.length === 0).toBe(accepted)
      expect(JSON.stringify(body)).toContain(fields.replace('#', digits))
    })
  }

  test('a number that only rounds to 2⁶³ is beyond 64 bits', () => {
    expect(complaintsOf(chat({ seed: 2 ** 63 }))).toHaveLength(1)
  })
})

describe('strict OpenAI compliance', () => {
  const cases: [why: string, body: Root, header: string | undefined, configured: boolean, holds: boolean][] = [
    ['the config counts when the call is silent', {}, undefined, true, true],
    ['the config counts when the call is silent', {}, undefined, false, false],
    ['the header goes before the config', {}, 'false', true, false],
    ['the header goes before the config', {}, 'TRUE', false, true],
    ['the body goes before the header', { strict_openai_compliance: true }, 'false', false, true],
    ['null in the body is silence', { strict_openai_compliance: null }, 'false', true, false],
  ]
  for (const [why, body, header, configured, holds] of cases) {
    test(`${why}: ${JSON.stringify(body)}, ${header}, ${configured}`, () => {
      expect(strictCompliance(body, header, 'x-strict', configured)).toBe(holds)
    })
  }

  test('anything else is refused, not guessed', () => {
    expect(() => strictCompliance({ strict_openai_compliance: 'false' }, undefined, 'x-strict', true)).toThrow(
      'must be a boolean',
    )
    expect(() => strictCompliance({}, 'no', 'x-strict', true)).toThrow('the header x-strict must be true or false')
  })
})
