/**
 * Spec 2.2, 2.3 and 8 as rows, written from their tables by hand and not from the contracts: what each field of a
 * render body takes and refuses. Used here by body merge and saved parameters, and over HTTP.
 */
export interface Bound {
  kind: 'chat' | 'text'
  field: string
  value: unknown
  /** 'dropped': the field is not nullable, so null counts as not sent (decision 22) */
  expect: 'accepted' | 'refused' | 'dropped'
  why: string
  /** the other root fields, where the row is about a rule between fields; such rules wait for render */
  extra?: Record<string, unknown>
  /** what a saved parameter becomes that the body would not take: a number as text (old interfaces saved those) */
  savedAs?: number
}

type Case = Pick<Bound, 'value' | 'expect' | 'why' | 'savedAs'>

const yes = (value: unknown, why: string): Case => ({ value, expect: 'accepted', why })
const no = (value: unknown, why: string): Case => ({ value, expect: 'refused', why })
const textOf = (value: number): Case => ({ ...no(String(value), 'a number as text'), savedAs: value })
const NULLABLE = yes(null, 'null is allowed')
const NOT_NULLABLE: Case = { value: null, expect: 'dropped', why: 'null counts as not sent' }

const rows = (kinds: Bound['kind'][], field: string, cases: Case[], extra?: Bound['extra']): Bound[] =>
  kinds.flatMap((kind) => cases.map((each) => ({ kind, field, ...each, ...(extra && { extra }) })))

const times = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index))
const BOTH: Bound['kind'][] = ['chat', 'text']

const numbers = (low: number, high: number, step: number): Case[] => [
  yes(low, 'the lowest'),
  yes(high, 'the highest'),
  yes(high - step, 'inside'),
  no(low - step, 'below the lowest'),
  no(high + step, 'above the highest'),
  textOf(low),
  no(true, 'a boolean'),
  no([low], 'an array'),
  no({}, 'an object'),
]
const integers = (low: number, high: number): Case[] => [...numbers(low, high, 1), no(low + 0.5, 'a fraction')]
const booleans: Case[] = [yes(true, 'true'), yes(false, 'false'), no('true', 'text'), no(1, 'a number')]
const unboundedIntegers: Case[] = [
  yes(1, 'one'),
  yes(9007199254740991, 'the largest safe'),
  no(1.5, 'a fraction'),
  textOf(1),
  no({}, 'an object'),
  no(1e300, 'beyond 64 bits'),
]
const strings: Case[] = [
  yes('x', 'text'),
  yes('', 'empty text'),
  no(1, 'a number'),
  no({}, 'an object'),
  no(['x'], 'an array'),
]

const tool = (name: unknown, rest: object = {}) => ({ type: 'function', function: { name, ...rest } })

const SHARED: Bound[] = [
  ...rows(BOTH, 'model', [...strings, NOT_NULLABLE]),
  ...rows(BOTH, 'frequency_penalty', [...numbers(-2, 2, 0.01), NULLABLE]),
  ...rows(BOTH, 'presence_penalty', [...numbers(-2, 2, 0.01), NULLABLE]),
  ...rows(BOTH, 'temperature', [...numbers(0, 2, 0.01), NULLABLE]),
  ...rows(BOTH, 'top_p', [...numbers(0, 1, 0.01), NULLABLE]),
  ...rows(BOTH, 'n', [...integers(1, 128), NULLABLE]),
  ...rows(BOTH, 'seed', [...unboundedIntegers, yes(-1, 'negative'), NULLABLE]),
  ...rows(BOTH, 'user', [...strings, NOT_NULLABLE]),
  ...rows(BOTH, 'stream', [...booleans, NULLABLE]),
  ...rows(BOTH, 'logit_bias', [
    yes({}, 'empty'),
    yes({ '50256': -100, '1': 100 }, 'both bounds'),
    no({ '1': -101 }, 'below the lowest'),
    no({ '1': 101 }, 'above the highest'),
    no({ '1': 0.5 }, 'a fraction'),
    no({ '1': '5' }, 'text'),
    no({ 'line\nbreak': 101 }, 'above the highest under any name'),
    no([1], 'an array'),
    no(1, 'a number'),
    NULLABLE,
  ]),
  ...rows(BOTH, 'stop', [
    yes('\n', 'text'),
    yes(['a'], 'one sequence'),
    yes(['a', 'b', 'c', 'd'], 'four sequences'),
    no([], 'no sequence'),
    no(['a', 'b', 'c', 'd', 'e'], 'five sequences'),
    no(['a', 1], 'a number among them'),
    no(1, 'a number'),
    NULLABLE,
  ]),
  ...rows(
    BOTH,
    'stream_options',
    [
      yes({ include_usage: true }, 'usage'),
      yes({}, 'empty'),
      no({ include_usage: 'yes' }, 'text'),
      no([], 'an array'),
      no(true, 'a boolean'),
    ],
    { stream: true },
  ),
  ...rows(BOTH, 'stream_options', [no({ include_usage: true }, 'without stream'), NULLABLE], {}),
  ...rows(BOTH, 'stream_options', [no({}, 'with stream = false')], { stream: false }),
  ...rows(BOTH, 'top_k', [
    yes(40, 'unknown fields pass'),
    yes(null, 'and keep their null'),
    yes({ a: [1] }, 'of any type'),
  ]),
]

const CHAT: Bound[] = [
  ...rows(['chat'], 'logprobs', [...booleans, NULLABLE]),
  ...rows(['chat'], 'top_logprobs', [...integers(0, 20), NULLABLE], { logprobs: true }),
  ...rows(['chat'], 'top_logprobs', [no(0, 'without logprobs'), NULLABLE], {}),
  ...rows(['chat'], 'top_logprobs', [no(5, 'with logprobs = false')], { logprobs: false }),
  ...rows(['chat'], 'top_logprobs', [no(5, 'with logprobs = null')], { logprobs: null }),
  ...rows(['chat'], 'max_tokens', [...unboundedIntegers, yes(-1, 'the spec gives no minimum'), NULLABLE]),
  ...rows(['chat'], 'max_completion_tokens', [...unboundedIntegers, yes(0, 'zero'), NULLABLE]),
  ...rows(['chat'], 'parallel_tool_calls', [...booleans, NOT_NULLABLE]),
  ...rows(['chat'], 'response_format', [
    yes({ type: 'text' }, 'text'),
    yes({ type: 'json_object' }, 'json_object'),
    yes({ type: 'json_schema', json_schema: { name: 'a'.repeat(64) } }, 'a name of 64 characters'),
    yes(
      { type: 'json_schema', json_schema: { name: 'A_z-9', description: 'd', schema: { any: [1] }, strict: true } },
      'all of it',
    ),
    yes({ type: 'json_schema', json_schema: { name: 'a', strict: null } }, 'strict null'),
    no({ type: 'json_schema' }, 'json_schema without json_schema'),
    no({ type: 'json_schema', json_schema: {} }, 'no name'),
    no({ type: 'json_schema', json_schema: { name: 'a'.repeat(65) } }, 'a name of 65 characters'),
    no({ type: 'json_schema', json_schema: { name: '' } }, 'an empty name'),
    no({ type: 'json_schema', json_schema: { name: 'a b' } }, 'a blank in the name'),
    no({ type: 'json_schema', json_schema: { name: 'a', schema: 'x' } }, 'a schema as text'),
    no({ type: 'json_schema', json_schema: { name: 'a', strict: 'x' } }, 'strict as text'),
    no({ type: 'json_schema', json_schema: { name: 'a', description: 1 } }, 'a number for description'),
    no({ type: 'xml' }, 'another type'),
    no({}, 'no type'),
    no('text', 'text alone'),
    NOT_NULLABLE,
  ]),
  ...rows(
    ['chat'],
    'thinking',
    [
      yes({ type: 'enabled', budget_tokens: 1 }, 'the smallest budget'),
      yes({ type: 'disabled' }, 'disabled'),
      no({ type: 'enabled', budget_tokens: 0 }, 'a budget of 0'),
      no({ type: 'enabled', budget_tokens: 1.5 }, 'a fraction'),
      no({ type: 'on' }, 'another type'),
      no({ budget_tokens: 1 }, 'no type'),
      no('enabled', 'text'),
    ],
    { strict_openai_compliance: false },
  ),
  ...rows(['chat'], 'thinking', [no({ type: 'enabled' }, 'while strict OpenAI compliance is on'), NULLABLE], {}),
  ...rows(['chat'], 'tools', [
    yes([], 'none'),
    yes(
      times(128, (index) => tool(`f${index}`)),
      '128 tools',
    ),
    yes([tool('a'.repeat(64))], 'a name of 64 characters'),
    yes(
      [tool('A_z-9', { description: 'd', parameters: { type: 'object', properties: {} }, strict: false })],
      'all of it',
    ),
    yes([tool('f', { strict: null })], 'strict null'),
    yes([{ ...tool('f'), cache_control: { type: 'ephemeral' } }], 'keys of a provider'),
    no(
      times(129, (index) => tool(`f${index}`)),
      '129 tools',
    ),
    no([tool('a'.repeat(65))], 'a name of 65 characters'),
    no([tool('')], 'an empty name'),
    no([tool('a.b')], 'a dot in the name'),
    no([tool(undefined)], 'no name'),
    no([tool('f', { parameters: [] })], 'parameters as an array'),
    no([tool('f', { strict: 'yes' })], 'strict as text'),
    no([{ type: 'function' }], 'no function'),
    no([{ function: { name: 'f' } }], 'no type'),
    no([{ type: 'retrieval', function: { name: 'f' } }], 'another type'),
    no({}, 'an object'),
    NOT_NULLABLE,
  ]),
  ...rows(['chat'], 'tool_choice', [
    yes('none', 'none'),
    yes('auto', 'auto'),
    yes('required', 'required'),
    yes({ type: 'function', function: { name: 'f' } }, 'a named function without tools'),
    no('any', 'another word'),
    no({ type: 'function' }, 'no function'),
    no({ type: 'function', function: {} }, 'no name'),
    no({ function: { name: 'f' } }, 'no type'),
    no(1, 'a number'),
    NOT_NULLABLE,
  ]),
  ...rows(
    ['chat'],
    'tool_choice',
    [
      yes({ type: 'function', function: { name: 'f' } }, 'a function among the tools'),
      no({ type: 'function', function: { name: 'g' } }, 'a function that is not among the tools'),
    ],
    { tools: [tool('f')] },
  ),
  ...rows(['chat'], 'tool_choice', [yes({ type: 'function', function: { name: 'f' } }, 'there are none')], {
    tools: [],
  }),
  ...rows(['chat'], 'function_call', [
    yes('none', 'none'),
    yes('auto', 'auto'),
    yes({ name: 'f' }, 'a name'),
    no('required', 'another word'),
    no({}, 'no name'),
    NOT_NULLABLE,
  ]),
  ...rows(['chat'], 'functions', [
    yes([{ name: 'f' }], 'one'),
    yes(
      times(128, (index) => ({ name: `f${index}`, description: 'd', parameters: {} })),
      '128 functions',
    ),
    no([], 'none'),
    no(
      times(129, (index) => ({ name: `f${index}` })),
      '129 functions',
    ),
    no([{ description: 'd' }], 'no name'),
    no([{ name: 'f', parameters: 'x' }], 'parameters as text'),
    NOT_NULLABLE,
  ]),
  ...['prompt', 'best_of', 'echo', 'suffix'].flatMap((field) =>
    rows(['chat'], field, [no(1, 'a field of text prompts'), NOT_NULLABLE]),
  ),
]

const TEXT: Bound[] = [
  ...rows(['text'], 'best_of', [...integers(0, 20), NULLABLE]),
  ...rows(['text'], 'best_of', [yes(3, 'greater than n'), no(2, 'equal to n'), no(1, 'less than n'), NULLABLE], {
    n: 2,
  }),
  ...rows(['text'], 'best_of', [no(1, 'equal to n = 1'), no(0, 'less than n = 1'), yes(2, 'greater than n = 1')], {
    n: 1,
  }),
  ...rows(['text'], 'best_of', [yes(1, 'n null is n not given')], { n: null }),
  ...rows(['text'], 'best_of', [no(2, 'with stream'), NULLABLE], { stream: true }),
  ...rows(['text'], 'best_of', [yes(2, 'with stream = false')], { stream: false }),
  ...rows(['text'], 'echo', [...booleans, NULLABLE]),
  ...rows(['text'], 'logprobs', [...integers(0, 5), NULLABLE]),
  ...rows(['text'], 'max_tokens', [...unboundedIntegers, yes(0, 'the lowest'), no(-1, 'below the lowest'), NULLABLE]),
  ...rows(['text'], 'suffix', [...strings, NULLABLE]),
  ...[
    'messages',
    'top_logprobs',
    'max_completion_tokens',
    'response_format',
    'thinking',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'function_call',
    'functions',
  ].flatMap((field) => rows(['text'], field, [no(1, 'a field of chat prompts'), NOT_NULLABLE])),
  ...rows(['text'], 'prompt', [
    yes('hello', 'text'),
    yes('', 'empty text'),
    yes(['a', 'b'], 'texts'),
    yes([1, 2], 'token ids'),
    yes([[1], [2, 3]], 'several prompts of token ids'),
    no([[]], 'an empty prompt among several'),
    no([1, 'a'], 'a mixture'),
    no([1.5], 'a fraction'),
    no([[1], 2], 'a mixture of depths'),
    no(5, 'a number'),
    no({}, 'an object'),
    NULLABLE,
  ]),
]

const user = { role: 'user', content: 'hi' }
const image = (image_url: unknown) => ({ role: 'user', content: [{ type: 'image_url', image_url }] })
const call = (changes: object = {}) => ({
  id: 'c1',
  type: 'function',
  function: { name: 'f', arguments: '{}' },
  ...changes,
})
const assistant = (fields: object) => ({ role: 'assistant', ...fields })

const MESSAGES: Case[] = [
  yes([{ role: 'system', content: 's', name: 'n' }], 'system with a name'),
  no([{ role: 'system', content: null }], 'system content null'),
  no([{ role: 'system' }], 'system without content'),
  no([{ role: 'system', content: [{ type: 'text', text: 't' }] }], 'system content as parts'),
  yes([{ role: 'developer', content: 'd' }], 'developer'),
  no([{ role: 'developer' }], 'developer without content'),
  yes([user], 'user'),
  yes([{ ...user, name: 'n' }], 'user with a name'),
  no([{ ...user, name: 5 }], 'a number for a name'),
  no([{ role: 'user' }], 'user without content'),
  no([{ role: 'user', content: null }], 'user content null'),
  no([{ role: 'user', content: [] }], 'user without parts'),
  yes([{ role: 'user', content: [{ type: 'text', text: 't' }] }], 'one text part'),
  no([{ role: 'user', content: [{ type: 'text' }] }], 'a text part without text'),
  no([{ role: 'user', content: [{ type: 'audio', audio: 'x' }] }], 'another part'),
  no([{ role: 'user', content: ['t'] }], 'a part as text'),
  yes([image({ url: 'data:image/png;base64,AAAA' })], 'an image'),
  yes([image({ url: 'u', detail: 'auto' })], 'detail auto'),
  yes([image({ url: 'u', detail: 'low' })], 'detail low'),
  yes([image({ url: 'u', detail: 'high' })], 'detail high'),
  no([image({ url: 'u', detail: 'ultra' })], 'another detail'),
  no([image({})], 'an image without url'),
  no([image('u')], 'an image as text'),
  yes([assistant({ content: 'a', name: 'n' })], 'assistant'),
  yes([assistant({ content: null })], 'assistant content null'),
  yes([assistant({ tool_calls: [call()] })], 'tool calls instead of content'),
  yes([assistant({ content: null, function_call: { name: 'f', arguments: '{}' } })], 'a function call'),
  yes([assistant({ function_call: { name: 'f', arguments: '{}' } })], 'a function call instead of content'),
  yes([assistant({ content: 'a', function_call: null })], 'function call null'),
  no([assistant({})], 'assistant without anything'),
  no([assistant({ function_call: null })], 'null is no function call'),
  no([assistant({ content: 5 })], 'a number for content'),
  no([assistant({ tool_calls: [call({ id: undefined })] })], 'a tool call without id'),
  no([assistant({ tool_calls: [call({ type: undefined })] })], 'a tool call without type'),
  no([assistant({ tool_calls: [call({ type: 'x' })] })], 'a tool call of another type'),
  no([assistant({ tool_calls: [call({ function: undefined })] })], 'a tool call without function'),
  no([assistant({ tool_calls: [call({ function: { name: 'f' } })] })], 'a tool call without arguments'),
  no([assistant({ tool_calls: [call({ function: { arguments: '{}' } })] })], 'a tool call without name'),
  no([assistant({ tool_calls: [call({ function: { name: 'f', arguments: {} } })] })], 'arguments as an object'),
  no([assistant({ content: 'a', function_call: { name: 'f' } })], 'a function call without arguments'),
  yes([{ role: 'tool', content: 't', tool_call_id: 'c1' }], 'tool'),
  no([{ role: 'tool', content: 't' }], 'tool without tool_call_id'),
  no([{ role: 'tool', tool_call_id: 'c1' }], 'tool without content'),
  no([{ role: 'tool', content: null, tool_call_id: 'c1' }], 'tool content null'),
  yes([{ role: 'function', content: 'x', name: 'f' }], 'function'),
  yes([{ role: 'function', content: null, name: 'f' }], 'function content null'),
  no([{ role: 'function', content: 'x' }], 'function without name'),
  no([{ role: 'function', name: 'f' }], 'function without content'),
  yes([{ ...user, cache_control: { type: 'ephemeral' } }], 'keys of a provider'),
  yes([{ role: 'system', content: 's' }, user, assistant({ content: 'a' })], 'several'),
  no([user, { role: 'robot', content: 'x' }], 'another role'),
  no([{ content: 'x' }], 'no role'),
  no(['hi'], 'a message as text'),
  no([], 'no message'),
  no('hi', 'text'),
  NOT_NULLABLE,
]

export const BOUNDS: readonly Bound[] = [...SHARED, ...CHAT, ...TEXT, ...rows(['chat'], 'messages', MESSAGES)]
