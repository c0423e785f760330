import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildExecutable, ROOT } from './support/executable.ts'
import { fakePrograms, makeRelease, onlyPrograms, snapshot } from './support/release.ts'

const SCRIPT = readFileSync(`${ROOT}/install.sh`, 'utf8')
const NAME = 'gatehouse-linux-x64'

/** A throw-away folder that holds all that the installer may see: HOME, TMPDIR, the release. */
let folder: string
let home: string
let release: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gatehouse-install-'))
  home = join(folder, 'home')
  release = join(folder, 'release')
  for (const dir of [home, join(folder, 'tmp'), join(folder, 'cwd')]) mkdirSync(dir)
  makeRelease(release, [NAME])
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function install(args: string[], { script = `${ROOT}/install.sh`, path = process.env['PATH'] ?? '' } = {}) {
  const env = { PATH: path, HOME: home, TMPDIR: join(folder, 'tmp') }
  const shell = Bun.spawn(['/bin/sh', script, ...args], { cwd: join(folder, 'cwd'), env, stderr: 'pipe' })
  const [out, err, exitCode] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited])
  return { out, err, exitCode }
}

const fromFile = (name = NAME) => ['--binary', join(release, name), '--prefix', join(home, 'gatehouse')]

test('a script that was cut short while it came over the network changes nothing', async () => {
  const script = join(folder, 'install.sh')
  const length = SCRIPT.trimEnd().length
  const anywhere = Array.from({ length: 60 }, () => Math.floor(Math.random() * length))
  const inTheLastLine = Array.from({ length: 12 }, (_, i) => length - 1 - i)
  // `as` of `asset_name` is the assembler: the start of a name is a command too
  const inNames = [...SCRIPT.matchAll(/^[a-z]/gm)].flatMap(({ index }) => [index + 1, index + 2, index + 3])
  for (const cut of [...anywhere, ...inTheLastLine, ...inNames]) {
    writeFileSync(script, SCRIPT.slice(0, cut))
    const before = snapshot(folder)
    await install(fromFile(), { script })
    expect(snapshot(folder), `cut at byte ${cut}`).toEqual(before)
  }
  writeFileSync(script, SCRIPT)
  expect(await install(fromFile(), { script })).toMatchObject({ exitCode: 0 })
  expect(existsSync(join(home, 'gatehouse/bin/gatehouse'))).toBe(true)
})

describe('what is not the release that was published is not installed, and nothing changes', () => {
  const cases = [
    { name: 'one bit flipped', spoil: (file: string) => writeFileSync(file, flipped(file)), says: 'checksum' },
    {
      name: 'cut short',
      spoil: (file: string) => writeFileSync(file, readFileSync(file).subarray(0, -1)),
      says: 'checksum',
    },
    {
      name: 'not listed',
      spoil: (_: string, sums: string) => writeFileSync(sums, `${'0'.repeat(64)}  x\n`),
      says: 'list',
    },
    { name: 'an empty list', spoil: (_: string, sums: string) => writeFileSync(sums, ''), says: 'list' },
    { name: 'no list', spoil: (_: string, sums: string) => rmSync(sums), says: 'SHA256SUMS is missing' },
    { name: 'no file', spoil: (file: string) => rmSync(file), says: 'is no file' },
  ]
  test.each(cases)('$name', async ({ spoil, says }) => {
    await install(fromFile())
    makeRelease(release, [NAME], '#!/bin/sh\n# newer\n')
    spoil(join(release, NAME), join(release, 'SHA256SUMS'))
    const before = snapshot(folder)
    const { exitCode, err } = await install(fromFile())
    expect({ exitCode, err }).toEqual({ exitCode: 1, err: expect.stringContaining(says) })
    expect(snapshot(folder)).toEqual(before)
  })
})

test('an executable that does not run here leaves the old one in its place', async () => {
  await install(fromFile())
  const before = snapshot(home)
  makeRelease(release, [NAME], '#!/bin/sh\nexit 1\n')
  expect(await install(fromFile())).toMatchObject({ exitCode: 1, err: expect.stringContaining('does not run here') })
  expect(snapshot(home)).toEqual(before)
})

test('a configuration that the new executable refuses leaves the old one in its place', async () => {
  await install(fromFile())
  makeRelease(release, [NAME], SCRIPT_THAT_REFUSES)
  const before = snapshot(home)
  expect(await install(fromFile())).toMatchObject({ exitCode: 1 })
  expect(snapshot(home)).toEqual(before)
})

test('installing again keeps configuration and key', async () => {
  await install(fromFile())
  writeFileSync(join(home, 'gatehouse/master.key'), 'mine')
  const before = snapshot(home)
  expect(await install(fromFile())).toMatchObject({ exitCode: 0 })
  expect(snapshot(home)).toEqual(before)
})

describe('arguments that cannot be meant change nothing', () => {
  const cases: { args: string[]; exitCode: number }[] = [
    { args: [], exitCode: 64 },
    { args: ['--binry', 'x'], exitCode: 64 },
    { args: ['--binary'], exitCode: 1 },
    { args: ['--try', '--binary', 'x'], exitCode: 64 },
    { args: ['--url', 'http://example.com/releases'], exitCode: 1 },
    { args: ['--url', 'http://localhost.example.com/releases'], exitCode: 1 },
  ]
  test.each(cases)('$args', async ({ args, exitCode }) => {
    const before = snapshot(folder)
    expect(await install(args)).toMatchObject({ exitCode })
    expect(snapshot(folder)).toEqual(before)
  })
})

describe('--url', () => {
  let asked: string[]
  let url: string
  let server: Bun.Server<undefined>
  beforeEach(() => {
    asked = []
    server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch(request) {
        const name = new URL(request.url).pathname.replace('/v1.0.0/', '')
        asked.push(name)
        const file = join(release, name)
        return existsSync(file) ? new Response(Bun.file(file)) : new Response(null, { status: 404 })
      },
    })
    url = `http://127.0.0.1:${server.port}/v1.0.0`
  })
  afterEach(() => server.stop(true))

  const uname = (machine: string, system = 'Linux') => `case $1 in -m) echo ${machine} ;; -s) echo ${system} ;; esac`
  const glibc = { ls: 'exit 0' }
  const musl = { ls: 'exit 1' }
  const avx2 = { grep: 'exit 0' }
  const old = { grep: 'exit 1' }
  const machines = [
    { name: 'x86_64', fakes: { uname: uname('x86_64'), ...glibc, ...avx2 }, asset: 'gatehouse-linux-x64' },
    { name: 'amd64', fakes: { uname: uname('amd64'), ...glibc, ...avx2 }, asset: 'gatehouse-linux-x64' },
    {
      name: 'without AVX2',
      fakes: { uname: uname('x86_64'), ...glibc, ...old },
      asset: 'gatehouse-linux-x64-baseline',
    },
    { name: 'x86_64 with musl', fakes: { uname: uname('x86_64'), ...musl }, asset: 'gatehouse-linux-x64-musl' },
    { name: 'aarch64', fakes: { uname: uname('aarch64'), ...glibc }, asset: 'gatehouse-linux-arm64' },
    { name: 'aarch64 with musl', fakes: { uname: uname('aarch64'), ...musl }, asset: 'gatehouse-linux-arm64-musl' },
    { name: 'a Mac', fakes: { uname: uname('arm64', 'Darwin') }, asset: 'gatehouse-darwin-arm64' },
    { name: 'an older Mac', fakes: { uname: uname('x86_64', 'Darwin') }, asset: 'gatehouse-darwin-x64' },
  ]
  test.each(machines)('$name gets its own executable', async ({ fakes, asset }) => {
    makeRelease(release, [asset])
    const path = fakePrograms(join(folder, 'fakes'), { id: 'echo 1000', ...fakes })
    expect(await install(['--url', `${url}/`], { path })).toMatchObject({ exitCode: 0, err: '' })
    expect(asked).toEqual(['SHA256SUMS', asset])
    expect(existsSync(join(home, 'gatehouse/bin/gatehouse'))).toBe(true)
  })

  test.each([
    { name: 'riscv64', fakes: { uname: uname('riscv64') } },
    { name: 'FreeBSD', fakes: { uname: uname('x86_64', 'FreeBSD') } },
  ])('$name is named, and nothing is downloaded', async ({ name, fakes }) => {
    const path = fakePrograms(join(folder, 'fakes'), fakes)
    const before = snapshot(folder)
    expect(await install(['--url', url], { path })).toMatchObject({ exitCode: 1, err: expect.stringContaining(name) })
    expect(asked).toEqual([])
    expect(snapshot(folder)).toEqual(before)
  })

  const NEEDED = 'sh awk basename cat chmod cp cut dirname id ls grep mkdir mktemp mv rm sha256sum sync uname'.split(
    ' ',
  )
  for (const client of ['curl', 'wget']) {
    test.skipIf(Bun.which(client) === null)(
      `${client} is enough, and what the server lacks is not installed`,
      async () => {
        const path = onlyPrograms(join(folder, 'programs'), [...NEEDED, client])
        makeRelease(release, [...new Set(machines.map(({ asset }) => asset))])
        const args = ['--url', url, '--prefix', join(home, 'gatehouse')]
        expect(await install(args, { path })).toMatchObject({ exitCode: 0, err: '' })
        const before = snapshot(home)
        rmSync(release, { recursive: true })
        expect(await install(args, { path })).toMatchObject({
          exitCode: 1,
          err: expect.stringContaining('cannot be downloaded'),
        })
        expect(snapshot(home)).toEqual(before)
      },
    )
  }
})

describe('the executable itself', () => {
  let dist: string
  let built: string
  beforeAll(() => {
    dist = mkdtempSync(join(tmpdir(), 'gatehouse-dist-'))
    built = buildExecutable(dist).path
  }, 60_000)
  afterAll(() => rmSync(dist, { recursive: true, force: true }))

  test('a plain user gets it, its configuration and a key that only they can read, and the next command works', async () => {
    const path = fakePrograms(join(folder, 'fakes'), { id: 'echo 1000' })
    const { exitCode, out } = await install(['--binary', built], { path })
    expect(exitCode).toBe(0)
    const at = (name: string) => join(home, 'gatehouse', name)
    const modes = ['bin/gatehouse', 'config.toml', 'master.key', 'data'].map((n) =>
      (statSync(at(n)).mode & 0o777).toString(8),
    )
    expect(modes).toEqual(['755', '640', '400', '700'])
    const next = out.split('\n').find((line) => line.includes(' bootstrap '))!
    const command = `${next.replace('NAME', 'Example').replace('ADDRESS', 'a@example.com')} --output ${at('admin.json')}`
    expect(Bun.spawnSync(['/bin/sh', '-c', command]).exitCode).toBe(0)
    expect(JSON.parse(readFileSync(at('admin.json'), 'utf8'))).toHaveProperty('admin_key')
  })

  // In a mount namespace of its own, so that the real /etc and /usr/local stay as they are.
  const unshared = ['unshare', '--mount', '/bin/sh', `${ROOT}/test/support/install-on-systemd.sh`]
  const canUnshare = process.getuid?.() === 0 && Bun.spawnSync([...unshared, 'probe'], { stderr: 'ignore' }).success
  test.skipIf(!canUnshare)('root gets user, unit and modes; the service starts, and root bootstraps it', async () => {
    const run = Bun.spawn([...unshared, `${ROOT}/install.sh`, built, folder], {
      env: { PATH: process.env['PATH'] },
      stderr: 'pipe',
    })
    const [out, err] = await Promise.all([run.stdout.text(), run.stderr.text()])
    expect({ exitCode: await run.exited, err }).toMatchObject({ exitCode: 0 })
    expect(out.split('\n').filter((line) => line.startsWith('= '))).toEqual([
      '= systemctl daemon-reload',
      '= 750 root gatehouse /etc/gatehouse',
      '= 640 root gatehouse /etc/gatehouse/config.toml',
      '= 400 root root /etc/gatehouse/master.key',
      '= 700 gatehouse gatehouse /var/lib/gatehouse',
      '= /usr/sbin/nologin',
      '= bootstrapped',
      '= service ended: 0',
      '= systemctl daemon-reload',
      '= installed again: 0',
      '= to go on: chmod 0750 /etc/gatehouse',
      '= wrong mode: 1, 751',
    ])
  })
})

const SCRIPT_THAT_REFUSES = '#!/bin/sh\n[ "$1" != config ]\n'

function flipped(file: string): Buffer {
  const bytes = readFileSync(file)
  const middle = bytes.length >> 1
  bytes[middle] = bytes[middle]! ^ 1
  return bytes
}
