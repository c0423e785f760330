import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildExecutable } from '../support/executable.ts'
import { installWrk, requireWrk } from './load.ts'
import { type Bench, type Figure, MEASUREMENTS } from './measurements.ts'

// Measures what we promise about speed, with the executable that users get:
//
//   bun run bench [--only floor,saving,scale,startup,memory,audit,mutations,secrets] [--seconds 10] [--rounds 3] [--install-wrk]
//
// Linux only (/proc). Ends with a table and exit code 1 when a figure is not reached. README.md holds what was seen.

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(MEASUREMENTS).join(',') },
    seconds: { type: 'string', default: '10' },
    rounds: { type: 'string', default: '3' },
    'install-wrk': { type: 'boolean', default: false },
  },
})
const say = (line: string): void => void process.stdout.write(`${line}\n`)

async function main(): Promise<number> {
  const chosen = values.only.split(',').map((name) => {
    const measurement = MEASUREMENTS[name]
    if (measurement === undefined) throw new Error(`--only knows ${Object.keys(MEASUREMENTS).join(', ')}`)
    return { name, measurement }
  })
  if (values['install-wrk']) installWrk()
  requireWrk()
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'))
  try {
    const bench: Bench = {
      dir,
      seconds: Number(values.seconds),
      rounds: Number(values.rounds),
      tell: (line) => say(`  ${line}`),
    }
    renameSync(buildExecutable(join(dir, 'build')).path, join(dir, 'gatehouse'))
    const figures: Figure[] = []
    for (const { name, measurement } of chosen) {
      say(name)
      figures.push(...(await measurement(bench)))
    }
    say(tableOf(figures))
    return figures.every((figure) => figure.reached) ? 0 : 1
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const tableOf = (figures: Figure[]): string =>
  [
    '',
    '| figure | promised | seen | |',
    '|---|---|---|---|',
    ...figures.map(
      ({ name, target, seen, reached }) => `| ${name} | ${target} | ${seen} | ${reached ? '' : 'missed'} |`,
    ),
  ].join('\n')

main().then(
  (exitCode) => process.exit(exitCode),
  (error) => {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exit(2)
  },
)
