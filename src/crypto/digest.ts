/**
 * The keyed digest that API keys are stored and looked up by: HMAC-SHA256, base64url. A key has 178 random bits, so a
 * fast hash is right (AK-2).
 *
 * @param pepper the keyring's `api_key_pepper`, 32 bytes
 */
export function createDigest(pepper: Uint8Array): (clearKey: string) => string {
  // a copy of the keyed state takes 0.35 µs, keying anew 0.6 µs: this runs on every request
  const keyed = new Bun.CryptoHasher('sha256', pepper)
  return (clearKey) => keyed.copy().update(clearKey).digest('base64url')
}
