import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ManagerType } from '../../schema/api/secret-references.ts'
import type { Answer } from '../support/gatehouse.ts'
import { createSite, type Sent, send } from '../support/servers.ts'
import type { Machine, Stage } from './conformance.ts'

// The executable on machines of several kinds, each with an installation of its own that may use all managers.

export interface RunningMachine {
  pid: number
  admin(method: string, path: string, body?: unknown): Promise<Answer>
  /** by the system key, for the organisation itself */
  resolve(id: string, body?: object): Promise<Answer>
  /** runs a command of the executable, beside the server or after it */
  run(...argv: string[]): Promise<{ exitCode: number; out: string; err: string }>
  /** all that the server has written, on either stream */
  printed(): string
  /** @returns its exit code */
  stop(): Promise<number>
  remove(): void
}

interface Options {
  /** the executable */
  program: string
  stages: readonly Stage[]
  /** where connections to 169.254.169.254:80 go */
  metadata: string
  /** where to write what is needed */
  folder: string
}

export async function startMachine(machine: Machine, { program, stages, metadata, folder }: Options) {
  const site = await createSite('sqlite')
  const { config, data, masterKey } = site.paths
  const own = [`[data]\ndir = ${JSON.stringify(data)}`, `[master_key]\nsource = "file:${masterKey}"`]
  writeFileSync(config, [...own, ...settingsOf(machine, stages, metadata), ...GRANTS].join('\n'))
  const { admin_key } = await site.bootstrap()
  const keyFile = join(folder, `${machine}-key.json`)
  await site.command('keys', 'create', '--system', '--name', 'gateway', '--output', keyFile)
  const systemKey: string = JSON.parse(readFileSync(keyFile, 'utf8')).key

  const log = join(folder, `${machine}.log`)
  const command = (argv: string[]) => [program, ...argv, '--config', config]
  const child = Bun.spawn(command(['serve']), {
    cwd: folder,
    env: { ...AMBIENT, GATEHOUSE_SERVER_PORT: '0', GATEHOUSE_LOG_LEVEL: 'debug' },
    stdio: ['ignore', Bun.file(log), Bun.file(`${log}.err`)],
  })
  const printed = () => readFileSync(log, 'utf8') + readFileSync(`${log}.err`, 'utf8')
  const url = await listening(child, printed)
  const post = (sent: Sent) => send(url, sent)

  const running: RunningMachine = {
    pid: child.pid,
    admin: (method, path, body) => post({ method, path: `/v1${path}`, body, key: admin_key }),
    resolve: (id, body = {}) =>
      post({
        ...{ method: 'POST', path: `/v1/secret-references/${id}/resolve`, key: systemKey },
        body: { workspace_id: null, ...body },
      }),
    async run(...argv) {
      const ran = Bun.spawn(command(argv), {
        cwd: folder,
        env: AMBIENT,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const [out, err, exitCode] = await Promise.all([ran.stdout.text(), ran.stderr.text(), ran.exited])
      return { out, err, exitCode }
    },
    printed,
    async stop() {
      child.kill('SIGTERM')
      return child.exited
    },
    remove: () => site.remove(),
  }
  return running
}

/** What SDKs would read of this, and be misled by, is nothing to us. */
const AMBIENT = {
  AWS_ACCESS_KEY_ID: 'AKIAOFTHEENVIRONMENT',
  AWS_SECRET_ACCESS_KEY: 'of-the-environment',
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
  AZURE_AUTHORITY_HOST: 'https://127.0.0.1:1',
  AZURE_LOG_LEVEL: 'verbose',
  IDENTITY_ENDPOINT: 'http://127.0.0.1:1',
  VAULT_TOKEN: 'of-the-environment',
  VAULT_ADDR: 'http://127.0.0.1:1',
  VAULT_NAMESPACE: 'of-the-environment',
  HTTPS_PROXY: 'http://127.0.0.1:1',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
  DEBUG: '*',
}

function settingsOf(machine: Machine, stages: readonly Stage[], metadata: string): string[] {
  const merged = (parts: object[]): object => Object.assign({}, ...parts)
  const caFiles = stages.map(({ shapes, caFile }) => ({ [CA_FILE[shapes[0]!.managerType]]: caFile }))
  return [
    '[outbound]',
    ...linesOf({
      allow: stages.flatMap(({ outbound }) => outbound.allow),
      connect: merged([...stages.map(({ outbound }) => outbound.connect), { '169.254.169.254:80': metadata }]),
    }),
    '[secret_managers]',
    ...linesOf(merged([...caFiles, ...stages.map(({ machines }) => machines[machine] ?? {})])),
  ]
}

const CA_FILE: Record<ManagerType, string> = {
  aws_sm: 'aws_ca_file',
  azure_kv: 'azure_ca_file',
  hashicorp_vault: 'vault_ca_file',
}

const linesOf = (settings: object): string[] =>
  Object.entries(settings).map(([name, value]) => `${name} = ${tomlOf(value)}`)

/** JSON's text is TOML's, but for tables. */
function tomlOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  const pairs = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)} = ${JSON.stringify(inner)}`)
  return `{ ${pairs.join(', ')} }`
}

const LISTS = ['workspaces', 'paths', 'role_arns', 'client_ids', 'vault_addr', 'vault_roles']
const GRANTS = ['aws_service_role', 'aws_assumed_role', 'azure_managed', 'azure_default', 'vault_kubernetes'].map(
  (kind) =>
    ['[[secret_managers.machine_identity]]', `kind = "${kind}"`, ...LISTS.map((list) => `${list} = ["*"]`)].join('\n'),
)

async function listening(child: Bun.Subprocess, printed: () => string): Promise<string> {
  while (child.exitCode === null) {
    const url = /"event":"listening".*?"url":"([^"]+)"/.exec(printed())?.[1]
    if (url !== undefined) return url
    await Bun.sleep(10)
  }
  throw new Error(`the server ended before it listened: ${printed()}`)
}
