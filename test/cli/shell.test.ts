import { describe, expect, test } from 'bun:test'
import { COMMANDS } from '../../src/cli/commands.ts'
import { failureLine, failureOf } from '../../src/cli/failure.ts'
import { describeConfig } from '../../src/config/describe.ts'
import { GatehouseError } from '../../src/errors.ts'
import { FAILURE_LINE, gatehouse } from './support.ts'

describe('a command line that cannot be run ends with 64 and one line that says what to write', () => {
  test.each([
    [[], 'gatehouse --help'],
    [['srve'], 'gatehouse serve'],
    [['config'], 'config check, config show'],
    [['config', 'chekc'], 'gatehouse config check'],
    [['--config', 'x'], 'gatehouse --help'],
    [['version', '--jsno'], '--json'],
    [['version', '--json', '--json'], 'give it once'],
    [['version', '--json=yes'], '--json alone'],
    [['version', '-j'], '--json'],
    [['version', 'now'], 'gatehouse version'],
    [['version', '--config'], '--config FILE'],
    [['version', '--config='], '--config FILE'],
    [['version', '--constructor'], '--config'],
    [['keys', 'revoke'], 'gatehouse keys revoke ID'],
    [['keys', 'revoke', 'a', 'b'], 'gatehouse keys revoke ID'],
    [['bootstrap', '--email', 'a@b.example'], '--org NAME'],
    [['bootstrap', '--org', 'x', '--email', 'hunter2'], '--email ADDRESS'],
  ])('%p', async (argv, fix) => {
    const { exitCode, out, err } = await gatehouse(argv)
    expect(exitCode).toBe(64)
    expect(out).toBe('')
    expect(err).toMatch(FAILURE_LINE)
    expect(JSON.parse(/fix=(".*")\n$/.exec(err)?.[1] ?? '""')).toContain(fix)
  })
})

describe('secrets are no arguments (CL-4), and are not repeated where somebody tries', () => {
  test.each([
    'keys create --admin --secret hunter2',
    'keys create --admin --key=hunter2',
    'bootstrap --password=hunter2',
    'version hunter2',
    'hunter2',
    'keys create --admin --name n --scopes all --expires hunter2',
  ])('%s', async (line) => {
    const { exitCode, err } = await gatehouse(line.split(' '))
    expect(exitCode).toBe(64)
    expect(err).not.toContain('hunter2')
  })
})

describe('keys create says which kind of key it needs', () => {
  const base = ['keys', 'create', '--name', 'n', '--scopes', 'all', '--config', '/nowhere']
  test.each([
    [['--admin'], 78],
    [['--workspace', 'w', '--service'], 78],
    [['--workspace', 'w', '--user', 'u'], 78],
    [[], 64],
    [['--admin', '--system'], 64],
    [['--admin', '--workspace', 'w'], 64],
    [['--service'], 64],
    [['--workspace', 'w'], 64],
    [['--workspace', 'w', '--service', '--user', 'u'], 64],
    [['--system'], 64],
    [['--admin', '--expires', '2020-01-01'], 64],
    [['--admin', '--expires', '2999-02-31T00:00:00+01:00'], 64],
    [['--admin', '--expires', '2999-02-30'], 64],
  ])('%p ends with %d', async (flags, exitCode) => {
    // 78: the command line was fine, and the configuration was the next thing that it looked for
    expect((await gatehouse([...base, ...flags])).exitCode).toBe(exitCode)
  })
})

describe('help', () => {
  test('lists every command, and each explains every flag of its own', async () => {
    const { out, exitCode } = await gatehouse(['--help'])
    expect(exitCode).toBe(0)
    for (const command of COMMANDS) {
      expect(out).toContain(`  ${command.name} `)
      const help = await gatehouse([...command.name.split(' '), '--help'])
      expect(help).toMatchObject({ exitCode: 0, err: '' })
      for (const flag of [...Object.keys(command.flags), 'config', 'json', 'help'])
        expect(help.out).toContain(`  --${flag} `)
    }
  })

  test('of serve names every setting with its variable and default', async () => {
    const { out } = await gatehouse(['serve', '--help'])
    for (const { name, env, default: value } of describeConfig()) expect(out).toContain(`${name}; ${env}; ${value}`)
  })
})

test('version is on standard output, as text or JSON', async () => {
  expect((await gatehouse(['version'])).out).toMatch(/^gatehouse \d+\.\d+\.\d+\n$/)
  expect((await gatehouse(['--version'])).out).toMatch(/^gatehouse \d/)
  expect(JSON.parse((await gatehouse(['version', '--json'])).out)).toMatchObject({ bun: Bun.version })
})

test('a socket handed over by systemd would be ignored by Bun: refused with 78', async () => {
  expect(await gatehouse(['serve'], { env: { LISTEN_FDS: '1' } })).toMatchObject({ exitCode: 78 })
})

describe('a failure is one line, whatever its message holds', () => {
  test.each(['two\nlines', 'a "quote" and \\', '\u001b[31mred\u0007', '\u2028 \u0085 \u007f'])('%p', (message) => {
    const line = failureLine(failureOf(new GatehouseError('conflict', message)))
    expect(line).toMatch(FAILURE_LINE)
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/)
    expect(JSON.parse(/msg=(".*") fix=/.exec(line)?.[1] ?? '')).toBe(message)
  })

  test('a database error shows no parameters', () => {
    const error = Object.assign(new Error('Failed query: insert … params: hunter2'), {
      query: 'insert',
      params: ['hunter2'],
    })
    expect(failureLine(failureOf(error))).not.toContain('hunter2')
    expect(failureOf(error)).toMatchObject({ code: 'INTERNAL', exitCode: 70 })
  })
})
