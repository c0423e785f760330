import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pkg from '../package.json' with { type: 'json' }
import { type Built, buildExecutable, ROOT } from './support/executable.ts'

// The executable as it is shipped, always started in a folder that tries to get its own code and settings into it.

let folder: string
let built: Built
let hostile: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-binary-'))
  built = buildExecutable(join(folder, 'dist'))
  hostile = makeHostileFolder(join(folder, 'hostile'))
}, 60_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Each file in it is one that Bun reads on its own; code that runs from there leaves `evil-ran` behind. */
function makeHostileFolder(dir: string): string {
  const evil = `require('node:fs').writeFileSync(${JSON.stringify(join(dir, 'evil-ran'))}, '')`
  const files = {
    '.env': 'GATEHOUSE_LOG_LEVEL=debug\nGATEHOUSE_SERVER_HOST=0.0.0.0\nNODE_ENV=test\n',
    '.env.production': 'GATEHOUSE_LOG_LEVEL=debug\n',
    'bunfig.toml': 'preload = ["./evil.cjs"]\n',
    'evil.cjs': evil,
    'package.json': JSON.stringify({
      name: 'evil',
      type: 'commonjs',
      imports: { '#*': './evil.cjs' },
      main: 'evil.cjs',
    }),
    'tsconfig.json': JSON.stringify({
      compilerOptions: { paths: { '*': ['./evil.cjs'] }, jsxImportSource: './evil.cjs' },
    }),
    'node_modules/elysia/index.js': evil,
    'node_modules/drizzle-orm/index.js': evil,
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true })
    writeFileSync(join(dir, name), text)
  }
  return dir
}

async function run(args: string[], env: Record<string, string> = {}) {
  const program = Bun.spawn([built.path, ...args], { cwd: hostile, env, stderr: 'pipe' })
  const [out, err, exitCode] = await Promise.all([program.stdout.text(), program.stderr.text(), program.exited])
  return { out, err, exitCode }
}

describe('the executable in a hostile folder', () => {
  let before: string[]
  beforeAll(() => {
    before = readdirSync(hostile)
  })

  test('the traps are live: plain Bun runs into them', async () => {
    const bun = Bun.spawn([process.execPath, '-e', 'console.log(process.env.GATEHOUSE_LOG_LEVEL)'], {
      cwd: hostile,
      env: {},
    })
    expect(await bun.stdout.text()).toBe('debug\n')
    expect(existsSync(join(hostile, 'evil-ran'))).toBe(true)
    rmSync(join(hostile, 'evil-ran'))
  })

  test('it tries everything out and renders', async () => {
    const { out, err, exitCode } = await run(['try', '--once', '--json'], { TMPDIR: folder })
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    const { answer } = JSON.parse(out)
    expect(answer.data.messages).toEqual([
      { role: 'system', content: 'You work for Example Ltd. Answer in one friendly sentence.' },
      { role: 'user', content: 'I am Ada. Order A-17 is on its way. When does it come?' },
    ])
  })

  test('it takes no setting from .env', async () => {
    await run(['init', '--dir', join(folder, 'settings')])
    const { out } = await run(['config', 'show', '--json', '--config', join(folder, 'settings/config.toml')])
    const settings: Record<string, { origin: string }> = JSON.parse(out)
    const fromElsewhere = Object.entries(settings).filter(([, { origin }]) => origin.startsWith('env'))
    expect(fromElsewhere).toEqual([])
    expect(settings['log.level']).toMatchObject({ value: 'info', origin: 'default' })
  })

  test('init, bootstrap, serve, a render over HTTP, SIGTERM', async () => {
    const dir = join(folder, 'installation')
    const config = ['--config', join(dir, 'config.toml')]
    expect(await run(['init', '--dir', dir])).toMatchObject({ exitCode: 0 })
    const output = join(folder, 'admin.json')
    const org = ['--org', 'Example', '--email', 'ada@example.com', '--output', output]
    expect(await run(['bootstrap', ...org, ...config])).toMatchObject({ exitCode: 0 })

    const log = join(folder, 'serve.log')
    const server = Bun.spawn([built.path, 'serve', ...config], {
      cwd: hostile,
      env: { GATEHOUSE_SERVER_PORT: '0' },
      stdout: Bun.file(log),
    })
    try {
      const url = await listeningUrl(server, log)
      expect(await renderAt(url, JSON.parse(readFileSync(output, 'utf8')))).toContain('Hello Ada')
      for (const asset of ['/docs', '/docs/swagger-ui.js', '/docs/swagger-ui.css'])
        expect((await fetch(url + asset)).status, asset).toBe(200)
    } finally {
      server.kill('SIGTERM')
    }
    expect(await server.exited).toBe(0)
    // also that no library prints: one of them reads the text of our functions, which is not what it was in the sources
    for (const line of readFileSync(log, 'utf8').trimEnd().split('\n'))
      expect(() => JSON.parse(line), line).not.toThrow()
  })

  test('it describes the same interface as the sources', async () => {
    expect((await run(['openapi'])).out).toBe(readFileSync(`${ROOT}/schema/openapi.json`, 'utf8'))
  })

  test('nothing of the folder ran and nothing was written there', () => {
    expect(readdirSync(hostile)).toEqual(before)
  })
})

test('it says which version and which commit it is', async () => {
  const head = Bun.spawnSync(['git', 'rev-parse', 'HEAD'], { cwd: ROOT }).stdout.toString().trim()
  const facts = JSON.parse((await run(['version', '--json'])).out)
  expect(facts).toMatchObject({ version: pkg.version, bun: Bun.version })
  expect(facts.commit).toStartWith(head || 'unknown')
})

test('it holds no path of the machine that built it', () => {
  const bytes = readFileSync(built.path)
  expect(['src/', 'schema/', 'node_modules/'].filter((dir) => bytes.includes(`${ROOT}/${dir}`))).toEqual([])
})

test('a second build has the same checksum, so anybody can check a release', () => {
  const again = buildExecutable(join(folder, 'again'))
  expect(readFileSync(again.sums, 'utf8')).toBe(readFileSync(built.sums, 'utf8'))
}, 60_000)

async function listeningUrl(server: Bun.Subprocess, log: string): Promise<string> {
  while (server.exitCode === null) {
    const line = readFileSync(log, 'utf8')
      .split('\n')
      .find((each) => each.includes('"event":"listening"'))
    if (line !== undefined) return JSON.parse(line).url
    await Bun.sleep(10)
  }
  throw new Error(`serve ended: ${readFileSync(log, 'utf8')}`)
}

/** Saves a prompt and renders it; answers the body as text. */
async function renderAt(url: string, made: { collection_id: string; admin_key: string }): Promise<string> {
  const post = async (path: string, body: unknown) => {
    const headers = { 'x-service-api-key': made.admin_key, 'content-type': 'application/json' }
    const response = await fetch(`${url}/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await response.text()
    expect(response.status, text).toBe(200)
    return text
  }
  const prompt = await post('/prompts', {
    name: 'greeting',
    collection_id: made.collection_id,
    string: JSON.stringify([{ role: 'user', content: 'Hello {{name}}' }]),
    parameters: {},
    model: 'gpt-4o-mini',
    virtual_key: 'openai',
  })
  return post(`/prompts/${JSON.parse(prompt).slug}/render`, { variables: { name: 'Ada' } })
}
