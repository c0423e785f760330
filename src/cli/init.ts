import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { toToml } from '../config/describe.ts'
import { SECTIONS, typeOf } from '../config/fields.ts'
import { createMasterKeyFile } from '../crypto/master-key.ts'
import { EXIT, StartError } from '../start-error.ts'
import { defineCommand } from './command.ts'

/** Where an installation lies. */
export interface InstallationPaths {
  config: string
  masterKey: string
  data: string
}

const SYSTEM_PATHS: InstallationPaths = {
  config: '/etc/gatehouse/config.toml',
  masterKey: '/etc/gatehouse/master.key',
  data: '/var/lib/gatehouse',
}

export const init = defineCommand({
  name: 'init',
  summary: 'Write a configuration file and a master key.',
  details: `Without --dir: ${SYSTEM_PATHS.config}, ${SYSTEM_PATHS.masterKey}, data in ${SYSTEM_PATHS.data}. Existing files are never touched.`,
  flags: { dir: { value: 'DIR', description: 'put configuration, key and data below this folder' } },
  async run({ flags, io }) {
    const paths = flags.dir === undefined ? SYSTEM_PATHS : pathsBelow(flags.dir)
    createInstallation(paths)
    const facts = { config: paths.config, master_key: paths.masterKey, data: paths.data }
    if (flags.json) io.out(`${JSON.stringify(facts)}\n`)
    else {
      io.out(
        `${Object.entries(facts)
          .map(([name, path]) => `${name.padEnd(10)}  ${path}\n`)
          .join('')}`,
      )
      io.err(
        `Keep a copy of the master key apart from the backups. Next: gatehouse bootstrap --org NAME --email ADDRESS --config ${paths.config}\n`,
      )
    }
    return undefined
  },
})

export function pathsBelow(dir: string): InstallationPaths {
  const root = resolve(dir)
  return { config: join(root, 'config.toml'), masterKey: join(root, 'master.key'), data: join(root, 'data') }
}

/**
 * Makes folders, `config.toml` (0640) and `master.key` (0400); all or nothing as far as existing files go.
 *
 * @throws StartError 73 ALREADY_EXISTS or CANNOT_CREATE
 */
export function createInstallation(paths: InstallationPaths): void {
  for (const path of [paths.config, paths.masterKey]) {
    if (existsSync(path))
      throw new StartError(
        'ALREADY_EXISTS',
        EXIT.cannotCreate,
        `${path} exists`,
        'keep it, or choose another folder with --dir',
      )
  }
  try {
    mkdirSync(dirname(paths.config), { recursive: true, mode: 0o750 })
    mkdirSync(paths.data, { recursive: true, mode: 0o700 })
    createMasterKeyFile(paths.masterKey)
    writeConfig(paths)
  } catch (error) {
    if (error instanceof StartError) throw error
    const { code, path = paths.config } = error as NodeJS.ErrnoException
    throw new StartError(
      'CANNOT_CREATE',
      EXIT.cannotCreate,
      `${path} cannot be created (${code})`,
      'run as a user who may write there, or choose another folder with --dir',
    )
  }
}

function writeConfig(paths: InstallationPaths): void {
  const fd = openSync(paths.config, 'wx', 0o640)
  try {
    writeSync(fd, configText(paths))
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  // the umask took the group's bit: root writes the file, the service's group reads it
  chmodSync(paths.config, 0o640)
}

/** Every setting with its description, commented out at its default, but for where data and key are (decision 5). */
export function configText(paths: InstallationPaths): string {
  const written = new Map([
    ['data.dir', paths.data],
    ['master_key.source', `file:${paths.masterKey}`],
  ])
  const sections = SECTIONS.map(({ name, fields }) => {
    const settings = fields.map((field) => {
      const value = written.get(field.path)
      const line = `${field.name} = ${toToml(value ?? field.schema['default'])}`
      return `# ${field.schema['description']} (${typeOf(field.schema)}; ${field.env})\n${value === undefined ? `# ${line}` : line}\n`
    })
    return `[${name}]\n${settings.join('\n')}`
  })
  return `# Gatehouse. Settings that are commented out show their defaults; gatehouse config check tells what is wrong.\n\n${sections.join('\n')}`
}
