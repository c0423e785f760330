import { createApiKey } from '../../src/api-keys/service.ts'
import type { TestGatehouse } from './gatehouse.ts'

/** A system key, and a peer that it is taken from (decision 16). */
export async function addSystemKey({ gatehouse, made }: Pick<TestGatehouse, 'gatehouse' | 'made'>): Promise<string> {
  gatehouse.peerIp = () => '127.0.0.1'
  const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
  const system = { type: 'system', name: 's', scopes: [], accountableUserId: made.user_id } as const
  return (await createApiKey(gatehouse, cli, system)).key
}
