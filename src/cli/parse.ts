import { parseArgs } from 'node:util'
import { nearest } from '../http/complaints.ts'
import { type Call, COMMON_FLAGS, type Command, type Flags } from './command.ts'
import { usageError } from './failure.ts'

/** Finds the command that `argv` begins with; of `keys create …` both words belong to it. */
export function findCommand(
  argv: readonly string[],
  commands: readonly Command[],
): { command: Command; rest: string[] } {
  const words = argv.slice(0, 2).filter((word) => !word.startsWith('-'))
  for (let count = words.length; count > 0; count--) {
    const name = words.slice(0, count).join(' ')
    const command = commands.find((each) => each.name === name)
    if (command !== undefined) return { command, rest: argv.slice(count) }
  }
  throw unknownCommand(words, commands)
}

function unknownCommand(words: readonly string[], commands: readonly Command[]): Error {
  const names = commands.map(({ name }) => name)
  const group = names.filter((name) => name.startsWith(`${words[0]} `))
  if (words.length === 1 && group.length > 0) {
    return usageError('this command needs a second word', `use one of: ${group.join(', ')}`)
  }
  const meant = nearest(words.join(' '), names) ?? nearest(words[0] ?? '', names)
  const hint = meant === undefined ? 'gatehouse --help lists the commands' : `did you mean "gatehouse ${meant}"?`
  return usageError('unknown command', hint)
}

/**
 * Reads the flags and positionals of a command.
 *
 * @throws StartError 64 for an unknown or repeated flag, a missing or surplus value, or a wrong number of positionals;
 *                    only names of flags are repeated in it, never values (CL-4)
 */
export function parseCall(command: Command, args: string[]): Omit<Call, 'io'> {
  const known: Flags = { ...COMMON_FLAGS, ...command.flags }
  const options = Object.fromEntries(
    Object.entries(known).map(([name, flag]) => [
      name,
      { type: flag.value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  )
  const { tokens } = parseArgs({ args, options, strict: false, tokens: true, allowPositionals: true })
  const values: Record<string, string | boolean | undefined> = Object.fromEntries(
    Object.entries(known).map(([name, flag]) => [name, flag.value === undefined ? false : undefined]),
  )
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const flag = Object.hasOwn(known, token.name) ? known[token.name] : undefined
    if (flag === undefined || !token.rawName.startsWith('--')) throw unknownFlag(token.rawName, Object.keys(known))
    if (values[token.name]) throw usageError(`--${token.name} is given twice`, 'give it once')
    if (flag.value === undefined && token.value !== undefined)
      throw usageError(`--${token.name} takes no value`, `write --${token.name} alone`)
    if (flag.value !== undefined && !token.value)
      throw usageError(`--${token.name} needs a value`, `write --${token.name} ${flag.value}`)
    values[token.name] = token.value ?? true
  }
  if (!values['help']) checkPositionals(command, positionals)
  return { flags: values as Call['flags'], positionals }
}

function unknownFlag(written: string, known: string[]): Error {
  const meant = nearest(written.replace(/^-+/, ''), known)
  // what is no word may be a secret
  return usageError(
    /^--?[a-z-]{1,30}$/.test(written) ? `unknown flag ${written}` : 'unknown flag',
    meant === undefined ? `use one of: ${known.map((name) => `--${name}`).join(', ')}` : `did you mean --${meant}?`,
  )
}

function checkPositionals({ name, positionals = [] }: Command, given: string[]): void {
  if (given.length === positionals.length) return
  const usage = ['gatehouse', name, ...positionals].join(' ')
  throw usageError(
    given.length < positionals.length ? `${positionals[given.length]} is missing` : 'too many words',
    `write ${usage}`,
  )
}
