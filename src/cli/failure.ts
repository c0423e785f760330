import type { ProblemCode } from '../../schema/api/errors.ts'
import { GatehouseError } from '../errors.ts'
import { describeError } from '../log.ts'
import { EXIT, StartError } from '../start-error.ts'

/** How a command ends when it fails: the parts of its one line, and the exit code. */
export interface Failure {
  code: string
  exitCode: number
  message: string
  fix: string
}

const EXIT_OF_PROBLEM: Partial<Record<ProblemCode, number>> = {
  invalid: EXIT.usage,
  not_found: EXIT.data,
  conflict: EXIT.data,
  not_initialised: EXIT.data,
  unauthenticated: EXIT.permission,
  forbidden: EXIT.permission,
  storage_unavailable: EXIT.io,
  audit_unavailable: EXIT.io,
  overloaded: EXIT.unavailable,
  rate_limited: EXIT.unavailable,
}

const FIX_OF_PROBLEM: Partial<Record<ProblemCode, string>> = {
  invalid: 'correct the command; --help shows its flags',
  not_found: 'check the id, slug or e-mail address given; gatehouse keys list shows the API keys',
  not_initialised: 'run gatehouse bootstrap --org NAME --email ADDRESS',
  storage_unavailable: 'check free space and permissions of data.dir',
  audit_unavailable: 'see what the log says of audit_sink_down, then try again',
}

export function failureOf(error: unknown): Failure {
  if (error instanceof StartError)
    return { code: error.code, exitCode: error.exitCode, message: error.message, fix: error.fix }
  if (error instanceof GatehouseError) {
    const exitCode = EXIT_OF_PROBLEM[error.code] ?? EXIT.internal
    return { code: error.code.toUpperCase(), exitCode, message: error.message, fix: FIX_OF_PROBLEM[error.code] ?? '' }
  }
  const { message, code } = describeError(error)
  return {
    code: 'INTERNAL',
    exitCode: EXIT.internal,
    message: String(message ?? code ?? 'unexpected error'),
    fix: 'report this as a fault of gatehouse',
  }
}

/** The one line of every failure: `code=<CODE> msg="…" fix="…"`. */
export const failureLine = ({ code, message, fix }: Failure): string =>
  `code=${code} msg=${quoted(message)} fix=${quoted(fix)}\n`

/** In quotes, with everything escaped that could end the line or drive a terminal. */
function quoted(text: string): string {
  const escaped = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(text).replace(/[\u007f-\u009f\u2028\u2029]/g, escaped)
}

/** A command line that cannot be run: exit 64. Values are never repeated, they may be secrets. */
export const usageError = (message: string, fix: string): StartError =>
  new StartError('USAGE', EXIT.usage, message, fix)
