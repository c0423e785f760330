import { Database as Connection } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { verifyTrail } from '../../src/audit/verify.ts'
import { createInstallation, pathsBelow } from '../../src/cli/init.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { bootstrap } from '../../src/organisation/bootstrap.ts'
import { auditTrail, doneBy } from '../support/audit.ts'
import { freshFolder } from '../support/database.ts'

const MAIN = join(import.meta.dir, '../../src/main.ts')

const OWNER = { organisation: 'o', email: 'o@example.com', uid: 0 }

describe('a database that is older than its anchor', () => {
  let dir: string
  let adminKey: string
  const data = (name: string) => join(dir, 'data', name)
  let logged: string[]
  const log = createLog({ level: 'warn', write: (line) => void logged.push(line) })
  const load = () => loadConfig({ path: pathsBelow(dir).config, env: {} })
  const open = (acceptRollback?: string) =>
    openGatehouse(load(), log, acceptRollback === undefined ? {} : { acceptRollback })
  const codeOf = (acceptRollback?: string) =>
    open(acceptRollback).then(
      async (opened) => {
        await opened.close()
        return 'opened'
      },
      (error) => `${error.exitCode} ${error.code}`,
    )

  async function addLabels(gatehouse: Gatehouse, names: readonly string[]): Promise<void> {
    const app = createApp(gatehouse, { checkAnswers: true })
    for (const name of names) {
      const body = JSON.stringify({ name })
      const headers = { 'x-service-api-key': adminKey, 'content-type': 'application/json' }
      const answer = await app.fetch(new Request('http://localhost/v1/labels', { method: 'POST', headers, body }))
      expect(answer.status).toBe(200)
    }
  }

  async function during(work: (gatehouse: Gatehouse) => Promise<void>, acceptRollback?: string): Promise<void> {
    const gatehouse = await open(acceptRollback)
    await work(gatehouse)
    await gatehouse.close()
  }

  const anchored = () => JSON.parse(readFileSync(data('AUDIT_ANCHOR'), 'utf8')) as { seq: number; hash: string }
  /** In a process of its own, as beside a server: what it has read of the file ends with it. */
  const verify = async () => {
    const command = [process.execPath, MAIN, 'audit', 'verify', '--config', pathsBelow(dir).config]
    const program = Bun.spawn(command, { env: {}, stderr: 'pipe' })
    const err = await program.stderr.text()
    return `${await program.exited} ${/msg="([^"]*)"/.exec(err)?.[1] ?? err}`
  }
  /** Takes the trail back to where it was in a copy, behind the back of whoever has it open. */
  function cutBehind(copy: string): void {
    const connection = new Connection(data('gatehouse.db'))
    connection.run('ATTACH ? AS old', [copy])
    connection.run('DELETE FROM audit_events WHERE seq > (SELECT seq FROM old.audit_head)')
    connection.run('DELETE FROM audit_head')
    connection.run('INSERT INTO audit_head SELECT * FROM old.audit_head')
    connection.close()
  }

  beforeEach(async () => {
    dir = freshFolder()
    logged = []
    createInstallation(pathsBelow(dir))
    await during(async (gatehouse) => {
      adminKey = (await bootstrap(gatehouse, OWNER)).admin_key
      await addLabels(gatehouse, ['first'])
    })
  })
  afterEach(() => rmSync(dir, { recursive: true }))

  test('an old copy that was put back is refused, until somebody says why it is taken', async () => {
    copyFileSync(data('gatehouse.db'), data('old.db'))
    await during((gatehouse) => addLabels(gatehouse, ['second', 'third']))
    const abandoned = JSON.parse(readFileSync(data('AUDIT_ANCHOR'), 'utf8'))
    copyFileSync(data('old.db'), data('gatehouse.db'))
    expect(await codeOf()).toBe('65 ROLLBACK_DETECTED')
    await during(async (gatehouse) => {
      await addLabels(gatehouse, ['fourth'])
      const [label, restore, before] = await auditTrail(gatehouse.read)
      expect(restore).toMatchObject({
        seq: abandoned.seq + 2000 + 1,
        resource_type: 'system',
        action: 'restore',
        details: { reason: 'disk died', restored: { seq: before?.seq }, abandoned },
      })
      expect(label?.seq).toBe(restore!.seq + 1)
      expect(await verifyTrail(gatehouse)).toMatchObject({ fault: undefined })
    }, 'disk died')
    expect(await codeOf()).toBe('opened')
  })

  test('another history of the same length is refused too', async () => {
    copyFileSync(data('gatehouse.db'), data('old.db'))
    await during((gatehouse) => addLabels(gatehouse, ['second']))
    const anchor = readFileSync(data('AUDIT_ANCHOR'))
    copyFileSync(data('old.db'), data('gatehouse.db'))
    rmSync(data('AUDIT_ANCHOR'))
    await during((gatehouse) => addLabels(gatehouse, ['other', 'another']))
    writeFileSync(data('AUDIT_ANCHOR'), anchor)
    expect(await codeOf()).toBe('65 ROLLBACK_DETECTED')
  })

  test.each([
    { how: 'deleted', damage: () => rmSync(data('gatehouse.db-wal')) },
    { how: 'cut to nothing', damage: () => writeFileSync(data('gatehouse.db-wal'), '') },
    {
      how: 'cut short',
      damage: () =>
        writeFileSync(data('gatehouse.db-wal'), readFileSync(data('gatehouse.db-wal')).subarray(0, 32 + 4120)),
    },
  ])('a write-ahead log that was $how is noticed, although SQLite finds nothing wrong (M7)', async ({ damage }) => {
    const gatehouse = await open()
    await addLabels(
      gatehouse,
      Array.from({ length: 5 }, (_, i) => `label-${i}`),
    )
    // As after a loss of power: the files as they are while the server runs.
    for (const suffix of ['', '-wal']) copyFileSync(data(`gatehouse.db${suffix}`), data(`kept${suffix}`))
    await gatehouse.close()
    expect(existsSync(data('kept-wal'))).toBe(true)
    for (const suffix of ['', '-wal']) copyFileSync(data(`kept${suffix}`), data(`gatehouse.db${suffix}`))
    damage()
    expect(await codeOf()).toBe('65 ROLLBACK_DETECTED')
  })

  test.each(['', 'x', '{}', '{"chain_id":1,"seq":2,"hash":3}'])(
    'an anchor that says %p is no reason to go on',
    async (text) => {
      writeFileSync(data('AUDIT_ANCHOR'), text)
      expect(await codeOf()).toBe('65 ANCHOR_UNREADABLE')
    },
  )

  test('one that is as new as its anchor is opened as always', async () => {
    expect([await codeOf(), await codeOf('never needed')]).toEqual(['opened', 'opened'])
    await during(async (gatehouse) => {
      expect((await auditTrail(gatehouse.read)).filter(({ action }) => action === 'restore')).toEqual([])
    })
  })

  test('audit verify misses the end that the anchor has seen, without a server and beside one', async () => {
    copyFileSync(data('gatehouse.db'), data('old.db'))
    const { seq } = anchored()
    await during((gatehouse) => addLabels(gatehouse, ['second', 'third']))
    expect(await verify()).toStartWith('0 ')
    const missing = `65 rows ${seq + 1} to ${seq + 2} are missing, which AUDIT_ANCHOR has seen`
    await during(async () => {
      cutBehind(data('old.db'))
      expect(await verify()).toBe(missing)
    })
    await during((gatehouse) => addLabels(gatehouse, ['fourth', 'fifth']))
    copyFileSync(data('old.db'), data('gatehouse.db'))
    writeFileSync(data('AUDIT_ANCHOR'), JSON.stringify({ ...anchored(), seq: seq + 2 }))
    expect(await verify()).toBe(missing)
    rmSync(data('gatehouse.db'))
    expect(await verify()).toStartWith('65 ')
  })

  test('audit verify takes an anchor that lags behind, and one of before an accepted rollback', async () => {
    copyFileSync(data('gatehouse.db'), data('old.db'))
    await during((gatehouse) => addLabels(gatehouse, ['second', 'third']))
    const abandoned = readFileSync(data('AUDIT_ANCHOR'), 'utf8')
    copyFileSync(data('old.db'), data('gatehouse.db'))
    await during(async (gatehouse) => {
      const { seq } = anchored()
      await addLabels(gatehouse, ['fourth'])
      expect(anchored().seq).toBe(seq)
      expect(await verify()).toStartWith('0 ')
    }, 'disk died')
    expect(await verify()).toStartWith('0 ')
    // As after a crash between the row of the restore and the anchor.
    writeFileSync(data('AUDIT_ANCHOR'), abandoned)
    expect([await verify(), await codeOf()]).toEqual([expect.stringMatching(/^0 /), 'opened'])
  })

  test('audit verify says that a row is another than the anchor has seen, or the trail', async () => {
    const anchor = anchored()
    writeFileSync(data('AUDIT_ANCHOR'), JSON.stringify({ ...anchor, hash: 'f'.repeat(64) }))
    expect(await verify()).toBe(`65 row ${anchor.seq} is not the one that AUDIT_ANCHOR has seen`)
    writeFileSync(data('AUDIT_ANCHOR'), JSON.stringify({ ...anchor, chain_id: 'other' }))
    expect(await verify()).toBe('65 AUDIT_ANCHOR is of another trail')
    writeFileSync(data('AUDIT_ANCHOR'), 'x')
    expect(await verify()).toBe('65 AUDIT_ANCHOR in the data folder cannot be read')
  })

  test('a missing anchor is told in the log and in the trail, once, and made anew', async () => {
    const before = anchored()
    rmSync(data('AUDIT_ANCHOR'))
    expect(await codeOf()).toBe('opened')
    expect(logged).toEqual([expect.stringContaining('audit_anchor_missing')])
    expect(anchored().seq).toBe(before.seq + 1)
    await during(async ({ read }) => {
      const [row, ...rest] = await auditTrail(read)
      expect(row).toMatchObject({ user_type: 'system', action: 'anchor_missing', details: { head: before } })
      expect(rest.map(doneBy)).not.toContain('system.anchor_missing')
    })
    expect(logged).toHaveLength(1)
    expect(await verify()).toStartWith('0 ')
  })

  test.skipIf(process.getuid?.() !== 0)('a command of root leaves nothing that the service cannot read', async () => {
    const service = 12_345
    const files = () => readdirSync(join(dir, 'data')).map((name) => data(name))
    for (const path of [join(dir, 'data'), ...files()]) chownSync(path, service, service)
    await during((gatehouse) => addLabels(gatehouse, ['of-root']))
    for (const path of files()) expect([path, statSync(path).uid]).toEqual([path, service])
  })

  test.skipIf(process.getuid?.() !== 0)('nor does a bootstrap by root, in the folder of the service', async () => {
    const service = 12_345
    rmSync(join(dir, 'data'), { recursive: true })
    mkdirSync(join(dir, 'data'), { mode: 0o700 })
    chownSync(join(dir, 'data'), service, service)
    await during(async (gatehouse) => void (await bootstrap(gatehouse, OWNER)))
    const owners = readdirSync(join(dir, 'data')).map((name) => [name, statSync(data(name)).uid])
    expect(owners.length).toBeGreaterThan(2)
    expect(owners.filter(([, uid]) => uid !== service)).toEqual([])
  })

  test('the anchor is there before bootstrap answers, so that a server killed then starts without a warning', async () => {
    rmSync(join(dir, 'data'), { recursive: true })
    await during(async (gatehouse) => {
      await bootstrap(gatehouse, OWNER)
      expect(anchored().seq).toBe(1)
    })
    expect([await codeOf(), logged]).toEqual(['opened', []])
  })
})
