const PATTERN = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

/** The UTC milliseconds of a time that somebody wrote with a zone (RFC 3339); undefined: it is none. */
export const timeOf = (written: string): number | undefined => (PATTERN.test(written) ? realTimeOf(written) : undefined)

/**
 * The UTC milliseconds of a time whose form the caller has looked at, or of the beginning of a day; undefined for one
 * that does not exist: February 30th is read as March 2nd by some.
 */
export function realTimeOf(written: string): number | undefined {
  const time = Date.parse(written)
  const day = written.slice(0, 10)
  return Number.isNaN(time) || !new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day) ? undefined : time
}
