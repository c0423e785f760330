import type { Permission } from '../../schema/api/permissions.ts'
import type { Tx } from '../db/database.ts'
import type { Limiter } from './rate-limit.ts'
import type { Rank } from './roles.ts'

export type KeyType = 'organisation-service' | 'workspace-service' | 'workspace-user' | 'system'

/** Whoever the API key proves. Built once a key, when it is loaded, and shared by its requests. */
export interface Caller {
  keyId: string
  type: KeyType
  organisationId: string
  /** null for keys of the whole organisation */
  workspaceId: string | null
  /** the person who answers for what the key does (decision 29) */
  accountableUserId: string
  /** the person a user key acts as */
  userId: string | null
  /** what it may do now, not only what its scopes say; many callers share one set */
  permissions: ReadonlySet<Permission>
  rank: Rank
  /** of the key: UTC milliseconds, or null */
  expiresAt: number | null
  /** when this secret is refused: the key's expiry, or the end of its transition window or of its overdue rotation */
  endsAt: number | null
  /** the secret before the last rotation was sent */
  isPreviousSecret: boolean
  /** undefined: the key has no request limits; both secrets of a key count against one */
  limiter: Limiter | undefined
  /** keyed digest of the secret that was sent: a key has two while it is rotated */
  digest: string
}

/** Where a request came from, for the audit row and the log. */
export interface RequestInfo {
  requestId: string
  method: string
  /** path and query, as received */
  uri: string
  clientIp: string | null
  /** those that an audit row may hold, auth headers masked */
  headers?: Record<string, string>
  /** as it was read */
  body?: unknown
}

/** A key that acts over HTTP. */
export interface KeyActor {
  kind: 'key'
  caller: Caller
  /** what the route asks for, one of them, or nothing; asked for again inside the change (decision 13) */
  permissions: readonly Permission[]
  request: RequestInfo
  /** the client sent an Idempotency-Key: the change is made through this (decision 8) */
  once?: { run<T>(tx: Tx, work: (tx: Tx) => Promise<T>): Promise<T> }
}

/** A person without a key, whom a token has proved: who accepts an invite (decision 36). */
export interface PersonActor {
  kind: 'person'
  userId: string
  organisationId: string
  request: RequestInfo
}

/** The installation itself, whose clock makes something happen. */
export interface SystemActor {
  kind: 'system'
  organisationId: string
}

/**
 * Who changes something: a key or a person over HTTP, a person at the command line (`cli:<uid>`), or nobody but time.
 */
export type Actor =
  | KeyActor
  | PersonActor
  | SystemActor
  | { kind: 'cli'; uid: number; organisationId: string; command: string }
