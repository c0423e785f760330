import { Database as Connection } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { voucherMessage } from '../../src/audit/chain.ts'
import { pruneTrail } from '../../src/audit/prune.ts'
import { startAdminSocket } from '../../src/cli/admin-socket.ts'
import { gatehouse as cli } from '../cli/support.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

const DAY_MS = 86_400_000

interface Key {
  id: string
  seq: number
  public_key: string
  vouched_by: string | null
  voucher: string | null
}
type Three = [first: Key, second: Key, third: Key]

describe.each(['whole', 'pruned'])('the signing keys of a trail that is %s', (state) => {
  let world: TestGatehouse
  let admin: { stop(): Promise<void> }
  let connection: Connection
  let chainId: string
  let keys: Three
  const run = (...argv: string[]) => cli(['audit', ...argv, '--config', join(world.dir, 'config.toml')])

  beforeAll(async () => {
    setSystemTime(Date.now() - 400 * DAY_MS)
    world = await openTestGatehouse()
    setSystemTime()
    admin = await startAdminSocket(world.gatehouse)
    for (let i = 0; i < 2; i++) expect((await run('rotate-key')).exitCode).toBe(0)
    const actor = { kind: 'cli', uid: 1, organisationId: world.made.organisation_id, command: 'audit prune' } as const
    if (state === 'pruned') expect(await pruneTrail(world.gatehouse, actor, Date.now() - 366 * DAY_MS)).toBe(1)
    connection = new Connection(join(world.dir, 'data/gatehouse.db'))
    chainId = (connection.query('SELECT chain_id FROM audit_head').get() as { chain_id: string }).chain_id
    keys = connection.query('SELECT * FROM audit_keys ORDER BY seq').all() as Three
    expect(keys).toHaveLength(3)
  })
  afterAll(async () => {
    connection.close()
    await admin.stop()
    await world.close()
  })

  function store(rows: readonly Key[]): void {
    connection.run('DELETE FROM audit_keys')
    const insert = connection.query(
      'INSERT INTO audit_keys (id, seq, public_key, vouched_by, voucher) VALUES (?, ?, ?, ?, ?)',
    )
    for (const { id, seq, public_key, vouched_by, voucher } of rows)
      insert.run(id, seq, public_key, vouched_by, voucher)
  }

  /** A key of somebody who can write the database, in front of the others. */
  function forged({ id, public_key }: Key): Pick<Key, 'vouched_by' | 'voucher'> {
    const { id: ownId, sign } = TEST_AUDIT_KEYS
    return { vouched_by: ownId, voucher: sign(voucherMessage(chainId, ownId, id, public_key)) }
  }
  const forgedFirst = (): Key => ({
    id: TEST_AUDIT_KEYS.id,
    seq: 1,
    public_key: TEST_AUDIT_KEYS.publicKey,
    vouched_by: null,
    voucher: null,
  })
  const asFirst = { seq: 1, vouched_by: null, voucher: null }

  const tamperings: [name: string, tamper: (...keys: Three) => Key[], named: (...keys: Three) => Key][] = [
    ['the first is removed', (_, second, third) => [second, third], (first) => first],
    ['the second is removed', (first, _, third) => [first, third], (_, second) => second],
    ['the last is removed', (first, second) => [first, second], (_first, _second, third) => third],
    [
      'the second stands as the first',
      (_, second, third) => [{ ...second, ...asFirst }, third],
      state === 'whole' ? (first) => first : (_, second) => second,
    ],
    [
      'another one takes the place of the first',
      (_, second, third) => [forgedFirst(), { ...second, ...forged(second) }, third],
      state === 'whole' ? (first) => first : (_, second) => second,
    ],
    [
      'another one stands before the first',
      (first, second, third) => [{ ...forgedFirst(), seq: 0 }, { ...first, ...forged(first) }, second, third],
      state === 'whole' ? (first) => first : () => forgedFirst(),
    ],
    ['none is left', () => [], state === 'whole' ? (first) => first : (_, second) => second],
  ]

  test('lead from the first to the last', async () => {
    expect(await run('verify', '--public-key', keys[0].public_key)).toMatchObject({ exitCode: 0 })
    const output = join(world.dir, 'whole.ndjson')
    expect(await run('export', '--format', 'ndjson', '--output', output)).toMatchObject({ exitCode: 0 })
  })

  test.each(tamperings)(
    'are not those of the trail when %s: no verification, no export',
    async (_name, tamper, named) => {
      const output = join(world.dir, 'broken.ndjson')
      store(tamper(...keys))
      try {
        const ran = [await run('verify'), await run('export', '--format', 'ndjson', '--output', output)]
        for (const { exitCode, err } of ran) {
          expect([exitCode, err]).toEqual([65, expect.stringContaining('code=AUDIT_BROKEN')])
          expect(err).toContain(named(...keys).id)
        }
        expect([existsSync(output), existsSync(`${output}.unfinished`)]).toEqual([false, false])
      } finally {
        store(keys)
      }
    },
  )
})
