import { expect, test } from 'bun:test'
import { ROOT } from './support/executable.ts'

// What holds for the sources as a whole; here, so that the runner counts it.

/** They share two cores with the rest of the suite. */
const CHECK_MS = 120_000

const CHECKS = [
  { name: 'the types hold', command: ['node_modules/.bin/tsc', '-p', '.'] },
  { name: 'format and lint hold', command: ['node_modules/.bin/biome', 'ci', '--colors=off'] },
]

for (const { name, command } of CHECKS) {
  test(
    name,
    async () => {
      const { stdout, stderr, exited } = Bun.spawn(command, { cwd: ROOT, stderr: 'pipe' })
      const said = (await stdout.text()) + (await stderr.text())
      expect(await exited, said).toBe(0)
    },
    CHECK_MS,
  )
}

test(
  'schema/openapi.json is what the program prints (bun run schema)',
  async () => {
    const program = Bun.spawn([process.execPath, 'src/main.ts', 'openapi'], { cwd: ROOT })
    expect(await program.stdout.text()).toBe(await Bun.file(`${ROOT}/schema/openapi.json`).text())
  },
  CHECK_MS,
)
