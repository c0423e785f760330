import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Canaries, createCanaries, settingsFor } from './canaries.ts'
import { freshFolder } from './database.ts'
import { type HostileManager, startHostileManager } from './hostile-manager.ts'
import { createLeakSearch, filesBelow, type LeakSearch } from './leak-search.ts'

/** The executable with canaries in it, among hostile managers; whatever comes out of it is looked through. */
export interface LeakHunt {
  canaries: Canaries
  manager: HostileManager
  search: LeakSearch
  adminKey: string
  systemKey: string
  /** of the server */
  pid: number
  /** its own files, a second place for the audit trail, and what it takes for the folders of temporary files and of its user */
  folders: { data: string; sink: string; temp: string; home: string }
  masterKeyFile: string
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Called>
  /** runs a command of the same installation */
  run(argv: string[], options?: RunOptions): Promise<Ran>
  /** a new file of that text, for commands to read; or, without a text, a path where there is none yet */
  file(text?: string): string
  /** looks at what lies on the disk, and at what the system tells of the process */
  lookAtMachine(): void
  /** ends the server, and looks at all that it said */
  stop(): Promise<void>
  remove(): void
}

interface CallOptions {
  key?: string
  headers?: Record<string, string>
  /** secrets that may be in the answer, by their names */
  except?: readonly string[]
  /** the member of the answer that is there to hold a secret, and is not looked at */
  without?: string
}

export interface Called {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: bodies of many shapes, looked into by tests
  body: any
}

interface RunOptions {
  env?: Record<string, string>
  /** another configuration file */
  config?: string
  except?: readonly string[]
}

export interface Ran {
  exitCode: number
  out: string
  err: string
}

/** @param program the executable */
export async function startLeakHunt(program: string): Promise<LeakHunt> {
  const dir = freshFolder()
  const [config, log, complaints] = ['config.toml', 'serve.log', 'serve.err'].map((name) => join(dir, name)) as Files
  const [data, sink, temp, home, tokens] = ['data', 'sink', 'temp', 'home', 'tokens'].map((name) => {
    mkdirSync(join(dir, name), { mode: 0o700 })
    return join(dir, name)
  }) as Folders
  const canaries = createCanaries()
  const manager = await startHostileManager(canaries)
  const search = createLeakSearch()
  for (const [name, mark] of Object.entries(canaries.marks)) search.add(name, mark)
  const env = { TMPDIR: temp, HOME: home }
  const masterKeyFile = join(dir, 'master.key')
  let count = 0

  const run: LeakHunt['run'] = async (argv, { env: more = {}, config: file = config, except = [] } = {}) => {
    const child = Bun.spawn([program, ...argv, '--config', file], {
      env: { ...env, ...more },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [out, err, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    search.look(`gatehouse ${argv[0]}`, `${out}\n${err}`, except)
    return { out, err, exitCode }
  }
  const file = (text?: string): string => {
    const path = join(dir, `file-${count++}`)
    if (text !== undefined) writeFileSync(path, text)
    return path
  }
  const written = async (argv: string[]) => {
    const output = file()
    const { exitCode, err } = await run([...argv, '--output', output])
    if (exitCode !== 0) throw new Error(err)
    return JSON.parse(readFileSync(output, 'utf8'))
  }

  Bun.spawnSync([program, 'init', '--dir', dir])
  writeFileSync(
    config,
    [
      `[server]\nport = 0`,
      `[data]\ndir = ${JSON.stringify(data)}`,
      `[master_key]\nsource = ${JSON.stringify(`file:${masterKeyFile}`)}`,
      `[log]\nlevel = "debug"\nrenders = "all"`,
      `[audit]\nsink = ${JSON.stringify(join(sink, 'audit.ndjson'))}`,
      settingsFor(canaries, tokens, manager),
    ].join('\n'),
    { mode: 0o600 },
  )
  addMasterKeys(search, masterKeyFile)
  const { admin_key: adminKey } = await written(['bootstrap', '--org', 'Test', '--email', 'owner@example.com'])
  search.add('the admin key', adminKey)
  const server = Bun.spawn([program, 'serve', '--config', config], {
    env,
    cwd: temp,
    stdin: 'ignore',
    stdout: Bun.file(log),
    stderr: Bun.file(complaints),
  })
  const url = await listeningUrl(server, log)
  const { key: systemKey } = await written(['keys', 'create', '--system', '--name', 'the gateway'])
  search.add('the system key', systemKey)

  return {
    ...{ canaries, manager, search, adminKey, systemKey, run, file, masterKeyFile },
    folders: { data, sink, temp, home },
    pid: server.pid,
    async call(method, path, body, { key = adminKey, headers = {}, except = [], without = '' } = {}) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      const response = await fetch(url + path, {
        method,
        headers: {
          'x-service-api-key': key,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
      })
      const text = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
      const answer = isJson ? JSON.parse(text) : undefined
      const where = `${method} ${path.replace(/[\da-f]{8}-[\da-f-]{27}/g, ':id').split('?')[0]}`
      search.look(where, `${response.statusText} ${JSON.stringify([...response.headers])}`)
      const isSpared = answer !== undefined && without in answer
      search.look(where, isSpared ? JSON.stringify({ ...answer, [without]: '' }) : text, except)
      return { status: response.status, body: answer }
    },
    lookAtMachine() {
      for (const folder of [data, sink, temp, home])
        for (const { path, bytes } of filesBelow(folder)) search.look(path.slice(dir.length + 1), bytes)
      if (server.exitCode === null)
        for (const name of ['environ', 'cmdline', 'status'])
          search.look(`/proc/${name}`, readFileSync(`/proc/${server.pid}/${name}`))
    },
    async stop() {
      server.kill('SIGTERM')
      await server.exited
      search.look('standard output', readFileSync(log))
      search.look('standard error', readFileSync(complaints))
    },
    remove() {
      server.kill('SIGKILL')
      manager.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

type Files = [config: string, log: string, complaints: string]
type Folders = [data: string, sink: string, temp: string, home: string, tokens: string]

async function listeningUrl(server: Bun.Subprocess, log: string): Promise<string> {
  while (server.exitCode === null) {
    const url = /"event":"listening".*?"url":"([^"]+)"/.exec(readFileSync(log, 'utf8'))?.[1]
    if (url !== undefined) return url
    await Bun.sleep(10)
  }
  throw new Error(`serve ended: ${readFileSync(log, 'utf8')}`)
}

/** Those that the file holds now. */
export function addMasterKeys(search: LeakSearch, file: string): void {
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const [id = '', key = ''] = line.split(' ')
    search.add(`the master key ${id}`, Buffer.from(key, 'base64'))
  }
}
