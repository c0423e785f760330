import { toToml } from '../config/describe.ts'
import { FIELDS } from '../config/fields.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { readMasterKeys } from '../crypto/master-key.ts'
import { StartError } from '../start-error.ts'
import { type Call, defineCommand, type Io } from './command.ts'

const DEFAULT_PATH = '/etc/gatehouse/config.toml'

/** `--config`, else $GATEHOUSE_CONFIG, else the fixed path: never the current folder (CF-1). */
export const configPath = ({ flags, io }: Pick<Call, 'flags' | 'io'>): string =>
  (flags.config as string | undefined) || io.env['GATEHOUSE_CONFIG'] || DEFAULT_PATH

export const loadFor = (call: Pick<Call, 'flags' | 'io'>): LoadedConfig =>
  loadConfig({ path: configPath(call), env: call.io.env })

export const configCheck = defineCommand({
  name: 'config check',
  summary: 'Check the configuration, the files it names and the master key; print every complaint.',
  flags: {},
  showsSettings: true,
  async run(call) {
    const { flags, io } = call
    try {
      const loaded = loadFor(call)
      readMasterKeys(loaded.config.master_key.source, loaded.environment.reveal())
      if (flags.json) print(io, { ok: true, path: loaded.path, warnings: loaded.warnings, complaints: [] })
      else io.out(`${loaded.path}: ok\n`)
      for (const warning of loaded.warnings) io.err(`warning: ${warning}\n`)
    } catch (error) {
      if (flags.json && error instanceof StartError)
        print(io, { ok: false, path: configPath(call), warnings: [], complaints: error.complaints })
      throw error
    }
    return undefined
  },
})

export const configShow = defineCommand({
  name: 'config show',
  summary: 'Print every setting with its value and where the value came from.',
  flags: {},
  showsSettings: true,
  async run(call) {
    const rows = effective(loadFor(call))
    if (call.flags.json) {
      print(call.io, Object.fromEntries(rows.map(({ name, value, origin }) => [name, { value, origin }])))
    } else {
      for (const { name, value, origin } of rows) call.io.out(`${name} = ${toToml(value)}  # ${origin}\n`)
    }
    return undefined
  },
})

const print = (io: Io, value: unknown) => io.out(`${JSON.stringify(value)}\n`)

/** Secrets are shown as *** and the reference that they come from (CF-6). */
function effective({ config, origins }: LoadedConfig): { name: string; value: unknown; origin: string }[] {
  const values = config as unknown as Record<string, Record<string, unknown>>
  return FIELDS.map(({ section, name, path, schema }) => {
    const value = values[section]?.[name]
    const origin = origins.get(path) ?? 'default'
    return schema['reference'] && value !== ''
      ? { name: path, value: '***', origin: `${origin}, ${value}` }
      : { name: path, value, origin }
  })
}
