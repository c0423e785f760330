import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { GatehouseError } from '../errors.ts'
import type { Redacted } from '../redacted.ts'

/** A key that seals, under the id that each blob names. `bytes` are 32. */
export interface SealingKey {
  id: string
  bytes: Redacted<Uint8Array>
}

/** Where a sealed value lives; a blob moved to another place does not open. */
export interface SealedPlace {
  table: string
  column: string
  rowId: string
  /** '' for values of the whole installation */
  organisationId: string
}

/** Sealed bytes: `v1 ‖ key id ‖ nonce ‖ ciphertext ‖ tag` (decision 41). Cannot be mistaken for text or for clear bytes. */
export type Sealed = Buffer & { readonly sealed: unique symbol }

/** First byte of every blob; the key id follows as one length byte and its ASCII characters. */
const VERSION = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals with AES-256-GCM and a fresh random nonce. Synchronous: it runs inside transactions. */
export function seal(clear: string | Uint8Array, key: SealingKey, place: SealedPlace): Sealed {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key.bytes.reveal(), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(authenticatedData(key.id, place))
  const ciphertext = cipher.update(typeof clear === 'string' ? Buffer.from(clear) : clear)
  const parts = [
    Buffer.from([VERSION, key.id.length]),
    Buffer.from(key.id, 'latin1'),
    nonce,
    ciphertext,
    cipher.final(),
    cipher.getAuthTag(),
  ]
  return Buffer.concat(parts) as Sealed
}

/**
 * Opens what `seal` made.
 *
 * @param keyOf finds the key that the blob names
 * @throws GatehouseError `internal` when the key is unknown, a byte was changed or the blob was moved (SE-3)
 */
export function open(sealed: Uint8Array, keyOf: (id: string) => SealingKey | undefined, place: SealedPlace): Buffer {
  const blob = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  const keyId = sealingKeyId(blob)
  const key = blob[0] === VERSION ? keyOf(keyId) : undefined
  const start = 2 + (blob[1] ?? 0)
  if (key === undefined || blob.length < start + NONCE_BYTES + TAG_BYTES) throw unopened()
  try {
    const nonce = blob.subarray(start, start + NONCE_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', key.bytes.reveal(), nonce, { authTagLength: TAG_BYTES })
    decipher.setAAD(authenticatedData(keyId, place))
    decipher.setAuthTag(blob.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(blob.subarray(start + NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    throw unopened()
  }
}

/** The id of the key that a blob was sealed with. */
export function sealingKeyId(sealed: Uint8Array): string {
  return Buffer.from(sealed.subarray(2, 2 + (sealed[1] ?? 0))).toString('latin1')
}

const unopened = () => new GatehouseError('internal', 'a sealed value could not be opened')

/** Each part with its length before it, so that no two places read alike (decision 41). */
function authenticatedData(keyId: string, place: SealedPlace): Buffer {
  const parts = ['v1', place.table, place.column, place.rowId, place.organisationId, keyId].flatMap((part) => {
    const bytes = Buffer.from(part)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return [length, bytes]
  })
  return Buffer.concat(parts)
}
