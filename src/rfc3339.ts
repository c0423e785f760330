const PATTERN = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$/

/** The UTC milliseconds of a time that somebody wrote with a zone (RFC 3339); undefined: it is none. */
export function timeOf(written: string): number | undefined {
  const [, day] = PATTERN.exec(written) ?? []
  const time = day === undefined ? Number.NaN : Date.parse(written)
  // February 30th is read as March 2nd by some.
  if (Number.isNaN(time) || !new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day ?? '')) return undefined
  return time
}
