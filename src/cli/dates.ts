import { realTimeOf } from '../rfc3339.ts'
import { usageError } from './failure.ts'

const PATTERN = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?Z)?$/

/**
 * The time that a flag names, in UTC milliseconds.
 *
 * @throws StartError 64 USAGE
 */
export function dateOf(flag: string, written: string): number {
  const time = PATTERN.test(written) ? realTimeOf(written) : undefined
  if (time === undefined) throw usageError(`${flag} must be a date`, 'write it as 2027-01-31 or 2027-01-31T12:00:00Z')
  return time
}
