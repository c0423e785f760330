import { and, asc, eq, inArray, or } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Reader } from '../db/database.ts'
import { type Head, voucherMessage } from './chain.ts'
import { isSignedBy, signingKeyId } from './keys.ts'
import type { AuditRow } from './row.ts'

export type StoredKey = Tables['auditKeys']['$inferSelect']

/** The signing keys of the trail, oldest first. */
export async function listKeys(read: Reader): Promise<StoredKey[]> {
  const { auditKeys: t } = read.tables
  return read.select().from(t).orderBy(asc(t.seq))
}

/**
 * Row 1 introduces the first key, each key is named by its own bytes, and each further one is vouched for by the one
 * before it.
 *
 * @returns what is wrong, with the id of the key
 */
export function keyProblem({ chainId }: Head, keys: readonly StoredKey[]): string | undefined {
  for (const [i, { id, seq, publicKey, vouchedBy, voucher }] of keys.entries()) {
    if (signingKeyId(Buffer.from(publicKey, 'base64')) !== id)
      return `the signing key ${id} is not the one that its id names`
    const before = keys[i - 1]
    if (before === undefined) {
      if (vouchedBy !== null) return `the signing key ${vouchedBy}, which vouches for ${id}, is missing`
      if (seq !== 1) return `the signing key ${id} is not the first of this trail, and the one before it is missing`
      continue
    }
    const isVouched =
      seq > before.seq &&
      vouchedBy === before.id &&
      voucher !== null &&
      isSignedBy(before.publicKey, voucherMessage(chainId, before.id, id, publicKey), voucher)
    if (!isVouched) return `the signing key ${id} is not vouched for by the one before it`
  }
  return undefined
}

/**
 * What a row says of a signing key, and the key that names the row, go together; neither is there without the other.
 *
 * @param key the stored key that names the row
 */
export function introductionProblem(
  seq: number,
  { details, resource_type, action }: AuditRow,
  key: StoredKey | undefined,
): string | undefined {
  const mayIntroduce = seq === 1 || (resource_type === 'audit_logs' && action === 'rotate_key')
  const named = (mayIntroduce || key !== undefined ? details['signing_key'] : undefined) as
    | { id?: unknown; public_key?: unknown; vouched_by?: unknown }
    | undefined
  if (key === undefined) return named && `the signing key ${named.id}, which it introduces, is missing`
  if (named === undefined) return `it does not introduce the signing key ${key.id}, which names it`
  const isSame = named.id === key.id && named.public_key === key.publicKey
  const isSameVoucher = (named.vouched_by ?? null) === key.vouchedBy
  return isSame && isSameVoucher ? undefined : `the signing key ${named.id} is not stored as it introduces it`
}

/** What is wrong with the keys that an export hands to its reader, as far as the rows that are left tell. */
export async function storedKeyProblem(read: Reader, head: Head): Promise<string | undefined> {
  const keys = await listKeys(read)
  const { auditEvents: t } = read.tables
  const introducing = or(
    inArray(t.seq, [1, ...keys.map(({ seq }) => seq)]),
    and(eq(t.resourceType, 'audit_logs'), eq(t.action, 'rotate_key')),
  )
  const rows = await read.select({ seq: t.seq, text: t.text }).from(t).where(introducing).orderBy(asc(t.seq))
  for (const { seq, text } of rows) {
    const key = keys.find((each) => each.seq === seq)
    const problem = introductionProblem(seq, JSON.parse(text) as AuditRow, key)
    if (problem !== undefined) return `row ${seq}: ${problem}`
  }
  return keys.length === 0 ? 'the public key of the trail is missing' : keyProblem(head, keys)
}
