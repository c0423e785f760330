import { tmpdir } from 'node:os'
import { SQL } from 'bun'

/**
 * A fresh, empty database on a PostgreSQL that this test process starts at first use and that ends with it.
 *
 * @returns its URL, or undefined (with the reason printed) where there is no PostgreSQL, unless
 *          GATEHOUSE_TEST_POSTGRES=required
 */
export async function freshPostgresUrl(): Promise<string | undefined> {
  // In the environment, since each test file has modules of its own. Empty: there is no server.
  process.env['GATEHOUSE_TEST_POSTGRES_URL'] ??= startServer()
  const server = process.env['GATEHOUSE_TEST_POSTGRES_URL']
  if (server === '') return undefined
  const name = `test_${Bun.randomUUIDv7().replaceAll('-', '')}`
  const sql = new SQL(server, { max: 1 })
  await sql.unsafe(`CREATE DATABASE ${name}`)
  await sql.close()
  return server.replace(/[^/]+$/, name)
}

function startServer(): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(
    [
      `${import.meta.dir}/../servers/postgres.sh`,
      'start',
      `${tmpdir()}/gatehouse-test-postgres-${process.pid}`,
      String(process.pid),
    ],
    { stdin: 'ignore' },
  )
  if (exitCode === 0) return stdout.toString().trim()
  const reason = `PostgreSQL: ${stderr.toString().trim().split('\n').at(-1)}`
  if (process.env['GATEHOUSE_TEST_POSTGRES'] === 'required') throw new Error(reason)
  process.stderr.write(`skipped: ${reason}\n`)
  return ''
}
