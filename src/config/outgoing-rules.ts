import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../../schema/config.ts'
import type { Complaint } from '../errors.ts'
import { kindOf, unwrapped } from '../outbound/address.ts'
import { type Entry, parseEndpoint, parseEntry } from '../outbound/endpoint.ts'

/** What types cannot say of calls that leave this machine: hosts and ports, and files of certificate authorities. */
export const outgoingComplaints = ({ outbound, secret_managers }: Config): Complaint[] => [
  ...entries('outbound.allow', outbound.allow),
  ...entries('outbound.allow_http', outbound.allow_http),
  ...Object.entries(outbound.connect).flatMap(([from, to]) => redirection(`outbound.connect.${from}`, from, to)),
  ...authority('secret_managers.aws_ca_file', secret_managers.aws_ca_file),
  ...authority('secret_managers.azure_ca_file', secret_managers.azure_ca_file),
  ...authority('secret_managers.vault_ca_file', secret_managers.vault_ca_file),
]

const entries = (path: string, list: readonly string[]): Complaint[] =>
  list.flatMap((text, i) => {
    const entry = parseEntry(text)
    if (entry === undefined)
      return [
        { path: `${path}[${i}]`, message: 'must be "host:port", "address:port" or "block:port", IPv6 in brackets' },
      ]
    const why = neverReached(entry)
    return why === undefined ? [] : [{ path: `${path}[${i}]`, message: `names ${why}, which is never reached` }]
  })

/** A block may hold such addresses beside others. */
function neverReached(entry: Entry): string | undefined {
  if ('host' in entry || entry.block.bits !== entry.block.size) return undefined
  const { kind, why } = kindOf(unwrapped(entry.block))
  return kind === 'never' ? why : undefined
}

function redirection(path: string, from: string, to: string): Complaint[] {
  if (parseEndpoint(from) === undefined)
    return [{ path, message: 'must be named for the host and port of a URL, such as "t1.vault.azure.net:443"' }]
  return parseEndpoint(to) === undefined ? [{ path, message: 'must be "host:port" or "address:port"' }] : []
}

/** Found at the start, not at the first login. */
function authority(path: string, file: string): Complaint[] {
  if (file === '') return []
  let pem: string
  try {
    pem = readFileSync(file, 'utf8')
  } catch (error) {
    return [{ path, message: `cannot be read (${(error as NodeJS.ErrnoException).code})` }]
  }
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  return blocks.length > 0 && blocks.every(isCertificate) ? [] : [{ path, message: 'must hold certificates as PEM' }]
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0
  } catch {
    return false
  }
}
