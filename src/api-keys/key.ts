import { randomFillSync } from 'node:crypto'

/** a = organisation (admin) keys, w = workspace keys, s = system keys */
export type KeyLetter = 'a' | 'w' | 's'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const BODY_LENGTH = 'gth_a_'.length + RANDOM_LENGTH + '_'.length
export const KEY_LENGTH = BODY_LENGTH + CHECKSUM_LENGTH

/** For secret scanners (AK-1). The last six characters are a checksum, which `isWellFormedKey` verifies too. */
export const KEY_PATTERN = /\bgth_[aws]_[0-9A-Za-z]{30}_[0-9A-Za-z]{6}\b/

/**
 * A fresh clear key: `gth_<letter>_<30 base62>_<6 base62>`, 43 characters, 178 random bits. The last part is the CRC-32
 * of the 37 characters before it, underscore included, as a base62 number padded with zeros.
 */
export function newApiKey(letter: KeyLetter): string {
  const body = `gth_${letter}_${randomBase62(RANDOM_LENGTH)}_`
  return body + checksumOf(body)
}

/** Whether `text` can be a key at all; runs on every request before any look-up and allocates nothing. */
export function isWellFormedKey(text: string): boolean {
  if (text.length !== KEY_LENGTH || !text.startsWith('gth_')) return false
  const letter = text[4]
  if ((letter !== 'a' && letter !== 'w' && letter !== 's') || text[5] !== '_' || text[BODY_LENGTH - 1] !== '_')
    return false
  for (let i = 6; i < BODY_LENGTH - 1; i++) if (digitOf(text.charCodeAt(i)) < 0) return false
  let checksum = 0
  for (let i = BODY_LENGTH; i < KEY_LENGTH; i++) {
    const digit = digitOf(text.charCodeAt(i))
    if (digit < 0) return false
    checksum = checksum * 62 + digit
  }
  return checksum === crc32(text, BODY_LENGTH)
}

/** What may be shown of a key: first two of the random part, last three (decision 7). */
export const maskKey = (clearKey: string): string => `${clearKey.slice(6, 8)}*****${clearKey.slice(-3)}`

/** Bytes from 248 up are drawn again: 248 = 4 × 62, so each character is equally likely. */
function randomBase62(length: number): string {
  let text = ''
  const pool = new Uint8Array(length * 2)
  while (text.length < length) {
    randomFillSync(pool)
    for (const byte of pool) if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
  }
  return text
}

function checksumOf(body: string): string {
  let rest = crc32(body, body.length)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

/** Place of a character code in ALPHABET, or −1. */
function digitOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  if (code >= 65 && code <= 90) return code - 55
  if (code >= 97 && code <= 122) return code - 61
  return -1
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  return crc
})

/** CRC-32 (zlib's) of the first `length` characters, all of them ASCII. */
function crc32(text: string, length: number): number {
  let crc = 0xffffffff
  for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff]!
  return (crc ^ 0xffffffff) >>> 0
}
