import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { Config } from '../../schema/config.ts'
import type { Complaint } from '../errors.ts'
import { complaints, nearest } from '../http/complaints.ts'
import { Redacted } from '../redacted.ts'
import { EXIT, StartError } from '../start-error.ts'
import { settingsOf, strangeVariables } from './environment.ts'
import { FIELDS, type Field, SECTIONS } from './fields.ts'
import { type Environment, isExpectedOwner, parseReference, readReference } from './references.ts'
import { type RuleComplaint, ruleComplaints } from './rules.ts'
import { parseToml } from './toml.ts'

export interface LoadedConfig {
  /** the file that was read */
  path: string
  config: Config
  /** where each setting came from: `default`, `/etc/gatehouse/config.toml:12` or `env GATEHOUSE_SERVER_PORT` */
  origins: ReadonlyMap<string, string>
  /** for the log of a start: nothing that keeps us from starting */
  warnings: readonly string[]
  /** the text behind `database.password`, where one is set */
  databasePassword: Redacted<string> | undefined
  /** the text behind `smtp.password`, where one is set */
  smtpPassword: Redacted<string> | undefined
  /** the environment that references are read from */
  environment: Redacted<Environment>
}

type Tables = Record<string, unknown>
type Lines = ReadonlyMap<string, number>
type Origins = ReadonlyMap<string, string>

/**
 * Reads the file, lays the environment over it, fills in the defaults and checks the whole.
 *
 * @param source.path the TOML file
 * @param source.env  `process.env` or a test's own
 * @throws StartError 78 CONFIG_INVALID (or INSECURE_BIND) with every complaint and its line, 78 CONFIG_MISSING,
 *                    77 CONFIG_PERMISSIONS or SECRET_PERMISSIONS, 78 SECRET_MISSING (CF-1 to CF-4)
 */
export function loadConfig(source: { path: string; env: Environment }): LoadedConfig {
  const { path, env } = source
  const { value, lines, faults } = parseToml(readConfigFile(path))
  const settings = settingsOf(env)
  const origins = new Map(FIELDS.map((field) => [field.path, originOf(field, path, lines, settings)]))
  const unknown = removeUnknown(value)
  complete(value, settings)
  const wrong = complaints(Config, value).map(inWords)
  const broken = ruleComplaints(soundPart(value, wrong))
  const found = [
    ...faults.map(({ line, message }) => ({ line, text: `${path}:${line}: ${message}` })),
    ...[...unknown, ...wrong, ...broken].map((complaint) => located(complaint, path, lines, origins)),
  ]
  if (found.length > 0) throw refused(found, found.length === broken.length ? broken : [])
  const config = value as Config
  const strange = strangeVariables(env, config)
  return {
    path,
    config,
    origins,
    warnings:
      strange.length === 0 ? [] : [`environment variables that match no setting are ignored: ${strange.join(', ')}`],
    databasePassword: readPassword('database.password', config.database.password, env),
    smtpPassword: readPassword('smtp.password', config.smtp.password, env),
    environment: new Redacted(env),
  }
}

function readConfigFile(path: string): string {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const fix = 'run gatehouse init, or name the file with --config'
    throw new StartError('CONFIG_MISSING', EXIT.config, `${path} cannot be read (${code})`, fix)
  }
  try {
    const stat = fstatSync(fd)
    if (!stat.isFile())
      throw new StartError(
        'CONFIG_MISSING',
        EXIT.config,
        `${path} is no regular file`,
        'name the TOML file with --config',
      )
    if ((stat.mode & 0o022) !== 0) throw unsafe(`${path} is writable by group or others`, `chmod go-w ${path}`)
    if (!isExpectedOwner(stat.uid)) throw unsafe(`${path} belongs to uid ${stat.uid}`, `chown root ${path}`)
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

const unsafe = (message: string, fix: string) => new StartError('CONFIG_PERMISSIONS', EXIT.permission, message, fix)

function originOf(field: Field, path: string, lines: Lines, settings: ReadonlyMap<Field, unknown>): string {
  if (settings.has(field)) return `env ${field.env}`
  const line = lines.get(field.path)
  return line === undefined ? 'default' : `${path}:${line}`
}

/** Takes out what no section knows and says which setting was probably meant. */
function removeUnknown(value: Tables): Complaint[] {
  const sections = SECTIONS.map(({ name }) => name)
  return Object.entries(value).flatMap(([key, table]) => {
    const section = SECTIONS.find(({ name }) => name === key)
    if (section === undefined) return [removed(value, key, key, sections)]
    const known = section.fields.map(({ name }) => name)
    const surplus = isTable(table) ? Object.keys(table).filter((field) => !known.includes(field)) : []
    return surplus.map((field) => removed(table as Tables, field, `${key}.${field}`, known))
  })
}

function removed(table: Tables, key: string, path: string, candidates: string[]): Complaint {
  delete table[key]
  const meant = nearest(key, candidates) ?? FIELDS.find((field) => field.name === key)?.path
  return {
    path,
    message: `unknown setting; ${meant === undefined ? `known here: ${candidates.join(', ')}` : `did you mean "${meant}"?`}`,
  }
}

const isTable = (value: unknown): value is Tables =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Each setting: the environment's, else the file's, else the default. */
function complete(value: Tables, settings: ReadonlyMap<Field, unknown>): void {
  for (const { name, fields } of SECTIONS) {
    value[name] ??= {}
    const table = value[name]
    if (!isTable(table)) continue
    for (const field of fields) table[field.name] = settings.get(field) ?? table[field.name] ?? defaultOf(field)
  }
}

const defaultOf = (field: Field): unknown => structuredClone(field.schema['default'])

const fieldAt = (path: string): Field | undefined =>
  FIELDS.find((field) => path === field.path || path.startsWith(`${field.path}[`) || path.startsWith(`${field.path}.`))

/** A regular expression tells an operator little. */
function inWords({ path, message }: Complaint): Complaint {
  const expects = fieldAt(path)?.schema['expects']
  return { path, message: expects === undefined ? message : `must be ${expects}` }
}

/** The config with defaults for what is wrong, so that the rules can speak about the rest in the same run. */
function soundPart(value: Tables, wrong: Complaint[]): Config {
  const sound = structuredClone(value)
  for (const { path } of wrong) {
    const [section = ''] = path.split('.')
    for (const field of FIELDS.filter(
      (each) => each.section === section && (path === section || fieldAt(path) === each),
    )) {
      sound[section] = { ...(isTable(sound[section]) && sound[section]), [field.name]: defaultOf(field) }
    }
  }
  return sound as Config
}

interface Located {
  line: number
  text: string
}

/** `file:line: path: message` or `env NAME: path: message`. */
function located({ path, message }: Complaint, file: string, lines: Lines, origins: Origins): Located {
  const origin = origins.get(fieldAt(path)?.path ?? '')
  if (origin?.startsWith('env ')) return { line: Number.POSITIVE_INFINITY, text: `${origin}: ${path}: ${message}` }
  let place = path
  while (place !== '' && !lines.has(place)) place = place.replace(/(^|\.|\[)[^.[]*$/, '')
  const line = lines.get(place)
  return { line: line ?? 0, text: `${file}${line === undefined ? '' : `:${line}`}: ${path}: ${message}` }
}

/** Complaints of one rule alone go by that rule's code. */
function refused(found: Located[], rules: RuleComplaint[]): StartError {
  const said = found.sort((a, b) => a.line - b.line).map(({ text }) => text)
  const [first] = rules
  const only = first !== undefined && rules.every(({ code }) => code === first.code) ? first : undefined
  const fix = only?.fix ?? 'correct the settings named, then run gatehouse config check'
  return new StartError(only?.code ?? 'CONFIG_INVALID', EXIT.config, said.join('; '), fix, said)
}

function readPassword(setting: string, text: string, env: Environment): Redacted<string> | undefined {
  const reference = parseReference(text)
  if (reference === undefined) return undefined
  const bytes = readReference(reference, env, setting)
  return new Redacted(
    bytes
      .reveal()
      .toString('utf8')
      .replace(/\r?\n$/, ''),
  )
}
