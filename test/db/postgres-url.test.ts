import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chownSync, statSync } from 'node:fs'
import { SQL } from 'bun'
import { postgresOptions } from '../../src/db/postgres-url.ts'
import { freshPostgresUrl } from '../support/postgres.ts'

const isThere = (await freshPostgresUrl()) !== undefined
const openssl = Bun.which('openssl')
if (openssl === null)
  process.stderr.write('skipped: openssl is not installed, so that TLS to PostgreSQL is not tested\n')

describe.skipIf(!isThere || openssl === null)('TLS to PostgreSQL', () => {
  let admin: SQL
  let port: string
  let authority: string
  beforeAll(async () => {
    const url = (await freshPostgresUrl())!
    port = new URL(url).port
    admin = new SQL(url, { max: 1 })
    const [{ data_directory: folder }] = await admin`SHOW data_directory`
    authority = `${folder}/server.crt`
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
    const files = ['-keyout', `${folder}/server.key`, '-out', authority]
    Bun.spawnSync([openssl!, 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...subject])
    const { uid, gid } = statSync(folder)
    for (const file of [authority, `${folder}/server.key`]) chownSync(file, uid, gid)
    await setTls('on')
  })
  afterAll(async () => {
    await setTls('off')
    await admin.close()
  })
  async function setTls(value: 'on' | 'off'): Promise<void> {
    await admin.unsafe(`ALTER SYSTEM SET ssl = ${value}`)
    await admin`SELECT pg_reload_conf()`
    // The signal reaches the server a moment later.
    while ((await admin`SHOW ssl`)[0].ssl !== value) await Bun.sleep(5)
  }

  test.each([
    { host: 'localhost', mode: 'require', trusts: false, expect: 'encrypted' },
    { host: 'localhost', mode: 'verify-full', trusts: true, expect: 'encrypted' },
    { host: '127.0.0.1', mode: 'verify-ca', trusts: true, expect: 'encrypted' },
    { host: '127.0.0.1', mode: 'verify-full', trusts: true, expect: 'refused' },
    { host: 'localhost', mode: 'verify-full', trusts: false, expect: 'refused' },
    { host: 'localhost', mode: 'verify-ca', trusts: false, expect: 'refused' },
  ])('$mode at $host, authority known: $trusts → $expect', async ({ host, mode, trusts, expect: expected }) => {
    const suffix = trusts ? `&sslrootcert=${authority}` : ''
    const client = new SQL(
      postgresOptions(`postgres://gatehouse:secret@${host}:${port}/postgres?sslmode=${mode}${suffix}`),
    )
    const query = client`SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`
    const outcome = await query.then(
      ([row]: { ssl: boolean }[]) => (row!.ssl ? 'encrypted' : 'in the clear'),
      () => 'refused',
    )
    expect(outcome).toBe(expected)
    await client.close({ timeout: 0 })
  })
})

describe('database.url', () => {
  test.each([
    ['postgres://u@db.example/x', 'postgres://u@db.example:5432/x?sslmode=verify-full'],
    ['postgresql://u@127.0.0.1:6000/x', 'postgres://u@127.0.0.1:6000/x?sslmode=disable'],
    ['postgres://u@[::1]/x', 'postgres://u@[::1]:5432/x?sslmode=disable'],
    ['postgres://u:p%40ss@localhost/x?sslmode=require', 'postgres://u@localhost:5432/x?sslmode=require'],
  ])('%s', (url, expected) => {
    expect(postgresOptions(url)).toMatchObject({ url: expected })
  })

  test('a password comes from its own setting before the URL, and is decoded', () => {
    const password = (url: string, own?: string) => (postgresOptions(url, own) as { password: () => string }).password()
    expect(password('postgres://u:p%40ss@db/x')).toBe('p@ss')
    expect(password('postgres://u:p%40ss@db/x', 'own')).toBe('own')
    expect(password('postgres://u@db/x')).toBe('')
  })

  test.each([
    'mysql://u@db/x',
    'not a url',
    'postgres://db/x',
    'postgres://u@db',
    'postgres://u@db/x?sslmode=prefer',
    'postgres://u@db/x?options=-c%20fsync=off',
    'postgres://u:hunter2@db/x?sslrootcert=/nowhere/ca.pem',
  ])('%s is refused before anything is sent', (url) => {
    let error: unknown
    try {
      postgresOptions(url)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'DATABASE_URL_INVALID', exitCode: 78 })
    expect(String(error)).not.toContain('hunter2')
  })
})
