import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

// Builds the executables of SC-1 and SC-3:
//
//   bun .ci/build.ts [--target all|host|linux-x64,linux-arm64,…] [--outdir dist]
//
// They are named gatehouse-<os>-<arch>[-baseline|-musl]; SHA256SUMS beside them is written last, so a folder without it
// is not finished. The folder holds one build: executables of an earlier one are removed. Prints the paths.
// The runtime of a foreign target is fetched by Bun from the npm registry, once, into Bun's cache.

const ROOT = resolve(import.meta.dir, '..')

/** Each Worker file has to be a further entry point, or it is missing at run time (decision 2). */
const ENTRY_POINTS = ['src/main.ts', 'src/audit/reader.worker.ts', 'src/audit/verify.worker.ts']

const REQUIRED = ['linux-x64', 'linux-arm64', 'darwin-arm64']
/** Left out, with a warning, where the runtime cannot be had. */
const WISHED = ['linux-x64-baseline', 'linux-x64-musl', 'linux-arm64-musl', 'darwin-x64']

/** Into `outdir`, an absolute path; answers the names of the executables. */
function build(targets: string[], outdir: string): string[] {
  mkdirSync(outdir, { recursive: true })
  for (const name of readdirSync(outdir)) {
    if (name === 'SHA256SUMS' || name.startsWith('gatehouse-')) rmSync(`${outdir}/${name}`)
  }
  const commit = currentCommit()
  return targets.flatMap((target) => {
    const name = `gatehouse-${target}`
    if (compile(target, `${outdir}/${name}`, commit)) return [name]
    if (!WISHED.includes(target)) throw new Error(`${target} cannot be built`)
    process.stderr.write(`warning: ${target} is left out\n`)
    return []
  })
}

function compile(target: string, outfile: string, commit: string): boolean {
  const flags = [
    '--compile',
    '--minify',
    '--bytecode',
    '--no-compile-autoload-dotenv',
    '--no-compile-autoload-bunfig',
    '--no-compile-autoload-tsconfig',
    '--no-compile-autoload-package-json',
    ...['--define', 'process.env.NODE_ENV="production"'],
    // A dependency of Azure's SDK asks where its file lies; the answer would be a path of the machine that builds.
    ...['--define', 'import.meta.url="file:///gatehouse"'],
    ...['--define', `GATEHOUSE_COMMIT=${JSON.stringify(commit)}`],
    `--target=bun-${target}`,
    `--outfile=${outfile}`,
  ]
  const { success } = Bun.spawnSync([process.execPath, 'build', ...flags, ...ENTRY_POINTS], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
  })
  return success && existsSync(outfile)
}

/** With `-dirty` when files differ from it; `unknown` outside a repository. */
function currentCommit(): string {
  if (Bun.which('git') === null) return 'unknown'
  const describe = ['git', 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
  const { success, stdout } = Bun.spawnSync(describe, { cwd: ROOT, stderr: 'ignore' })
  return success ? stdout.toString().trim() : 'unknown'
}

function hostTarget(): string {
  const target = `${process.platform}-${process.arch}`
  if (process.platform !== 'linux') return target
  const isGlibc = ['/lib', '/lib64'].some(
    (dir) => existsSync(dir) && readdirSync(dir).some((name) => name.startsWith('ld-linux')),
  )
  return isGlibc ? target : `${target}-musl`
}

function parseTargets(text: string): string[] {
  const known = [...REQUIRED, ...WISHED]
  if (text === 'all') return known
  if (text === 'host') return [hostTarget()]
  const targets = text.split(',')
  const unknown = targets.filter((target) => !known.includes(target))
  if (unknown.length > 0) throw new Error(`no such target: ${unknown.join(', ')}; there are ${known.join(', ')}`)
  return targets
}

async function sha256(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk)
  return hash.digest('hex')
}

const { values } = parseArgs({
  options: { target: { type: 'string', default: 'all' }, outdir: { type: 'string', default: `${ROOT}/dist` } },
})
const outdir = resolve(values.outdir)
const names = build(parseTargets(values.target), outdir)
const sums = await Promise.all(names.map(async (name) => `${await sha256(`${outdir}/${name}`)}  ${name}\n`))
writeFileSync(`${outdir}/SHA256SUMS`, sums.join(''))
for (const name of names) process.stdout.write(`${outdir}/${name}\n`)
