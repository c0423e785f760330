import { Database as Connection } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { groupCommit } from '../../src/db/group-commit.ts'
import { openDatabase } from '../../src/db/open.ts'
import { connect, ensureFile, isNetworkFilesystem, requireSqlite } from '../../src/db/sqlite-file.ts'
import { StartError } from '../../src/start-error.ts'
import { freshFolder } from '../support/database.ts'

const open = (dataDir: string, create = true) => openDatabase({ dialect: 'sqlite', dataDir, create })
const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'opened',
    (error: unknown) => (error instanceof StartError ? `${error.code} ${error.exitCode}` : String(error)),
  )

describe('what stands in the data folder decides whether we start', () => {
  const edit = (path: string, sql: string) => {
    const db = new Connection(path)
    db.run(sql)
    db.close()
  }
  const cases: { name: string; change: (path: string, dir: string) => void; expect: string; create?: boolean }[] = [
    { name: 'our own database', change: () => {}, expect: 'opened' },
    { name: 'nothing at all', change: (path) => rmSync(path), expect: 'opened' },
    {
      name: 'nothing, where nothing may be made',
      change: (path) => rmSync(path),
      create: false,
      expect: 'DATA_MISSING 65',
    },
    { name: 'an empty file', change: (path) => truncateSync(path, 0), expect: 'NOT_OUR_DATABASE 65' },
    { name: 'a text file', change: (path) => writeFileSync(path, 'hello '.repeat(100)), expect: 'NOT_OUR_DATABASE 65' },
    { name: 'a few bytes', change: (path) => truncateSync(path, 50), expect: 'NOT_OUR_DATABASE 65' },
    {
      name: 'another program’s database',
      change: (path) => edit(path, 'PRAGMA application_id = 7'),
      expect: 'NOT_OUR_DATABASE 65',
    },
    {
      name: 'a newer schema',
      change: (path) => edit(path, "INSERT INTO schema_migrations VALUES (99, 'x', 'x', 0); PRAGMA user_version = 99"),
      expect: 'SCHEMA_NEWER 65',
    },
    {
      name: 'a migration with another text',
      change: (path) => edit(path, "UPDATE schema_migrations SET checksum = 'x'"),
      expect: 'MIGRATION_CHANGED 65',
    },
    { name: 'half a database', change: (path) => truncateSync(path, 4096), expect: 'DB_CORRUPT 65' },
    {
      name: 'a folder',
      change: (path) => {
        rmSync(path)
        Bun.spawnSync(['mkdir', path])
      },
      expect: 'DATA_DIR_UNUSABLE 73',
    },
    {
      name: 'the log of a database that is gone',
      change: (path) => {
        rmSync(path)
        writeFileSync(`${path}-wal`, 'x')
      },
      expect: 'DATA_MISSING 65',
    },
    {
      name: 'a database that is gone after initialisation',
      change: (path, dir) => {
        rmSync(path)
        writeFileSync(`${dir}/INITIALISED`, 'id')
      },
      expect: 'DATA_MISSING 65',
    },
    {
      name: 'a database that is empty after initialisation',
      change: (path, dir) => {
        truncateSync(path, 0)
        writeFileSync(`${dir}/INITIALISED`, 'id')
      },
      expect: 'DATA_MISSING 65',
    },
    {
      name: 'another database after initialisation',
      change: (path, dir) => {
        edit(path, 'PRAGMA application_id = 7')
        writeFileSync(`${dir}/INITIALISED`, 'id')
      },
      expect: 'DATA_MISSING 65',
    },
    {
      name: 'an interrupted first start',
      change: (path) => {
        rmSync(path)
        writeFileSync(`${path}.new`, 'half')
      },
      expect: 'opened',
    },
  ]
  test.each(cases)('$name: $expect', async ({ change, expect: expected, create }) => {
    const dir = freshFolder()
    const path = `${dir}/gatehouse.db`
    await (await open(dir)).close()
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    change(path, dir)
    const before = fingerprint(path)
    const code = await codeOf(open(dir, create).then((db) => db.close()))
    expect(code).toBe(expected)
    if (expected !== 'opened') expect(fingerprint(path)).toBe(before)
    rmSync(dir, { recursive: true })
  })
  const fingerprint = (path: string) =>
    existsSync(path) && statSync(path).isFile() ? Bun.hash(readFileSync(path)).toString() : 'no file'

  test.each([
    [0x6969, 'linux', true],
    [0xff534d42, 'linux', true],
    [0xff534d42 | 0, 'linux', true],
    [0x65735546, 'linux', true],
    [0xef53, 'linux', false],
    [0x01021994, 'linux', false],
    [0x6969, 'darwin', false],
  ] as const)('statfs type %p on %s is a network file system: %p', (type, platform, expected) => {
    expect(isNetworkFilesystem(type, platform)).toBe(expected)
  })

  test.each(['3.51.2', '3.40.1', '3.9.0'])('SQLite %s is refused', (version) => {
    expect(() => requireSqlite(version)).toThrow(expect.objectContaining({ code: 'SQLITE_TOO_OLD', exitCode: 65 }))
  })
  test.each(['3.51.3', '3.54.1', '4.0.0'])('SQLite %s is taken', (version) => {
    expect(requireSqlite(version)).toBeUndefined()
  })
})

describe('one process at a time', () => {
  test('a second process is told the pid of the first, and may start once that is dead', async () => {
    const dir = freshFolder()
    const holder = Bun.spawn([process.execPath, `${import.meta.dir}/../support/committer.ts`, dir, 'hold'], {
      stdout: 'pipe',
    })
    const line = await holder.stdout.getReader().read()
    expect(new TextDecoder().decode(line.value)).toContain('open')
    const error = await open(dir).catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'DATA_DIR_LOCKED', exitCode: 69 })
    expect(String(error)).toContain(`pid ${holder.pid}`)
    holder.kill('SIGKILL')
    await holder.exited
    await (await open(dir)).close()
    rmSync(dir, { recursive: true })
  })

  test('a folder is free again after close, and after a start that failed', async () => {
    const dir = freshFolder()
    await (await open(dir)).close()
    truncateSync(`${dir}/gatehouse.db`, 0)
    expect(await codeOf(open(dir))).toBe('NOT_OUR_DATABASE 65')
    rmSync(`${dir}/gatehouse.db`)
    const first = await open(dir)
    expect(await codeOf(open(dir))).toBe('DATA_DIR_LOCKED 69')
    await first.close()
    rmSync(dir, { recursive: true })
  })

  test('nobody else on the machine can read what we write', async () => {
    const dir = freshFolder()
    const db = await open(`${dir}/data`)
    await db.probe()
    const modes = ['.', ...readdirSync(`${dir}/data`)].map((file) => statSync(`${dir}/data/${file}`).mode & 0o077)
    expect(modes.length).toBeGreaterThan(4)
    expect(modes.every((mode) => mode === 0)).toBe(true)
    await db.close()
    rmSync(dir, { recursive: true })
  })
})

describe('connections', () => {
  let dir: string
  let writer: Connection
  let reader: Connection
  beforeAll(() => {
    dir = freshFolder()
    ensureFile(dir, `${dir}/gatehouse.db`, true)
    writer = connect(`${dir}/gatehouse.db`, 'write')
    reader = connect(`${dir}/gatehouse.db`, 'read')
  })
  afterAll(() => {
    writer.close()
    reader.close()
    rmSync(dir, { recursive: true })
  })
  const pragma = (db: Connection, name: string) => Object.values(db.query(`PRAGMA ${name}`).get() as object)[0]

  test.each([
    ['journal_mode', 'wal'],
    ['synchronous', 2],
    ['busy_timeout', 5000],
    ['foreign_keys', 1],
    ['trusted_schema', 0],
    ['cell_size_check', 1],
    ['secure_delete', 1],
    ['mmap_size', 0],
    ['journal_size_limit', 67_108_864],
    ['temp_store', 2],
  ] as const)('the writer has %s = %p', (name, value) => {
    expect(pragma(writer, name)).toBe(value)
  })

  test('the reader cannot write, and every table is STRICT', () => {
    expect(() => reader.run('DELETE FROM changes')).toThrow(/readonly/)
    const loose = reader
      .query("SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND strict = 0")
      .all()
    expect(loose).toEqual([])
  })

  test('a full disk fails every change of the group, and the next group goes through', async () => {
    const pages = pragma(writer, 'page_count') as number
    const group = groupCommit(writer)
    writer.run(`PRAGMA max_page_count = ${pages}`)
    const big = (id: string) =>
      group.transaction({ action: 'test' }, (tx) =>
        tx
          .insert(tx.tables.organisations)
          .values({ id, name: 'x'.repeat(100_000), createdAt: 0 })
          .returning(),
      )
    const failed = await Promise.allSettled([big('a'), big('b')])
    expect(failed).toMatchObject([
      { status: 'rejected', reason: { code: 'storage_unavailable' } },
      { status: 'rejected', reason: { code: 'storage_unavailable' } },
    ])
    writer.run(`PRAGMA max_page_count = ${pages + 1000}`)
    expect(await big('c')).toHaveLength(1)
    expect(reader.query('SELECT id FROM organisations').values()).toEqual([['c']])
  })

  test('when COMMIT fails nobody is told that it worked', async () => {
    const group = groupCommit(writer)
    const insert = (id: string, last: () => void) =>
      group.transaction({ action: 'test' }, async (tx) => {
        await tx.insert(tx.tables.organisations).values({ id, name: id, createdAt: 0 })
        last()
      })
    const results = await Promise.allSettled([
      insert('d', () => {}),
      // A violated deferred key is found by COMMIT alone.
      insert('e', () => {
        writer.run('PRAGMA defer_foreign_keys = ON')
        writer.run("INSERT INTO users VALUES ('u', 'nobody', 'e', '', '', 'owner', 'active', 0, 0)")
      }),
    ])
    expect(results.map((result) => result.status === 'rejected' && result.reason.code)).toEqual([
      'storage_unavailable',
      'storage_unavailable',
    ])
    expect(reader.query("SELECT id FROM organisations WHERE id IN ('d', 'e')").values()).toEqual([])
    await insert('f', () => {})
    expect(reader.query("SELECT id FROM organisations WHERE id = 'f'").values()).toEqual([['f']])
  })

  test('at most 64 changes share a commit', async () => {
    const group = groupCommit(writer)
    const sizes: number[] = []
    group.onCommitted(async (changes) => void sizes.push(changes.length))
    await Promise.all(
      Array.from({ length: 150 }, (_, i) =>
        group.transaction({ action: 'test' }, async (tx) => tx.changed('user', String(i))),
      ),
    )
    expect(sizes).toEqual([64, 64, 22])
  })
})
