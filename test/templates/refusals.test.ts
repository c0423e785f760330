import { describe, expect, test } from 'bun:test'
import { checkPartial, checkTemplate } from '../../src/templates/template.ts'
import { failureOf, partialsOf } from './support.ts'

const check = (template: unknown, raw = false) =>
  checkTemplate(typeof template === 'string' ? template : JSON.stringify(template), raw, partialsOf({}))
const user = (content: unknown) => [{ role: 'user', content }]

describe('the kind of a template', () => {
  test.each([
    ['Hello {{name}}', false, 'text'],
    ['[INST] do it [/INST]', false, 'text'],
    ['[{{name}}] hello', false, 'text'],
    ['', false, 'text'],
    ['{"role":"user"}', false, 'text'],
    ['[1, 2]', false, 'text'],
    [' \n[ {"role":"user","content":"x"}]', false, 'chat'],
    ['[{"role":"user","content":"x"}]', true, 'chat'],
    ['{{#messages}}{{/messages}}', true, 'chat'],
    ['{{! list }} {{#s}}[{{/s}}{{>rest}}', true, 'chat'],
    ['Hello {{name}}', true, 'text'],
    ['{{#s}}x{{/s}}[]', true, 'text'],
  ] as const)('%j, raw %p, is %s', (template, raw, kind) => expect(check(template, raw).kind).toBe(kind))
})

describe('a template is refused at save with the place', () => {
  test.each([
    ['a tag without end', 'a {{b}}\n  {{c', 'the template, line 2, column 3: the tag is not closed'],
    ['a section without end', 'x {{#a}}\n{{#b}}{{/b}}', 'line 1, column 3: the section that opens here is not closed'],
    ['sections that cross', '{{#a}}{{#b}}{{/a}}{{/b}}', 'line 1, column 7: the section that opens here is not closed'],
    ['an end without section', 'x\ny{{/a}}', 'line 2, column 2: this tag closes a section that is not open'],
    ['an empty tag', 'x {{ }}', 'line 1, column 3: the tag is empty'],
    ['an empty section', '{{#}}{{/}}', 'line 1, column 1: the tag is empty'],
    ['a triple tag without end', '{{{a}}', 'line 1, column 1: the tag is not closed'],
    ['delimiters that are one word', 'x{{=|=}}', 'line 1, column 2: new delimiters are two words'],
    ['a label on a partial', 'x {{>slug@production}}', 'line 1, column 3: a partial is named'],
    ['version zero of a partial', '{{>slug@0}}', 'a partial is named'],
    ['a partial without name', '{{>}}', 'a partial is named'],
    ['a private partial without name', '{{>>}}', 'the tag is empty'],
    ['a chat leaf', user('a\n {{b'), 'messages[0].content, line 2, column 2: the tag is not closed'],
    ['a deep chat leaf', user([{ type: 'text', text: '{{/x}}' }]), 'messages[0].content[0].text, line 1, column 1'],
    ['sections nested without end', '{{#a}}'.repeat(101) + '{{/a}}'.repeat(101), 'nests sections deeper than 100'],
    ['a tag that holds endless blanks', `{{a${' '.repeat(400_000)}`, 'more than 1000 blanks in a row'],
    ['too many tags between other delimiters', `{{=[ ]=}}${'[a]'.repeat(100_000)}`, 'changes its delimiters'],
    ['too large a text', 'x'.repeat(512 * 1024 + 1), 'must not exceed 512 KiB'],
    ['too many bytes', 'é'.repeat(256 * 1024 + 1), 'must not exceed 512 KiB'],
  ])('%s', (_name, template, message) => {
    const failure = failureOf(() => check(template))
    expect([failure.code, failure.complaints[0]?.path]).toEqual(['invalid', 'string'])
    expect(failure.message).toContain(message)
  })

  test.each([
    [
      'a tag outside a string',
      '[{"role":"user","content":{{x}}}]',
      'the chat template is not JSON, line 1, column 27: a tag outside a string needs is_raw_template: 1',
    ],
    ['a missing comma', '[{"role":"user"\n "content":"x"}]', 'line 2, column 2: expected a comma or }'],
    ['a trailing comma', '[{"role":"user","content":"x"},]', 'line 1, column 32: expected a value'],
    [
      'a section around a message',
      '[{"role":"user","content":"x"}{{#s}},{}{{/s}}]',
      'line 1, column 31: a tag outside a string',
    ],
    [
      'a line break in a string',
      '[{"role":"user","content":"a\nb"}]',
      'line 1, column 29: a line break or control character in a string must be escaped',
    ],
    ['an unknown escape', '[{"role":"us\\er"}]', 'line 1, column 13: unknown escape in a string'],
    ['a string without end', '[{"role":"user}]', 'line 1, column 10: the string is not closed'],
    ['text behind the list', '[{"role":"user","content":"x"}] x', 'line 1, column 33: nothing may follow'],
    ['a key without quotes', '[{role:"user"}]', 'line 1, column 3: expected a key'],
    ['a key without colon', '[{"role" "user"}]', 'line 1, column 10: expected a colon'],
    ['an end too early', '[{"role":', 'line 1, column 10: the text ends too early'],
    ['the wrong bracket', '[{"role":"user"]]', 'line 1, column 16: expected a comma or }'],
    ['a number that is none', '[{"a":01}]', 'line 1, column 8: expected a comma or }'],
    [
      'a key twice',
      '[{"role":"user",\n "role" :"system","content":""}]',
      'the chat template, line 2, column 2: a key stands twice',
    ],
    ['a key twice, spelled in two ways', '[{"a":{"b":1},"\\u0061":[]}]', 'line 1, column 15: a key stands twice'],
    ['a key twice in a later object', '[{"a":1},{"a":1,"b":{"a":2},"a":3}]', 'line 1, column 29: a key stands twice'],
    [
      'a key twice behind a long text',
      `[{"a":"${'x'.repeat(500_000)}",\n"a":1}]`,
      'the chat template, line 2, column 1: a key stands twice',
    ],
    ['a key that changes objects', '[{"a":"__proto__","__proto__":{}}]', 'line 1, column 19: the key __proto__'],
    [
      'brackets without end',
      `[{"a":\n${'['.repeat(100)}${']'.repeat(100)}}]`,
      'the chat template, line 2, column 63: it is nested deeper than 64 levels',
    ],
    ['a number beyond all', '[{"a":1,"b":1e999}]', 'line 1, column 13: a number is too large'],
    ['half a character', '[{"a":"b","c":"\\ud800"}]', 'line 1, column 15: must not contain'],
    ['no message', ' [ ] ', 'at least one message'],
  ])('chat: %s', (_name, template, message) => {
    const failure = failureOf(() => check(template))
    expect([failure.code, failure.complaints[0]?.path]).toEqual(['invalid', 'string'])
    expect(failure.message).toContain(message)
  })

  test('line and column never spell what clients take for a missing thing', () => {
    const failure = failureOf(() => check(`${'\n'.repeat(403)}{{/x}}`))
    expect(failure.message).toContain('line 40_4, column 1')
  })

  test('no message repeats what was written', () => {
    for (const template of [
      '{{#private}}',
      '{{/private}}',
      '{{>private@label}}',
      '[{"private":',
      user('{{private'),
      [{ role: 'private' }],
    ])
      expect(failureOf(() => check(template)).message).not.toContain('private')
  })

  test('a partial is checked by its tags', () => {
    expect(failureOf(() => checkPartial('[{"a":\n{{#b}}')).message).toContain('the partial, line 2, column 1')
    expect(checkPartial('[{"a": {{b}}').variables).toEqual(['b'])
  })
})

describe('messages are checked at save', () => {
  const call = { id: 'i', type: 'function', function: { name: 'f', arguments: '{}' } }
  const image = { type: 'image_url', image_url: { url: '{{u}}', detail: '{{d}}' } }

  test.each([
    [{ role: 'system', content: '' }],
    [{ role: 'developer', content: [{ type: 'text', text: '{{x}}' }], name: 'n' }],
    [{ role: 'user', content: [{ type: 'text', text: 'x' }, image] }],
    [{ role: 'assistant', content: null, tool_calls: [call] }],
    [{ role: 'assistant', content: null }],
    [{ role: 'assistant', tool_calls: [{ ...call, type: '{{t}}' }] }],
    [{ role: 'assistant', content: 'x', function_call: null }],
    [{ role: 'assistant', function_call: { name: 'f', arguments: '' } }],
    [{ role: 'tool', content: 'x', tool_call_id: '{{id}}' }],
    [{ role: 'function', content: null, name: 'f' }],
    [{ role: '{{r}}', content: [image] }],
    [{ role: 'user', content: 'x', cache_control: { type: 'ephemeral' } }],
  ])('%j is taken', (message) => expect(check([message]).kind).toBe('chat'))

  test.each([
    [{}, 'messages[0].role must be one of'],
    [{ role: 'User', content: 'x' }, 'messages[0].role must be one of'],
    [{ role: 7, content: 'x' }, 'messages[0].role must be one of'],
    [{ role: 'user' }, 'messages[0].content must be a string or a list of parts'],
    [{ role: 'user', content: null }, 'messages[0].content must not be null'],
    [{ role: 'assistant' }, 'messages[0].content must be a string or a list of parts'],
    [{ role: 'user', content: [] }, 'messages[0].content must be a string or a list of parts'],
    [{ role: 'user', content: [null] }, 'messages[0].content[0] must be an object'],
    [{ role: 'user', content: [{ type: 'audio' }] }, 'messages[0].content[0].type must be text or image_url'],
    [{ role: 'user', content: [{ type: 'text', text: null }] }, 'messages[0].content[0].text must be a string'],
    [
      { role: 'user', content: [{ type: 'image_url', image_url: 'u' }] },
      'messages[0].content[0].image_url must be an object',
    ],
    [
      { role: 'user', content: [{ type: 'image_url', image_url: {} }] },
      'messages[0].content[0].image_url.url must be a string',
    ],
    [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'u', detail: 'x' } }] },
      'detail must be auto, low or high',
    ],
    [{ role: 'system', content: [image] }, 'messages[0].content[0] must hold no image'],
    [{ role: 'user', content: 'x', name: null }, 'messages[0].name must be a string'],
    [{ role: 'tool', content: 'x' }, 'messages[0].tool_call_id must be a string'],
    [{ role: 'function', content: 'x' }, 'messages[0].name must be a string'],
    [{ role: 'assistant', tool_calls: {} }, 'messages[0].tool_calls must be a list'],
    [{ role: 'assistant', tool_calls: [1] }, 'messages[0].tool_calls[0] must be an object'],
    [{ role: 'assistant', tool_calls: [{ ...call, id: 1 }] }, 'messages[0].tool_calls[0].id must be a string'],
    [{ role: 'assistant', tool_calls: [{ ...call, type: 'x' }] }, 'messages[0].tool_calls[0].type must be function'],
    [
      { role: 'assistant', tool_calls: [{ ...call, function: null }] },
      'messages[0].tool_calls[0].function must be an object',
    ],
    [
      { role: 'assistant', function_call: { name: 'f', arguments: {} } },
      'messages[0].function_call.arguments must be a string',
    ],
  ])('%j is refused', (message, complaint) => expect(failureOf(() => check([message])).message).toContain(complaint))

  test('every complaint is told at once', () => {
    expect(failureOf(() => check([{ role: 'x' }, { role: 'user', content: 1, name: 1 }])).complaints).toHaveLength(3)
  })
})

describe('variable_components', () => {
  test('name what the text holds, in the order of first use', () => {
    const text =
      '{{b}} {{a.c}} {{b}} {{#list}}{{.}}{{item}}{{^none}}{{x}}{{/none}}{{/list}}{{#empty}}{{/empty}} {{>p@2}} {{>p}} {{>>mine}} {{{z}}}'
    const components = {
      partials: ['p@2', 'p'],
      sections: ['list', 'none', 'empty'],
      variables: ['b', 'a.c', 'z'],
      sectionVariables: { list: ['item'], none: ['x'], empty: [] },
      variablePartials: ['mine'],
    }
    expect(check(text).components).toEqual(components)
    expect(check(user(text)).components).toEqual(components)
  })

  test('of a chat template are those of all its strings', () => {
    const { components } = check([
      { role: 'user', content: '{{a}}', name: '{{b}}' },
      ...user([{ type: 'text', text: '{{c}}{{a}}' }]),
    ])
    expect(components.variables).toEqual(['a', 'b', 'c'])
  })

  test('of a raw template leave the JSON out', () => {
    expect(check('[{"role":"user","content":{{v}}}{{#s}}, {{m}}{{/s}}]', true).components).toEqual({
      partials: [],
      sections: ['s'],
      variables: ['v'],
      sectionVariables: { s: ['m'] },
      variablePartials: [],
    })
  })

  test('a section called __proto__ is one among others', () => {
    expect(JSON.stringify(check('{{#__proto__}}{{a}}{{/__proto__}}').components.sectionVariables)).toBe(
      '{"__proto__":["a"]}',
    )
  })
})
