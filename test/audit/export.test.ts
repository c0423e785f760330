import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startAdminSocket } from '../../src/cli/admin-socket.ts'
import { gatehouse as cli, FAILURE_LINE } from '../cli/support.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

const STRANGER = `${import.meta.dir}/../support/verify-export.mjs`

describe('an export of the audit trail', () => {
  let world: TestGatehouse
  let admin: { stop(): Promise<void> }
  let firstKey: string
  let files = 0
  beforeAll(async () => {
    world = await openTestGatehouse()
    admin = await startAdminSocket(world.gatehouse)
    for (let i = 0; i < 5; i++)
      await world.call('POST', '/v1/labels', { name: `label-${i}`, description: 'with "quotes",\ncommas' })
    firstKey = JSON.parse((await run('verify', '--json')).out).public_key
  })
  afterAll(async () => {
    await admin.stop()
    await world.close()
  })

  const run = (...argv: string[]) => cli(['audit', ...argv, '--config', join(world.dir, 'config.toml')])

  async function exported(...flags: string[]): Promise<string> {
    const output = join(world.dir, `export-${files++}`)
    const { exitCode, err } = await run('export', '--output', output, ...flags)
    if (exitCode !== 0) throw new Error(err)
    return output
  }

  /** What somebody says who has the file, the public key and the README. */
  async function strangersWord(file: string, publicKey = firstKey): Promise<string> {
    const process_ = Bun.spawn([process.execPath, STRANGER, file, publicKey], { stderr: 'pipe' })
    const said = (await process_.stdout.text()) + (await process_.stderr.text())
    return `${await process_.exited} ${said.trim()}`
  }

  test.each(['ndjson', 'csv'])('as %s can be checked by a stranger with the public key alone', async (format) => {
    const file = await exported('--format', format)
    expect(await strangersWord(file)).toMatch(/^0 \d+ rows up to number \d+, all as they were signed$/)
    expect(await strangersWord(file, Buffer.alloc(32, 3).toString('base64'))).toContain('the public key is another one')
    expect(statSync(file).mode & 0o777).toBe(0o600)
  })

  const tamperings: [name: string, tamper: (lines: string[]) => string[]][] = [
    ['a row edited', (lines) => lines.map((line, i) => (i === 3 ? line.replace('label', 'lable') : line))],
    ['a row removed', (lines) => lines.toSpliced(3, 1)],
    ['two rows exchanged', (lines) => lines.with(2, lines[3]!).with(3, lines[2]!)],
    ['a row repeated', (lines) => lines.toSpliced(3, 0, lines[3]!)],
    ['its last row cut off', (lines) => lines.toSpliced(-2, 1)],
    ['its signature cut off', (lines) => lines.slice(0, -1)],
    ['its first row cut off', (lines) => lines.toSpliced(1, 1)],
    ['another signature', (lines) => lines.with(-1, lines.at(-1)!.replace(/signature\\":\\"../, 'signature\\":\\"zz'))],
  ]
  test.each(tamperings)('with %s is found out', async (_name, tamper) => {
    const file = await exported('--format', 'ndjson')
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const changed = tamper(lines)
    expect(changed).not.toEqual(lines)
    writeFileSync(file, `${changed.join('\n')}\n`)
    expect(await strangersWord(file)).toStartWith('1 ')
  })

  test('of a period holds its rows and is checked like a whole one', async () => {
    const none = await exported('--format', 'ndjson', '--to', '2020-01-01')
    expect(await strangersWord(none)).toMatch(/^0 0 rows/)
    const all = await exported('--format', 'csv', '--from', '2020-01-01', '--to', '2999-01-01')
    expect(await strangersWord(all)).toMatch(/^0 \d+ rows/)
    await Bun.sleep(2)
    const now = new Date().toISOString()
    await world.call('POST', '/v1/labels', { name: 'late' })
    const late = await exported('--format', 'ndjson', '--from', now)
    expect(await strangersWord(late)).toStartWith('0 1 rows')
    expect(readFileSync(late, 'utf8')).toContain('late')
  })

  test('verifies from the first public key, before and after the signing key was rotated', async () => {
    const before = await exported('--format', 'ndjson')
    const { public_key: newKey } = JSON.parse((await run('rotate-key', '--json')).out)
    await world.call('POST', '/v1/labels', { name: 'after-rotation' })
    await run('rotate-key')
    const after = await exported('--format', 'csv')
    for (const file of [before, after]) expect(await strangersWord(file)).toStartWith('0 ')
    expect(await strangersWord(after, newKey)).toContain('the public key is another one')
    const { out, exitCode } = await run('verify', '--json', '--public-key', firstKey)
    expect([exitCode, JSON.parse(out).public_key]).toEqual([0, firstKey])
  })

  test('is itself a row of the trail', async () => {
    await exported('--format', 'ndjson')
    const { body } = await world.call('GET', '/v1/audit-logs?page_size=1')
    expect(body.data[0]).toMatchObject({ resource_type: 'audit_logs', action: 'export', user_type: 'cli' })
    expect(body.data[0].metadata).toMatchObject({ command: 'audit export', count: expect.any(Number) })
  })

  test('never overwrites a file, and leaves none behind that is not signed', async () => {
    const file = await exported('--format', 'ndjson')
    const before = readFileSync(file, 'utf8')
    expect(await run('export', '--format', 'ndjson', '--output', file)).toMatchObject({ exitCode: 73 })
    expect(readFileSync(file, 'utf8')).toBe(before)
  })

  test.each([
    [['export', '--output', '/tmp/x'], '--format'],
    [['export', '--format', 'xml', '--output', '/tmp/x'], '--format'],
    [['export', '--format', 'csv'], '--output'],
    [['export', '--format', 'csv', '--output', '/tmp/x', '--from', 'now'], '--from'],
    [['prune'], '--before'],
    [['prune', '--before', new Date().toISOString()], 'retention_min_days'],
  ])('%p is refused: %s', async (argv, mentions) => {
    const { exitCode, err } = await run(...argv)
    expect([exitCode, err]).toEqual([64, expect.stringMatching(FAILURE_LINE)])
    expect(err).toContain(mentions)
  })
})
