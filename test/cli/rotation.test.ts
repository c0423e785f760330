import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAdminSocket } from '../../src/cli/admin-socket.ts'
import { loadConfig } from '../../src/config/load.ts'
import { seal, sealingKeyId, open as unseal } from '../../src/crypto/cipher.ts'
import { readMasterKeys } from '../../src/crypto/master-key.ts'
import { placeIn, sealedColumns } from '../../src/crypto/sealed-columns.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { masterKeysInUse } from '../../src/keyring/master-key.ts'
import { createLog } from '../../src/log.ts'
import { auditTrail, doneBy } from '../support/audit.ts'
import { freshFolder } from '../support/database.ts'
import { FAILURE_LINE, gatehouse } from './support.ts'

const MAIN = join(import.meta.dir, '../../src/main.ts')
/** More on the build server, where nobody waits. */
const KILLS = process.env['CI'] === undefined ? 6 : 50

const folder = freshFolder()
const config = join(folder, 'config.toml')
const keyFile = join(folder, 'master.key')
const command = (...argv: string[]) => [...argv, '--config', config]
const run = (...argv: string[]) => gatehouse(command(...argv))
const lines = () => readFileSync(keyFile, 'utf8').trim().split('\n')
const open = (env = {}) =>
  openGatehouse(loadConfig({ path: config, env }), createLog({ level: 'error', write: () => {} }))

let adminKey = ''
beforeAll(async () => {
  await gatehouse(['init', '--dir', folder])
  const output = join(folder, 'bootstrap.json')
  await run('bootstrap', '--org', 'Acme', '--email', 'a@a.example', '--output', output)
  adminKey = JSON.parse(readFileSync(output, 'utf8')).admin_key
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Opens the installation as a start does, and looks whether what was stored before is of use. */
async function inspect<T>(look: (opened: Gatehouse) => Promise<T>, env = {}): Promise<T> {
  const opened = await open(env)
  try {
    expect(opened.keys.find(opened.digestKey(adminKey), Date.now())?.type).toBe('organisation-service')
    return await look(opened)
  } finally {
    await opened.close()
  }
}

const inUse = () => inspect(({ read }) => masterKeysInUse(read))

async function addValues({ audited, keyring, read }: Gatehouse, count: number): Promise<void> {
  const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
  const [column] = sealedColumns(read.tables)
  await audited(actor, { action: 'test.add' }, async (tx) => {
    const { idempotentAnswers: t } = tx.tables
    await tx.delete(t)
    for (let i = 0; i < count; i++) {
      const id = `v-${i}`
      const sealedAnswer = seal('secret', keyring().dataKey, placeIn(column!, id, 'o'))
      await tx
        .insert(t)
        .values({ id, organisationId: 'o', bodyDigest: '', event: '{}', sealedAnswer, createdAt: tx.now })
    }
  })
}

async function dataKeysOf({ read }: Gatehouse): Promise<Set<string>> {
  const { idempotentAnswers: t } = read.tables
  const rows = await read.select({ sealed: t.sealedAnswer }).from(t)
  return new Set(rows.map(({ sealed }) => sealingKeyId(sealed!)))
}

/** Throws if one of the values does not open. */
async function openAll({ read, keyring }: Gatehouse): Promise<void> {
  const [column] = sealedColumns(read.tables)
  const { idempotentAnswers: t } = read.tables
  const rows = await read.select({ id: t.id, sealed: t.sealedAnswer }).from(t)
  for (const { id, sealed } of rows)
    unseal(sealed!, (keyId) => keyring().dataKeys.get(keyId), placeIn(column!, id, 'o'))
}

test('master-key new prints a line that a source may hold, another one each time', async () => {
  const printed = [await run('master-key', 'new'), await run('master-key', 'new')].map(({ out }) => out)
  for (const line of printed) expect(line).toMatch(/^mk-[0-9a-f]{8} [A-Za-z0-9+/]{43}=\n$/)
  expect(readMasterKeys('env:KEY', { KEY: printed.join('') })).toHaveLength(2)
})

/** The same guarantees with and without a running server. */
function rotations(where: string) {
  describe(where, () => {
    test('rotate-master-key adds a line to the file, and keeps its mode and comments', async () => {
      chmodSync(keyFile, 0o600)
      writeFileSync(keyFile, `# ${where}\n${readFileSync(keyFile, 'utf8')}`)
      const before = lines()
      const { exitCode, out, err } = await run('rotate-master-key', '--json')
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
      const after = lines()
      expect(after.slice(0, -1)).toEqual(before)
      const [id, key] = after.at(-1)!.split(' ')
      expect(JSON.parse(out)).toEqual({ id, dropped: [] })
      expect(out).not.toContain(key)
      expect(statSync(keyFile).mode & 0o777).toBe(0o600)
    })

    test('--drop-old leaves the new line alone, and says which ones went', async () => {
      const before = lines().filter((line) => !line.startsWith('#'))
      const { exitCode, out } = await run('rotate-master-key', '--drop-old', '--json')
      expect(exitCode).toBe(0)
      const { id, dropped } = JSON.parse(out)
      expect(dropped).toEqual(before.map((line) => line.split(' ')[0]))
      expect(lines().filter((line) => !line.startsWith('#'))).toEqual([expect.stringMatching(new RegExp(`^${id} `))])
      expect(lines()).toContain(`# ${where}`)
    })

    test('rotate-data-key seals everything anew and says how much', async () => {
      const { exitCode, out, err } = await run('rotate-data-key')
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
      expect(out).toMatch(/^[0-9a-f-]{36}: 1200 values sealed anew, 1200 opened and checked\n$/)
      expect(out).not.toContain(adminKey)
    })
  })
}

describe('rotation by commands', () => {
  beforeAll(() => inspect((opened) => addValues(opened, 1200)))
  rotations('without a server')

  describe('beside a running server', () => {
    let server: Gatehouse
    let admin: { stop(): Promise<void> }
    beforeAll(async () => {
      server = await open()
      // As where the key file belongs to root: the server never reads it again.
      server.masterKeys = () => {
        throw new Error('the server cannot read the source')
      }
      admin = await startAdminSocket(server)
    })
    afterAll(async () => {
      await admin.stop()
      await server.close()
    })

    rotations('with a server')

    test('the server took the new data key without a look at the source', async () => {
      expect(await dataKeysOf(server)).toEqual(new Set([server.keyring().dataKey.id]))
      expect(server.keys.find(server.digestKey(adminKey), Date.now())).toBeDefined()
    })

    test('each rotation is a row of the command line', async () => {
      const [row] = await auditTrail(server.read)
      expect(row).toMatchObject({ user_id: `cli:${process.getuid?.()}`, details: { command: 'rotate-data-key' } })
      expect(doneBy(row!)).toBe('data_key.rotate_key')
    })
  })

  test('all of it opens at the next start', async () => {
    expect(await inUse()).toEqual([lines().at(-1)!.split(' ')[0]!])
    expect((await inspect(dataKeysOf)).size).toBe(1)
  })

  test('a value that does not open ends in 65 and is named', async () => {
    await inspect(async (opened) => {
      const actor = { kind: 'cli', uid: 0, organisationId: 'test', command: 'test' } as const
      await addValues(opened, 2)
      await opened.audited(actor, { action: 'test.damage' }, async (tx) => {
        const { idempotentAnswers: t } = tx.tables
        await tx.insert(t).values({
          ...{ id: 'broken', organisationId: 'o', bodyDigest: '', event: '{}', createdAt: tx.now },
          sealedAnswer: Buffer.from('broken'),
        })
      })
    })
    const { exitCode, err } = await run('rotate-data-key')
    expect({ exitCode, err }).toEqual({ exitCode: 65, err: expect.stringMatching(FAILURE_LINE) })
    expect(err).toContain('idempotent_answers.sealed_answer broken')
    await inspect((opened) => addValues(opened, 2))
    expect(await run('rotate-data-key')).toMatchObject({ exitCode: 0, err: expect.stringContaining('broken off') })
  })
})

test('a source that is no file takes its new line from the operator', async () => {
  const text = readFileSync(config, 'utf8')
  writeFileSync(
    config,
    text.replace(`source = "file:${keyFile}"`, 'source = "env:TEST_MASTER_KEYS"\nallow_env_master_key = true'),
  )
  const old = readFileSync(keyFile, 'utf8')
  const runWith = (source: string, ...argv: string[]) =>
    gatehouse(command(...argv), { env: { TEST_MASTER_KEYS: source } })
  const { exitCode, err } = await runWith(old, 'rotate-master-key')
  expect({ exitCode, err }).toEqual({ exitCode: 65, err: expect.stringMatching(FAILURE_LINE) })
  expect(err).toContain('code=NO_NEW_MASTER_KEY')
  const { out: added } = await run('master-key', 'new')
  const done = await runWith(old + added, 'rotate-master-key', '--drop-old')
  expect(done).toMatchObject({ exitCode: 0, err: `not needed any more: ${lines().at(-1)!.split(' ')[0]}\n` })
  await inspect(async () => {}, { TEST_MASTER_KEYS: added })
  expect(readFileSync(keyFile, 'utf8')).toBe(old)
  rmSync(keyFile)
  writeFileSync(keyFile, added, { mode: 0o400 })
  writeFileSync(config, text)
})

describe('broken off', () => {
  test('two rotations at the same time lose no line of the file', async () => {
    const ran = await Promise.all([run('rotate-master-key'), run('rotate-master-key')])
    expect(ran.map(({ exitCode }) => exitCode).sort()).toEqual([0, 69])
    expect(lines().map((line) => line.split(' ')[0]!)).toEqual(expect.arrayContaining(await inUse()))
  })

  test('a line that a killed rotation left is used by the next one', async () => {
    const before = lines()
    const { out: added } = await run('master-key', 'new')
    chmodSync(keyFile, 0o600)
    writeFileSync(keyFile, `${before.join('\n')}\n${added}`)
    writeFileSync(`${keyFile}.new`, 'half a fi')
    expect((await run('rotate-master-key', '--json')).out).toContain(added.split(' ')[0]!)
    expect(lines()).toEqual([...before, added.trim()])
    await run('rotate-master-key')
    expect(existsSync(`${keyFile}.new`)).toBe(false)
  })

  test(`${KILLS} times SIGKILL during rotate-master-key: the installation opens after each`, async () => {
    await killOften(['rotate-master-key'], async () => {
      for (const id of await inUse()) expect(lines().filter((line) => line.startsWith(`${id} `))).toHaveLength(1)
    })
    expect((await run('rotate-master-key', '--drop-old')).exitCode).toBe(0)
    expect(lines().filter((line) => !line.startsWith('#'))).toHaveLength(1)
    expect(await inUse()).toHaveLength(1)
  }, 120_000)

  test(`${KILLS} times SIGKILL during rotate-data-key: every value opens after each, and the next run goes on`, async () => {
    await inspect((opened) => addValues(opened, 5000))
    await killOften(['rotate-data-key'], () => inspect(openAll))
    expect(await run('rotate-data-key')).toMatchObject({ exitCode: 0, out: expect.stringContaining('5000 opened') })
    expect((await inspect(dataKeysOf)).size).toBe(1)
  }, 120_000)
})

/**
 * Runs a command as a process of its own and kills it after so many milliseconds.
 *
 * @returns whether it had ended by itself, and how long it took
 */
async function runProcess(killAfterMs: number, ...argv: string[]): Promise<{ isDone: boolean; ms: number }> {
  const startedAt = performance.now()
  const child = Bun.spawn([process.execPath, MAIN, ...command(...argv)], { stdout: 'ignore', stderr: 'ignore' })
  const timer = setTimeout(() => child.kill('SIGKILL'), killAfterMs)
  const exitCode = await child.exited
  clearTimeout(timer)
  return { isDone: exitCode === 0, ms: performance.now() - startedAt }
}

/** Kills a command again and again, at moments spread over the later part of its time: before, it only starts. */
async function killOften(argv: string[], afterEach: () => Promise<void>): Promise<void> {
  const { isDone, ms } = await runProcess(60_000, ...argv)
  expect(isDone).toBe(true)
  let killed = 0
  for (let kill = 0; kill < KILLS; kill++) {
    if (!(await runProcess(ms * (0.3 + (0.7 * kill) / KILLS), ...argv)).isDone) killed++
    await afterEach()
  }
  expect(killed).toBeGreaterThan(0)
}
