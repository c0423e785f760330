import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createTrail } from '../../src/audit/audited.ts'
import { verifyTrail } from '../../src/audit/verify.ts'
import type { Database } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { auditTrail, TEST_AUDIT_KEYS } from '../support/audit.ts'
import { freshPostgresUrl } from '../support/postgres.ts'

const url = await freshPostgresUrl()

describe.skipIf(url === undefined)('several nodes on one PostgreSQL', () => {
  let nodes: Database[]
  beforeAll(async () => {
    nodes = await Promise.all([1, 2, 3].map(() => openDatabase({ dialect: 'postgres', url: url!, pollMs: 50 })))
  })
  afterAll(() => Promise.all(nodes.map((node) => node.close())))

  test('write one trail: no gap, no double, every row with its change, and it verifies while it grows', async () => {
    const organisationId = Bun.randomUUIDv7()
    const actor = { kind: 'cli', uid: 1, organisationId, command: 'test' } as const
    const made: string[] = []
    const change = async (node: Database, i: number) => {
      const id = Bun.randomUUIDv7()
      const { audited } = trails.get(node)!
      await audited(actor, { action: 'organisations.create', resourceId: id }, async (tx) => {
        await tx.insert(tx.tables.organisations).values({ id, name: 'o', createdAt: tx.now })
        if (i % 5 === 0) throw new Error('refused')
      })
      made.push(id)
    }
    const trails = new Map(nodes.map((node) => [node, createTrail(node, { keys: () => TEST_AUDIT_KEYS })]))
    await change(nodes[0]!, 1)
    await Promise.allSettled(Array.from({ length: 120 }, (_, i) => change(nodes[i % nodes.length]!, i)))
    const { read } = nodes[1]!
    const rows = (await auditTrail(read)).reverse()
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => i + 1))
    expect(rows.map(({ resource_id: id }) => id).sort()).toEqual(made.toSorted())
    const stored = await read.select({ id: read.tables.organisations.id }).from(read.tables.organisations)
    expect(stored.map(({ id }) => id).sort()).toEqual(made.toSorted())
    expect(await verifyTrail({ read })).toMatchObject({ rows: made.length, fault: undefined })
  })
})
