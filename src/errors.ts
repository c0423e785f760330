import type { ProblemCode } from '../schema/api/errors.ts'

/** One refused field: `path` in dotted form (`messages[0].role`), '' for the whole body. Never holds the refused value. */
export interface Complaint {
  path: string
  message: string
}

interface Details {
  /** every complaint of a validation, in the order of the contract */
  complaints?: Complaint[]
  retryAfterSeconds?: number
  /** further header fields of the answer */
  headers?: Record<string, string>
  /** the methods a path takes, for `Allow` */
  allow?: string[]
  /** at which step a secret manager failed; for the audit trail */
  step?: string
  cause?: unknown
}

/**
 * A failure with a meaning. Services throw these; `http/problems.ts` alone turns them into statuses.
 * The message goes to the caller as it is: no secrets, no foreign ids, and neither "not found" nor "404"
 * unless the code is `not_found` (clients search the text of errors for both).
 */
export class GatehouseError extends Error {
  override readonly name = 'GatehouseError'
  readonly code: ProblemCode
  readonly complaints: Complaint[]
  readonly retryAfterSeconds: number | undefined
  readonly headers: Record<string, string>
  readonly allow: string[] | undefined
  readonly step: string | undefined

  constructor(code: ProblemCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.complaints = details.complaints ?? []
    this.retryAfterSeconds = details.retryAfterSeconds
    this.headers = { ...details.headers }
    this.allow = details.allow
    this.step = details.step
  }
}

/** A refused input with all its complaints; the first one is the message. */
export function invalid(complaints: Complaint[]): GatehouseError {
  const [first] = complaints
  const message =
    first === undefined ? 'invalid request' : first.path === '' ? first.message : `${first.path}: ${first.message}`
  return new GatehouseError('invalid', message, { complaints })
}

/**
 * A name or index as it may stand in a path. Names that are no plain names may be secrets in the wrong place, and some clients
 * take the digits 404 anywhere in an error for "gone" (decision 3).
 */
export const shown = (key: string): string => (isPlainName(key) && !key.includes('404') ? key : '*')

/** A few words and digits, or digits alone: what is random (an access key, an id) looks different. */
function isPlainName(key: string): boolean {
  if (!/^[\w-]{1,64}$/.test(key)) return false
  const words = key.replace(/([a-z\d])([A-Z])/g, '$1-$2').split(/[_-]/)
  const digits = key.replace(/\D/g, '').length
  return (digits <= 3 && words.length <= 8 && words.every(({ length }) => length <= 16)) || digits === key.length
}

/** The same for a slug that is stored, and therefore no secret. */
export const shownSlug = (slug: string): string => (slug.includes('404') ? '*' : slug)

/** A refused input with one complaint. */
export const invalidField = (path: string, message: string): GatehouseError => invalid([{ path, message }])

/** `kind` is the word users know: prompt, partial, label. The id is not echoed (it may contain anything). */
export const notFound = (kind: string): GatehouseError => new GatehouseError('not_found', `${kind} not found`)

export const conflict = (message: string): GatehouseError => new GatehouseError('conflict', message)
