import pkg from '../../package.json' with { type: 'json' }
import { defineCommand } from './command.ts'

/** The program's own version; the interface description has another one (decision 18). */
export const VERSION: string = pkg.version

export const version = defineCommand({
  name: 'version',
  summary: 'Print the version of the program.',
  flags: {},
  async run({ flags, io }) {
    const facts = { version: VERSION, bun: Bun.version, platform: `${process.platform}-${process.arch}` }
    io.out(flags.json ? `${JSON.stringify(facts)}\n` : `gatehouse ${VERSION}\n`)
    return undefined
  },
})
