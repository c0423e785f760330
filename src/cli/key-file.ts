import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { EXIT, StartError } from '../start-error.ts'
import type { Io } from './command.ts'
import { usageError } from './failure.ts'

/**
 * Runs `make`, whose answer holds a clear key, and hands the answer to the one place that may see it: a new 0600 JSON
 * file, or the terminal. The place is secured first, so that no key is made and then lost (FR-1).
 *
 * @param show prints the answer for people
 * @throws StartError 64 USAGE without a file and a terminal, 73 CANNOT_CREATE when the file exists or cannot be made
 */
export async function deliverKey<T>(
  io: Io,
  flags: { output: string | undefined; json: boolean },
  make: () => Promise<T>,
  show: (made: T) => string,
): Promise<void> {
  const { output } = flags
  if (output === undefined) {
    if (!io.isTerminal)
      throw usageError('standard output is no terminal, and a key is shown on a terminal only', 'add --output FILE')
    const made = await make()
    io.out(flags.json ? `${JSON.stringify(made)}\n` : show(made))
    return
  }
  const fd = create(output)
  try {
    const made = await make()
    writeSync(fd, `${JSON.stringify(made)}\n`)
    fsyncSync(fd)
  } catch (error) {
    unlinkSync(output)
    throw error
  } finally {
    closeSync(fd)
  }
  io.err(`written to ${output}\n`)
}

function create(path: string): number {
  try {
    return openSync(path, 'wx', 0o600)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StartError(
      'CANNOT_CREATE',
      EXIT.cannotCreate,
      `the file of --output cannot be created (${code})`,
      'name a new file in a folder that this user may write to',
    )
  }
}
