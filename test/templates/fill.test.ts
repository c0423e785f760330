import { describe, expect, test } from 'bun:test'
import { failureOf, save } from './support.ts'

const user = (content: unknown) => [{ role: 'user', content }]

describe('values inside a text', () => {
  test.each([
    ['a string stays itself', 'x', 'x'],
    ['a number is written shortest', 1.0, '1'],
    ['minus zero is zero', -0, '0'],
    ['a boolean is a word', false, 'false'],
    ['null is nothing', null, ''],
    ['an object is compact JSON, not a failure', { a: [1, { b: 'c' }] }, '{"a":[1,{"b":"c"}]}'],
    ['an array is compact JSON, not a failure', [1, 'two'], '[1,"two"]'],
    ['a big integer keeps its digits', JSON.rawJSON('12345678901234567890'), '12345678901234567890'],
    [
      'a big integer inside an object keeps its digits',
      { n: JSON.rawJSON('12345678901234567890') },
      '{"n":12345678901234567890}',
    ],
    ['C2 #12: nothing is HTML-escaped', '<a href="x">&\'/`=</a>', '<a href="x">&\'/`=</a>'],
    ['quotes and backslashes are not doubled', '"\\n"\n', '"\\n"\n'],
    ['C2 #31: no second pass over values', '{{other}} {{>p}} {{>>other}}', '{{other}} {{>p}} {{>>other}}'],
  ])('%s', (_name, value, expected) => {
    for (const tag of ['{{v}}', '{{{v}}}', '{{&v}}', '{{ v }}', '{{#v}}{{/v}}{{v}}', '{{>p}}'])
      expect(save(`<${tag}>`, { partials: { p: '{{v}}' } }).fill({ v: value, other: 'LEAK' }, {})).toBe(`<${expected}>`)
    expect(save(user('<{{v}}>')).fill({ v: value }, {})).toEqual(user(`<${expected}>`))
  })

  test('C2 #11: JSON and single braces in the text of a prompt stay as they are', () => {
    const text = 'Answer as {"name": "{{name}}", "tags": {}, "x": {y}}'
    expect(save(user(text)).fill({ name: 'Ana' }, {})).toEqual(user('Answer as {"name": "Ana", "tags": {}, "x": {y}}'))
  })

  test('C2 #13: conditions and lists work inside a message', () => {
    const text = '{{#vip}}Dear {{name}}{{/vip}}{{^vip}}Hi{{/vip}}:{{#items}} {{.}}{{/items}}'
    expect(save(user(text)).fill({ vip: false, items: [1, 2] }, {})).toEqual(user('Hi: 1 2'))
  })

  test('literal braces can be written by changing the delimiters', () => {
    expect(save('{{=<% %>=}}{{literal}} <%x%>').fill({ x: 1, literal: 2 }, {})).toBe('{{literal}} 1')
  })
})

describe('looking names up', () => {
  test('the request wins over the default, the default over nothing', () => {
    const template = save('{{a}}|{{b}}|{{c}}|{{d.e}}|{{#a}}{{d.e}}{{/a}}')
    expect(template.fill({ a: 1 }, { a: 2, b: 3, d: { e: 4 } })).toBe('1|3||4|4')
  })

  test('null from the request hides the default', () => {
    expect(save('<{{a}}>').fill({ a: null }, { a: 2 })).toBe('<>')
  })

  test.each([
    'toString',
    'constructor',
    '__proto__',
    'hasOwnProperty',
    's.length',
    'list.length',
    'o.constructor.name',
    'f',
    'o.f',
    'big.rawJSON',
    'list.map',
  ])('{{%s}} finds nothing that is not in the data', (name) => {
    const called = () => {
      throw new Error('a function was called')
    }
    const variables = { s: 'text', list: [1], o: { f: called }, f: called, big: JSON.rawJSON('99999999999999999999') }
    expect(save(`<{{${name}}}>{{#${name}}}x{{/${name}}}{{#o}}{{${name}}}{{/o}}`).fill(variables, {})).toBe('<>')
  })

  test('keys that JSON can hold are found, whatever they are called', () => {
    const variables = JSON.parse('{"__proto__": "own", "constructor": {"name": "mine"}, "list": ["first"]}')
    expect(save('{{__proto__}} {{constructor.name}} {{list.0}}').fill(variables, {})).toBe('own mine first')
  })

  test('a dot is the current item, at the root all variables', () => {
    expect(save('{{#l}}{{.}},{{/l}}').fill({ l: [1, 'b', null, { c: 1 }] }, {})).toBe('1,b,,{"c":1},')
    expect(save('{{.}}').fill({ a: 1 }, { a: 2, b: 3 })).toBe('{"a":1,"b":3}')
  })

  test('C2 #14: strict learns every name at once, and what was given is not missing', () => {
    const lookups = { used: new Set<string>(), missing: new Set<string>() }
    const template = save(
      '{{a}} {{b}} {{user.name}} {{user.age}} {{f}} {{z}} {{e}} {{#no}}{{never}}{{/no}} {{#l}}{{t}} {{gone}}{{/l}} {{>p}}',
      {
        partials: { p: '{{deep}}' },
      },
    )
    template.fill({ a: 1, user: { name: 'x' }, f: false, z: null, e: '', l: [{ t: 1 }] }, { b: 1 }, lookups)
    expect([...lookups.missing]).toEqual(['user.age', 'no', 'gone', 'deep'])
    expect([...lookups.used]).toEqual(['a', 'b', 'user', 'f', 'z', 'e', 'l'])
  })

  test('every name that a default could be for is known, those of partials too', () => {
    const template = save('{{a}} {{b.c}} {{#s}}{{.}}{{i}}{{/s}} {{>>text}} {{>p}}', {
      partials: { p: '{{inp}}{{>q}}', q: '{{^inq}}{{/inq}}' },
    })
    expect([...template.variableNames].sort()).toEqual(['a', 'b', 'b.c', 'i', 'inp', 'inq', 's', 'text'])
  })
})

describe('chat messages', () => {
  test('tags are filled in every string, and nothing else changes', () => {
    const messages = [
      { role: 'system', content: 'You are {{who}}', name: 'sys' },
      { role: '{{role}}', content: 'x', name: '{{who}}' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'see {{who}}' },
          { type: 'image_url', image_url: { url: 'https://x/{{who}}.png', detail: '{{detail}}' } },
        ],
        extra: { deep: ['{{who}}', 1, null, true] },
      },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: '{{who}}', type: 'function', function: { name: 'f', arguments: '{"q": "{{who}}"}' } }],
      },
      { role: 'tool', content: 'constant', tool_call_id: 't' },
    ]
    const filled = save(messages).fill({ who: 'Ana', role: 'user', detail: 'low' }, {})
    const expected = JSON.stringify(messages)
      .replaceAll('{{who}}', 'Ana')
      .replace('{{role}}', 'user')
      .replace('{{detail}}', 'low')
    expect(filled).toEqual(JSON.parse(expected))
  })

  test('a caller that changes what it got changes no later answer', () => {
    const template = save([...user('Hi {{name}}'), { role: 'system', content: 'fixed' }])
    const first = template.fill({ name: 'A' }, {}) as Record<string, unknown>[]
    first[0]!['content'] = first[1]!['content'] = first[1]!['role'] = 'spoilt'
    first.length = 1
    expect(template.fill({ name: 'A' }, {})).toEqual([...user('Hi A'), { role: 'system', content: 'fixed' }])
  })

  test('a key called __proto__ in a value changes no object', () => {
    const filled = save(user('{{v}}')).fill({ v: JSON.parse('{"__proto__":{"polluted":1}}') }, {})
    expect(filled).toEqual(user('{"__proto__":{"polluted":1}}'))
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  test('text parts of every role but user become one string', () => {
    const parts = [
      { type: 'text', text: 'a {{x}}' },
      { type: 'text', text: 'b' },
    ]
    const filled = save([{ role: 'system', content: parts }, { role: '{{r}}', content: parts }, ...user(parts)]).fill(
      { x: 1, r: 'developer' },
      {},
    )
    expect(filled).toEqual([
      { role: 'system', content: 'a 1\nb' },
      { role: 'developer', content: 'a 1\nb' },
      ...user([
        { type: 'text', text: 'a 1' },
        { type: 'text', text: 'b' },
      ]),
    ])
  })

  test('an image in a role that turns out not to be user is refused', () => {
    const template = save([{ role: '{{r}}', content: [{ type: 'image_url', image_url: { url: 'u' } }] }])
    expect(template.fill({ r: 'user' }, {})).toBeArray()
    expect(failureOf(() => template.fill({ r: 'system' }, {})).message).toContain(
      'messages[0].content must hold no image',
    )
  })
})

describe('arguments of calls', () => {
  const call = (text: string) => [
    { role: 'assistant', tool_calls: [{ id: 'i', type: 'function', function: { name: 'f', arguments: text } }] },
  ]
  const filledWith = (text: string, v: unknown): string => {
    const [message] = save(call(text)).fill({ v }, {}) as [{ tool_calls: [{ function: { arguments: string } }] }]
    return message.tool_calls[0].function.arguments
  }

  test.each([
    ['a value inside a literal is escaped', '{"a":"{{v}}"}', 'x","b":"y', '{"a":"x\\",\\"b\\":\\"y"}'],
    ['a value outside a literal is one JSON value', '{"a":{{v}}}', 'x', '{"a":"x"}'],
    ['numbers stay numbers', '{"a":{{v}}}', 5, '{"a":5}'],
    ['objects stay objects', '{"a":{{v}}}', { b: [1] }, '{"a":{"b":[1]}}'],
    ['a missing value is null', '{"a":{{missing}}}', 1, '{"a":null}'],
    ['the whole can be one value', '{{v}}', { a: 1 }, '{"a":1}'],
    ['a list leaves no trailing comma', '{"a":[{{#v}}{{.}},{{/v}}]}', [1, ', ]'], '{"a":[ 1, ", ]"]}'],
    ['a number cannot grow into another', '{"a":1{{v}}}', 2, '{"a":1 2}'],
  ])('%s', (_name, text, value, expected) => expect(filledWith(text, value)).toBe(expected))

  test('the deprecated function_call follows the same rule', () => {
    const template = save([{ role: 'assistant', function_call: { name: 'f', arguments: '{"a":"{{v}}"}' } }])
    expect(template.fill({ v: '"' }, {})).toEqual([
      { role: 'assistant', function_call: { name: 'f', arguments: '{"a":"\\""}' } },
    ])
  })
})

describe('partials', () => {
  test('the reference decides the version, and each version used is told once', () => {
    const template = save('{{>p}}, {{>p@3}}, {{>p@latest}}, {{>p}}', {
      partials: { p: 'published', 'p@3': 'third', 'p@latest': 'newest' },
    })
    expect(template.fill({}, {})).toBe('published, third, newest, published')
    expect(template.partials.map((one) => one.slug)).toEqual(['p', 'p@3', 'p@latest'])
  })

  test('a value that comes through a partial is not read as a template', () => {
    const template = save(user('{{>p}}'), { partials: { p: '{{v}}', secret: 'LEAK' } })
    expect(template.fill({ v: '{{>secret}}{{other}}', other: 'LEAK' }, {})).toEqual(user('{{>secret}}{{other}}'))
  })

  test('an unknown partial is no error at save and not_found at use, at any depth', () => {
    expect(failureOf(() => save('{{>gone}}')).code).toBe('not_found')
    expect(failureOf(() => save(user('{{#never}}{{>p}}{{/never}}'), { partials: { p: '{{>gone}}' } })).code).toBe(
      'not_found',
    )
  })

  test('a tree of twenty levels is filled, a deeper one refused', () => {
    const template = save('{{>node}}', { partials: { node: '{{n}}{{#next}}{{>node}}{{/next}}' } })
    const tree = (levels: number): unknown => (levels === 0 ? false : { n: 1, next: tree(levels - 1) })
    const chain = (levels: number) => ({ n: 1, next: tree(levels - 1) })
    expect(template.fill(chain(20), {})).toBe('1'.repeat(20))
    expect(failureOf(() => template.fill(chain(21), {})).code).toBe('template_limit')
    expect(template.fill(chain(20), {})).toBe('1'.repeat(20))
  })

  test('an indented partial that includes itself ends at the same depth', () => {
    const template = save('{{>node}}', { partials: { node: '{{n}}\n{{#next}}\n  {{>node}}\n{{/next}}\n' } })
    expect(template.fill({ n: 1, next: { n: 2, next: { n: 3, next: false } } }, {})).toBe('1\n  2\n    3\n')
    expect(failureOf(() => save('{{>loop}}', { partials: { loop: 'x\n {{>loop}}\n' } }).fill({}, {})).code).toBe(
      'template_limit',
    )
  })

  test('a partial is whole wherever it stands, though a longer way to it was met first', () => {
    const chain = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [
        `p${i}`,
        i === 19 ? 'end' : `{{#deep}}{{>p${i + 1}}}{{/deep}}{{^deep}}${i}{{/deep}}`,
      ]),
    )
    expect(save('{{>p0}}, {{>p19}}', { partials: chain }).fill({ deep: true }, {})).toBe('end, end')
  })
})

describe('private partials', () => {
  test("the caller's text is filled once, and its values are not parsed", () => {
    const template = save(user('<{{>>t}}>'))
    expect(template.fill({ t: 'Hi {{n}}{{#l}} {{.}}{{/l}}', n: '{{secret}}', l: [1, 2], secret: 'LEAK' }, {})).toEqual(
      user('<Hi {{secret}} 1 2>'),
    )
  })

  test.each(['{{>p}}', '{{>>t}}', '{{#a}}{{>p}}{{/a}}', '{{=<% %>=}}<%>p%>'])('no partials inside: %s', (text) => {
    const failure = failureOf(() => save('{{>>t}}', { partials: { p: 'LEAK' } }).fill({ t: text }, {}))
    expect([failure.code, failure.complaints[0]?.path]).toEqual(['invalid', 'variables'])
  })

  test('a text that is no template is refused with its place, and not repeated', () => {
    const failure = failureOf(() => save('{{>>t}}').fill({ t: 'private\n {{#words}}' }, {}))
    expect(failure.complaints).toEqual([
      {
        path: 'variables',
        message: 'the text for a private partial, line 2, column 2: the section that opens here is not closed',
      },
    ])
  })

  test('without text there is nothing, and a default serves', () => {
    expect(save('<{{>> t }}>').fill({}, {})).toBe('<>')
    expect(save('<{{>>t}}>').fill({ x: 1 }, { t: '{{x}}' })).toBe('<1>')
  })
})
