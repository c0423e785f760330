import { describe, expect, test } from 'bun:test'
import { expectProblem, scenarios, useWorld } from '../support/scenario.ts'

const world = useWorld(
  'sqlite',
  async ({ call, names }) => {
    const prompt = { name: 'p', string: '{{{x}}}', parameters: {}, model: 'm' }
    names['p'] = (await call('POST', '/v1/prompts', prompt)).body.id
  },
  '[limits]\nadmin_body_bytes = 2000\nprompt_body_bytes = 200000\nrender_body_bytes = 300000\n',
)

const collection = '{"name":"c"}'
const bytes = (...codes: number[]) => Uint8Array.from(codes)
const around = (inner: Uint8Array) => Buffer.concat([Buffer.from('{"name":"'), inner, Buffer.from('"}')])
const nested = (depth: number) => `{"name":"c","x":${'['.repeat(depth)}${']'.repeat(depth)}}`

/** What no JSON reader of ours may take, whichever route it is sent to. */
const HOSTILE: { name: string; body: string | Uint8Array; mentions: string }[] = [
  { name: 'no JSON', body: '{name:"c"}', mentions: 'not valid JSON' },
  { name: 'half an object', body: '{"name":"c"', mentions: 'not valid JSON' },
  { name: 'two values', body: '{"name":"c"}{}', mentions: 'not valid JSON' },
  { name: 'a comment', body: '{"name":"c"/**/}', mentions: 'not valid JSON' },
  { name: 'a trailing comma', body: '{"name":"c",}', mentions: 'not valid JSON' },
  { name: 'NaN', body: '{"name":NaN}', mentions: 'not valid JSON' },
  { name: 'a form', body: 'name=c', mentions: 'not valid JSON' },
  { name: 'a byte order mark', body: `\ufeff${collection}`, mentions: 'not valid JSON' },
  { name: 'UTF-16', body: Buffer.from(collection, 'utf16le'), mentions: 'JSON' },
  { name: 'a key twice', body: '{"name":"c","name":"d"}', mentions: 'twice' },
  { name: 'a key twice, once escaped', body: '{"name":"c","n\\u0061me":"d"}', mentions: 'twice' },
  { name: 'a key twice, deep down', body: '{"name":"c","x":[{"a":{"b":1,"b":1}}]}', mentions: 'twice' },
  { name: '__proto__', body: '{"name":"c","__proto__":{"admin":true}}', mentions: '__proto__' },
  { name: '__proto__, deep down and escaped', body: '{"name":"c","x":{"\\u005f_proto__":1}}', mentions: '__proto__' },
  { name: '65 levels', body: nested(65), mentions: 'nested' },
  { name: '90,000 levels', body: nested(90_000), mentions: 'nested' },
  { name: 'a lone surrogate', body: '{"name":"\\ud800"}', mentions: 'surrogate' },
  { name: 'a surrogate pair the wrong way round', body: '{"name":"\\udc00\\ud800"}', mentions: 'surrogate' },
  { name: 'an escaped NUL', body: '{"name":"a\\u0000b"}', mentions: 'NUL' },
  { name: 'a NUL in a key', body: '{"name":"c","a\\u0000":1}', mentions: 'NUL' },
  { name: 'a raw control character in a string', body: '{"name":"a\nb"}', mentions: 'not valid JSON' },
  { name: 'a number without end', body: `{"name":"c","x":1e999}`, mentions: 'too large' },
  { name: 'a continuation byte alone', body: around(bytes(0x80)), mentions: 'UTF-8' },
  { name: 'an overlong slash', body: around(bytes(0xc0, 0xaf)), mentions: 'UTF-8' },
  { name: 'an encoded surrogate', body: around(bytes(0xed, 0xa0, 0x80)), mentions: 'UTF-8' },
  { name: 'a cut character', body: around(bytes(0xe2, 0x82)), mentions: 'UTF-8' },
  { name: 'a byte beyond Unicode', body: around(bytes(0xf5, 0x80, 0x80, 0x80)), mentions: 'UTF-8' },
]

describe.each([
  ['an administrative route', 'POST', '/v1/prompts'],
  ['render', 'POST', '/v1/prompts/$p/render'],
])('%s refuses', (_, method, path) => {
  test.each(HOSTILE)('$name', async ({ body, mentions }) => {
    const { call, names } = world()
    const headers = { 'content-type': 'application/json' }
    const answer = await call(method, path.replace('$p', names['p'] ?? ''), body, { headers })
    expectProblem(answer, 'invalid')
    expect(answer.body.message).toContain(mentions)
  })

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json-patch+json',
    'application/vnd.api+json',
    'application/json; charset=latin1',
    'application/json; charset=utf-8; x=1',
    'application/json, text/plain',
    '',
  ])('the content type "%s"', async (type) => {
    const { call, names } = world()
    const headers = { 'content-type': type }
    expectProblem(await call(method, path.replace('$p', names['p'] ?? ''), '{}', { headers }), 'unsupported_media_type')
  })
})

scenarios('POST /v1/collections', world, [
  ...[
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
  ].map((type) => ({
    name: `${type} is JSON`,
    body: collection,
    headers: { 'content-type': type },
    expect: 200,
  })),
  { name: 'a name is kept in one Unicode form', body: { name: 'Cafe\u0301' }, expect: 200, keep: { cafe: 'id' } },
  { name: 'the composed one', call: 'GET /v1/collections/$cafe', expect: 200, answer: { name: 'Café' } },
  {
    name: 'every character outside the first plane is whole',
    body: '{"name":"\\ud83d\\udd11🔑"}',
    headers: { 'content-type': 'application/json' },
    expect: 200,
    keep: { key: 'id' },
  },
  { name: 'however it was written', call: 'GET /v1/collections/$key', expect: 200, answer: { name: '🔑🔑' } },
  { name: 'a backslash before u0000 is text, not a NUL', body: { name: 'a\\u0000' }, expect: 200 },
  ...['[]', '"c"', 'null', '7', 'true', '9007199254740993'].map((body) => ({
    name: `${body} is no object`,
    body,
    headers: { 'content-type': 'application/json' },
    expect: 'invalid' as const,
  })),
  { name: 'no body is an empty object', expect: 'invalid', mentions: '"param":"name"' },
  {
    name: 'neither is an empty one',
    body: '',
    headers: { 'content-type': 'application/json' },
    expect: 'invalid',
    mentions: '"param":"name"',
  },
  {
    name: 'a body at the limit is read',
    body: collection.padEnd(2000),
    headers: { 'content-type': 'application/json' },
    expect: 200,
  },
  {
    name: 'a byte more is too much',
    body: collection.padEnd(2001),
    headers: { 'content-type': 'application/json' },
    expect: 'payload_too_large',
    mentions: '2000',
  },
  {
    name: 'a prompt may be larger',
    call: 'POST /v1/prompts',
    body: { name: 'p', string: 'x'.repeat(90_000), parameters: {} },
    expect: 200,
  },
  {
    name: 'to its own limit',
    call: 'POST /v1/prompts',
    body: { name: 'p', string: 'x'.repeat(200_000), parameters: {} },
    expect: 'payload_too_large',
  },
  {
    name: 'a render to its own',
    call: 'POST /v1/prompts/$p/render',
    body: { variables: { x: 'y'.repeat(250_000) } },
    expect: 200,
  },
  {
    name: 'and no further',
    call: 'POST /v1/prompts/$p/render',
    body: { variables: { x: 'y'.repeat(300_000) } },
    expect: 'payload_too_large',
  },
  {
    name: 'an integer beyond 2^53 is no name, and no object either',
    call: 'PUT /v1/prompts/$p',
    body: '{"patch":true,"template_metadata":9007199254740993}',
    headers: { 'content-type': 'application/json' },
    expect: 'invalid',
    mentions: '"param":"template_metadata"',
  },
  {
    name: 'deep in free-form fields it keeps its digits',
    call: 'PUT /v1/prompts/$p',
    body: '{"patch":true,"template_metadata":{"a":[9007199254740993,-0]}}',
    headers: { 'content-type': 'application/json' },
    expect: 200,
  },
  {
    name: 'and reads back with them',
    call: 'GET /v1/prompts/$p@latest',
    expect: 200,
    mentions: '{"a":[9007199254740993,',
  },
  {
    name: 'constructor and prototype are names like others',
    call: 'POST /v1/prompts/$p/render',
    body: '{"variables":{"x":"{{constructor}}","constructor":1,"prototype":2,"toString":3,"hasOwnProperty":4}}',
    headers: { 'content-type': 'application/json' },
    expect: 200,
    mentions: '"{{constructor}}"',
  },
])

test('an object of ten thousand wrong fields is answered with a hundred complaints', async () => {
  const { call } = world()
  const fields = Object.fromEntries(Array.from({ length: 9000 }, (_, i) => [`field_${i}`, i]))
  const answer = await call('POST', '/v1/prompts', fields)
  expectProblem(answer, 'invalid')
  expect(answer.body.errors).toHaveLength(100)
  expect(answer.text.length).toBeLessThan(20_000)
})
