import { and, asc, eq, gt, isNotNull } from 'drizzle-orm'
import type { Tables } from '../../schema/db/tables.ts'
import type { Actor } from '../auth/caller.ts'
import { open, seal, sealingKeyId } from '../crypto/cipher.ts'
import { successorOf } from '../crypto/keyring.ts'
import type { MasterKeys } from '../crypto/master-key.ts'
import { placeIn, type SealedColumn, sealedColumns } from '../crypto/sealed-columns.ts'
import { compiledSelect, placeholders } from '../db/compiled.ts'
import type { Tx } from '../db/database.ts'
import { conflict } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

/** Values of one batch, and so of one transaction. */
const BATCH = 500

/** Values after which other requests have their turn, renders above all: a batch at one go takes some 20 ms. */
const SLICE = 4

const othersHaveTheirTurn = () => new Promise((resolve) => setImmediate(resolve))

/**
 * Makes a new data key the current one. A rotation that was broken off is taken up again instead: while a data key is
 * `previous`, values may be under it.
 *
 * @throws StartError 78 MASTER_KEY_MISMATCH when the master key of the current data key is not among `masterKeys`
 */
export async function beginDataKeyRotation(
  { audited, read, keyring }: Pick<Gatehouse, 'audited' | 'read' | 'keyring'>,
  actor: Actor,
  masterKeys: MasterKeys,
): Promise<{ id: string; isResumed: boolean }> {
  const { keyring: t } = read.tables
  const unfinished = await read.select({ id: t.id }).from(t).where(isDataKey(t, 'previous'))
  if (unfinished.length > 0) return { id: keyring().dataKey.id, isResumed: true }
  const [current] = await read.select().from(t).where(isDataKey(t, 'current'))
  if (current === undefined) throw conflict('the keyring has no current data key')
  const { row, key } = successorOf(current, masterKeys, Date.now())
  // This node may be unable to read the master key source; the others open the row with it.
  keyring().known.set(row.id, key)
  await audited(actor, { ...event(row.id), details: { before: current.id, after: row.id } }, async (tx) => {
    const isCurrent = and(eq(t.id, current.id), isDataKey(t, 'current'), eq(t.sealedBy, current.sealedBy))
    const left = await tx.update(t).set({ state: 'previous' }).where(isCurrent).returning({ id: t.id })
    if (left.length === 0) throw conflict('another rotation of the keyring was faster; run this one again')
    await tx.insert(t).values(row).returning({ id: t.id })
    tx.changed('keyring', row.id)
  })
  return { id: row.id, isResumed: false }
}

/** Where a batch ended: the number of the column in `sealedColumns`, and the last id of it. */
export interface Cursor {
  column: number
  id: string
}

export interface Batch {
  /** null: that was the last one */
  next: Cursor | null
  opened: number
  resealed: number
  /** `table.column id` of values that do not open; they are left as they are */
  unopened: string[]
}

/** Opens the next values, in the order of their ids, and seals those anew that are not under the current data key. */
export async function resealBatch(
  gatehouse: Pick<Gatehouse, 'audited' | 'read' | 'keyring'>,
  actor: Actor,
  after: Cursor | null,
): Promise<Batch> {
  const { column: index, id: afterId } = after ?? { column: 0, id: '' }
  const columns = sealedColumns(gatehouse.read.tables)
  const column = columns[index]
  if (column === undefined) return { next: null, opened: 0, resealed: 0, unopened: [] }
  const values = await readValues(gatehouse, column, afterId)
  const last = values.length < BATCH ? undefined : values.at(-1)
  const next = last === undefined ? { column: index + 1, id: '' } : { column: index, id: last.id }
  const { stale, unopened } = await openAll(gatehouse, column, values)
  const resealed = stale.length === 0 ? 0 : await reseal(gatehouse, actor, column, stale, next)
  return {
    next: next.column < columns.length ? next : null,
    opened: values.length - unopened.length,
    resealed,
    unopened: unopened.map(({ id }) => `${column.name.table}.${column.name.column} ${id}`),
  }
}

interface Value {
  id: string
  organisationId: string
  sealed: Buffer
}

const readValues = ({ read }: Pick<Gatehouse, 'read'>, column: SealedColumn, afterId: string): Promise<Value[]> =>
  read
    .select({ id: column.id, organisationId: column.organisationId, sealed: column.sealed })
    .from(column.table)
    .where(and(gt(column.id, afterId), isNotNull(column.sealed)))
    .orderBy(asc(column.id))
    .limit(BATCH) as unknown as Promise<Value[]>

async function openAll({ keyring }: Pick<Gatehouse, 'keyring'>, column: SealedColumn, values: readonly Value[]) {
  const { dataKey, dataKeys } = keyring()
  const stale: (Value & { clear: Buffer })[] = []
  const unopened: Value[] = []
  for (const [i, value] of values.entries()) {
    if (i % SLICE === 0) await othersHaveTheirTurn()
    const clear = openOrNot(value, column, dataKeys)
    if (clear === undefined) unopened.push(value)
    else if (sealingKeyId(value.sealed) !== dataKey.id) stale.push({ ...value, clear })
  }
  return { stale, unopened }
}

function openOrNot(value: Value, column: SealedColumn, keys: ReturnType<Gatehouse['keyring']>['dataKeys']) {
  try {
    return open(value.sealed, (id) => keys.get(id), placeIn(column, value.id, value.organisationId))
  } catch {
    // Told of by its place, so that the others get their new key all the same.
    return undefined
  }
}

/** A value that was written anew meanwhile stays as it is now. */
async function reseal(
  { audited, keyring }: Pick<Gatehouse, 'audited' | 'keyring'>,
  actor: Actor,
  column: SealedColumn,
  values: readonly (Value & { clear: Buffer })[],
  next: Cursor,
): Promise<number> {
  const { dataKey } = keyring()
  const store = storing(column)
  return audited(actor, event(dataKey.id), async (tx) => {
    let count = 0
    for (const [i, { id, organisationId, sealed, clear }] of values.entries()) {
      if (i % SLICE === 0) await othersHaveTheirTurn()
      const anew = seal(clear, dataKey, placeIn(column, id, organisationId))
      count += (await store(tx, { id, sealed, anew })).length
    }
    tx.event.details = { ...column.name, resealed: count, cursor: next }
    return count
  })
}

/** Stores `anew` where `sealed` still is, and returns the id if so. Compiled for one batch: building it took half of the time. */
function storing(column: SealedColumn) {
  return compiledSelect((db) => {
    const { id, sealed, anew } = placeholders('id', 'sealed', 'anew')
    const isUnchanged = and(eq(column.id, id), eq(column.sealed, sealed))
    const fields = { id: column.id }
    // Only ever run in a transaction, which is a reader too; it answers with rows as a query does.
    const update = (db as Tx)
      .update(column.table)
      .set(column.set(anew as never))
      .where(isUnchanged)
      .returning(fields)
    return Object.assign(update, { getSelectedFields: () => fields })
  })
}

/** Says that nothing is under the data keys of before any more. They stay, for values of nodes that were slow. */
export async function finishDataKeyRotation(
  { audited, keyring }: Pick<Gatehouse, 'audited' | 'keyring'>,
  actor: Actor,
): Promise<void> {
  await audited(actor, event(keyring().dataKey.id), async (tx) => {
    const { keyring: t } = tx.tables
    const retired = await tx.update(t).set({ state: 'retired' }).where(isDataKey(t, 'previous')).returning({ id: t.id })
    tx.event.details = { retired: retired.map(({ id }) => id) }
  })
}

const isDataKey = (t: Tables['keyring'], state: 'current' | 'previous') =>
  and(eq(t.purpose, 'data'), eq(t.state, state))

const event = (id: string) => ({ action: 'data_key.rotate_key', resourceId: id, resourceName: id })
