import { readFileSync } from 'node:fs'
import { EXIT, StartError } from '../start-error.ts'

const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full']

/**
 * Milliseconds. A statement gives up before the callers do; a node that falls silent in a change, of which a closure takes
 * five seconds at most, lets go of its rows.
 */
const SESSION = { application_name: 'gatehouse', statement_timeout: 5_000, idle_in_transaction_session_timeout: 6_000 }

/**
 * `database.url` as options for Bun's client, with nothing left for it to take from PG… variables.
 *
 * `?sslmode=` is disable, require, verify-ca or verify-full; without it a server on another machine must prove its name
 * (verify-full), and one on this machine is spoken to in the clear. `?sslrootcert=FILE` names the authority to trust.
 *
 * @param password instead of one in the URL
 * @throws StartError DATABASE_URL_INVALID (78); the message holds nothing of the URL
 */
export function postgresOptions(url: string, password?: string): Bun.SQL.Options {
  const parsed = URL.parse(url)
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol)) throw invalidUrl('it is no postgres:// URL')
  const database = decodeURIComponent(parsed.pathname.slice(1))
  if (parsed.hostname === '' || parsed.username === '' || database === '') {
    throw invalidUrl('it must name a user, a host and a database')
  }
  for (const name of parsed.searchParams.keys()) {
    if (name !== 'sslmode' && name !== 'sslrootcert') throw invalidUrl('it may carry sslmode and sslrootcert only')
  }
  const sslMode = parsed.searchParams.get('sslmode') ?? (isLoopback(parsed.hostname) ? 'disable' : 'verify-full')
  if (!SSL_MODES.includes(sslMode)) throw invalidUrl(`sslmode must be one of ${SSL_MODES.join(', ')}`)
  const authority = parsed.searchParams.get('sslrootcert')
  const secret = password ?? decodeURIComponent(parsed.password)
  return {
    adapter: 'postgres',
    // Bun reads sslmode from a URL alone; as an option, TLS would be "prefer", which goes on in the clear if refused.
    url: `postgres://${parsed.username}@${parsed.hostname}:${parsed.port || 5432}${parsed.pathname}?sslmode=${sslMode}`,
    // A function, because an empty string would be replaced by PGPASSWORD.
    password: () => secret,
    connectionTimeout: 5,
    connection: SESSION,
    ...(authority === null ? {} : { tls: { ca: readAuthority(authority) } }),
  }
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127\./.test(host)

function readAuthority(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw invalidUrl('the file that sslrootcert names cannot be read')
  }
}

const invalidUrl = (what: string): StartError =>
  new StartError(
    'DATABASE_URL_INVALID',
    EXIT.config,
    `database.url cannot be used: ${what}`,
    'write database.url as postgres://user@host:5432/database',
  )
