import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  chownSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { writeRows } from '../../src/audit/export.ts'
import { openSinkFile } from '../../src/audit/sink-file.ts'
import type { Database } from '../../src/db/database.ts'
import { auditTrail } from '../support/audit.ts'
import { DIALECTS, freshFolder } from '../support/database.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { expectProblem } from '../support/scenario.ts'
import { createSite, send, startServerOf } from '../support/servers.ts'

let folder: string
/** what is open, and what its tests leave behind */
let nodes: Pick<TestGatehouse, 'gatehouse'>[]
let dirs: string[]
const sink = () => join(folder, 'sink.ndjson')
const text = () => readFileSync(sink(), 'utf8')

beforeEach(() => {
  folder = freshFolder()
  nodes = []
  dirs = [folder]
})
afterEach(async () => {
  await Promise.all(nodes.map(({ gatehouse }) => gatehouse.close()))
  for (const dir of dirs) rmSync(dir, { recursive: true })
})

async function open(isRequired: boolean, dialect: Database['dialect'] = 'sqlite'): Promise<TestGatehouse> {
  const world = await openTestGatehouse(dialect, `[audit]\nsink = "${sink()}"\nsink_required = ${isRequired}\n`)
  nodes.push(world)
  dirs.push(world.dir)
  return world
}

async function close(world: TestGatehouse): Promise<void> {
  nodes = nodes.filter((node) => node !== world)
  await world.gatehouse.close()
}

async function reopen(world: TestGatehouse): Promise<Pick<TestGatehouse, 'gatehouse' | 'call'>> {
  const node = await world.openNode()
  nodes.push(node)
  return node
}

let labels = 0
const addLabel = ({ call }: Pick<TestGatehouse, 'call'>): Promise<Answer> =>
  call('POST', '/v1/labels', { name: `label-${labels++}`, description: '"ä€😀"' })

async function addLabels(world: Pick<TestGatehouse, 'call'>, count: number): Promise<void> {
  for (const { status } of await Promise.all(Array.from({ length: count }, () => addLabel(world))))
    expect(status).toBe(200)
}

/** What `audit export` would write of all rows, but for the signature at its end. */
async function exported({ gatehouse: { read } }: Pick<TestGatehouse, 'gatehouse'>): Promise<string> {
  let written = ''
  await writeRows({ read }, 'ndjson', { from: 0, to: Number.MAX_SAFE_INTEGER }, async (part) => {
    written += part
  })
  return written
}

/** The numbers of the rows in a text, whatever else stands in it. */
const seqsIn = (lines: string): number[] =>
  lines
    .split('\n')
    .flatMap((line) => (line.startsWith('{"kind":"row"') && line.endsWith('}') ? JSON.parse(line).seq : []))

async function until(isSo: () => boolean | Promise<boolean>, ms = 12_000): Promise<void> {
  const end = performance.now() + ms
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error('it did not come about')
    await Bun.sleep(20)
  }
}

const logged = ({ log }: TestGatehouse, event: string) => log.filter((line) => line.includes(`"event":"${event}"`))
const ready = async ({ call }: TestGatehouse) => (await call('GET', '/readyz')).body.reasons ?? []

test.skipIf(process.getuid?.() !== 0)('a sink that root begins belongs to whom its folder belongs to', async () => {
  const service = 12_345
  chownSync(folder, service, service)
  const world = await open(true)
  await addLabels(world, 1)
  expect(statSync(sink()).uid).toBe(service)
})

describe.each(DIALECTS)('a second copy of the trail: %s', (dialect) => {
  test('is what an export writes, byte for byte, and a change is answered only when its row is in it', async () => {
    const world = await open(true, dialect)
    await Promise.all(
      Array.from({ length: 40 }, async () => {
        const { status, body } = await addLabel(world)
        expect([status, text().includes(body.id)]).toEqual([200, true])
      }),
    )
    expect(text()).toBe(await exported(world))
    expect(statSync(sink()).mode & 0o777).toBe(0o600)
  })

  test('holds refusals, too, and all of it when the server has stopped', async () => {
    const world = await open(false, dialect)
    await addLabels(world, 3)
    expect((await world.call('GET', '/v1/labels/none')).status).toBe(404)
    await world.gatehouse.refusals.flush()
    const whole = await exported(world)
    expect(whole).toContain('not_found_error')
    await close(world)
    expect(text()).toBe(whole)
  })

  test('gets what was written while it was gone: from the last row in it, with no gap and no double', async () => {
    const world = await open(true, dialect)
    await addLabels(world, 3)
    const kept = text()
    await addLabels(world, 300)
    const whole = await exported(world)
    await close(world)
    writeFileSync(sink(), kept)
    const node = await reopen(world)
    await until(() => text().length >= whole.length)
    expect(text()).toBe(whole)
    await addLabels(node, 1)
    expect(text()).toBe(await exported(node))
  })
})

test('a file that takes the place of a FIFO while that is opened is not taken for one', async () => {
  const row = '{"kind":"row","seq":1,"hash":"x"}\n'
  writeFileSync(join(folder, 'file'), row)
  for (let i = 0; i < 200; i++) {
    rmSync(sink(), { force: true })
    symlinkSync('/dev/null', sink())
    const opening = openSinkFile(sink()).catch(() => undefined)
    await Bun.sleep(Math.random())
    symlinkSync('file', `${sink()}.new`)
    renameSync(`${sink()}.new`, sink())
    const opened = await opening
    if (opened?.isFifo) await opened.append('a record for a FIFO\n')
    await opened?.close()
  }
  expect(readFileSync(join(folder, 'file'), 'utf8')).toBe(row)
})

describe('a line that was cut off', () => {
  test.each([
    ['in its middle', (whole: string) => whole.length - 40],
    ['before its line feed', (whole: string) => whole.length - 1],
    ['after its first character', (whole: string) => whole.trimEnd().lastIndexOf('\n') + 2],
    ['in the record before the first row', () => 20],
    ['and nothing is left', () => 0],
  ])('stays, and its row follows whole: %s', async (_name, lengthOf) => {
    const world = await open(true)
    await addLabels(world, 3)
    const whole = await exported(world)
    await close(world)
    truncateSync(sink(), lengthOf(whole))
    const left = text()
    const node = await reopen(world)
    await addLabels(node, 1)
    expect(text()).toStartWith(left)
    expect(seqsIn(text())).toEqual((await auditTrail(node.gatehouse.read)).map(({ seq }) => seq).reverse())
  })

  test('twice is passed over, too', async () => {
    const world = await open(true)
    await addLabels(world, 1)
    await close(world)
    appendFileSync(sink(), '{"kind":"row","seq":9999,"ha\n{"kind":"row","seq":8888,"hash')
    const node = await reopen(world)
    await addLabels(node, 1)
    const rows = await auditTrail(node.gatehouse.read)
    expect(seqsIn(text())).toEqual(rows.map(({ seq }) => seq).reverse())
  })
})

describe('the file of a running server', () => {
  test.each([
    ['removed', () => unlinkSync(sink())],
    ['moved away', () => renameSync(sink(), `${sink()}.1`)],
    ['emptied', () => truncateSync(sink(), 0)],
  ])('that is %s is whole again before the next change is answered', async (_name, damage) => {
    const world = await open(true)
    await addLabels(world, 3)
    damage()
    await addLabels(world, 1)
    expect(text()).toBe(await exported(world))
  })

  test('may be begun anew behind its last line', async () => {
    const world = await open(true)
    await addLabels(world, 3)
    const last = text().trimEnd().split('\n').at(-1)
    writeFileSync(`${sink()}.new`, `${last}\n`)
    renameSync(`${sink()}.new`, sink())
    await addLabels(world, 1)
    expect(text().trimEnd().split('\n')).toEqual((await exported(world)).trimEnd().split('\n').slice(-2))
  })
})

describe('a file that is not of this database', () => {
  test.each([
    ['of another trail', (whole: string) => whole.replaceAll(/"hash":"..../g, '"hash":"zzzz')],
    ['ahead of the database', (whole: string) => `${whole}{"kind":"row","seq":9999,"hash":"a","text":"{}"}\n`],
  ])('gets no row, since none would fit: %s', async (_name, forge) => {
    const world = await open(true)
    await addLabels(world, 2)
    await close(world)
    const forged = forge(text())
    writeFileSync(sink(), forged)
    const node = await reopen(world)
    expectProblem(await addLabel(node), 'audit_unavailable')
    expect(text()).toBe(forged)
    expect(logged(world, 'audit_sink_down').at(-1)).toContain('is not in this database')
  })
})

describe('a sink that takes no rows', () => {
  /** Nothing can be written there any more. */
  function fill(): void {
    renameSync(sink(), `${sink()}.kept`)
    symlinkSync('/dev/full', sink())
  }
  const free = () => renameSync(`${sink()}.kept`, sink())
  const count = async ({ call }: TestGatehouse) => (await call('GET', '/v1/labels')).body.total

  test('required: a full disk refuses changes before they are made, reads go on, and nothing is lost', async () => {
    const world = await open(true)
    await addLabels(world, 2)
    fill()
    // Only now can it be known; the change is there, and so is its row.
    expectProblem(await addLabel(world), 'outcome_unknown')
    const before = await count(world)
    for (let i = 0; i < 3; i++) {
      const answer = await addLabel(world)
      expectProblem(answer, 'audit_unavailable')
      expect(answer.headers.get('retry-after')).toBe('5')
    }
    expect(await count(world)).toBe(before)
    expect(await ready(world)).toEqual(['audit_sink_unavailable'])
    // A refusal stays one: its row is stored, and follows.
    expectProblem(await world.call('GET', '/v1/labels/none'), 'not_found')
    await world.gatehouse.refusals.flush()
    free()
    await until(async () => (await ready(world)).length === 0)
    await addLabels(world, 1)
    expect(text()).toBe(await exported(world))
    expect([logged(world, 'audit_sink_down').length, logged(world, 'audit_sink_up').length]).toEqual([1, 1])
  }, 20_000)

  test('not required: changes go on, and it is counted', async () => {
    const world = await open(false)
    await addLabels(world, 2)
    const failures = async () =>
      Number(/^gatehouse_audit_sink_failures_total (\d+)$/m.exec((await world.call('GET', '/metrics')).text)?.[1])
    expect(await failures()).toBe(0)
    fill()
    await addLabels(world, 5)
    await until(async () => (await failures()) > 0)
    expect(await ready(world)).toEqual([])
    free()
    await until(() => logged(world, 'audit_sink_up').length === 1)
    await until(async () => text() === (await exported(world)))
  }, 20_000)

  test('required and not there at start: the server starts, and refuses changes', async () => {
    const world = await open(true)
    await close(world)
    renameSync(folder, `${folder}-gone`)
    const node = await reopen(world)
    expectProblem(await addLabel(node), 'audit_unavailable')
    expect((await node.call('GET', '/v1/labels')).status).toBe(200)
    renameSync(`${folder}-gone`, folder)
    await until(async () => (await addLabel(node)).status === 200)
    expect(text()).toBe(await exported(node))
  }, 20_000)
})

describe('a FIFO', () => {
  const readers: Bun.Subprocess[] = []
  const copy = () => join(folder, 'copy')
  afterAll(() => {
    for (const reader of readers) reader.kill('SIGKILL')
  })

  function startReader(): Bun.Subprocess {
    if (!existsSync(sink())) expect(Bun.spawnSync(['mkfifo', sink()]).exitCode).toBe(0)
    const reader = Bun.spawn(['sh', '-c', 'exec cat "$0" >>"$1"', sink(), copy()], { stdin: 'ignore' })
    readers.push(reader)
    return reader
  }
  const read = () => readFileSync(copy(), 'utf8')
  /** Several of them are more than a pipe holds. */
  const parameters = Object.fromEntries(Array.from({ length: 15 }, (_, i) => [`v${i}`, 'x'.repeat(2000)]))
  const addMuch = ({ call }: Pick<TestGatehouse, 'call'>) =>
    call('POST', '/v1/prompts', { name: `much ${labels++}`, string: 'x', parameters })

  test('gets every row from the first change on', async () => {
    startReader()
    const world = await open(true)
    await addLabels(world, 20)
    const whole = await exported(world)
    await until(() => read().length >= whole.length)
    expect(read()).toBe(whole)
  })

  test('required, and its reader stopped: no request hangs, and none is lost when it goes on', async () => {
    const reader = startReader()
    const world = await open(true)
    await addLabels(world, 1)
    reader.kill('SIGSTOP')
    let last: Answer
    let answered = 0
    do {
      const since = performance.now()
      const change = addMuch(world)
      // The event loop goes on meanwhile.
      await world.call('GET', '/v1/labels')
      expect(performance.now() - since).toBeLessThan(1500)
      last = await change
      expect(performance.now() - since).toBeLessThan(8000)
      answered++
    } while (last.status === 200 && answered < 20)
    expectProblem(last, 'outcome_unknown')
    const since = performance.now()
    expectProblem(await addMuch(world), 'audit_unavailable')
    expect(performance.now() - since).toBeLessThan(1500)
    reader.kill('SIGCONT')
    await until(async () => (await addLabel(world)).status === 200)
    const whole = await exported(world)
    await until(() => read().length >= whole.length)
    expect(read()).toBe(whole)
  }, 30_000)

  test('not required, and its reader stopped: changes do not wait, and the server can be closed', async () => {
    const reader = startReader()
    const world = await open(false)
    reader.kill('SIGSTOP')
    for (let i = 0; i < 8; i++) {
      const since = performance.now()
      expect((await addMuch(world)).status).toBe(200)
      expect(performance.now() - since).toBeLessThan(1500)
    }
    const since = performance.now()
    await close(world)
    expect(performance.now() - since).toBeLessThan(6000)
  }, 30_000)

  test('whose reader died gets the rows since for the next one', async () => {
    const reader = startReader()
    const world = await open(true)
    await addLabels(world, 1)
    await until(() => read().length > 0 && seqsIn(read()).length > 0)
    reader.kill('SIGKILL')
    await reader.exited
    expectProblem(await addLabel(world), 'outcome_unknown')
    expectProblem(await addLabel(world), 'audit_unavailable')
    startReader()
    await until(async () => (await addLabel(world)).status === 200)
    const seqs = (await auditTrail(world.gatehouse.read)).map(({ seq }) => seq).reverse()
    await until(() => new Set(seqsIn(read())).size >= seqs.length)
    expect(seqsIn(read())).toEqual(seqs)
  }, 30_000)
})

describe.skipIf(!DIALECTS.includes('postgres'))('two nodes of one PostgreSQL', () => {
  test('have the whole trail each, in a file each, without a change of their own', async () => {
    const site = await createSite('postgres')
    dirs.push(dirname(site.paths.config))
    const made = await site.bootstrap()
    const files = ['a', 'b'].map((name) => join(folder, name))
    const servers = files.map((path) =>
      startServerOf(site, { GATEHOUSE_AUDIT_SINK: path, GATEHOUSE_AUDIT_SINK_REQUIRED: 'true' }),
    )
    const urls = await Promise.all(servers.map(({ url }) => url))
    const label = (url: string) =>
      send(url, { method: 'POST', path: '/v1/labels', key: made.admin_key, body: { name: `label-${labels++}` } })
    const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => label(urls[i % 2]!)))
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const last = (await label(urls[0]!)).body.id
    await until(() => readFileSync(files[1]!, 'utf8').includes(last))
    await Promise.all(servers.map((server) => server.end('SIGTERM')))
    const [a, b] = files.map((path) => readFileSync(path, 'utf8'))
    expect(seqsIn(a!)).toEqual(Array.from({ length: 12 }, (_, i) => i + 1))
    expect(b).toBe(a!)
  }, 30_000)

  test('that are given the same file by mistake miss no row', async () => {
    const world = await open(true, 'postgres')
    const second = await reopen(world)
    await Promise.all([addLabels(world, 30), addLabels(second, 30)])
    const lines = (whole: string) => [...new Set(whole.split('\n'))].filter((line) => line.includes('"row"')).sort()
    expect(lines(text())).toEqual(lines(await exported(world)))
  })
})
