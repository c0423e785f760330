import { EXIT } from '../start-error.ts'
import type { Io } from './command.ts'
import { COMMANDS } from './commands.ts'
import { failureLine, failureOf, usageError } from './failure.ts'
import { helpOf, overview } from './help.ts'
import { findCommand, parseCall } from './parse.ts'

/**
 * Runs one command line.
 *
 * @param argv what follows the program's name
 * @returns the exit code; a failure has printed its one line on `io.err`
 */
export async function runCli(argv: string[], io: Io): Promise<number> {
  try {
    const [first] = argv
    if (first === '--help' || first === 'help') {
      io.out(overview(COMMANDS))
      return EXIT.ok
    }
    if (first === undefined) throw usageError('no command is given', 'gatehouse --help lists the commands')
    const { command, rest } = findCommand(first === '--version' ? ['version'] : argv, COMMANDS)
    const call = parseCall(command, rest)
    if (call.flags['help']) io.out(helpOf(command))
    else return (await command.run({ ...call, io })) ?? EXIT.ok
    return EXIT.ok
  } catch (error) {
    const failure = failureOf(error)
    io.err(failureLine(failure))
    return failure.exitCode
  }
}
