import { tmpdir } from 'node:os'
import { resolve } from 'node:path'

// Runs the whole suite, or the files named: bun .ci/test.ts [FILE…]. The last line on standard output is the runner's
// own count: `N passed, N failed`, then `, N skipped` when there are any. PostgreSQL is started once for all files; the
// secret managers are started by the files that ask them.

const ROOT = resolve(import.meta.dir, '..')

interface Counts {
  passed: number
  failed: number
  skipped: number
}

async function runSuite(files: string[]): Promise<Counts> {
  const runner = Bun.spawn([process.execPath, 'test', '--parallel=2', '--timeout=30000', ...files], {
    cwd: ROOT,
    env: { ...process.env, GATEHOUSE_TEST_POSTGRES_URL: process.env['GATEHOUSE_TEST_POSTGRES_URL'] ?? startPostgres() },
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  const said = await passOn(runner.stderr)
  const counts = countsIn(said)
  // a file that cannot be loaded, a crash: there may be no failed test to see
  if ((await runner.exited) !== 0 && counts.failed === 0) counts.failed = 1
  return counts
}

/** A URL, or an empty one where there is no PostgreSQL and it is not required. */
function startPostgres(): string {
  const folder = `${tmpdir()}/gatehouse-test-postgres-${process.pid}`
  const start = ['test/servers/postgres.sh', 'start', folder, String(process.pid)]
  const { success, stdout } = Bun.spawnSync(start, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] })
  if (success) return stdout.toString().trim()
  if (process.env['GATEHOUSE_TEST_POSTGRES'] === 'required')
    throw new Error('PostgreSQL is required and does not start')
  process.stderr.write('skipped: the tests that need PostgreSQL\n')
  return ''
}

/** Building Vault takes minutes on a new machine: they are no part of the suite's time, nor of a test's. */
async function obtainManagers(): Promise<void> {
  if (process.env['GATEHOUSE_TEST_MANAGERS'] !== 'required') return
  await Promise.all(['vault', 'moto', 'azure-python'].map(obtainManager))
}

async function obtainManager(name: string): Promise<void> {
  const obtain = [`test/servers/${name}.sh`, 'obtain']
  if ((await Bun.spawn(obtain, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] }).exited) !== 0)
    throw new Error(`${name} is required and cannot be had`)
}

async function passOn(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    process.stderr.write(chunk)
    text += decoder.decode(chunk, { stream: true })
  }
  return text
}

/** From the lines ` 12 pass`, ` 1 skip`, ` 0 fail`, `1 error` that end the runner's output. */
function countsIn(text: string): Counts {
  const summary = text.split('\n').slice(-10).join('\n')
  const count = (word: string) => Number(new RegExp(`^ *(\\d+) ${word}s?$`, 'm').exec(summary)?.[1] ?? 0)
  return { passed: count('pass'), failed: count('fail') + count('error'), skipped: count('skip') + count('todo') }
}

function say({ passed, failed, skipped }: Counts): void {
  process.stdout.write(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`)
}

try {
  await obtainManagers()
  const counts = await runSuite(Bun.argv.slice(2))
  say(counts)
  process.exitCode = counts.failed > 0 ? 1 : 0
} catch (error) {
  process.stderr.write(`${error}\n`)
  say({ passed: 0, failed: 1, skipped: 0 })
  process.exitCode = 1
}
