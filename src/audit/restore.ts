import type { Anchor } from './anchor.ts'
import type { Head } from './chain.ts'
import type { UnplacedRow } from './row.ts'

/** Rows that may have been written after the anchor was: the numbers of a lost end are not given again (decision 38). */
const ANCHOR_LAG_ROWS = 2000

/**
 * The row that takes the trail on from an older state of the database, and the number that its own lies beyond.
 *
 * @param seen how far the trail had come at least
 */
export function rowOfRestore(head: Head, seen: Anchor, reason: string): { row: UnplacedRow; beyond: number } {
  const row: UnplacedRow = {
    organisation_id: head.organisationId,
    workspace_id: null,
    user_type: 'cli',
    user_id: `cli:${process.getuid?.() ?? 0}`,
    accountable_user_id: null,
    resource_type: 'system',
    action: 'restore',
    resource_id: null,
    resource_name: null,
    method: null,
    uri: null,
    request_id: null,
    client_ip: null,
    request_headers: {},
    query_params: {},
    request_body: {},
    response_status_code: 200,
    details: {
      reason: reason.slice(0, 1000),
      restored: { chain_id: head.chainId, seq: head.seq, hash: head.hash },
      abandoned: seen,
    },
  }
  return { row, beyond: Math.max(head.seq, seen.seq + ANCHOR_LAG_ROWS) }
}
