import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import type { Keyring } from '../crypto/keyring.ts'

/** What the audit trail takes from the keyring. */
export interface AuditKeys {
  /** names the signing key: the first 16 hexadecimal digits of the SHA-256 of its public key */
  id: string
  /** Ed25519, 32 bytes, base64 */
  publicKey: string
  /** @returns an Ed25519 signature, base64 */
  sign(message: string): string
  /**
   * What stands for a secret in a row (decision 7): 16 hexadecimal digits of an HMAC over its place and itself, so that
   * the same secret in the same place is seen to be the same, and a guess cannot be tried elsewhere.
   */
  fingerprint(table: string, rowId: string, field: string, value: string): string
}

export function auditKeys({ auditSigning, fingerprint }: Pick<Keyring, 'auditSigning' | 'fingerprint'>): AuditKeys {
  const privateKey = privateKeyOf(auditSigning.reveal())
  const publicKey = rawPublicKey(privateKey)
  return {
    id: signingKeyId(publicKey),
    publicKey: publicKey.toString('base64'),
    sign: (message) => sign(null, Buffer.from(message), privateKey).toString('base64'),
    fingerprint(...parts) {
      const hmac = createHmac('sha256', fingerprint.reveal())
      // Each part behind its length, so that no two places read alike.
      for (const part of parts) hmac.update(`${Buffer.byteLength(part)}:${part}`)
      return hmac.digest('hex').slice(0, 16)
    },
  }
}

/** @param publicKey 32 bytes */
export const signingKeyId = (publicKey: Uint8Array): string => Bun.SHA256.hash(publicKey, 'hex').slice(0, 16)

/** @param publicKey base64 of 32 bytes; false also for one that is no key */
export function isSignedBy(publicKey: string, message: string, signature: string): boolean {
  try {
    const spki = Buffer.concat([SPKI_PREFIX, Buffer.from(publicKey, 'base64')])
    const key = createPublicKey({ key: spki, format: 'der', type: 'spki' })
    return verify(null, Buffer.from(message), key, Buffer.from(signature, 'base64'))
  } catch {
    return false
  }
}

/** What stands before the 32 bytes of an Ed25519 key in PKCS #8 and SPKI (RFC 8410): node takes no bare ones. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex')
const SPKI_PREFIX = Buffer.from('302a300506032b6570032100', 'hex')

const privateKeyOf = (seed: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' })

const rawPublicKey = (privateKey: KeyObject): Buffer =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length)
