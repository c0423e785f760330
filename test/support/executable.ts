import { resolve } from 'node:path'

export const ROOT = resolve(import.meta.dir, '../..')

/** The name of this machine's executable is the last part. */
export interface Built {
  path: string
  sums: string
}

/** Builds this machine's executable into `outdir`, with SHA256SUMS beside it, as `bun run build` does. */
export function buildExecutable(outdir: string): Built {
  const build = [process.execPath, '.ci/build.ts', '--target', 'host', '--outdir', outdir]
  const { success, stdout, stderr } = Bun.spawnSync(build, { cwd: ROOT })
  if (!success) throw new Error(`the build failed: ${stderr}`)
  return { path: stdout.toString().trim(), sums: `${outdir}/SHA256SUMS` }
}
