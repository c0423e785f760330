import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Installation, RENDER_BODY } from './installation.ts'

const ROOT = resolve(import.meta.dir, '../..')

/** Compiles an entry point with the flags of the release (`.ci/build.ts`), so that both sides run as users run it. */
export function compile(entryPoint: string, outfile: string): void {
  const flags = ['--compile', '--minify', '--bytecode', '--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig']
  const built = Bun.spawnSync(
    [
      process.execPath,
      'build',
      ...flags,
      '--define',
      'process.env.NODE_ENV="production"',
      entryPoint,
      '--outfile',
      outfile,
    ],
    { cwd: ROOT, stderr: 'pipe' },
  )
  if (!built.success) throw new Error(`${entryPoint} cannot be compiled:\n${built.stderr}`)
}

export interface Running {
  url: string
  /** milliseconds from spawn to the first rendered answer */
  startMs: number
  /** resident memory, MB (10⁶ bytes) */
  residentMb(): number
  /** processor time used so far, user and system */
  cpuSeconds(): number
  /** asks it to end and waits */
  stop(): Promise<void>
}

/**
 * Starts a server, does something with it once it renders, and stops it whatever happens.
 *
 * @param settings in the environment: `GATEHOUSE_…`
 */
export async function withServer<T>(
  command: Command,
  installation: Installation,
  work: (server: Running) => Promise<T>,
  settings: Record<string, string> = {},
): Promise<T> {
  const server = await start(command, installation, settings)
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}

/** The command line of a server; those that take their port from the environment ignore it. */
export type Command = (port: number) => string[]

async function start(command: Command, installation: Installation, settings: Record<string, string>): Promise<Running> {
  const port = freePort()
  const url = `http://127.0.0.1:${port}`
  const startedAt = performance.now()
  const child = Bun.spawn(command(port), {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...settings, GATEHOUSE_SERVER_PORT: `${port}` },
  })
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await child.exited
  }
  try {
    while (!(await renders(url, installation))) {
      if (child.exitCode !== null) throw new Error(`${command(port)[0]} ended with exit code ${child.exitCode}`)
      await Bun.sleep(1)
    }
  } catch (error) {
    await stop()
    throw error
  }
  const startMs = performance.now() - startedAt
  const status = (): string => readFileSync(`/proc/${child.pid}/status`, 'utf8')
  return {
    url,
    startMs,
    residentMb: () => Number(/VmRSS:\s+(\d+) kB/.exec(status())?.[1]) * 1.024e-3,
    cpuSeconds: () => cpuSecondsOf(child.pid),
    stop,
  }
}

function freePort(): number {
  const server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
  const { port } = server
  void server.stop(true)
  return port ?? 0
}

async function renders(url: string, { keys, prompts }: Installation): Promise<boolean> {
  const headers = { 'content-type': 'application/json', 'x-service-api-key': keys[0]! }
  const response = await fetch(`${url}/v1/prompts/${prompts[0]}/render`, {
    method: 'POST',
    headers,
    body: RENDER_BODY,
  }).catch(() => undefined)
  if (response === undefined) return false
  if (!response.ok) throw new Error(`the first render was answered ${response.status}: ${await response.text()}`)
  await response.text()
  return true
}

/** Fields 14 and 15 of /proc/<pid>/stat, in ticks of 10 ms; the name in field 2 may hold blanks. */
function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}
