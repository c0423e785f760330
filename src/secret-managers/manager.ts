import type { ProblemCode } from '../../schema/api/errors.ts'
import type { AuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import type { Transport } from '../outbound/transport.ts'

/** What a fetch goes through, in this order; a test names the first that failed (file 04). */
export const STEPS = ['grant', 'address', 'connect', 'tls', 'login', 'read', 'parse', 'field'] as const
export type Step = (typeof STEPS)[number]

/** Why a fetch failed: the problems whose names begin so. */
export type ManagerFailure = Extract<ProblemCode, `manager_${string}` | 'machine_identity_not_granted'>

interface Details {
  /** from the manager's own JSON error fields, at most 200 characters, without any value of the auth_config; for `test` alone */
  managerMessage?: string | undefined
  retryAfterSeconds?: number | undefined
}

/**
 * A fetch that failed. The message is in our own words and never says "not found" (clients take that for our own 404).
 * It has no cause: errors of SDKs hold tokens and end in the adapter (decision 47).
 */
export class ManagerError extends Error {
  override readonly name = 'ManagerError'
  readonly step: Step
  readonly failure: ManagerFailure
  readonly managerMessage: string | undefined
  readonly retryAfterSeconds: number | undefined

  constructor(step: Step, failure: ManagerFailure, message: string, details: Details = {}) {
    super(message)
    this.step = step
    this.failure = failure
    this.managerMessage = details.managerMessage
    this.retryAfterSeconds = details.retryAfterSeconds
  }
}

/** A secret as its manager keeps it, whole; fields are picked from it per call. */
export interface FetchedSecret {
  /** text; bytes (AWS); or the data map of a Vault path */
  content: string | Uint8Array | Record<string, unknown>
  /** the manager's name for this version, where it tells */
  version: string | null
}

/** What one call to a manager is bounded by, and tells of. */
export interface ManagerCall {
  /** the one hard deadline, login included */
  signal: AbortSignal
  /** told when a step is done, with its milliseconds; a step may come more than once, its times add up */
  passed(step: Step, ms: number): void
}

/** A login at one manager, for one reference in one revision or for one test; never shared (decision 46). */
export interface ManagerClient {
  /**
   * Logs in where that is needed, and reads.
   *
   * @throws ManagerError
   */
  fetchSecret(secretPath: string, call: ManagerCall): Promise<FetchedSecret>
  /** UTC milliseconds at which the login at hand ends; null: there is none, or it does not end */
  loginExpiresAt(): number | null
  close(): void
}

export interface ManagerSurroundings {
  /** of this client alone; closed with it */
  transport: Transport
  /** where this machine's own identity comes from, CA files apart */
  settings: Config['secret_managers']
  /** for names that a manager's own log shows (AWS role sessions) */
  referenceId: string
}

/** The one port (house): what AWS, Azure and Vault have in common. `open` neither connects nor reads files. */
export interface SecretManager<Shape extends AuthConfig = AuthConfig> {
  open(authConfig: Shape, surroundings: ManagerSurroundings): ManagerClient
}
