import type { Permission } from '../../schema/api/permissions.ts'

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
  permissions: ReadonlySet<Permission>
  /** UTC milliseconds, or null */
  expiresAt: number | null
}

/** Where a request came from, for the audit row and the log. */
export interface RequestInfo {
  requestId: string
  method: string
  /** path and query, as received */
  uri: string
  clientIp: string | null
}

/** A key that acts over HTTP. */
export interface KeyActor {
  kind: 'key'
  caller: Caller
  request: RequestInfo
}

/** Who changes something: a key over HTTP, or a person at the command line (`cli:<uid>`). */
export type Actor = KeyActor | { kind: 'cli'; uid: number; organisationId: string; command: string }
