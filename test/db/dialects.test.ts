import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { asc, eq, inArray } from 'drizzle-orm'
import type { Change, Database, Tx } from '../../src/db/database.ts'
import { isUniqueViolation } from '../../src/db/errors.ts'
import { DIALECTS, openTestDatabase, type TestDatabase } from '../support/database.ts'

describe.each(DIALECTS)('the same calls have the same answers: %s', (dialect) => {
  let opened: TestDatabase
  let db: Database
  beforeAll(async () => {
    opened = await openTestDatabase(dialect, 300)
    db = opened.db
  })
  afterAll(() => opened.drop())

  const add = (tx: Tx, name: string, id = Bun.randomUUIDv7()) =>
    tx.insert(tx.tables.organisations).values({ id, name, createdAt: tx.now }).returning()
  const change = <T>(work: (tx: Tx) => Promise<T>) => db.transaction({ action: 'test' }, work)
  const named = async (name: string) => {
    const { organisations } = db.read.tables
    return (await db.read.select().from(organisations).where(eq(organisations.name, name))).length
  }
  const revision = async () => (await db.read.select().from(db.read.tables.installation))[0]!.revision
  const failure = (promise: Promise<unknown>) =>
    promise.then(
      () => undefined,
      (error: unknown) => error,
    )

  test('values come back as they went in: text, null, true, times, bytes, numbers beyond 32 bits', async () => {
    const id = Bun.randomUUIDv7()
    const row = {
      id,
      purpose: 'data',
      state: 'current',
      sealedBy: 'k1 – “ä” 🔑 \u2028 \'";--',
      sealed: Buffer.from([0, 1, 254, 255]),
      createdAt: Date.UTC(2286, 10, 20),
    }
    const [written] = await change((tx) => tx.insert(tx.tables.keyring).values(row).returning())
    const { keyring, workspaces } = db.read.tables
    const [read] = await db.read.select().from(keyring).where(eq(keyring.id, id))
    expect(written).toEqual(row)
    expect(read).toEqual(row)
    const organisationId = Bun.randomUUIDv7()
    const [workspace] = await change(async (tx) => {
      await add(tx, 'owner', organisationId)
      const times = { createdAt: tx.now, lastUpdatedAt: tx.now }
      const values = { id, organisationId, slug: 's', name: 'n', isDefault: true, status: 'active', ...times }
      return tx.insert(workspaces).values(values).returning()
    })
    expect([workspace?.isDefault, workspace?.description]).toEqual([true, null])
  })

  test('lists are ordered by bytes, not by a locale', async () => {
    const names = ['b-order', 'B-order', 'ä-order', 'a-order', '_-order', 'A-order']
    await change(async (tx) => {
      for (const name of names) await add(tx, name)
    })
    const { organisations } = db.read.tables
    const rows = await db.read
      .select()
      .from(organisations)
      .where(inArray(organisations.name, names))
      .orderBy(asc(organisations.name))
    expect(rows.map((row) => row.name)).toEqual(['A-order', 'B-order', '_-order', 'a-order', 'b-order', 'ä-order'])
  })

  test('a change that throws after an await leaves nothing, not even a revision', async () => {
    const before = await revision()
    const error = await failure(
      change(async (tx) => {
        await add(tx, 'thrown')
        await Bun.sleep(1)
        throw new Error('refused')
      }),
    )
    expect(String(error)).toBe('Error: refused')
    expect([await named('thrown'), await revision()]).toEqual([0, before])
  })

  test('a change is seen by nobody before it is committed, and by everybody when it is answered', async () => {
    const seenInside = await change(async (tx) => {
      await add(tx, 'half')
      return named('half')
    })
    expect([seenInside, await named('half')]).toEqual([0, 1])
  })

  test('of changes made together only the one that breaks a unique index fails', async () => {
    const id = Bun.randomUUIDv7()
    const results = await Promise.allSettled(
      ['first', 'second', 'third'].map((name, i) =>
        change((tx) => add(tx, `together ${name}`, i === 1 ? id : Bun.randomUUIDv7())),
      ),
    )
    const again = await Promise.allSettled([
      change((tx) => add(tx, 'together a')),
      change((tx) => add(tx, 'together twice', id)),
      change((tx) => add(tx, 'together b')),
    ])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(again.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(isUniqueViolation((again[1] as PromiseRejectedResult).reason)).toBe(true)
    expect([await named('together a'), await named('together twice'), await named('together b')]).toEqual([1, 0, 1])
  })

  test('a broken unique index is known by its name', async () => {
    const organisationId = Bun.randomUUIDv7()
    await change((tx) => add(tx, 'users', organisationId))
    const addUser = () =>
      change((tx) =>
        tx.insert(tx.tables.users).values({
          id: Bun.randomUUIDv7(),
          organisationId,
          email: 'a@b.example',
          role: 'member',
          status: 'active',
          createdAt: tx.now,
          lastUpdatedAt: tx.now,
        }),
      )
    await addUser()
    const error = await failure(addUser())
    expect([isUniqueViolation(error, 'users_email'), isUniqueViolation(error, 'workspaces_slug')]).toEqual([
      true,
      false,
    ])
    expect(isUniqueViolation(new Error('UNIQUE'))).toBe(false)
  })

  test('a value outside an enumeration and a row without its parent are refused by the database itself', async () => {
    const keyring = { id: 'x', purpose: 'other', state: 'current', sealedBy: 'k', sealed: Buffer.of(1), createdAt: 1 }
    const wrongPurpose = await failure(change((tx) => tx.insert(tx.tables.keyring).values(keyring)))
    const times = { createdAt: 1, lastUpdatedAt: 1 }
    const orphan = {
      id: 'x',
      organisationId: 'none',
      slug: 's',
      name: 'n',
      isDefault: false,
      status: 'active',
      ...times,
    }
    const noParent = await failure(change((tx) => tx.insert(tx.tables.workspaces).values(orphan)))
    expect([wrongPurpose, noParent].map((error) => error instanceof Error && !isUniqueViolation(error))).toEqual([
      true,
      true,
    ])
  })

  test('a closure that does not settle is undone, and what it does later reaches no other change', async () => {
    let leaked: Tx | undefined
    const stuck = change(async (tx) => {
      leaked = tx
      await add(tx, 'stuck')
      await new Promise(() => {})
    })
    expect(await failure(stuck)).toMatchObject({ code: 'storage_unavailable' })
    const late = await change(async (tx) => {
      await add(tx, 'after stuck')
      return failure(Promise.resolve(add(leaked!, 'late')))
    })
    expect(Bun.inspect(late)).toContain('this transaction has ended')
    expect([await named('stuck'), await named('late'), await named('after stuck')]).toEqual([0, 0, 1])
  })

  test('a query kept from an ended change cannot write', async () => {
    const kept = await change(async (tx) => ({ query: add(tx, 'kept') }))
    expect(await failure(Promise.resolve(kept.query))).toBeInstanceOf(Error)
    expect(await named('kept')).toBe(0)
  })

  test('revisions have no gap, and the listener hears of each change in their order, before the answer', async () => {
    const heard: Change[] = []
    db.onCommitted(async (changes) => {
      await Bun.sleep(2)
      heard.push(...changes)
    })
    const start = await revision()
    const revisions = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        change(async (tx) => {
          const mine = await tx.revise()
          tx.changed('user', String(mine))
          if (i % 10 === 0) throw new Error('refused')
          return mine
        }).then(
          (mine) => {
            expect(heard).toContainEqual({ kind: 'user', id: String(mine) })
            return [mine]
          },
          () => [],
        ),
      ),
    )
    const expected = Array.from({ length: 90 }, (_, i) => start + i + 1)
    expect(revisions.flat().sort((a, b) => a - b)).toEqual(expected)
    expect(heard).toEqual(expected.map((id) => ({ kind: 'user', id: String(id) })))
  })

  test('a listener that fails makes the outcome unknown, and hears of the change with the next one', async () => {
    const heard: string[] = []
    let isBroken = true
    db.onCommitted(async (changes) => {
      if (isBroken) throw new Error('cache')
      heard.push(...changes.map(({ id }) => id))
    })
    const first = await failure(change(async (tx) => tx.changed('user', 'one')))
    isBroken = false
    await change(async (tx) => tx.changed('user', 'two'))
    expect(first).toMatchObject({ code: 'outcome_unknown' })
    expect(heard).toEqual(['one', 'two'])
  })

  test('the 1,025th waiting change is refused with a time to come back', async () => {
    const results = await Promise.allSettled(Array.from({ length: 1_025 }, () => change(async () => {})))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1_024)
    const refused = results.find((result) => result.status === 'rejected')
    expect(refused?.reason).toMatchObject({ code: 'overloaded', retryAfterSeconds: 1 })
  })

  test('the draft is the caller’s own: a closure completes a copy', async () => {
    const event = { action: 'test' }
    await db.transaction(event, async (tx) => {
      tx.event.resourceId = 'x'
    })
    expect(event).toEqual({ action: 'test' })
  })
})

test.each(DIALECTS)('%s: closing answers what is under way and refuses what comes after', async (dialect) => {
  const { db, drop } = await openTestDatabase(dialect)
  const underWay = Array.from({ length: 20 }, () => db.probe())
  const dropped = drop()
  await expect(db.probe()).rejects.toMatchObject({ code: 'draining' })
  expect((await Promise.allSettled(underWay)).map(({ status }) => status)).toEqual(Array(20).fill('fulfilled'))
  await dropped
})
