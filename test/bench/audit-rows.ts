import type { Database as Connection } from 'bun:sqlite'
import { getTableConfig } from 'drizzle-orm/sqlite-core'
import { sqliteTables } from '../../schema/db/tables.ts'
import { canonicalJson, GENESIS_HASH, type Head, headMessage, rowHash } from '../../src/audit/chain.ts'
import type { AuditKeys } from '../../src/audit/keys.ts'
import { type AuditRow, columnsOf } from '../../src/audit/row.ts'

/** What the many rows are spread over: each value of the first list stands in as many rows as its share says. */
const ACTIONS = ['create', 'update', 'delete', 'publish', 'rotate']
const RESOURCES = ['prompts', 'labels', 'configs', 'collections', 'workspace_service_api_keys']
const METHODS = ['POST', 'PUT', 'DELETE']
const STATUSES = [200, 200, 200, 200, 400, 401, 403, 404]

interface Of {
  organisationId: string
  /** a fiftieth of the rows are of it */
  workspaceId: string
}

/** `count` rows of a trail, one second apart, the last one now; about 700 bytes of text each. */
function* auditRows({ organisationId, workspaceId }: Of, count: number, now: number): Generator<AuditRow> {
  const ids = Array.from({ length: 200 }, () => Bun.randomUUIDv7())
  const workspaces = [workspaceId, ...ids.slice(1, 50)]
  const pick = <T>(from: readonly T[], i: number): T => from[(Math.imul(i, 2654435761) >>> 8) % from.length]!
  for (let i = 1; i <= count; i++) {
    const resource = pick(RESOURCES, i)
    const resourceId = Bun.randomUUIDv7()
    const sent = i % 50
    yield {
      timestamp: new Date(now - (count - i) * 500).toISOString(),
      clock: 0,
      organisation_id: organisationId,
      workspace_id: i % 7 === 0 ? null : pick(workspaces, i >> 3),
      user_type: i % 1000 === 0 ? 'cli' : 'api_key',
      user_id: pick(ids.slice(50), i >> 2),
      accountable_user_id: ids[0]!,
      resource_type: resource,
      action: pick(ACTIONS, i >> 1),
      resource_id: resourceId,
      resource_name: `thing ${i}`,
      method: pick(METHODS, i >> 4),
      uri: sent === 0 ? `/v1/${resource}` : `/v1/${resource}/${resourceId}`,
      request_id: `aaaaaaaaaaaa${i
        .toString(26)
        .padStart(8, 'a')
        .replace(/\d/g, (d) => 'qrstuvwxyz'[Number(d)]!)}`,
      client_ip: `192.0.${i % 40}.${i % 250}`,
      request_headers: { 'user-agent': 'bench/1.0', 'content-type': 'application/json', 'x-service-api-key': '*****' },
      query_params: {},
      request_body: { name: `thing ${i}`, description: 'a thing among many others' },
      response_status_code: pick(STATUSES, i >> 5),
      details: { before: { name: `thing ${i - 1}` }, after: { name: `thing ${i}` } },
    }
  }
}

/** Fills an empty database of ours with a trail that verifies; about 40,000 rows a second. */
export function fillTrail(connection: Connection, keys: AuditKeys, of: Of, count: number): Head {
  const { organisationId } = of
  const names = getTableConfig(sqliteTables.auditEvents).columns.map(({ name }) => name)
  const properties = Object.entries(sqliteTables.auditEvents).filter(([, c]) =>
    names.includes((c as { name?: string })?.name ?? ''),
  )
  const insert = connection.prepare(
    `INSERT INTO audit_events (${properties.map(([, c]) => (c as { name: string }).name).join(', ')}) VALUES (${properties.map(() => '?').join(', ')})`,
  )
  const now = Date.now()
  let head: Head = {
    chainId: Bun.randomUUIDv7(),
    organisationId,
    seq: 0,
    hash: GENESIS_HASH,
    createdAt: now,
    clock: 0,
    prunedSeq: 0,
    prunedHash: GENESIS_HASH,
    keyId: keys.id,
  }
  connection.run('BEGIN')
  for (const row of auditRows(of, count, now)) {
    const seq = head.seq + 1
    const told =
      seq === 1
        ? { ...row, details: { chain_id: head.chainId, signing_key: { id: keys.id, public_key: keys.publicKey } } }
        : row
    const text = canonicalJson(told)
    const hash = rowHash(head.chainId, seq, head.hash, text)
    const values: Record<string, unknown> = { seq, text, hash, ...columnsOf(told, organisationId) }
    insert.run(...properties.map(([name]) => values[name] as string))
    head = { ...head, seq, hash, createdAt: Date.parse(row.timestamp) }
    if (seq % 100_000 === 0) {
      connection.run('COMMIT')
      connection.run('BEGIN')
    }
  }
  connection.query('INSERT INTO audit_keys (id, seq, public_key) VALUES (?, 1, ?)').run(keys.id, keys.publicKey)
  connection
    .query(
      'INSERT INTO audit_head (id, chain_id, organisation_id, seq, hash, created_at, clock, pruned_seq, pruned_hash, key_id, signature) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
    )
    .run(
      'head',
      head.chainId,
      organisationId,
      head.seq,
      head.hash,
      head.createdAt,
      0,
      0,
      GENESIS_HASH,
      keys.id,
      keys.sign(headMessage(head)),
    )
  connection.run('COMMIT')
  return head
}
