import { describe, expect, test } from 'bun:test'
import { GatehouseError } from '../../src/errors.ts'
import { createLog, describeError, type LogLevel } from '../../src/log.ts'
import { Redacted } from '../../src/redacted.ts'

function lines(level: LogLevel, write: (log: ReturnType<typeof createLog>) => void): string[] {
  const written: string[] = []
  write(createLog({ level, write: (line) => void written.push(line), now: () => 0 }))
  return written
}

describe('an event is one line of JSON', () => {
  test('with time, level and name first', () => {
    expect(lines('info', (log) => log.info('listening', { url: 'http://x', n: 1n }))).toEqual([
      '{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"listening","url":"http://x","n":"1"}\n',
    ])
  })

  test('whatever it holds: nothing breaks the line or drives a terminal', () => {
    const nasty = 'a\nb\r\u2028\u2029\u001b[31m\u007f\u0085\u009b\0\ud800'
    const [line = ''] = lines('info', (log) => log.info('x', { [nasty]: nasty }))
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    expect(JSON.parse(line)[nasty]).toBe(nasty)
  })

  test('even where a field cannot be written', () => {
    const cycle: Record<string, unknown> = {}
    cycle['cycle'] = cycle
    expect(JSON.parse(lines('info', (log) => log.info('x', cycle))[0]!)).toMatchObject({ event: 'x', unwritable: true })
  })

  test.each([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ] as const)('level %s lets %d of four through', (level, count) => {
    const all = (log: ReturnType<typeof createLog>) =>
      (['debug', 'info', 'warn', 'error'] as const).forEach((each) => void log[each]('x'))
    expect(lines(level, all)).toHaveLength(count)
  })
})

describe('an error in the log', () => {
  test.each([
    [
      "drizzle's wrapper",
      Object.assign(new Error('Failed query: … params: hunter2'), { query: 'insert', params: ['hunter2'] }),
    ],
    [
      'PostgreSQL',
      Object.assign(new Error('invalid input syntax: "hunter2"'), {
        code: 'ERR_POSTGRES_SERVER_ERROR',
        errno: '22P02',
        detail: 'hunter2',
      }),
    ],
    ['a thrown string', 'hunter2'],
    ['a thrown object', { password: 'hunter2' }],
  ])('shows no value of %s', (_name, error) => {
    const outer = new Error('outer', { cause: error })
    expect(JSON.stringify([describeError(error), describeError(outer)])).not.toContain('hunter2')
  })

  test('keeps the codes that tell the cause', () => {
    const cause = Object.assign(new Error('x'), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '23505' })
    expect(describeError(new GatehouseError('storage_unavailable', 'no', { cause }))).toMatchObject({
      code: 'storage_unavailable',
      message: 'no',
      cause: { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '23505' },
    })
  })

  test('has function names, but no line of source', () => {
    const secret = () => new Error('told') // hunter2 stands in this line of source
    const { stack, message } = describeError(secret()) as { stack: string[]; message: string }
    expect(message).toBe('told')
    expect(stack.length).toBeGreaterThan(0)
    expect(JSON.stringify(stack)).not.toContain('hunter2')
    for (const frame of stack) expect(frame).toStartWith('at ')
  })

  test('is described wherever it stands among the fields', () => {
    const [line = ''] = lines('info', (log) => log.error('x', { deep: { error: new TypeError('why') } }))
    expect(JSON.parse(line).deep.error).toMatchObject({ message: 'why' })
  })
})

test('a redacted secret shows nowhere but where it is asked for', () => {
  const secret = new Redacted('hunter2')
  const shown = [
    `${secret}`,
    String(secret),
    secret + '',
    JSON.stringify({ secret }),
    Bun.inspect({ secret }),
    Object.keys(secret).join(),
  ]
  for (const text of shown) expect(text).not.toContain('hunter2')
  expect(`${secret}`).toBe('[redacted]')
  expect(Bun.inspect(secret)).toContain('[redacted]')
  expect(secret.reveal()).toBe('hunter2')
})
