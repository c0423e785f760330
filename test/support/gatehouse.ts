import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { createInstallation, pathsBelow } from '../../src/cli/init.ts'
import { loadConfig } from '../../src/config/load.ts'
import type { Database } from '../../src/db/database.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { type Bootstrapped, bootstrap } from '../../src/organisation/bootstrap.ts'
import { freshFolder } from './database.ts'
import { freshPostgresUrl } from './postgres.ts'

export interface Answer {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes, looked into by tests
  body: any
  text: string
}

export interface TestGatehouse {
  gatehouse: Gatehouse
  made: Bootstrapped
  /** everything that was logged, a line each */
  log: string[]
  /** the folder of configuration, master key and data */
  dir: string
  /** sends a request with the admin key, or with `key`; an object is sent as JSON, a string or bytes as they are */
  call(
    method: string,
    path: string,
    body?: unknown,
    options?: { key?: string | null; headers?: Record<string, string> },
  ): Promise<Answer>
  /** makes a key of any type through the API and answers the clear key */
  newKey(
    form: 'organisation/service' | 'workspace/service' | 'workspace/user',
    scopes: string[],
    extra?: Record<string, unknown>,
  ): Promise<{ id: string; key: string }>
  /**
   * The same installation opened once more: another node (PostgreSQL), or a restart after `gatehouse.close()`.
   *
   * @param config lines of TOML in the place of those that it was made with
   */
  openNode(config?: string): Promise<Pick<TestGatehouse, 'gatehouse' | 'call'>>
  close(): Promise<void>
}

type OpenOptions = Parameters<typeof openGatehouse>[2]

/** An installation in a throw-away folder, before bootstrap. */
export async function openEmptyGatehouse(
  dialect: Database['dialect'] = 'sqlite',
  config = '',
  options: OpenOptions = {},
) {
  const dir = freshFolder()
  const paths = pathsBelow(dir)
  createInstallation(paths)
  const url = new URL((dialect === 'postgres' && (await freshPostgresUrl())) || 'sqlite:')
  const env = { TEST_DATABASE_PASSWORD: url.password }
  url.password = ''
  const database =
    dialect === 'sqlite'
      ? ''
      : `url = ${JSON.stringify(url.href)}\npassword = "env:TEST_DATABASE_PASSWORD"\npoll_ms = 50\n`
  const data = `dir = ${JSON.stringify(join(dir, 'data'))}`
  const log: string[] = []
  const write = (line: string) => void log.push(line)
  const open = (lines = config) => {
    const own = `[data]\n${data}\n[master_key]\nsource = "file:${paths.masterKey}"\n[database]\n${database}`
    writeFileSync(paths.config, `${lines}\n${own}`)
    return openGatehouse(loadConfig({ path: paths.config, env }), createLog({ level: 'debug', write }), options)
  }
  return { gatehouse: await open(), dir, log, open }
}

/**
 * A whole installation in a throw-away folder: bootstrapped, every answer checked against its contract.
 *
 * @param config lines of TOML, table headers included
 */
export async function openTestGatehouse(
  dialect: Database['dialect'] = 'sqlite',
  config = '',
  options: OpenOptions = {},
): Promise<TestGatehouse> {
  const { gatehouse, dir, log, open } = await openEmptyGatehouse(dialect, config, options)
  const made = await bootstrap(gatehouse, { organisation: 'Test', email: 'owner@example.com', uid: 0 })
  const call = callOf(gatehouse, made.admin_key)
  return {
    gatehouse,
    made,
    log,
    dir,
    call,
    async newKey(form, scopes, extra = {}) {
      const { status, body } = await call('POST', `/v1/api-keys/${form}`, { name: 'test', scopes, ...extra })
      if (status !== 200) throw new Error(`no key: ${JSON.stringify(body)}`)
      return body
    },
    async openNode(lines) {
      const node = await open(lines)
      return { gatehouse: node, call: callOf(node, made.admin_key) }
    },
    async close() {
      await gatehouse.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

function callOf(gatehouse: Gatehouse, adminKey: string): TestGatehouse['call'] {
  const app = createApp(gatehouse, { checkAnswers: true })
  return async (method, path, body, { key = adminKey, headers = {} } = {}) => {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const sent: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' }
    if (key !== null) sent['x-service-api-key'] = key
    const response = await app.fetch(
      new Request(`http://localhost${path}`, {
        method,
        headers: { ...sent, ...headers },
        ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
      }),
    )
    const answered = await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: response.status,
      headers: response.headers,
      text: answered,
      body: isJson && answered !== '' ? JSON.parse(answered) : undefined,
    }
  }
}
