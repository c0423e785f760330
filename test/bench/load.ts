import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Installation, RENDER_BODY } from './installation.ts'
import type { Running } from './processes.ts'

/** What one run of wrk saw. */
export interface Load {
  requests: number
  perSecond: number
  p50Ms: number
  p99Ms: number
  /** processor time that the server used for each request: unlike the rest hardly disturbed by other programs */
  cpuMicros: number
}

/** @throws Error that says what to install */
export function requireWrk(): void {
  if (Bun.which('wrk') !== null) return
  throw new Error('wrk is missing: apt-get install wrk (Debian, Ubuntu), or run again as root with --install-wrk')
}

/** @throws Error unless run as root on Debian or one of its kin */
export function installWrk(): void {
  if (Bun.which('wrk') !== null) return
  if (process.getuid?.() !== 0) throw new Error('--install-wrk needs root')
  const { success } = Bun.spawnSync(['apt-get', 'install', '-y', 'wrk'], { stdio: ['ignore', 'inherit', 'inherit'] })
  if (!success) throw new Error('apt-get could not install wrk; try apt-get update first')
}

interface LoadOptions {
  connections?: number
  seconds: number
}

/** Renders the prompts in turn with the keys in turn, over kept-alive connections, as fast as answers come. */
export const load = (server: Running, installation: Installation, options: LoadOptions): Promise<Load> =>
  loadRequests(server, rendersOf(installation), options)

/** Sends requests in turn, over kept-alive connections, as fast as answers come; any failed one is an error. */
export async function loadRequests(
  server: Pick<Running, 'url' | 'cpuSeconds'>,
  requests: readonly Request[],
  { connections = 64, seconds }: LoadOptions,
): Promise<Load> {
  const dir = mkdtempSync(join(tmpdir(), 'gatehouse-wrk-'))
  try {
    const script = join(dir, 'render.lua')
    writeFileSync(script, scriptOf(requests))
    const cpuBefore = server.cpuSeconds()
    // One thread: it keeps up, and leaves the other core to the server.
    const wrk = Bun.spawn(['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, server.url], {
      stderr: 'pipe',
    })
    const said = await new Response(wrk.stdout).text()
    const result = JSON.parse(/^RESULT (.*)$/m.exec(said)?.[1] ?? 'null') as WrkResult | null
    if (result === null) throw new Error(`wrk said: ${said}${await new Response(wrk.stderr).text()}`)
    if (result.errors > 0) throw new Error(`${result.errors} of ${result.requests} requests failed`)
    return {
      requests: result.requests,
      perSecond: result.requests / (result.micros / 1e6),
      p50Ms: result.p50 / 1000,
      p99Ms: result.p99 / 1000,
      cpuMicros: ((server.cpuSeconds() - cpuBefore) / result.requests) * 1e6,
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
}

interface WrkResult {
  requests: number
  micros: number
  errors: number
  p50: number
  p99: number
}

export interface Request {
  path: string
  key: string
  body: string
}

const rendersOf = ({ prompts, keys }: Installation): Request[] =>
  prompts.map((slug, i) => ({
    path: `/v1/prompts/${slug}/render`,
    key: keys[(i + 1) % keys.length] ?? '',
    body: RENDER_BODY,
  }))

/** All of them are formatted before the clock starts. */
const scriptOf = (requests: readonly Request[]): string => `
local given = {
${requests.map(({ path, key, body }) => `  { '${path}', '${key}', [[${body}]] },`).join('\n')}
}
local requests, sent = {}, 0

function init()
  for i, each in ipairs(given) do
    local headers = { ['content-type'] = 'application/json', ['x-service-api-key'] = each[2] }
    requests[i] = wrk.format('POST', each[1], headers, each[3])
  end
end

function request()
  sent = sent + 1
  return requests[sent % #requests + 1]
end

function done(summary, latency)
  local e = summary.errors
  print(string.format('RESULT {"requests":%d,"micros":%d,"errors":%d,"p50":%d,"p99":%d}', summary.requests,
    summary.duration, e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50), latency:percentile(99)))
end
`
