import { randomBytes } from 'node:crypto'
import type { Tables } from '../../schema/db/tables.ts'
import { Redacted } from '../redacted.ts'
import { open, type SealedPlace, type SealingKey, seal, sealingKeyId } from './cipher.ts'
import { type MasterKeys, mismatch } from './master-key.ts'

const PURPOSES = ['data', 'api_key_pepper', 'audit_signing', 'fingerprint', 'cursor'] as const
type Purpose = (typeof PURPOSES)[number]

export type KeyringRow = Tables['keyring']['$inferSelect']
/** What it takes to open a row. */
export type SealedKeyringRow = Omit<KeyringRow, 'createdAt'>

/** Every key in use, in clear: random, and derived from nothing, so that rotating the master key changes none (decision 41). */
export interface Keyring {
  /** seals new values */
  dataKey: SealingKey
  /** every data key there was, by id: opens values */
  dataKeys: ReadonlyMap<string, SealingKey>
  apiKeyPepper: Redacted<Buffer>
  /** seed of the Ed25519 key */
  auditSigning: Redacted<Buffer>
  fingerprint: Redacted<Buffer>
  cursor: Redacted<Buffer>
  known: KnownKeys
}

/** Opened keys by the id of their row. A row holds the same key for ever, so that it is opened once. */
export type KnownKeys = Map<string, Redacted<Buffer>>

/**
 * The rows of a new installation: 32 random bytes a purpose, sealed with the source's last line.
 *
 * @param now UTC milliseconds
 */
export function newKeyringRows(masterKeys: MasterKeys, now: number): KeyringRow[] {
  const masterKey = masterKeys.at(-1)
  if (masterKey === undefined) throw mismatch('master_key.source holds no key')
  return PURPOSES.map((purpose) => sealedRow(purpose, Bun.randomUUIDv7(), randomBytes(32), masterKey, now))
}

/**
 * A row with a fresh key that takes the place of `current`, sealed with the same master key.
 *
 * @throws StartError 78 MASTER_KEY_MISMATCH when that master key is not there, or is not what `current` was sealed with
 */
export function successorOf(
  current: KeyringRow,
  masterKeys: MasterKeys,
  now: number,
): { row: KeyringRow; key: Redacted<Buffer> } {
  openRow(current, masterKeys)
  const masterKey = masterKeys.find(({ id }) => id === current.sealedBy)
  if (masterKey === undefined) throw notInSource()
  const bytes = randomBytes(32)
  const row = sealedRow(current.purpose, Bun.randomUUIDv7(), bytes, masterKey, now)
  return { row, key: new Redacted(bytes) }
}

/**
 * The same row, opened and sealed with another master key.
 *
 * @throws StartError 78 MASTER_KEY_MISMATCH when it does not open
 */
export function resealedRow(row: KeyringRow, masterKeys: MasterKeys, to: SealingKey): KeyringRow {
  const { purpose, id, state, createdAt } = row
  const key = openRow(row, masterKeys)
  const after = { ...sealedRow(purpose, id, key.reveal(), to, createdAt), state }
  openRow(after, [to])
  return after
}

function sealedRow(purpose: string, id: string, bytes: Buffer, masterKey: SealingKey, createdAt: number): KeyringRow {
  const sealed = seal(bytes, masterKey, placeOf(purpose, id))
  return { id, purpose, state: 'current', sealedBy: masterKey.id, sealed, createdAt }
}

/**
 * Opens the stored keyring; run before anything is written or served.
 *
 * @param known rows that need no master key any more; those that are opened here come to them
 * @throws StartError 78 MASTER_KEY_MISMATCH when a row's master key is not in the source, or does not open it
 */
export function openKeyring(
  rows: readonly SealedKeyringRow[],
  masterKeys: MasterKeys,
  known: KnownKeys = new Map(),
): Keyring {
  const opened = rows.map((row) => ({ row, bytes: known.get(row.id) ?? openRow(row, masterKeys) }))
  for (const { row, bytes } of opened) known.set(row.id, bytes)
  const current = (purpose: Purpose) => {
    const found = opened.find(({ row }) => row.purpose === purpose && row.state === 'current')
    if (found === undefined) throw mismatch(`the keyring has no current ${purpose} key`)
    return found
  }
  const dataKeys = opened
    .filter(({ row }) => row.purpose === 'data')
    .map(({ row, bytes }): SealingKey => ({ id: row.id, bytes }))
  const { row, bytes } = current('data')
  return {
    dataKey: { id: row.id, bytes },
    dataKeys: new Map(dataKeys.map((key) => [key.id, key])),
    apiKeyPepper: current('api_key_pepper').bytes,
    auditSigning: current('audit_signing').bytes,
    fingerprint: current('fingerprint').bytes,
    cursor: current('cursor').bytes,
    known,
  }
}

function openRow(row: SealedKeyringRow, masterKeys: MasterKeys): Redacted<Buffer> {
  // the blob's own key id counts: `sealed_by` beside it may be read by people, and the two are written together
  const id = sealingKeyId(row.sealed)
  const masterKey = masterKeys.find((key) => key.id === id && key.id === row.sealedBy)
  if (masterKey === undefined) throw notInSource()
  try {
    return new Redacted(open(row.sealed, () => masterKey, placeOf(row.purpose, row.id)))
  } catch {
    throw mismatch('the master key of that id does not open the keyring')
  }
}

const notInSource = () => mismatch('the keyring was sealed with a master key that is not in master_key.source')

/** The purpose is part of the place: a row relabelled from `cursor` to `data` does not open. */
const placeOf = (purpose: string, rowId: string): SealedPlace => ({
  table: 'keyring',
  column: `sealed:${purpose}`,
  rowId,
  organisationId: '',
})
