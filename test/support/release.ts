import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Stands in for the executable where only the installer is looked at: it knows the commands that the installer runs. */
const STAND_IN = `#!/bin/sh
case $1 in
  init) while [ "$1" != --dir ]; do shift; done; echo '# config' >"$2/config.toml"; echo key >"$2/master.key" ;;
  config) [ -f "$4" ] ;;
  version) echo 'gatehouse 0.0.0' ;;
esac
`

/** Writes executables of these names and their SHA256SUMS into `dir`. */
export function makeRelease(dir: string, names: string[], script = STAND_IN): void {
  mkdirSync(dir, { recursive: true })
  const lines = names.map((name) => {
    const text = `${script}# ${name}\n`
    writeFileSync(join(dir, name), text, { mode: 0o755 })
    return `${new Bun.CryptoHasher('sha256').update(text).digest('hex')}  ${name}\n`
  })
  writeFileSync(join(dir, 'SHA256SUMS'), lines.join(''))
}

/** Programs that come first on the PATH: name → shell script. */
export function fakePrograms(dir: string, scripts: Record<string, string>): string {
  mkdirSync(dir, { recursive: true })
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(dir, name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(dir, name), 0o755)
  }
  return `${dir}:${process.env['PATH']}`
}

/** A PATH with these programs of this machine and nothing else. */
export function onlyPrograms(dir: string, names: string[]): string {
  mkdirSync(dir, { recursive: true })
  for (const name of names) symlinkSync(Bun.which(name)!, join(dir, name))
  return dir
}

/** Everything below `dir`: path → mode, and the content of files. */
export function snapshot(dir: string): Record<string, string> {
  const paths = readdirSync(dir, { recursive: true }).map(String).sort()
  const entries = paths.map((path) => {
    const stat = lstatSync(join(dir, path))
    return [path, `${stat.mode.toString(8)} ${stat.isFile() ? Bun.hash(readFileSync(join(dir, path))) : ''}`]
  })
  return Object.fromEntries(entries)
}
