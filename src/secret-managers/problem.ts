import { GatehouseError } from '../errors.ts'
import type { ManagerError } from './manager.ts'

/** What clients take for our own 404, wherever in an error it stands (decision 3): a host or a path may hold it. */
const TAKEN_FOR_GONE = /404|not found/i

/** A failed fetch as its caller is told of it: our own words, never the manager's (decision 47). */
export function problemOf({ failure, message, step, retryAfterSeconds }: ManagerError): GatehouseError {
  const told = TAKEN_FOR_GONE.test(message)
    ? 'the secret manager could not be used; a test of the secret reference says why'
    : message
  return new GatehouseError(failure, told, { step, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) })
}
