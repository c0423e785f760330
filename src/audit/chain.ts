import { isRawJson } from '../json.ts'

// The byte layouts of the audit trail (decision 9), in one place. Every one of them is UTF-8 text whose parts are
// parted by a line feed: the parts before the last one hold none, so no two rows read alike. The README repeats them.

/** What the first row follows. */
export const GENESIS_HASH = '0'.repeat(64)

/**
 * The hash of a row: SHA-256 over `gatehouse-audit-v1`, chain id, number, hash of the row before and text of the row.
 *
 * @param previous 64 hexadecimal digits, `GENESIS_HASH` for the first row
 * @param text     the row as it is stored
 * @returns        64 hexadecimal digits
 */
export const rowHash = (chainId: string, seq: number, previous: string, text: string): string =>
  Bun.SHA256.hash(`gatehouse-audit-v1\n${chainId}\n${seq}\n${previous}\n${text}`, 'hex')

/** The end of a trail. */
export interface Head {
  chainId: string
  organisationId: string
  seq: number
  hash: string
  /** UTC milliseconds, of the last row */
  createdAt: number
  clock: number
  prunedSeq: number
  prunedHash: string
  keyId: string
}

/** What the head's signature covers. */
export const headMessage = (head: Head): string =>
  [
    'gatehouse-audit-head-v1',
    head.chainId,
    head.organisationId,
    head.seq,
    head.hash,
    head.createdAt,
    head.clock,
    head.prunedSeq,
    head.prunedHash,
    head.keyId,
  ].join('\n')

/** What an export's signature covers: where it begins, where it ends, how many rows it holds. */
export interface ExportRange {
  chainId: string
  /** hash of the row before the first one */
  previousHash: string
  lastSeq: number
  /** `previousHash` where there is no row */
  lastHash: string
  count: number
  keyId: string
}

export const exportMessage = (range: ExportRange): string =>
  [
    'gatehouse-audit-export-v1',
    range.chainId,
    range.previousHash,
    range.lastSeq,
    range.lastHash,
    range.count,
    range.keyId,
  ].join('\n')

/** What the signing key before a new one signs, so that the first public key leads to all later ones. */
export const voucherMessage = (chainId: string, vouchedBy: string, keyId: string, publicKey: string): string =>
  ['gatehouse-audit-key-v1', chainId, vouchedBy, keyId, publicKey].join('\n')

/**
 * JSON in the one form of RFC 8785: members in the order of their UTF-16 names, shortest numbers, no blanks. An integer
 * beyond ±(2⁵³−1), which that form cannot hold, becomes a string of its digits.
 *
 * @throws TypeError for what JSON cannot hold
 */
export function canonicalJson(value: unknown): string {
  if (isRawJson(value)) return `"${value.rawJSON}"`
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`
  if (typeof value === 'object' && value !== null) {
    let members = ''
    for (const name of Object.keys(value).sort()) {
      const member = (value as Record<string, unknown>)[name]
      if (member !== undefined)
        members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(member)}`
    }
    return `{${members}}`
  }
  const text = JSON.stringify(value)
  if (text === undefined) throw new TypeError(`JSON holds no ${typeof value}`)
  return text
}
