import { Database } from 'bun:sqlite'
import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { SQL } from 'bun'
import { MIGRATIONS } from '../../schema/db/migrations.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type KeyringRow, newKeyringRows } from '../../src/crypto/keyring.ts'
import { newMasterKeyLine, readMasterKeys } from '../../src/crypto/master-key.ts'
import { APPLICATION_ID, migratePostgres, migrateSqlite } from '../../src/db/migrate.ts'
import { openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { DIALECTS } from '../support/database.ts'
import { createSite, type Site } from '../support/servers.ts'

interface OldDatabase {
  schemaVersion(): Promise<number>
  close(): Promise<void>
}

const COLUMNS = '(id, purpose, state, sealed_by, sealed, created_at)'

/** As the first version of the program left it. */
const OLD: Record<(typeof DIALECTS)[number], (site: Site, keyring: KeyringRow[]) => Promise<OldDatabase>> = {
  async sqlite({ paths }, keyring) {
    const db = new Database(`${paths.data}/gatehouse.db`, { create: true })
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`)
    migrateSqlite(db, MIGRATIONS.sqlite.slice(0, 1))
    db.run(`INSERT INTO installation (id, instance_id, revision, pruned_revision, created_at)
      VALUES ('installation', 'old', 0, 0, 0)`)
    for (const { id, purpose, state, sealedBy, sealed, createdAt } of keyring)
      db.query(`INSERT INTO keyring ${COLUMNS} VALUES (?, ?, ?, ?, ?, ?)`).run(
        ...[id, purpose, state, sealedBy, sealed, createdAt],
      )
    return {
      schemaVersion: async () => (db.query('PRAGMA user_version').get() as { user_version: number }).user_version,
      close: async () => db.close(),
    }
  },
  async postgres({ env }, keyring) {
    const url = new URL(env['GATEHOUSE_DATABASE_URL'] ?? '')
    url.password = env['TEST_DATABASE_PASSWORD'] ?? ''
    const sql = new SQL(url.href, { max: 1 })
    await migratePostgres(sql, MIGRATIONS.postgres.slice(0, 1))
    for (const { id, purpose, state, sealedBy, sealed, createdAt } of keyring)
      await sql`INSERT INTO keyring ${sql.unsafe(COLUMNS)}
        VALUES (${id}, ${purpose}, ${state}, ${sealedBy}, ${sealed}, ${createdAt})`
    return {
      schemaVersion: async () => Number((await sql`SELECT max(version) AS newest FROM schema_migrations`)[0].newest),
      close: () => sql.close(),
    }
  },
}

describe.each(DIALECTS)('a wrong master key: %s', (dialect) => {
  test('stops a new version of the program before that changes the schema, which the old one could not open', async () => {
    const site = await createSite(dialect)
    const { config, masterKey } = site.paths
    const old = await OLD[dialect](site, newKeyringRows(readMasterKeys(`file:${masterKey}`, {}), 0))
    afterAll(async () => {
      await old.close()
      site.remove()
    })
    const open = async () => {
      const log = createLog({ level: 'error', write: () => {} })
      await (await openGatehouse(loadConfig({ path: config, env: site.env }), log)).close()
    }
    const right = readFileSync(masterKey, 'utf8')
    chmodSync(masterKey, 0o600)
    writeFileSync(masterKey, newMasterKeyLine())
    await expect(open()).rejects.toMatchObject({ code: 'MASTER_KEY_MISMATCH', exitCode: 78 })
    expect(await old.schemaVersion()).toBe(1)
    writeFileSync(masterKey, right)
    await open()
    expect(await old.schemaVersion()).toBe(MIGRATIONS[dialect].length)
  })
})
