import { describe, expect, test } from 'bun:test'
import { configText } from '../../src/cli/init.ts'
import { describeConfig } from '../../src/config/describe.ts'
import { parseToml } from '../../src/config/toml.ts'

const linesOf = (text: string) => Object.fromEntries(parseToml(text).lines)

describe('the line of a key survives', () => {
  test.each([
    ['comments and blank lines', '# a\n\n  # b\nx = 1', { x: 4 }],
    ['Windows line ends and a byte order mark', '\uFEFFx = 1\r\ny = 2\r\n', { x: 1, y: 2 }],
    ['strings over several lines', 'x = """\n[a]\n"quoted" = 1\n"""\ny = 2', { x: 1, y: 5 }],
    ['literal strings over several lines', "x = '''\n#\n''''\ny = 2", { x: 1, y: 4 }],
    ['brackets and quotes within strings', 'x = "[{\\"" # ]\ny = \'"\'', { x: 1, y: 2 }],
    ['lists over several lines', 'x = [\n  "]",\n  2, # ]\n]\ny = 2', { x: 1, 'x[0]': 1, 'x[1]': 1, y: 5 }],
    ['dotted and quoted keys', 'a.b = 1\n"c d" = 2', { a: 1, 'a.b': 1, 'c d': 2 }],
    [
      'tables of tables',
      '[a.b]\nx = 1\n[[l]]\ny = 1\n[[l]]\ny = 2',
      { 'a.b': 1, 'a.b.x': 2, 'l[0]': 3, 'l[0].y': 4, 'l[1]': 5, 'l[1].y': 6 },
    ],
    ['tables in one line', 'a = { b = { c = 1 } }', { a: 1, 'a.b': 1, 'a.b.c': 1 }],
  ])('%s', (_name, text, lines) => {
    expect(parseToml(text).faults).toEqual([])
    expect(linesOf(text)).toEqual(lines)
  })
})

test('a broken header takes its settings with it instead of giving them to the table before', () => {
  const { value, faults } = parseToml('[a]\nx = 1\n[b\ny = 2\n[c]\nz = 3')
  expect(value).toEqual({ a: { x: 1 }, c: { z: 3 } })
  expect(faults.map(({ line }) => line)).toEqual([3])
})

describe('the file that init writes', () => {
  const text = configText({ config: '/x/config.toml', masterKey: '/x/master.key', data: '/x/data' })

  test('sets where data and key are, nothing else', () => {
    expect(parseToml(text).value).toMatchObject({
      data: { dir: '/x/data' },
      master_key: { source: 'file:/x/master.key' },
      server: {},
    })
    expect(linesOf(text)).not.toHaveProperty(['server.port'])
  })

  test('shows every other setting at its default, ready to be uncommented', () => {
    const { value, lines, faults } = parseToml(text.replace(/^# (\w+ = )/gm, '$1'))
    expect(faults).toEqual([])
    for (const { name } of describeConfig()) expect([...lines.keys()]).toContain(name)
    expect(value).toMatchObject({ server: { port: 8787 }, render: { models: [] } })
  })

  test('names the environment variable of each', () => {
    for (const { env } of describeConfig()) expect(text).toContain(env)
  })
})
