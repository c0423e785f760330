import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { startTrailChecks, untilNight } from '../../src/audit/scheduled-verify.ts'
import { loadConfig } from '../../src/config/load.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { createLog } from '../../src/log.ts'
import { FAILURE_LINE } from '../cli/support.ts'
import { DIALECTS } from '../support/database.ts'
import { ROOT } from '../support/executable.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { createSite } from '../support/servers.ts'

/** Changes the text of a row behind its hash, and answers what takes it back. */
async function tamper({ read, audited }: Gatehouse, organisationId: string, seq: number): Promise<() => Promise<void>> {
  const { auditEvents: t } = read.tables
  const [row] = await read.select({ text: t.text }).from(t).where(eq(t.seq, seq))
  const put = async (text: string): Promise<void> => {
    await audited({ kind: 'system', organisationId }, { action: 'tests.tamper' }, (tx) =>
      tx.update(t).set({ text }).where(eq(t.seq, seq)).returning({ seq: t.seq }),
    )
  }
  await put(row!.text.replace('"clock":0', '"clock":1'))
  return () => put(row!.text)
}

describe.each(DIALECTS)('checks of a trail that is in use: %s', (dialect) => {
  const LABELS = 20
  let world: TestGatehouse
  beforeAll(async () => {
    world = await openTestGatehouse(dialect)
    for (let i = 0; i < LABELS; i++) await world.call('POST', '/v1/labels', { name: `label-${i}` })
  })
  afterAll(() => world.close())

  const tamperWith = (seq: number) => tamper(world.gatehouse, world.made.organisation_id, seq)
  const check = (newest?: number) => world.gatehouse.trailCheck.run(newest)
  const health = async () => {
    const { body } = await world.call('GET', '/readyz')
    const { text } = await world.call('GET', '/metrics')
    return [body.reasons ?? [], /^gatehouse_audit_chain_ok (\d)$/m.exec(text)?.[1]]
  }

  test('find nothing where nothing is wrong, while rows are added', async () => {
    const [fault] = await Promise.all([check(), world.call('POST', '/v1/labels', { name: 'meanwhile' })])
    expect(fault).toBeUndefined()
    expect(await check(3)).toBeUndefined()
    expect(await health()).toEqual([[], '1'])
  })

  test('name the row that was changed; the node is not ready until one finds nothing', async () => {
    const mend = await tamperWith(5)
    expect(await check()).toEqual({ seq: 5, problem: expect.stringContaining('was changed') })
    expect(await health()).toEqual([['audit_chain_broken'], '0'])
    await mend()
    expect(await check()).toBeUndefined()
    expect(await health()).toEqual([[], '1'])
  })

  test('of the newest rows look at them, and at no others', async () => {
    const mends = [await tamperWith(5)]
    expect(await check(10)).toBeUndefined()
    mends.push(await tamperWith(LABELS))
    expect((await check(10))?.seq).toBe(LABELS)
    for (const mend of mends) await mend()
    expect(await check()).toBeUndefined()
  })

  test('come again by themselves; what a later one finds is logged and does not end the server', async () => {
    const lines: string[] = []
    const log = createLog({ level: 'info', write: (line) => void lines.push(line) })
    const { trailCheck } = world.gatehouse
    const checks = startTrailChecks(trailCheck, log, { untilNext: () => 50 })
    let hasEnded = false
    void checks.brokenAtStart.then(() => {
      hasEnded = true
    })
    await Bun.sleep(400)
    expect(lines).toEqual([])
    const mend = await tamperWith(5)
    while (!trailCheck.isBroken()) await Bun.sleep(20)
    await mend()
    while (trailCheck.isBroken()) await Bun.sleep(20)
    checks.stop()
    expect(lines[0]).toContain('"event":"audit_chain_broken","seq":5')
    expect(hasEnded).toBe(false)
  })
})

describe.each(DIALECTS)('a server whose trail was changed while it was down: %s', (dialect) => {
  test('finds it after it listens, and ends with 65', async () => {
    const site = await createSite(dialect)
    const made = await site.bootstrap()
    const loaded = loadConfig({ path: site.paths.config, env: site.env })
    const gatehouse = await openGatehouse(loaded, createLog({ level: 'error' }))
    await tamper(gatehouse, made.organisation_id, 1)
    await gatehouse.close()
    const command = [process.execPath, `${ROOT}/src/main.ts`, 'serve', '--config', site.paths.config]
    const env = { ...site.env, GATEHOUSE_SERVER_PORT: '0' }
    const server = Bun.spawn(command, { env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const [out, err, exitCode] = await Promise.all([server.stdout.text(), server.stderr.text(), server.exited])
    expect(err).toMatch(FAILURE_LINE)
    expect(err).toStartWith('code=AUDIT_BROKEN msg="row 1: ')
    expect(exitCode).toBe(65)
    expect(out).toMatch(/"event":"listening".*"event":"audit_chain_broken".*"event":"stopping"/s)
    site.remove()
  })
})

test('all rows are checked once a night, in the hour after two', () => {
  const days = ['2026-11-21T00:00', '2026-11-21T01:59:59', '2026-11-21T02:30', '2026-11-21T23:59', '2027-02-28T12:00']
  for (const day of days) {
    const now = new Date(day)
    const next = new Date(now.getTime() + untilNight(now))
    expect(next.getHours()).toBe(2)
    expect(next.getTime() - now.getTime()).toBeWithin(1, 26 * 3_600_000)
  }
})
