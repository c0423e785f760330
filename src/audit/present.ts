import type { AuditLog } from '../../schema/api/audit-logs.ts'
import type { AuditRow } from './row.ts'
import type { FoundRow } from './store.ts'

interface Person {
  email: string
  firstName: string
  lastName: string
}

/** @param people those who answer for the rows, by id */
export function presentAuditLog({ seq, hash, text }: FoundRow, people: ReadonlyMap<string, Person>): AuditLog {
  const row = JSON.parse(text) as AuditRow
  const person = people.get(row.accountable_user_id ?? '')
  const clientIp = row.client_ip ?? ''
  return {
    id: row.request_id ?? `row-${seq}`,
    seq,
    hash,
    timestamp: row.timestamp,
    created_at: row.timestamp,
    method: row.method ?? '',
    uri: row.uri ?? '',
    request_id: row.request_id ?? '',
    request_body: JSON.stringify(row.request_body),
    query_params: JSON.stringify(row.query_params),
    request_headers: JSON.stringify(row.request_headers),
    user_id: row.user_id,
    actor_id: row.user_id,
    user_type: row.user_type,
    accountable_user_id: row.accountable_user_id,
    actor_email: person?.email ?? '',
    actor_name: person === undefined ? '' : `${person.firstName} ${person.lastName}`.trim(),
    organisation_id: row.organisation_id,
    workspace_id: row.workspace_id,
    response_status_code: row.response_status_code,
    resource_type: row.resource_type,
    resource_id: row.resource_id,
    resource_name: row.resource_name,
    action: row.action,
    client_ip: clientIp,
    ip_address: clientIp,
    country: '',
    user_agent: row.request_headers['user-agent'] ?? '',
    metadata: row.details,
  }
}
