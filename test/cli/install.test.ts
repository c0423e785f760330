import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deliverKey } from '../../src/cli/key-file.ts'
import { FAILURE_LINE, gatehouse } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-init-'))
afterAll(() => rmSync(folder, { recursive: true }))
const mode = (path: string) => statSync(path).mode & 0o777

describe('init', () => {
  const dir = join(folder, 'new')
  const config = join(dir, 'config.toml')

  test('makes an installation that config check accepts as it is', async () => {
    const { exitCode, out } = await gatehouse(['init', '--dir', dir, '--json'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(out)).toEqual({ config, master_key: join(dir, 'master.key'), data: join(dir, 'data') })
    expect([mode(config), mode(join(dir, 'master.key')), mode(join(dir, 'data'))]).toEqual([0o640, 0o400, 0o700])
    expect(await gatehouse(['config', 'check', '--config', config])).toEqual({
      exitCode: 0,
      out: `${config}: ok\n`,
      err: '',
    })
  })

  test('touches nothing that exists', async () => {
    const before = readFileSync(join(dir, 'master.key'), 'utf8')
    expect(await gatehouse(['init', '--dir', dir])).toMatchObject({ exitCode: 73, out: '' })
    expect(readFileSync(join(dir, 'master.key'), 'utf8')).toBe(before)
    const half = join(folder, 'half')
    await gatehouse(['init', '--dir', half])
    rmSync(join(half, 'config.toml'))
    expect((await gatehouse(['init', '--dir', half])).exitCode).toBe(73)
    expect(existsSync(join(half, 'config.toml'))).toBe(false)
  })

  test('says so when it cannot write', async () => {
    writeFileSync(join(folder, 'file'), '')
    const { exitCode, err } = await gatehouse(['init', '--dir', join(folder, 'file', 'x')])
    expect(exitCode).toBe(73)
    expect(err).toMatch(FAILURE_LINE)
  })
})

describe('config', () => {
  const dir = join(folder, 'config')
  const config = join(dir, 'config.toml')

  test('show tells every value with its origin, secrets as their reference only', async () => {
    await gatehouse(['init', '--dir', dir])
    const { out } = await gatehouse(['config', 'show', '--json'], {
      env: { GATEHOUSE_CONFIG: config, GATEHOUSE_SERVER_PORT: '1' },
    })
    const shown = JSON.parse(out)
    expect(shown['server.port']).toEqual({ value: 1, origin: 'env GATEHOUSE_SERVER_PORT' })
    expect(shown['log.level']).toEqual({ value: 'info', origin: 'default' })
    expect(shown['master_key.source']).toMatchObject({
      value: '***',
      origin: expect.stringContaining(`file:${dir}/master.key`),
    })
  })

  test('check finds a master key that is open to others, and one that is gone', async () => {
    const key = join(dir, 'master.key')
    chmodSync(key, 0o440)
    expect(await gatehouse(['config', 'check', '--config', config])).toMatchObject({ exitCode: 77, out: '' })
    rmSync(key)
    expect((await gatehouse(['config', 'check', '--config', config])).err).toStartWith('code=MASTER_KEY_MISSING ')
  })

  test('check prints complaints as data for programs, one line for people', async () => {
    writeFileSync(config, '[server]\nprot = 1\nport = "x"\n')
    const { exitCode, out, err } = await gatehouse(['config', 'check', '--config', config, '--json'])
    expect(exitCode).toBe(78)
    expect(JSON.parse(out)).toMatchObject({
      ok: false,
      complaints: [expect.stringContaining(':2:'), expect.stringContaining(':3:')],
    })
    expect(err).toMatch(FAILURE_LINE)
  })

  test('is not looked for in the current folder (CF-1)', async () => {
    const before = process.cwd()
    process.chdir(dir)
    try {
      expect((await gatehouse(['config', 'check'])).err).toContain('/etc/gatehouse/config.toml')
    } finally {
      process.chdir(before)
    }
  })
})

describe('a clear key', () => {
  const made = { id: 'i', key: 'gth_secret' }
  const deliver = (isTerminal: boolean, output?: string, make = async () => made) => {
    let out = ''
    const io = {
      out(text: string) {
        out += text
      },
      err: () => {},
      isTerminal,
      env: {},
      stopRequested: () => new Promise<void>(() => {}),
    }
    return deliverKey(io, { output, json: false }, make, ({ key }) => key).then(() => out)
  }

  test('is shown on a terminal', async () => expect(await deliver(true)).toBe('gth_secret'))

  test('goes to a file of mode 0600 and nowhere else', async () => {
    const path = join(folder, 'key.json')
    expect(await deliver(true, path)).toBe('')
    expect(mode(path)).toBe(0o600)
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(made)
  })

  test('is not even made where it could not be delivered', async () => {
    let count = 0
    const counted = async () => {
      count++
      return made
    }
    await expect(deliver(false, undefined, counted)).rejects.toMatchObject({ exitCode: 64 })
    await expect(deliver(true, join(folder, 'key.json'), counted)).rejects.toMatchObject({ exitCode: 73 })
    await expect(deliver(true, join(folder, 'absent', 'key.json'), counted)).rejects.toMatchObject({ exitCode: 73 })
    expect(count).toBe(0)
  })

  test('that could not be made leaves no file', async () => {
    const before = readdirSync(folder)
    await expect(deliver(true, join(folder, 'none.json'), () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(readdirSync(folder)).toEqual(before)
  })
})
