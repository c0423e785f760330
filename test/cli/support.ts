import type { Io } from '../../src/cli/command.ts'
import { runCli } from '../../src/cli/run.ts'

export interface Ran {
  exitCode: number
  out: string
  err: string
}

interface World {
  env?: Record<string, string>
  isTerminal?: boolean
  stopRequested?: Io['stopRequested']
}

/** Runs one command line in this process and keeps what it said. */
export async function gatehouse(
  argv: string[],
  { env = {}, isTerminal = false, stopRequested }: World = {},
): Promise<Ran> {
  const said = { out: '', err: '' }
  const io: Io = {
    out(text) {
      said.out += text
    },
    err(text) {
      said.err += text
    },
    isTerminal,
    env,
    stopRequested: stopRequested ?? (() => new Promise(() => {})),
  }
  return { exitCode: await runCli(argv, io), ...said }
}

/** The one line that every failure prints. */
export const FAILURE_LINE = /^code=[A-Z_]+ msg="(?:[^"\\]|\\.)*" fix="(?:[^"\\]|\\.)*"\n$/
