import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { audit } from './audit.ts'
import { createLoadedInstallation, type Installation } from './installation.ts'
import { type Load, load } from './load.ts'
import { mutations } from './mutations.ts'
import { type Command, compile, type Running, withServer } from './processes.ts'
import { startSaving } from './saving.ts'
import { secrets } from './secrets.ts'

/** One line of the answer: what was promised and what was seen. */
export interface Figure {
  name: string
  target: string
  seen: string
  reached: boolean
}

export interface Bench {
  /** folder for executables and installations */
  dir: string
  /** seconds of each measured run of wrk; each is preceded by a warm-up of 3 s */
  seconds: number
  /** of a figure, whose median counts */
  rounds: number
  /** tells what was just seen */
  tell: (line: string) => void
}

const WARM_UP_SECONDS = 3

export type Measurement = (bench: Bench) => Promise<Figure[]>

export const MEASUREMENTS: Record<string, Measurement> = {
  floor,
  saving,
  scale,
  startup,
  memory,
  audit,
  mutations,
  secrets,
}

/** Renders against the floor, in turns on the same installation, so that both see the same weather. */
async function floor(bench: Bench): Promise<Figure[]> {
  const small = await installation(bench, SMALL)
  const bare = join(bench.dir, 'floor')
  compile('test/bench/floor.ts', bare)
  const pairs = await rounds(bench, async () => ({
    floor: await run(bench, 'floor', small, (port) => [bare, small.configPath, `${port}`]),
    ours: await run(bench, 'gatehouse', small, serve(bench, small)),
  }))
  const speed = median(pairs.map((pair) => pair.ours.perSecond / pair.floor.perSecond))
  const tail = median(pairs.map((pair) => pair.ours.p99Ms / pair.floor.p99Ms))
  const cpu = median(pairs.map((pair) => pair.floor.cpuMicros / pair.ours.cpuMicros))
  const seen = (load: Load[]) => `${Math.round(median(load.map((each) => each.perSecond)))}/s`
  const rates = `${seen(pairs.map((pair) => pair.ours))} of ${seen(pairs.map((pair) => pair.floor))}`
  return [
    atLeast('throughput at 64 connections, of the floor', 0.85, speed, rates),
    atMost(
      'p99 at 64 connections, times the floor’s',
      2,
      tail,
      `${median(pairs.map((pair) => pair.ours.p99Ms)).toFixed(2)} ms`,
    ),
    { name: 'the same in processor time (no promise)', target: '', seen: cpu.toFixed(2), reached: true },
  ]
}

/** Renders while another client saves versions of the very prompts that are rendered. */
async function saving(bench: Bench): Promise<Figure[]> {
  const small = await installation(bench, SMALL)
  const pairs = await withServer(serve(bench, small), small, async (server) => {
    const busily = async (work: () => Promise<Load>) => {
      const saver = startSaving(server.url, small, SAVES_PER_SECOND)
      return { busy: await work(), saved: await saver.stop() }
    }
    await busily(() => load(server, small, { seconds: WARM_UP_SECONDS }))
    return rounds(bench, async () => {
      const quiet = await measured(bench, 'quiet', server, small)
      const { busy, saved } = await busily(() => measured(bench, 'while versions are saved', server, small))
      bench.tell(`saved ${saved.perSecond.toFixed(0)}/s, p99 ${saved.p99Ms.toFixed(1)} ms`)
      return { quiet, busy, saved }
    })
  })
  const tail = median(pairs.map((pair) => pair.busy.p99Ms / pair.quiet.p99Ms))
  const saves = median(pairs.map((pair) => pair.saved.perSecond))
  return [
    atMost('p99 while 100 versions a second are saved, times the quiet one', 2, tail),
    atLeast('versions saved a second meanwhile', SAVES_PER_SECOND * 0.97, saves),
  ]
}

const SAVES_PER_SECOND = 100

/** The same load on a small and a large installation, in turns. */
async function scale(bench: Bench): Promise<Figure[]> {
  const small = await installation(bench, SMALL)
  const large = await installation(bench, LARGE)
  const pairs = await rounds(bench, async () => ({
    small: await run(bench, '100 prompts, 10 keys', small, serve(bench, small)),
    large: await run(bench, '100,000 prompts, 100,000 keys', large, serve(bench, large)),
  }))
  const speed = median(pairs.map((pair) => pair.large.perSecond / pair.small.perSecond))
  return [
    atLeast('throughput with 100,000 prompts and keys, of 100 and 10', 0.95, speed),
    atMost('start with 100,000 prompts and keys, ms', 1000, median(await starts(bench, large))),
  ]
}

/** From spawning the process to the first rendered answer. */
async function startup(bench: Bench): Promise<Figure[]> {
  const small = await installation(bench, SMALL)
  return [atMost('start to first rendered answer, ms', 150, median(await starts(bench, small)))]
}

/** Resident memory over a million renders. */
async function memory(bench: Bench): Promise<Figure[]> {
  const small = await installation(bench, SMALL)
  const seen: number[] = []
  await withServer(serve(bench, small), small, async (server) => {
    for (let renders = 0; renders < 1_000_000; ) {
      renders += (await load(server, small, { seconds: 3 })).requests
      seen.push(server.residentMb())
      bench.tell(`${renders} renders: ${seen.at(-1)!.toFixed(0)} MB`)
    }
  })
  const half = Math.floor(seen.length / 2)
  const growth = Math.max(...seen.slice(half)) - Math.max(...seen.slice(0, half))
  return [
    atMost('resident memory over 1,000,000 renders, MB', 150, Math.max(...seen)),
    atMost('growth of its peak in the second half, MB', 5, growth),
  ]
}

const SMALL = { prompts: 100, keys: 10 }
const LARGE = { prompts: 100_000, keys: 100_000 }

const made = new Map<string, Promise<Installation>>()

function installation(bench: Bench, size: typeof SMALL): Promise<Installation> {
  const dir = join(bench.dir, `${size.prompts}-${size.keys}`)
  const known = made.get(dir)
  if (known !== undefined) return known
  mkdirSync(dir)
  const fresh = createLoadedInstallation(dir, size)
  made.set(dir, fresh)
  return fresh
}

const serve =
  ({ dir }: Bench, { configPath }: Installation) =>
  (): string[] => [join(dir, 'gatehouse'), 'serve', '--config', configPath]

/** A fresh server, warmed up and measured. */
const run = (bench: Bench, name: string, on: Installation, command: Command): Promise<Load> =>
  withServer(command, on, async (server) => {
    await load(server, on, { seconds: WARM_UP_SECONDS })
    return measured(bench, name, server, on)
  })

async function measured({ seconds, tell }: Bench, name: string, server: Running, on: Installation): Promise<Load> {
  const seen = await load(server, on, { seconds })
  const { perSecond, p50Ms, p99Ms, cpuMicros } = seen
  const times = `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
  tell(`${name}: ${Math.round(perSecond)}/s, ${times}, ${cpuMicros.toFixed(1)} µs of processor time each`)
  return seen
}

async function starts(bench: Bench, on: Installation): Promise<number[]> {
  const times: number[] = []
  for (let i = 0; i < 5; i++) times.push(await withServer(serve(bench, on), on, async ({ startMs }) => startMs))
  bench.tell(`starts: ${times.map((ms) => ms.toFixed(0)).join(', ')} ms`)
  return times
}

async function rounds<T>(bench: Bench, once: () => Promise<T>): Promise<T[]> {
  const seen: T[] = []
  for (let i = 0; i < bench.rounds; i++) seen.push(await once())
  return seen
}

const median = (values: number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const shownNumber = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(0))

const atLeast = (name: string, bound: number, value: number, beside = ''): Figure =>
  figure(name, `≥ ${bound}`, value >= bound, value, beside)

const atMost = (name: string, bound: number, value: number, beside = ''): Figure =>
  figure(name, `≤ ${bound}`, value <= bound, value, beside)

const figure = (name: string, target: string, reached: boolean, value: number, beside: string): Figure => ({
  name,
  target,
  seen: beside === '' ? shownNumber(value) : `${shownNumber(value)} (${beside})`,
  reached,
})
