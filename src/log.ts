import { GatehouseError } from './errors.ts'
import { StartError } from './start-error.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** `event` is a name in snake_case, `fields` are facts with their unit in the name: `durationMs`. */
export type WriteEvent = (event: string, fields?: Record<string, unknown>) => void
export type Log = Record<LogLevel, WriteEvent>

interface LogOptions {
  level: LogLevel
  /** takes one line with its line end; standard output by default */
  write?: (line: string) => void
  /** UTC milliseconds */
  now?: () => number
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

/** One line of JSON an event: `{"time":…,"level":…,"event":…,…fields}` (OB-3). */
export function createLog({
  level,
  write = (line) => void process.stdout.write(line),
  now = Date.now,
}: LogOptions): Log {
  const writer = (of: LogLevel): WriteEvent => {
    if (LEVELS.indexOf(of) < LEVELS.indexOf(level)) return () => {}
    return (event, fields) => write(`${toLine({ time: new Date(now()).toISOString(), level: of, event, ...fields })}\n`)
  }
  return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') }
}

/**
 * What may be written about an error: name or code, message, the functions it passed. Of errors that carry a query,
 * the parameters may stand in the message, so only codes are kept. Source lines are never shown.
 */
export function describeError(error: unknown, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error)) return { thrown: typeof error }
  const { code, errno } = error as { code?: unknown; errno?: unknown }
  const isOurs = error instanceof GatehouseError || error instanceof StartError
  return {
    ...(isScalar(code) && { code }),
    ...(isScalar(errno) && { errno }),
    ...(!speaksOfData(error) && { message: error.message.slice(0, 500) }),
    ...(error.cause !== undefined && depth < 3 && { cause: describeError(error.cause, depth + 1) }),
    ...(!isOurs && depth === 0 && { stack: frames(error) }),
  }
}

const isScalar = (value: unknown) => typeof value === 'string' || typeof value === 'number'

/** Drizzle's wrapper holds the query and its parameters; PostgreSQL quotes the refused value in its message. */
function speaksOfData(error: Error): boolean {
  const { code } = error as { code?: unknown }
  return 'query' in error || 'params' in error || (typeof code === 'string' && code.startsWith('ERR_POSTGRES'))
}

/** The `at` lines alone: the text before them repeats the message. */
function frames(error: Error): string[] {
  const lines = (error.stack ?? '').split('\n').map((line) => line.trim())
  return lines.filter((line) => line.startsWith('at ')).slice(0, 8)
}

/** JSON escapes C0; DEL, C1 and the two line separators could still break a line or drive a terminal. */
function toLine(value: unknown): string {
  return serialise(value).replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function serialise(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, item) => {
      if (item instanceof Error) return describeError(item)
      return typeof item === 'bigint' ? item.toString() : item
    })
  } catch {
    // a cycle: an event that cannot be written must not end a request
    const { time, level, event } = value as Record<string, unknown>
    return JSON.stringify({ time, level, event, unwritable: true })
  }
}
