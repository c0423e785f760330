import { FIELDS, typeOf } from './fields.ts'

/** One setting for people: --help, `config.toml` and the README's table are made of these rows. */
export interface SettingRow {
  /** `server.port` */
  name: string
  /** `GATEHOUSE_SERVER_PORT` */
  env: string
  type: string
  /** as written in TOML */
  default: string
  description: string
}

export function describeConfig(): SettingRow[] {
  return FIELDS.map(({ path, env, schema }) => ({
    name: path,
    env,
    type: typeOf(schema),
    default: toToml(schema['default']),
    description: String(schema['description']),
  }))
}

/** Strings, numbers, booleans and lists of strings: JSON's text is TOML's there. */
export const toToml = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map(toToml).join(', ')}]` : JSON.stringify(value)

/** The README's table of settings, between its two markers. */
export function settingsTable(): string {
  const rows = describeConfig().map(
    (row) =>
      `| \`${row.name}\` | \`${row.env}\` | ${row.type} | \`${row.default}\` | ${row.description.replaceAll('|', '\\|')} |`,
  )
  return ['| Setting | Environment | Type | Default | Meaning |', '|---|---|---|---|---|', ...rows].join('\n')
}
