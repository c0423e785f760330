import { Database } from 'bun:sqlite'
import { MIGRATIONS } from '../../schema/db/migrations.ts'
import { COMMIT, VERSION } from '../version.ts'
import { defineCommand } from './command.ts'

export const version = defineCommand({
  name: 'version',
  summary: 'Print the version of the program; with --json, of everything that it is made of.',
  flags: {},
  async run({ flags, io }) {
    io.out(flags.json ? `${JSON.stringify(facts())}\n` : `gatehouse ${VERSION}\n`)
    return undefined
  },
})

function facts() {
  const memory = new Database(':memory:')
  const { sqlite } = memory.query('SELECT sqlite_version() AS sqlite').get() as { sqlite: string }
  memory.close()
  return {
    version: VERSION,
    commit: COMMIT,
    platform: `${process.platform}-${process.arch}`,
    bun: Bun.version,
    sqlite,
    schema: MIGRATIONS.sqlite.length,
  }
}
