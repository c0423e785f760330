import type { SealedKeyringRow } from '../crypto/keyring.ts'

/**
 * Looks at the keyring of an existing database before anything is changed there, the schema included; what it throws
 * stops the start.
 */
export type Admit = (keyring: readonly SealedKeyringRow[]) => void

/** In both dialects, and in every version of the schema. */
export const SELECT_KEYRING = 'SELECT id, purpose, state, sealed_by AS "sealedBy", sealed FROM keyring'
