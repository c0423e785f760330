import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { getTableConfig, type SQLiteTable } from 'drizzle-orm/sqlite-core'
import { sqliteTables } from '../../schema/db/tables.ts'
import { seal, sealingKeyId } from '../../src/crypto/cipher.ts'
import { type MasterKeys, newMasterKeyLine, readMasterKeys } from '../../src/crypto/master-key.ts'
import { appendMasterKey, dropMasterKeys } from '../../src/crypto/master-key-file.ts'
import { placeIn, sealedColumns } from '../../src/crypto/sealed-columns.ts'
import type { Gatehouse } from '../../src/gatehouse.ts'
import { type Batch, beginDataKeyRotation, finishDataKeyRotation, resealBatch } from '../../src/keyring/data-key.ts'
import { masterKeysInUse, rotateMasterKey } from '../../src/keyring/master-key.ts'
import { auditTrail, doneBy } from '../support/audit.ts'
import { DIALECTS } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { auditCount } from '../support/scenario.ts'

const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
const parse = (...lines: string[]): MasterKeys => readMasterKeys('env:KEY', { KEY: lines.join('') })
const sourceOf = ({ dir }: Pick<TestGatehouse, 'dir'>) => join(dir, 'master.key')

/** Runs `work` on an installation of its own. */
async function on(dialect: Gatehouse['dialect'], work: (opened: TestGatehouse) => Promise<void>): Promise<void> {
  const opened = await openTestGatehouse(dialect)
  try {
    await work(opened)
  } finally {
    await opened.close()
  }
}

/** Runs `work` on the installation as it is after a restart. */
async function restarted(
  { gatehouse, openNode }: TestGatehouse,
  work: (node: Awaited<ReturnType<TestGatehouse['openNode']>>) => Promise<void>,
): Promise<void> {
  await gatehouse.close()
  gatehouse.close = async () => {}
  const node = await openNode()
  try {
    await work(node)
  } finally {
    await node.gatehouse.close()
  }
}

/** The keys in clear, as texts that can be compared. */
const secretsOf = ({ keyring }: Gatehouse) => {
  const { apiKeyPepper, auditSigning, fingerprint, cursor } = keyring()
  return [apiKeyPepper, auditSigning, fingerprint, cursor].map((key) => key.reveal().toString('hex'))
}

const authenticates = async ({ call }: Pick<TestGatehouse, 'call'>, key?: string): Promise<boolean> =>
  (await call('GET', '/v1/prompts', undefined, key === undefined ? {} : { key })).status === 200

/** Makes an API key under an Idempotency-Key; its answer is a sealed value. */
const createKey = ({ call }: Pick<TestGatehouse, 'call'>) =>
  call(
    'POST',
    '/v1/api-keys/organisation/service',
    { name: 'k', scopes: ['prompts.list'] },
    { headers: { 'idempotency-key': 'rotation' } },
  )

/** Seals values with the current data key. */
async function addValues({ audited, keyring }: Gatehouse, count: number): Promise<void> {
  await audited(actor, { action: 'test.add' }, async (tx) => {
    const [column] = sealedColumns(tx.tables)
    const rows = Array.from({ length: count }, (_, i) => {
      const id = `v-${String(i).padStart(5, '0')}`
      const sealedAnswer = seal(`secret ${i}`, keyring().dataKey, placeIn(column!, id, 'o'))
      return { id, organisationId: 'o', bodyDigest: '', event: '{}', sealedAnswer, createdAt: tx.now }
    })
    await tx.insert(tx.tables.idempotentAnswers).values(rows)
  })
}

async function setValue({ audited }: Gatehouse, id: string, sealedAnswer: Buffer): Promise<void> {
  await audited(actor, { action: 'test.set' }, async (tx) => {
    const { idempotentAnswers: t } = tx.tables
    await tx.update(t).set({ sealedAnswer }).where(eq(t.id, id)).returning({ id: t.id })
  })
}

const valuesOf = async ({ read }: Gatehouse) => {
  const { idempotentAnswers: t } = read.tables
  const rows = await read.select({ id: t.id, sealed: t.sealedAnswer }).from(t).orderBy(t.id)
  return rows.map(({ id, sealed }) => ({ id, keyId: sealingKeyId(sealed!), sealed: sealed! }))
}

async function reseal(gatehouse: Gatehouse, most = Number.POSITIVE_INFINITY): Promise<Omit<Batch, 'next'>> {
  const sum = { opened: 0, resealed: 0, unopened: [] as string[] }
  let after: Batch['next'] = null
  for (let i = 0; i < most; i++) {
    const { next, opened, resealed, unopened } = await resealBatch(gatehouse, actor, after)
    sum.opened += opened
    sum.resealed += resealed
    sum.unopened.push(...unopened)
    if (next === null) break
    after = next
  }
  return sum
}

const statesOf = async ({ read }: Gatehouse): Promise<Record<string, string>> => {
  const { keyring: t } = read.tables
  const rows = await read.select({ id: t.id, state: t.state }).from(t).where(eq(t.purpose, 'data'))
  return Object.fromEntries(rows.map(({ id, state }) => [id, state]))
}

test('no column of sealed values is left out of a rotation', () => {
  const blobs = Object.values(sqliteTables).flatMap((table) => {
    const { name, columns } = getTableConfig(table as SQLiteTable)
    return columns.filter((column) => column.getSQLType() === 'blob').map((column) => `${name}.${column.name}`)
  })
  const known = sealedColumns(sqliteTables).map(({ name }) => `${name.table}.${name.column}`)
  expect(blobs.filter((name) => name !== 'keyring.sealed').sort()).toEqual(known.toSorted())
})

describe.each(DIALECTS)('a rotated master key on %s', (dialect) => {
  test('opens all that was there before, alone, and every API key goes on', () =>
    on(dialect, async (opened) => {
      const { gatehouse } = opened
      const created = await createKey(opened)
      const before = secretsOf(gatehouse)
      const old = await masterKeysInUse(gatehouse.read)
      appendMasterKey(sourceOf(opened))
      const id = await rotateMasterKey(gatehouse, actor, gatehouse.masterKeys())
      expect(await masterKeysInUse(gatehouse.read)).toEqual([id])
      expect(old).not.toContain(id)
      expect(await authenticates(opened, created.body.key)).toBe(true)
      dropMasterKeys(sourceOf(opened), old)
      await restarted(opened, async (node) => {
        expect(gatehouse.masterKeys().map((key) => key.id)).toEqual([id])
        expect(secretsOf(node.gatehouse)).toEqual(before)
        expect(await authenticates(node)).toBe(true)
        expect(await authenticates(node, created.body.key)).toBe(true)
        expect((await createKey(node)).text).toBe(created.text)
      })
    }))

  test('leaves a row that names both keys and holds neither', () =>
    on(dialect, async ({ gatehouse, dir }) => {
      const [from] = await masterKeysInUse(gatehouse.read)
      appendMasterKey(sourceOf({ dir }))
      const to = await rotateMasterKey(gatehouse, actor, gatehouse.masterKeys())
      const [row] = await auditTrail(gatehouse.read)
      expect(row).toMatchObject({ resource_type: 'master_key', action: 'rotate_key', resource_id: to })
      expect(row?.details).toMatchObject({ before: { sealed_by: [from] }, after: { sealed_by: to }, keyring_rows: 5 })
      for (const line of readFileSync(sourceOf({ dir }), 'utf8').trim().split('\n'))
        expect(JSON.stringify(row)).not.toContain(line.split(' ')[1])
    }))

  test.each([
    ['there is no new one', (keys: MasterKeys) => keys, 'conflict'],
    ['the old one is missing', () => parse(newMasterKeyLine()), 'MASTER_KEY_MISMATCH'],
    [
      'another key has the id of the old one',
      (keys: MasterKeys) => parse(`${keys[0]?.id} ${Buffer.alloc(32).toString('base64')}\n`, newMasterKeyLine()),
      'MASTER_KEY_MISMATCH',
    ],
  ] as const)('is refused, with nothing changed, when %s', (_name, keysFrom, code) =>
    on(dialect, async (opened) => {
      const { gatehouse } = opened
      const before = await gatehouse.read.select().from(gatehouse.read.tables.keyring)
      const rows = await auditCount(opened)
      await expect(rotateMasterKey(gatehouse, actor, keysFrom(gatehouse.masterKeys()))).rejects.toMatchObject({ code })
      expect(await gatehouse.read.select().from(gatehouse.read.tables.keyring)).toEqual(before)
      expect(await auditCount(opened)).toBe(rows)
    }),
  )

  test('is one, when two are made at the same time', () =>
    on(dialect, async ({ gatehouse }) => {
      const [old] = gatehouse.masterKeys()
      const candidates = [1, 2].map(() => [old!, ...parse(newMasterKeyLine())])
      const done = await Promise.allSettled(candidates.map((keys) => rotateMasterKey(gatehouse, actor, keys)))
      expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      const winner = candidates[done.findIndex(({ status }) => status === 'fulfilled')]
      expect(await masterKeysInUse(gatehouse.read)).toEqual([winner!.at(-1)!.id])
    }))
})

describe.each(DIALECTS)('a rotated data key on %s', (dialect) => {
  test('seals every value, and all of them open after a restart', () =>
    on(dialect, async (opened) => {
      const { gatehouse } = opened
      const created = await createKey(opened)
      await addValues(gatehouse, 1200)
      const old = gatehouse.keyring().dataKey.id
      const rowsBefore = await auditCount(opened)
      const { id, isResumed } = await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
      expect({ isResumed, current: gatehouse.keyring().dataKey.id }).toEqual({ isResumed: false, current: id })
      expect(await reseal(gatehouse)).toEqual({ opened: 1201, resealed: 1201, unopened: [] })
      expect(await reseal(gatehouse)).toEqual({ opened: 1201, resealed: 0, unopened: [] })
      await finishDataKeyRotation(gatehouse, actor)
      expect(new Set((await valuesOf(gatehouse)).map(({ keyId }) => keyId))).toEqual(new Set([id]))
      expect(await statesOf(gatehouse)).toEqual({ [old]: 'retired', [id]: 'current' })
      // The beginning, three batches of at most 500, the end.
      expect(await auditCount(opened)).toBe(rowsBefore + 5)
      const trail = (await auditTrail(gatehouse.read)).slice(0, 5)
      expect(new Set(trail.map(doneBy))).toEqual(new Set(['data_key.rotate_key']))
      expect(trail.map(({ details }) => details['resealed'])).toEqual([undefined, 201, 500, 500, undefined])
      await restarted(opened, async (node) => {
        expect(await authenticates(node, created.body.key)).toBe(true)
        expect((await createKey(node)).text).toBe(created.text)
        expect(await reseal(node.gatehouse)).toEqual({ opened: 1201, resealed: 0, unopened: [] })
      })
    }))

  test('is taken up again after it was broken off, and not made a second time', () =>
    on(dialect, async (opened) => {
      const { gatehouse } = opened
      await addValues(gatehouse, 1200)
      const { id } = await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
      await reseal(gatehouse, 1)
      await restarted(opened, async ({ gatehouse: again }) => {
        expect(await beginDataKeyRotation(again, actor, again.masterKeys())).toEqual({ id, isResumed: true })
        expect(await reseal(again)).toEqual({ opened: 1200, resealed: 700, unopened: [] })
        await finishDataKeyRotation(again, actor)
        expect(Object.values(await statesOf(again)).sort()).toEqual(['current', 'retired'])
        expect((await beginDataKeyRotation(again, actor, again.masterKeys())).isResumed).toBe(false)
      })
    }))

  test('keeps a value that is written anew while its batch is sealed', () =>
    on(dialect, async ({ gatehouse }) => {
      await addValues(gatehouse, 3)
      await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
      const [column] = sealedColumns(gatehouse.read.tables)
      const anew = seal('written anew', gatehouse.keyring().dataKey, placeIn(column!, 'v-00001', 'o'))
      const audited: Gatehouse['audited'] = async (...change) => {
        await setValue(gatehouse, 'v-00001', anew)
        return gatehouse.audited(...change)
      }
      expect(await resealBatch({ ...gatehouse, audited }, actor, null)).toMatchObject({ resealed: 2 })
      const [, value] = await valuesOf(gatehouse)
      expect(anew.equals(value!.sealed)).toBe(true)
    }))

  test('names a value that does not open, and seals all others', () =>
    on(dialect, async ({ gatehouse }) => {
      await addValues(gatehouse, 3)
      const [, damaged] = await valuesOf(gatehouse)
      const sealed = Buffer.from(damaged!.sealed)
      sealed[sealed.length - 1]! ^= 1
      await setValue(gatehouse, 'v-00001', sealed)
      const { id } = await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
      const unopened = ['idempotent_answers.sealed_answer v-00001']
      expect(await reseal(gatehouse)).toEqual({ opened: 2, resealed: 2, unopened })
      expect((await valuesOf(gatehouse)).map(({ keyId }) => keyId === id)).toEqual([true, false, true])
    }))

  test('is refused, with nothing changed, without the master key of the old one', () =>
    on(dialect, async (opened) => {
      const { gatehouse } = opened
      const before = await statesOf(gatehouse)
      await expect(beginDataKeyRotation(gatehouse, actor, parse(newMasterKeyLine()))).rejects.toMatchObject({
        code: 'MASTER_KEY_MISMATCH',
      })
      expect(await statesOf(gatehouse)).toEqual(before)
      expect(await authenticates(opened)).toBe(true)
    }))

  test('is one, when two are begun at the same time', () =>
    on(dialect, async ({ gatehouse }) => {
      const begin = () => beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
      const done = await Promise.allSettled([begin(), begin()])
      expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      expect(Object.values(await statesOf(gatehouse)).sort()).toEqual(['current', 'previous'])
    }))
})

describe.skipIf(!DIALECTS.includes('postgres'))('two servers on one PostgreSQL', () => {
  test('both seal with the new data key, and each opens what the other sealed', () =>
    on('postgres', async (opened) => {
      const other = await opened.openNode()
      const { id } = await beginDataKeyRotation(opened.gatehouse, actor, opened.gatehouse.masterKeys())
      while (other.gatehouse.keyring().dataKey.id !== id) await Bun.sleep(10)
      const created = await createKey(other)
      expect((await valuesOf(opened.gatehouse)).map(({ keyId }) => keyId)).toEqual([id])
      expect((await createKey(opened)).text).toBe(created.text)
      await other.gatehouse.close()
    }))

  test('the other one is not disturbed by a new master key that it cannot read', () =>
    on('postgres', async (opened) => {
      const other = await opened.openNode()
      const keys = [...opened.gatehouse.masterKeys(), ...parse(newMasterKeyLine())]
      await rotateMasterKey(opened.gatehouse, actor, keys)
      const created = await createKey(opened)
      // Seen by both nodes: the change that made the key came after the rotation.
      while (!(await authenticates(other, created.body.key))) await Bun.sleep(10)
      expect((await createKey(other)).text).toBe(created.text)
      await other.gatehouse.close()
    }))
})
