import { describeConfig } from '../config/describe.ts'
import { COMMON_FLAGS, type Command, type Flags } from './command.ts'

/** `gatehouse --help`. */
export function overview(commands: readonly Command[]): string {
  return [
    'Usage: gatehouse COMMAND [flags]',
    '',
    'Commands:',
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    '',
    'Every command takes:',
    ...flagLines(COMMON_FLAGS),
    '',
    'Exit codes: 0 ok, 1 a test or check that says no, 64 usage, 65 data, 69 unavailable, 70 internal, 73 cannot create, 74 I/O, 75 drain timed out, 77 permissions, 78 configuration.',
    '',
  ].join('\n')
}

/** `gatehouse COMMAND --help`. */
export function helpOf(command: Command): string {
  const usage = ['Usage: gatehouse', command.name, ...(command.positionals ?? []), '[flags]'].join(' ')
  const lines = [usage, '', command.summary]
  if (command.details !== undefined) lines.push('', command.details)
  lines.push('', 'Flags:', ...flagLines({ ...command.flags, ...COMMON_FLAGS }))
  if (command.showsSettings)
    lines.push('', 'Settings (configuration file; environment variable; default):', ...settings())
  return `${lines.join('\n')}\n`
}

const flagLines = (flags: Flags): string[] =>
  columns(
    Object.entries(flags).map(([name, { value, description }]) => [
      value === undefined ? `--${name}` : `--${name} ${value}`,
      description,
    ]),
  )

const settings = (): string[] =>
  describeConfig().flatMap(({ name, env, type, default: value, description }) => [
    `  ${name}; ${env}; ${value}`,
    `      ${description} (${type})`,
  ])

function columns(rows: [string, string][]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
