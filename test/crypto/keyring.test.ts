import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDigest } from '../../src/crypto/digest.ts'
import { newKeyringRows, openKeyring } from '../../src/crypto/keyring.ts'
import { createMasterKeyFile, readMasterKeys } from '../../src/crypto/master-key.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-keyring-'))
afterAll(() => rmSync(folder, { recursive: true }))

const lineOf = (id: string, fill: number) => `${id} ${Buffer.alloc(32, fill).toString('base64')}`
const keysOf = (...lines: string[]) => readMasterKeys('env:KEY', { KEY: lines.join('\n') })
const [one, two, three] = [lineOf('mk-1', 1), lineOf('mk-2', 2), lineOf('mk-3', 3)]
const rows = newKeyringRows(keysOf(one, two), 5)

describe('the keyring', () => {
  test('holds five different random keys, sealed by the newest master key', () => {
    const keyring = openKeyring(rows, keysOf(two))
    const { dataKey, apiKeyPepper, auditSigning, fingerprint, cursor } = keyring
    const all = [dataKey.bytes, apiKeyPepper, auditSigning, fingerprint, cursor].map((each) =>
      Buffer.from(each.reveal()).toString('hex'),
    )
    expect(new Set(all).size).toBe(5)
    for (const each of all) expect(each).toHaveLength(64)
    expect(rows.map((row) => row.sealedBy)).toEqual(Array(5).fill('mk-2'))
    expect([...keyring.dataKeys.keys()]).toEqual([dataKey.id])
    expect(Bun.inspect(keyring)).not.toContain(all[0]!.slice(0, 4))
    expect(JSON.stringify(keyring.apiKeyPepper)).toBe('"[redacted]"')
  })

  test('of one installation is not that of another with the same master key', () => {
    const [a, b] = [rows, newKeyringRows(keysOf(two), 5)].map((each) => openKeyring(each, keysOf(two)))
    expect(a?.apiKeyPepper.reveal()).not.toEqual(b!.apiKeyPepper.reveal())
  })

  test('opens whatever lines stand beside its own', () => {
    expect(openKeyring(rows, keysOf(three, two, one)).dataKeys.size).toBe(1)
  })

  test('keeps a previous data key for opening, the current one seals', () => {
    const [previous] = newKeyringRows(keysOf(two), 1)
    const { dataKey, dataKeys } = openKeyring([{ ...previous!, state: 'previous' }, ...rows], keysOf(two))
    expect(dataKey.id).toBe(rows[0]!.id)
    expect(dataKeys.size).toBe(2)
  })

  test.each([
    ['the key is not there', () => openKeyring(rows, keysOf(one))],
    ['another key has its id', () => openKeyring(rows, keysOf(lineOf('mk-2', 9)))],
    [
      'a row is relabelled',
      () =>
        openKeyring(
          rows.map((row, i) => ({ ...row, purpose: rows[(i + 1) % 5]!.purpose })),
          keysOf(two),
        ),
    ],
    ['a purpose is missing', () => openKeyring(rows.slice(1), keysOf(two))],
    [
      'a row was damaged',
      () =>
        openKeyring(
          rows.map((row) => ({ ...row, sealed: row.sealed.subarray(1) })),
          keysOf(two),
        ),
    ],
  ])('stays closed with 78 when %s', (_name, work) => {
    expect(work).toThrow(expect.objectContaining({ code: 'MASTER_KEY_MISMATCH', exitCode: 78 }))
  })
})

describe('the master key source', () => {
  test.each([
    ['a short key', `mk-1 ${Buffer.alloc(31, 1).toString('base64')}`],
    ['a long key', `mk-1 ${Buffer.alloc(33, 1).toString('base64')}`],
    ['hexadecimal', `mk-1 ${Buffer.alloc(32, 1).toString('hex')}`],
    ['raw bytes', Buffer.alloc(32, 1).toString('latin1')],
    ['a key without an id', Buffer.alloc(32, 1).toString('base64')],
    ['an id twice', `${one}\n${lineOf('mk-1', 2)}`],
    ['base64 with bits too many', `${one.slice(0, -2)}/=`],
  ])('refuses %s, without showing it', (_name, text) => {
    try {
      keysOf(text)
      expect.unreachable()
    } catch (error) {
      expect(error).toMatchObject({ code: 'MASTER_KEY_MISMATCH', exitCode: 78 })
      expect(String(error)).not.toContain(text.slice(-20))
    }
  })

  test.each(['', '\n# none\n'])('without a key is missing', (text) => {
    expect(() => keysOf(text)).toThrow(expect.objectContaining({ code: 'MASTER_KEY_MISSING', exitCode: 78 }))
  })

  test('may hold comments, blank lines and Windows line ends', () => {
    expect(keysOf('# 2026', '', `${one}\r`, two).map(({ id }) => id)).toEqual(['mk-1', 'mk-2'])
  })

  test('as a file: made once with mode 0400, never overwritten, different each time', () => {
    const [path, second] = [join(folder, 'master.key'), join(folder, 'second.key')]
    createMasterKeyFile(path)
    createMasterKeyFile(second)
    expect(statSync(path).mode & 0o777).toBe(0o400)
    expect(readMasterKeys(`file:${path}`, {})).toHaveLength(1)
    const written = readFileSync(path, 'utf8')
    expect(() => createMasterKeyFile(path)).toThrow(
      expect.objectContaining({ code: 'MASTER_KEY_EXISTS', exitCode: 73 }),
    )
    expect(readFileSync(path, 'utf8')).toBe(written)
    expect(readFileSync(second, 'utf8').slice(-40)).not.toBe(written.slice(-40))
  })

  test('that others may read is refused with 77, a missing one with 78', () => {
    const path = join(folder, 'open.key')
    writeFileSync(path, one)
    chmodSync(path, 0o440)
    expect(() => readMasterKeys(`file:${path}`, {})).toThrow(
      expect.objectContaining({ code: 'SECRET_PERMISSIONS', exitCode: 77 }),
    )
    expect(() => readMasterKeys('file:/nowhere/k', {})).toThrow(
      expect.objectContaining({ code: 'MASTER_KEY_MISSING', exitCode: 78 }),
    )
  })
})

test('a digest depends on the key and the pepper, and one call does not disturb the next', () => {
  const [digest, other] = [createDigest(Buffer.alloc(32, 1)), createDigest(Buffer.alloc(32, 2))]
  // printf %s k | openssl dgst -sha256 -mac HMAC -macopt hexkey:0101…01 -binary | basenc --base64url
  expect(digest('k')).toBe('X5NGVankOPyhEvFvxW9X_xpAN40Wh6Nwrw8L5-MzrC8')
  expect(digest('l')).not.toBe(digest('k'))
  expect(other('k')).not.toBe(digest('k'))
  expect(digest('k')).toBe(digest('k'))
})
