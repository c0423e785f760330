import { readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// Foreign secret managers for the tests: HashiCorp Vault here, moto in moto.ts. How they are got: test/servers/README.md.

export interface VaultServer {
  address: string
  rootToken: string
  /** the file of the certificate authority; undefined over http */
  caFile: string | undefined
  /**
   * @param path  `secret/data/app`: what follows /v1/
   * @param token of the root when absent, none when empty
   */
  request(method: string, path: string, body?: unknown, token?: string): Promise<VaultAnswer>
  stop(): Promise<void>
}

export interface VaultAnswer {
  /** 307 as it is: redirects are not followed */
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: each path has a shape of its own, and a test says what it expects of it
  body: any
}

/**
 * A dev server of its own: KV version 2 at `secret/`, all kept in memory.
 *
 * @returns undefined, with the reason printed, where there is no Vault
 * @throws Error with the reason, where GATEHOUSE_TEST_MANAGERS=required
 */
export async function startVault({ tls = false } = {}): Promise<VaultServer | undefined> {
  const started = await startManager('vault', (folder) => [
    'start',
    folder,
    String(process.pid),
    ...(tls ? ['tls'] : []),
  ])
  if (started === undefined) return undefined
  const { folder, said } = started
  return vaultAt(said, 'root', tls ? join(folder, 'tls/vault-ca.pem') : undefined, () => stopManager(folder))
}

export interface VaultNode extends VaultServer {
  /** kills it: what it holds stays on its disk */
  kill(): Promise<void>
  /** kills it and starts it again where it was, sealed */
  restart(): Promise<void>
  unseal(): Promise<void>
}

export interface VaultCluster {
  /** all unsealed; the first one is active at the start */
  nodes: VaultNode[]
  rootToken: string
  /** holds root-token and unseal-key, and what each node stores and logs */
  folder: string
  stop(): Promise<void>
}

/**
 * Nodes on raft, over http, empty.
 *
 * @param size of two nodes both are needed to write: killing one stops the other; of three, one may go
 */
export async function startVaultCluster(size = 2): Promise<VaultCluster | undefined> {
  const started = await startManager('vault', (folder) => ['cluster', folder, String(process.pid), String(size)])
  if (started === undefined) return undefined
  const { folder, said } = started
  const rootToken = readFileSync(join(folder, 'root-token'), 'utf8').trim()
  const key = readFileSync(join(folder, 'unseal-key'), 'utf8').trim()
  const stop = () => stopManager(folder)
  const nodes = said.split('\n').map((address, index): VaultNode => {
    const server = vaultAt(address, rootToken, undefined, stop)
    const name = String(index + 1)
    return {
      ...server,
      kill: () => killServers(join(folder, name)),
      async restart() {
        await killServers(join(folder, name))
        await runScript('vault', ['node', folder, name])
      },
      unseal: async () => void (await server.request('PUT', 'sys/unseal', { key })),
    }
  })
  return { nodes, rootToken, folder, stop }
}

function vaultAt(
  address: string,
  rootToken: string,
  caFile: string | undefined,
  stop: VaultServer['stop'],
): VaultServer {
  const tls = caFile === undefined ? {} : { tls: { ca: readFileSync(caFile, 'utf8') } }
  return {
    address,
    rootToken,
    caFile,
    async request(method, path, body, token = rootToken) {
      const response = await fetch(`${address}/v1/${path}`, {
        method,
        headers: token === '' ? {} : { 'x-vault-token': token },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'manual',
        ...tls,
      })
      const text = await response.text()
      return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) }
    },
    stop,
  }
}

/** Which servers there are scripts for. */
type Manager = 'vault' | 'moto'

/**
 * Starts servers that end with this process at the latest.
 *
 * @param argv for the folder that they live in
 * @returns    what the script said, or undefined, with the reason printed, where the program is not here
 * @throws Error with the reason, where GATEHOUSE_TEST_MANAGERS=required: there, the program is fetched if need be
 */
export async function startManager(
  manager: Manager,
  argv: (folder: string) => string[],
): Promise<{ folder: string; said: string } | undefined> {
  const isRequired = process.env['GATEHOUSE_TEST_MANAGERS'] === 'required'
  const folder = join(tmpdir(), `gatehouse-test-${manager}-${Bun.randomUUIDv7()}`)
  try {
    if (!isRequired) await runScript(manager, ['find'])
    return { folder, said: await runScript(manager, argv(folder)) }
  } catch (error) {
    if (isRequired) throw error
    sayOnce(manager, `skipped: ${(error as Error).message}\n`)
    return undefined
  }
}

/** @throws Error with the script's last line */
async function runScript(manager: Manager, argv: string[]): Promise<string> {
  const script = join(import.meta.dir, '../servers', `${manager}.sh`)
  const child = Bun.spawn([script, ...argv], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [said, complaint] = await Promise.all([child.stdout.text(), child.stderr.text()])
  if ((await child.exited) !== 0) throw new Error(complaint.trim().split('\n').at(-1))
  return said.trim()
}

/** In the environment, since each test file has modules of its own. */
function sayOnce(manager: Manager, line: string): void {
  const name = `GATEHOUSE_TEST_${manager.toUpperCase()}_SKIPPED`
  if (process.env[name] === undefined) process.stderr.write(line)
  process.env[name] = line
}

/** Ends the servers of a folder at once, and removes it. */
export async function stopManager(folder: string): Promise<void> {
  await killServers(folder)
  rmSync(folder, { recursive: true, force: true })
}

async function killServers(folder: string): Promise<void> {
  for (const path of new Bun.Glob('**/pid').scanSync(folder)) {
    const pid = Number(readFileSync(join(folder, path), 'utf8'))
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has ended before
    }
    while (isRunning(pid)) await Bun.sleep(5)
  }
}

/** A process that has ended keeps its id until its parent takes note, here the machine's first process, at its leisure. */
function isRunning(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== ''
  } catch {
    return false
  }
}
