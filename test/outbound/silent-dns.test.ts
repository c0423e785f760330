import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A name server for one process alone takes a mount namespace, and port 53.
const ADDRESS = '127.53.53.53'
const PROGRAM = join(import.meta.dir, 'silent-dns-program.ts')
const folder = mkdtempSync(join(tmpdir(), 'gatehouse-dns-'))
const resolvConf = join(folder, 'resolv.conf')
writeFileSync(resolvConf, `nameserver ${ADDRESS}\n`)
afterAll(() => rmSync(folder, { recursive: true }))

const withNameServer = (...command: string[]) => [
  ...['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" /etc/resolv.conf && exec "$@"', resolvConf],
  ...command,
]
const isPossible =
  Bun.which('unshare') !== null && process.getuid?.() === 0 && Bun.spawnSync(withNameServer('true')).success
if (!isPossible) process.stderr.write('skipped: a silent name server takes root and unshare\n')

test.skipIf(!isPossible)(
  'a name server that never answers holds up no work with files: neither the audit trail nor other managers',
  async () => {
    const child = Bun.spawn(withNameServer(process.execPath, PROGRAM, ADDRESS), { timeout: 4_000, stderr: 'inherit' })
    expect(Number(await new Response(child.stdout).text())).toBeGreaterThan(0)
  },
)
