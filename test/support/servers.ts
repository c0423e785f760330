import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInstallation, type InstallationPaths, pathsBelow } from '../../src/cli/init.ts'
import type { Database } from '../../src/db/database.ts'
import type { Bootstrapped } from '../../src/organisation/bootstrap.ts'
import { gatehouse as runCommand } from '../cli/support.ts'
import { freshFolder } from './database.ts'
import { ROOT } from './executable.ts'
import type { Answer } from './gatehouse.ts'
import { freshPostgresUrl } from './postgres.ts'

/** An installation whose servers are processes of their own. */
export interface Site {
  paths: InstallationPaths
  /** what commands and servers need in their environment */
  env: Record<string, string>
  /** makes organisation, owner and first admin key, beside running servers or before there are any */
  bootstrap(): Promise<Bootstrapped>
  /** runs `gatehouse <argv> --config …` in this process */
  command(...argv: string[]): Promise<{ exitCode: number; out: string; err: string }>
  remove(): void
}

export async function createSite(dialect: Database['dialect']): Promise<Site> {
  const dir = freshFolder()
  const paths = pathsBelow(dir)
  createInstallation(paths)
  const env: Record<string, string> = {}
  if (dialect === 'postgres') {
    const url = new URL((await freshPostgresUrl())!)
    env['TEST_DATABASE_PASSWORD'] = url.password
    url.password = ''
    env['GATEHOUSE_DATABASE_URL'] = url.href
    env['GATEHOUSE_DATABASE_PASSWORD'] = 'env:TEST_DATABASE_PASSWORD'
  }
  const command: Site['command'] = (...argv) => runCommand([...argv, '--config', paths.config], { env })
  return {
    paths,
    env,
    command,
    async bootstrap() {
      const output = join(dir, 'admin.json')
      const ran = await command('bootstrap', '--org', 'Test', '--email', 'owner@example.com', '--output', output)
      if (ran.exitCode !== 0) throw new Error(ran.err)
      return JSON.parse(readFileSync(output, 'utf8'))
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

export interface Server {
  /** rejects when the server ends before it listens */
  url: Promise<string>
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>
}

const FROM_SOURCE = [process.execPath, join(ROOT, 'src/main.ts')]

/**
 * Starts a server of a site on a free port.
 *
 * @param env     settings of this server alone
 * @param program the executable; the sources when absent
 */
export function startServerOf(site: Site, env: Record<string, string> = {}, program = FROM_SOURCE): Server {
  const child = Bun.spawn([...program, 'serve', '--config', site.paths.config], {
    env: { ...site.env, GATEHOUSE_SERVER_PORT: '0', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const url = listening(child.stdout).then(async (found) => {
    if (found === undefined) throw new Error(`the server ended before it listened: ${await child.stderr.text()}`)
    return found
  })
  url.catch(() => {})
  return {
    url,
    async end(signal) {
      child.kill(signal)
      await child.exited
    },
  }
}

/** Reads on afterwards: a full pipe would stop the server. */
function listening(stdout: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const decoder = new TextDecoder()
  const follow = async (): Promise<void> => {
    let text: string | undefined = ''
    for await (const chunk of stdout) {
      if (text === undefined) continue
      text += decoder.decode(chunk, { stream: true })
      const url = /"event":"listening".*?"url":"([^"]+)"/.exec(text)?.[1]
      if (url === undefined) continue
      resolve(url)
      text = undefined
    }
    resolve(undefined)
  }
  void follow()
  return promise
}

export interface Sent {
  method: string
  path: string
  body?: unknown
  key: string
  headers?: Record<string, string>
}

/** @throws TypeError or the like when no answer comes */
export async function send(url: string, { method, path, body, key, headers = {} }: Sent): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      'x-service-api-key': key,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}
