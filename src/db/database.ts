import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import type { Tables } from '../../schema/db/tables.ts'

type Drizzle = BunSQLiteDatabase<Record<string, never>>

/** Read access to committed data. The types are SQLite's; PostgreSQL's database is cast to them once, in `postgres.ts`. */
export type Reader = Pick<Drizzle, 'select' | 'selectDistinct'> & {
  tables: Tables
  /** runs the text of a query as drizzle built it; only for `compiled.ts` */
  run(text: string, values: unknown[]): Promise<unknown[][]>
}

/**
 * What the caches must look at again after a commit, on every node. `*` (with an empty id): everything, as after changes
 * that this node missed and that are no longer kept.
 */
export type ChangeKind =
  | 'api_key'
  | 'keyring'
  | 'label'
  | 'organisation'
  | 'partial'
  | 'prompt'
  | 'secret_reference'
  | 'workspace'
  | 'user'
  | '*'
export interface Change {
  kind: ChangeKind
  id: string
}

/** The audit row that a change will leave; the closure may fill in what it learns (names, before and after). */
export interface AuditDraft {
  /** `prompts.create`: scope family and verb of file 00 section 8 */
  action: string
  workspaceId?: string | null
  resourceId?: string
  resourceName?: string
  /** of the answer, where it is not 200: something that was done, and failed */
  status?: number
  /** JSON-able; what is named like a secret is replaced by a fingerprint (`audit/mask.ts`) */
  details?: Record<string, unknown>
}

/** Write access inside one transaction; dead once the transaction has ended. */
export type Tx = Reader &
  Pick<Drizzle, 'insert' | 'update' | 'delete'> & {
    /** UTC milliseconds: the one time of this change, in its rows and in its audit row */
    now: number
    event: AuditDraft
    /**
     * What was read in this transaction and holds until its next change: on SQLite the changes of one commit share it,
     * as long as they touch prompts, partials and labels alone. It never outlives the transaction.
     */
    seen: Map<object, unknown>
    /** the caches reload this object after the commit and before the answer */
    changed(kind: ChangeKind, id: string): void
    /**
     * Takes this change's place in the order of commits and resolves to its revision; the same one when called again.
     * No other change commits from here on, so what is read next is the head of a sequence. `transaction` calls it
     * last if `work` has not.
     */
    revise(): Promise<number>
  }

export interface Database {
  dialect: 'sqlite' | 'postgres'
  read: Reader
  /**
   * Runs `work` in a transaction and answers only after a durable commit. Group commit on SQLite, READ COMMITTED with
   * up to 5 reruns on PostgreSQL (decision 2), so `work` has no effect outside `tx`. `work` gets a copy of `event`.
   */
  transaction<T>(event: AuditDraft, work: (tx: Tx) => Promise<T>): Promise<T>
  /** Called with the changes of each commit, in commit order, before the writers are answered. One listener. */
  onCommitted(listener: (changes: Change[]) => Promise<void>): void
  /**
   * SQLite alone, where commits are taken in groups: `hook` runs last in each group's transaction, once, however many
   * changes it holds; none of them is stored if it throws. One hook.
   */
  beforeCommit?(hook: (tx: Tx) => Promise<void>): void
  /** resolves when a probe transaction went through; throws `storage_unavailable` otherwise */
  probe(): Promise<void>
  /** milliseconds since this node last knew of every commit (decision 13); 0 on SQLite, which has one node */
  staleMs(): number
  /** finishes what is queued, then lets go of files, locks and connections */
  close(): Promise<void>
}
