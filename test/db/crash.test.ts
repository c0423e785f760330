import { expect, test } from 'bun:test'
import { readFileSync, rmSync } from 'node:fs'
import { verifyTrail } from '../../src/audit/verify.ts'
import { openDatabase } from '../../src/db/open.ts'
import { freshFolder } from '../support/database.ts'

const COMMITTER = `${import.meta.dir}/../support/committer.ts`

/** More on the build server, where nobody waits. */
const KILLS = process.env['CI'] === undefined ? 8 : 50

test(`${KILLS} times SIGKILL: what was acknowledged is there, each with its audit row, nothing is half there, and the trail verifies`, async () => {
  const dataDir = freshFolder()
  const acknowledged: string[] = []
  for (let kill = 0; kill < KILLS; kill++) acknowledged.push(...(await killedRun(dataDir)))
  const db = await openDatabase({ dialect: 'sqlite', dataDir, create: false })
  const { organisations, auditEvents } = db.read.tables
  const stored = new Set((await db.read.select({ id: organisations.id }).from(organisations)).map(({ id }) => id))
  const audited = await db.read
    .select({ seq: auditEvents.seq, id: auditEvents.resourceId })
    .from(auditEvents)
    .orderBy(auditEvents.seq)
  const { fault } = await verifyTrail(db)
  await db.close()
  rmSync(dataDir, { recursive: true })
  expect(fault).toBeUndefined()
  expect(acknowledged.length).toBeGreaterThan(KILLS)
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([])
  expect(new Set(audited.map(({ id }) => id!))).toEqual(stored)
  expect(audited.map(({ seq }) => seq)).toEqual(audited.map((_, i) => i + 1))
}, 120_000)

/** The ids that a run printed before it was killed, at a moment of chance. */
async function killedRun(dataDir: string): Promise<string[]> {
  const run = Bun.spawn([process.execPath, COMMITTER, dataDir], { stdout: 'pipe', stderr: 'inherit' })
  let output = ''
  const untilKilled = 20 + Math.random() * 200
  for await (const chunk of run.stdout) {
    if (output === '') setTimeout(() => run.kill('SIGKILL'), untilKilled)
    output += new TextDecoder().decode(chunk)
  }
  await run.exited
  // The last line may have been cut.
  return output.split('\n').slice(1, -1)
}

const strace = Bun.which('strace')
if (strace === null)
  process.stderr.write('skipped: strace is not installed, so that fsync before the answer is not proved\n')

test.skipIf(strace === null)('every acknowledgement comes after an fsync of the write-ahead log (ST-4)', async () => {
  const dataDir = freshFolder()
  const log = `${dataDir}/strace.log`
  const arguments_ = ['-f', '-y', '-e', 'trace=write,writev,sendto,sendmsg,fsync,fdatasync', '-s', '64', '-o', log]
  const run = Bun.spawn([strace!, ...arguments_, process.execPath, COMMITTER, dataDir, '20'], {
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const output = await new Response(run.stdout).text()
  const errors = await new Response(run.stderr).text()
  if ((await run.exited) !== 0 && /PTRACE|not permitted/i.test(errors)) {
    process.stderr.write(`skipped: strace may not trace here\n`)
    return
  }
  const ids = output.split('\n').slice(1, -1)
  expect(ids).toHaveLength(20)
  const answers = acknowledgements(readFileSync(log, 'utf8'))
  rmSync(dataDir, { recursive: true })
  expect(answers).toEqual(ids.map((id) => ({ id, isSynced: true })))
})

/** The ids as they were written to standard output, each with whether the log was synced since the one before it. */
function acknowledgements(trace: string): { id: string; isSynced: boolean }[] {
  const answers: { id: string; isSynced: boolean }[] = []
  let isSynced = false
  for (const line of trace.split('\n')) {
    if (/f(data)?sync\(\d+<[^>]*gatehouse\.db-wal>/.test(line)) isSynced = true
    const id = /"([0-9a-f-]{36})\\n"/.exec(line)?.[1]
    if (id === undefined) continue
    answers.push({ id, isSynced })
    isSynced = false
  }
  return answers
}
