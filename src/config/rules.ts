import { BlockList, isIP } from 'node:net'
import { relative } from 'node:path'
import type { Config } from '../../schema/config.ts'
import type { Complaint } from '../errors.ts'
import { isAmbient } from './ambient.ts'
import { outgoingComplaints } from './outgoing-rules.ts'
import { parseReference } from './references.ts'

/** A complaint with a code and a fix of its own, for the one line that a failed start prints. */
export interface RuleComplaint extends Complaint {
  code: string
  fix: string
}

/** What types cannot say: secrets by reference, addresses, and settings that need or forbid each other. */
export function ruleComplaints(config: Config): RuleComplaint[] {
  return [
    ...secretsInClear(config),
    ...addresses(config),
    ...headerNames(config),
    ...mail(config),
    ...auditSink(config),
    ...tls(config),
    ...insecureBind(config),
    ...outgoingComplaints(config).map(({ path, message }) => invalid(path, message)),
  ]
}

const invalid = (path: string, message: string): RuleComplaint => ({
  path,
  message,
  code: 'CONFIG_INVALID',
  fix: 'correct the settings named, then run gatehouse config check',
})

function secretsInClear(config: Config): RuleComplaint[] {
  const { source, allow_env_master_key: allowEnv } = config.master_key
  const found = [
    ...referenceComplaints('database.password', config.database.password),
    ...referenceComplaints('smtp.password', config.smtp.password),
  ]
  if (source === '') found.push(invalid('master_key.source', 'is required'))
  else found.push(...referenceComplaints('master_key.source', source))
  if (parseReference(source)?.kind === 'env' && !allowEnv) {
    found.push(
      invalid(
        'master_key.source',
        'stays readable in /proc as env:; use file: or credential:, or set allow_env_master_key = true',
      ),
    )
  }
  return [...found, ...databaseUrl(config.database.url)]
}

function referenceComplaints(path: string, text: string): RuleComplaint[] {
  if (text === '') return []
  const reference = parseReference(text)
  if (reference === undefined) {
    return [invalid(path, 'must be a reference: file:/path, env:NAME or credential:name, never the secret itself')]
  }
  const isGone = reference.kind === 'env' && isAmbient(reference.name)
  return isGone ? [invalid(path, 'names an environment variable that is removed at start; give it another name')] : []
}

function databaseUrl(text: string): RuleComplaint[] {
  if (text === '') return []
  const url = URL.parse(text)
  if (url === null) return [invalid('database.url', 'must be a URL such as postgres://user@host:5432/name')]
  const hasPassword = url.password !== '' || url.searchParams.has('password')
  return hasPassword
    ? [invalid('database.url', 'must not hold the password; put a reference to it into database.password')]
    : []
}

function addresses(config: Config): RuleComplaint[] {
  const lists = { 'system.allow': config.system.allow, 'server.trusted_proxies': config.server.trusted_proxies }
  return Object.entries(lists).flatMap(([path, blocks]) =>
    blocks.flatMap((block, i) =>
      isBlock(block) ? [] : [invalid(`${path}[${i}]`, 'must be an IP address or a CIDR block such as 10.0.0.0/8')],
    ),
  )
}

/** `10.0.0.0/8`, `::1` */
function isBlock(text: string): boolean {
  const [address = '', bits, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128))
}

function headerNames(config: Config): RuleComplaint[] {
  const lists = {
    'server.key_headers': config.server.key_headers,
    'server.request_id_headers': config.server.request_id_headers,
    'render.strict_compliance_headers': config.render.strict_compliance_headers,
  }
  return Object.entries(lists).flatMap(([path, names]) =>
    names.flatMap((name, i) =>
      /^[a-z0-9-]+$/.test(name) ? [] : [invalid(`${path}[${i}]`, 'must be a header name in lower case')],
    ),
  )
}

function mail({ smtp }: Config): RuleComplaint[] {
  if (smtp.url === '') return []
  const url = URL.parse(smtp.url)
  if (url === null || url.hostname === '')
    return [invalid('smtp.url', 'must be a URL such as smtps://user@mail.example.com:465')]
  const found: RuleComplaint[] = []
  if (url.password !== '')
    found.push(invalid('smtp.url', 'must not hold the password; put a reference to it into smtp.password'))
  if (smtp.password !== '' && url.username === '')
    found.push(invalid('smtp.url', 'must name the user that smtp.password belongs to: smtps://user@host'))
  if (smtp.from === '') found.push(invalid('smtp.from', 'is required with smtp.url'))
  return found
}

function auditSink({ audit, data }: Config): RuleComplaint[] {
  const isBeside = !relative(data.dir, audit.sink).startsWith('..')
  if (audit.sink === '')
    return audit.sink_required ? [invalid('audit.sink', 'is required with audit.sink_required = true')] : []
  return isBeside ? [invalid('audit.sink', 'must lie outside data.dir, so that no loss takes both')] : []
}

function tls({ server }: Config): RuleComplaint[] {
  if ((server.tls_cert_file === '') === (server.tls_key_file === '')) return []
  const missing = server.tls_cert_file === '' ? 'tls_cert_file' : 'tls_key_file'
  return [invalid(`server.${missing}`, 'TLS needs both tls_cert_file and tls_key_file')]
}

/** IN-8: keys must not cross a network in clear. */
function insecureBind({ server }: Config): RuleComplaint[] {
  if (isLoopback(server.host) || server.tls_cert_file !== '' || server.behind_proxy) return []
  return [
    {
      path: 'server.host',
      message: 'is not a loopback address, and neither TLS nor behind_proxy is set',
      code: 'INSECURE_BIND',
      fix: 'set server.tls_cert_file and server.tls_key_file, or server.behind_proxy = true behind a proxy that ends TLS, or host = "127.0.0.1"',
    },
  ]
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

export function isLoopback(host: string): boolean {
  const version = isIP(host)
  return version === 0 ? host === 'localhost' : loopback.check(host, version === 4 ? 'ipv4' : 'ipv6')
}
