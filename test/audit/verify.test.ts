import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { eq } from 'drizzle-orm'
import { type Audited, createTrail } from '../../src/audit/audited.ts'
import { canonicalJson, rowHash } from '../../src/audit/chain.ts'
import { findHead } from '../../src/audit/head.ts'
import { checkRowsOf, verifyTrail } from '../../src/audit/verify.ts'
import { verifyDatabase } from '../../src/audit/verify-database.ts'
import { listKeys } from '../../src/audit/verify-keys.ts'
import type { Database, Reader, Tx } from '../../src/db/database.ts'
import { openDatabase } from '../../src/db/open.ts'
import { TEST_AUDIT_KEYS } from '../support/audit.ts'
import { DIALECTS, freshFolder, openTestDatabase, type TestDatabase } from '../support/database.ts'

const ROWS = 12
const organisationId = Bun.randomUUIDv7()
const cli = { kind: 'cli', uid: 1, organisationId, command: 'test' } as const

describe.each(DIALECTS)('the trail: %s', (dialect) => {
  let opened: TestDatabase
  let db: Database
  let audited: Audited
  beforeAll(async () => {
    opened = await openTestDatabase(dialect)
    db = opened.db
    audited = createTrail(db, { keys: () => TEST_AUDIT_KEYS }).audited
    for (let i = 1; i <= ROWS; i++)
      await audited(cli, { action: 'things.create', resourceId: `t${i}`, workspaceId: null }, async () => {})
  })
  afterAll(() => opened.drop())

  /** What verify says of the trail after a change behind its back; the change is undone again. */
  async function afterTampering(tamper: (tx: Tx) => Promise<unknown>) {
    const undo = new Error('undo')
    let verified: Awaited<ReturnType<typeof verifyTrail>> | undefined
    await db
      .transaction({ action: 'tamper' }, async (tx) => {
        await tamper(tx)
        verified = await verifyTrail({ read: tx })
        throw undo
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error
      })
    return verified?.fault
  }

  test('as it was written it holds, and says how many rows it has', async () => {
    expect(await verifyTrail({ read: db.read }, TEST_AUDIT_KEYS.publicKey)).toMatchObject({
      rows: ROWS,
      fault: undefined,
    })
  })

  const events = () => db.read.tables.auditEvents
  const setRow = (seq: number, values: Record<string, unknown>) => (tx: Tx) =>
    tx.update(events()).set(values).where(eq(events().seq, seq)).returning({ seq: events().seq })
  const readRow = async (tx: Tx, seq: number) => (await tx.select().from(events()).where(eq(events().seq, seq)))[0]!
  const remove = (tx: Tx, seq: number) => tx.delete(events()).where(eq(events().seq, seq)).returning()

  test.each(Array.from({ length: ROWS }, (_, i) => i + 1))('row %i can be neither edited nor removed', async (seq) => {
    const edited = await afterTampering(async (tx) => {
      const { text } = await readRow(tx, seq)
      await setRow(seq, { text: text.replace('things', 'thinks') })(tx)
    })
    expect(edited?.seq).toBe(seq)
    // The first row that is wrong is the one after it; behind the last one there is none, and the gap itself is named.
    const removed = await afterTampering((tx) => remove(tx, seq))
    expect(removed?.seq).toBe(seq === ROWS ? ROWS : seq + 1)
  })

  const OTHER: Record<string, unknown> = {
    hash: '0'.repeat(64),
    organisationId: 'other',
    isForeign: true,
    createdAt: 1,
    clock: 7,
    method: 'GET',
    uri: '/x',
    requestId: 'x',
    userType: 'system',
    userId: 'x',
    workspaceId: 'x',
    status: 201,
    resourceType: 'x',
    action: 'x',
    resourceId: 'x',
    clientIp: '192.0.2.1',
  }

  test('the columns tried below are all that a row has beside number and text', () => {
    const columns = Object.keys(events()).filter((name) => name !== 'seq' && name !== 'text' && name !== 'enableRLS')
    expect(columns.sort()).toEqual(Object.keys(OTHER).sort())
  })

  test.each(Object.keys(OTHER))('column %s says what the text says', async (column) => {
    expect(await afterTampering(setRow(5, { [column]: OTHER[column] }))).toMatchObject({ seq: 5 })
  })

  test('two rows cannot change places', async () => {
    const fault = await afterTampering(async (tx) => {
      const [a, b] = [await readRow(tx, 4), await readRow(tx, 8)]
      await setRow(4, { ...b, seq: 4 })(tx)
      await setRow(8, { ...a, seq: 8 })(tx)
    })
    expect(fault?.seq).toBe(4)
  })

  test('no row can be put in, neither between others nor at the end with a hash that fits', async () => {
    expect(
      await afterTampering(async (tx) => {
        const row = await readRow(tx, ROWS)
        const hash = rowHash((await tx.select().from(tx.tables.auditHead))[0]!.chainId, ROWS + 1, row.hash, row.text)
        await tx
          .insert(events())
          .values({ ...row, seq: ROWS + 1, hash })
          .returning()
      }),
    ).toMatchObject({ seq: ROWS + 1 })
    expect(
      await afterTampering(async (tx) => {
        const row = await readRow(tx, 6)
        await remove(tx, 6)
        await tx
          .insert(events())
          .values({ ...row, seq: 6, text: canonicalJson({ ...JSON.parse(row.text), uri: '/y' }) })
          .returning()
      }),
    ).toMatchObject({ seq: 6 })
  })

  test('a trail whose end was cut off, head included, is not signed', async () => {
    const fault = await afterTampering(async (tx) => {
      const { hash, createdAt } = await readRow(tx, ROWS - 1)
      await remove(tx, ROWS)
      await tx
        .update(tx.tables.auditHead)
        .set({ seq: ROWS - 1, hash, createdAt })
        .returning()
    })
    expect(fault).toEqual({ seq: 0, problem: 'the signature of the head is wrong' })
  })

  test.each([
    'chainId',
    'organisationId',
    'seq',
    'hash',
    'createdAt',
    'clock',
    'prunedSeq',
    'prunedHash',
    'keyId',
    'signature',
  ])('the head cannot say another %s', async (column) => {
    const { auditHead } = db.read.tables
    const isNumber = ['seq', 'createdAt', 'clock', 'prunedSeq'].includes(column)
    const value = isNumber ? 3 : 'x'
    expect(
      await afterTampering((tx) =>
        tx
          .update(auditHead)
          .set({ [column]: value })
          .returning(),
      ),
    ).toBeDefined()
  })

  test('parts of it that are checked apart miss nothing at their seams', async () => {
    const head = (await findHead(db.read))!
    const keys = await listKeys(db.read)
    const checkApart = async (read: Reader, end: number) => {
      const check = (first: number, last: number) => checkRowsOf({ read }, head, keys, { first, last })
      return [await check(0, end), await check(end + 1, Number.MAX_SAFE_INTEGER)]
    }
    for (let end = 1; end < ROWS; end++) {
      expect(await checkApart(db.read, end)).toEqual([
        { rows: end, lastSeq: end, fault: undefined },
        { rows: ROWS - end, lastSeq: ROWS, fault: undefined },
      ])
      for (const seq of [end, end + 1]) {
        let found: number[] = []
        await afterTampering(async (tx) => {
          await setRow(seq, { hash: 'f'.repeat(64) })(tx)
          found = (await checkApart(tx, end)).flatMap(({ fault }) => fault?.seq ?? [])
        })
        expect(found).toContain(seq)
      }
    }
  })

  test('neither head nor key can be removed, and no other key can take its place', async () => {
    const { auditHead, auditKeys } = db.read.tables
    const other = Buffer.alloc(32, 9).toString('base64')
    for (const tamper of [
      (tx: Tx) => tx.delete(auditHead).returning(),
      (tx: Tx) => tx.delete(auditKeys).returning(),
      (tx: Tx) => tx.update(auditKeys).set({ publicKey: other }).returning(),
    ])
      expect(await afterTampering(tamper)).toBeDefined()
    expect((await verifyTrail({ read: db.read }, other)).fault).toBeDefined()
  })
})

test('JSON has one form: members by their names, shortest numbers, big integers by their digits', () => {
  const value = {
    b: [1.0, 1e21, 0.1, -0],
    a: { '\u20ac': '\u2028"\\', '\r': null, gone: undefined, 1: true },
    c: JSON.rawJSON('12345678901234567890'),
  }
  expect(canonicalJson(value)).toBe(
    '{"a":{"\\r":null,"1":true,"\u20ac":"\u2028\\"\\\\"},"b":[1,1e+21,0.1,0],"c":"12345678901234567890"}',
  )
  expect(() => canonicalJson({ n: 1n })).toThrow(TypeError)
})

test('beside a server that writes all the time, no row that has just come is taken for a wrong one', async () => {
  const options = { dialect: 'sqlite', dataDir: freshFolder(), create: true } as const
  const db = await openDatabase(options)
  const { audited } = createTrail(db, { keys: () => TEST_AUDIT_KEYS })
  const write = () => audited(cli, { action: 'things.create' }, async () => {})
  await write()
  let isOver = false
  const writing = (async () => {
    for (; !isOver; await Bun.sleep(1)) await write()
  })()
  for (let i = 0; i < 5; i++) {
    const { fault, rows } = await verifyDatabase(options, { threads: 2 })
    expect(fault).toBeUndefined()
    expect(rows).toBeGreaterThan(0)
  }
  isOver = true
  await writing
  await db.close()
  rmSync(options.dataDir, { recursive: true })
})
