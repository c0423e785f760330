import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  cert: string
  key: string
}

export interface Authority {
  /** PEM text: what has to be trusted */
  ca: string
  caFile: string
  /** @param names host names and IP addresses */
  issue(names: readonly string[], how?: 'valid' | 'expired'): Certificate
  /** removes its files */
  remove(): void
}

/** A certificate authority of one test, made with openssl. */
export function createAuthority(name = 'Test Authority'): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-authority-'))
  const file = (leaf: string) => join(folder, leaf)
  const [ca, caKey] = [file('ca.pem'), file('ca.key')]
  openssl('req', '-x509', ...NEW_KEY, '-keyout', caKey, '-out', ca, '-days', '30', '-subj', `/CN=${name}`)
  let issued = 0
  return {
    ca: readFileSync(ca, 'utf8'),
    caFile: ca,
    issue(names, how = 'valid') {
      const base = file(`${++issued}`)
      const [key, request, cert, extensions] = ['key', 'csr', 'pem', 'ext'].map((end) => `${base}.${end}`) as Files
      const days = how === 'valid' ? '5' : '-1'
      writeFileSync(extensions, `subjectAltName=${names.map(alternative).join(',')}`)
      openssl('req', '-new', ...NEW_KEY, '-keyout', key, '-out', request, '-subj', '/CN=test')
      openssl(
        ...['x509', '-req', '-in', request, '-CA', ca, '-CAkey', caKey, '-set_serial', `${issued}`],
        ...['-out', cert, '-extfile', extensions, '-days', days],
      )
      return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

type Files = [key: string, request: string, cert: string, extensions: string]

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

const alternative = (name: string): string => (/^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`)

function openssl(...args: string[]): void {
  const { success, stderr } = Bun.spawnSync(['openssl', ...args])
  if (!success) throw new Error(`openssl ${args[0]} failed: ${stderr}`)
}
