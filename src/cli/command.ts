import type { Environment } from '../config/references.ts'

/** One flag; `value` is the word for its value in --help (`FILE`), absent for switches. */
export interface Flag {
  value?: string
  description: string
}
export type Flags = Record<string, Flag>

/** What the command line held: a text for flags with a value, a boolean for switches. */
export type Values<F extends Flags> = { [K in keyof F]: F[K] extends { value: string } ? string | undefined : boolean }

/** Where a command reads from and writes to. Data goes to `out`, everything said to people to `err`. */
export interface Io {
  out(text: string): void
  err(text: string): void
  /** whether standard output is a terminal: only there are keys shown */
  isTerminal: boolean
  env: Environment
  /** resolves with the number of the signal (1 the first, 2 the second) that asks us to stop */
  stopRequested(count: 1 | 2): Promise<void>
}

/** What every command takes. */
export const COMMON_FLAGS = {
  config: {
    value: 'FILE',
    description: 'configuration file (default: $GATEHOUSE_CONFIG, else /etc/gatehouse/config.toml)',
  },
  json: { description: 'print data as JSON' },
  help: { description: 'show this help' },
} as const satisfies Flags

export interface Call<F extends Flags = Flags> {
  flags: Values<F & typeof COMMON_FLAGS>
  positionals: string[]
  io: Io
}

/** One command of the program; `commands.ts` lists them, and parsing, --help and errors come from that list alone. */
export interface Command<F extends Flags = Flags> {
  /** as typed: `keys create` */
  name: string
  summary: string
  /** further lines of --help */
  details?: string
  flags: F
  /** names of the words that must follow, such as `ID` */
  positionals?: readonly string[]
  /** whether --help ends with the table of settings */
  showsSettings?: boolean
  /** @returns the exit code; nothing means 0 */
  run(call: Call<F>): Promise<number | undefined>
}

/** Ties the type of `call.flags` to the command's own flags. */
export const defineCommand = <const F extends Flags>(command: Command<F>): Command => command as unknown as Command
