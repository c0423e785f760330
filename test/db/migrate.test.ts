import { Database as Connection } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { type Migration, migratePostgres, migrateSqlite } from '../../src/db/migrate.ts'
import { DIALECTS } from '../support/database.ts'
import { freshPostgresUrl } from '../support/postgres.ts'

const TABLES = `
  CREATE TABLE schema_migrations (version bigint PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at bigint NOT NULL);
  CREATE TABLE parent (id text PRIMARY KEY);
  CREATE TABLE child (id text PRIMARY KEY, parent_id text NOT NULL REFERENCES parent(id) ON DELETE CASCADE);
  INSERT INTO parent VALUES ('p');
  INSERT INTO child VALUES ('c', 'p');`

const step = (version: number, text: string): Migration => ({ version, name: `step_${version}`, text })

/** How drizzle-kit rebuilds a table in SQLite. */
const REBUILD = `
  CREATE TABLE __new_parent (id text PRIMARY KEY, note text);
  INSERT INTO __new_parent (id) SELECT id FROM parent;
  DROP TABLE parent;
  ALTER TABLE __new_parent RENAME TO parent;`

interface Subject {
  migrate(migrations: Migration[]): Promise<void>
  rows(query: string): Promise<unknown[][]>
  close(): Promise<void>
}

const SUBJECTS: Record<string, () => Promise<Subject>> = {
  sqlite: async () => {
    const db = new Connection(':memory:')
    db.run('PRAGMA foreign_keys = ON')
    return {
      migrate: async (migrations) => migrateSqlite(db, migrations),
      rows: async (query) => db.query(query).values(),
      close: async () => db.close(),
    }
  },
  postgres: async () => {
    const sql = new SQL((await freshPostgresUrl())!, { max: 2 })
    return {
      migrate: (migrations) => migratePostgres(sql, migrations),
      rows: async (query) => [...(await sql.unsafe(query).values())],
      close: () => sql.close(),
    }
  },
}

describe.each(DIALECTS)('migrations: %s', (dialect) => {
  const withSubject = async (work: (subject: Subject) => Promise<void>) => {
    const subject = await SUBJECTS[dialect]!()
    await work(subject).finally(() => subject.close())
  }
  const versions = async (subject: Subject) =>
    (await subject.rows('SELECT version FROM schema_migrations ORDER BY version')).flat().map(Number)

  test('each one is applied once, in order', () =>
    withSubject(async (subject) => {
      const first = [step(1, TABLES)]
      const both = [...first, step(2, "INSERT INTO parent VALUES ('second')")]
      await subject.migrate(first)
      await subject.migrate(both)
      await subject.migrate(both)
      expect(await versions(subject)).toEqual([1, 2])
      expect(await subject.rows('SELECT id FROM parent ORDER BY id')).toEqual([['p'], ['second']])
    }))

  test('one that fails half-way leaves the version before it, and works once it is mended', () =>
    withSubject(async (subject) => {
      const broken = [step(1, TABLES), step(2, "INSERT INTO parent VALUES ('half'); INSERT INTO nowhere VALUES (1);")]
      await expect(subject.migrate(broken)).rejects.toThrow(/nowhere/)
      expect(await versions(subject)).toEqual([1])
      expect(await subject.rows('SELECT id FROM parent')).toEqual([['p']])
      await subject.migrate([step(1, TABLES), step(2, "INSERT INTO parent VALUES ('whole')")])
      expect(await versions(subject)).toEqual([1, 2])
    }))

  test('a newer database is refused, and so is one made by another text', () =>
    withSubject(async (subject) => {
      await subject.migrate([step(1, TABLES), step(2, 'SELECT 1')])
      await expect(subject.migrate([step(1, TABLES)])).rejects.toMatchObject({ code: 'SCHEMA_NEWER', exitCode: 65 })
      const changed = [step(1, TABLES), step(2, 'SELECT 2')]
      await expect(subject.migrate(changed)).rejects.toMatchObject({ code: 'MIGRATION_CHANGED', exitCode: 65 })
      expect(await versions(subject)).toEqual([1, 2])
    }))
})

describe('SQLite rebuilds tables', () => {
  test('a rebuilt parent keeps its children, and foreign keys hold again afterwards', () => {
    const db = new Connection(':memory:')
    db.run('PRAGMA foreign_keys = ON')
    migrateSqlite(db, [step(1, TABLES), step(2, REBUILD)])
    expect(db.query('SELECT id, parent_id FROM child').values()).toEqual([['c', 'p']])
    expect(() => db.run("INSERT INTO child VALUES ('orphan', 'nobody')")).toThrow(/FOREIGN KEY/)
    db.run("DELETE FROM parent WHERE id = 'p'")
    expect(db.query('SELECT count(*) FROM child').values()).toEqual([[0]])
  })

  test('as drizzle-kit writes it, the same rebuilding would have deleted them: the PRAGMA does nothing in a transaction', () => {
    const db = new Connection(':memory:')
    db.run('PRAGMA foreign_keys = ON')
    db.run(TABLES)
    db.transaction(() => db.run(`PRAGMA foreign_keys = OFF; ${REBUILD}`))()
    expect(db.query('SELECT count(*) FROM child').values()).toEqual([[0]])
  })

  test('one that leaves a child without its parent is undone', () => {
    const db = new Connection(':memory:')
    db.run('PRAGMA foreign_keys = ON')
    const losing = step(2, REBUILD.replace('SELECT id FROM parent', "SELECT id FROM parent WHERE id = 'other'"))
    expect(() => migrateSqlite(db, [step(1, TABLES), losing])).toThrow(/without their parent/)
    expect(db.query('SELECT count(*) FROM parent').values()).toEqual([[1]])
    expect(db.query('PRAGMA foreign_keys').values()).toEqual([[1]])
  })
})
