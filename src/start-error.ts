/** Exit codes (sysexits): what a supervisor may branch on. 64, 65, 77 and 78 are not worth a restart. */
export const EXIT = {
  ok: 0,
  /** nothing went wrong, and the answer is no: a test that failed, a check that found something */
  no: 1,
  usage: 64,
  data: 65,
  unavailable: 69,
  internal: 70,
  os: 71,
  cannotCreate: 73,
  io: 74,
  drainTimedOut: 75,
  permission: 77,
  config: 78,
} as const

/**
 * A reason not to start, or for a command to end: printed as the one line `code=… msg=… fix=…`.
 *
 * @param code     upper-case, stable: `DATA_DIR_LOCKED`
 * @param exitCode one of `EXIT`
 * @param message  what happened and where; never a secret
 * @param fix      what the operator does next
 * @param complaints each fault on its own, where `message` joins several
 */
export class StartError extends Error {
  readonly code: string
  readonly exitCode: number
  readonly fix: string
  readonly complaints: readonly string[]

  constructor(code: string, exitCode: number, message: string, fix: string, complaints: readonly string[] = [message]) {
    super(message)
    this.code = code
    this.exitCode = exitCode
    this.fix = fix
    this.complaints = complaints
  }
}
