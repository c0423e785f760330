import { desc } from 'drizzle-orm'
import { auditKeys } from '../../src/audit/keys.ts'
import type { AuditRow } from '../../src/audit/row.ts'
import type { Reader } from '../../src/db/database.ts'
import { Redacted } from '../../src/redacted.ts'

/** For trails over a bare database, which has no keyring. */
export const TEST_AUDIT_KEYS = auditKeys({
  auditSigning: new Redacted(Buffer.alloc(32, 1)),
  fingerprint: new Redacted(Buffer.alloc(32, 2)),
})

/** What the rows of the trail say, newest first, each with its number. */
export async function auditTrail(read: Reader): Promise<(AuditRow & { seq: number })[]> {
  const t = read.tables.auditEvents
  const rows = await read.select({ seq: t.seq, text: t.text }).from(t).orderBy(desc(t.seq))
  return rows.map(({ seq, text }) => ({ seq, ...JSON.parse(text) }))
}

/** `prompts.create` */
export const doneBy = ({ resource_type, action }: AuditRow): string => `${resource_type}.${action}`
