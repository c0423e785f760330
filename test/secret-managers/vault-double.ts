import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import type { OutboundRequest, OutboundResponse, Transport } from '../../src/outbound/transport.ts'
import { hashicorpVault } from '../../src/secret-managers/hashicorp-vault.ts'
import { type FetchedSecret, type ManagerClient, ManagerError } from '../../src/secret-managers/manager.ts'

/** Text goes out as it is, anything else as JSON; `headers` replace the content type of JSON. */
export interface CannedAnswer {
  status: number
  body?: unknown
  headers?: Record<string, string>
}

/** By method and path: `GET secret/data/app`. Whatever is not named answers as Vault does where there is no mount. */
export type Answers = Record<
  string,
  CannedAnswer | ((request: OutboundRequest) => CannedAnswer | Promise<CannedAnswer>)
>

export interface OpenVault {
  client: ManagerClient
  /** `login`, `read`, … as they were told */
  steps: string[]
  fetch(secretPath?: string, signal?: AbortSignal): Promise<FetchedSecret>
  /** the error of a fetch that must fail */
  failure(secretPath?: string, signal?: AbortSignal): Promise<ManagerError>
}

export interface VaultDouble extends OpenVault {
  requests: OutboundRequest[]
  /** `GET secret/data/app`, in the order of their coming */
  asked(): string[]
  answers: Answers
}

const vault_addr = 'https://vault.example.com:8200'

export const TOKEN: VaultAuthConfig = { vault_auth_type: 'token', vault_addr, vault_token: 'hvs.of-the-config' }
export const APPROLE: VaultAuthConfig = {
  vault_auth_type: 'approle',
  vault_addr,
  vault_role_id: 'role-of-the-config',
  vault_secret_id: 'secret-of-the-config',
}
export const KUBERNETES: VaultAuthConfig = { vault_auth_type: 'kubernetes', vault_addr, vault_role: 'kubernetes-role' }

export const ok = (body: unknown): CannedAnswer => ({ status: 200, body })
export const refused = (status: number, ...errors: string[]): CannedAnswer => ({ status, body: { errors } })
export const granted = (client_token: string, lease_duration = 3_600, renewable = false): CannedAnswer =>
  ok({ auth: { client_token, lease_duration, renewable } })
export const secret = (data: object, version = 1): CannedAnswer => ok({ data: { data, metadata: { version } } })
export const mount = (path: string, type = 'kv', options: object | null = { version: '2' }): CannedAnswer =>
  ok({ data: { path, type, options } })

const ANSWERS: Answers = {
  'GET auth/token/lookup-self': ok({ data: { ttl: 3_600, renewable: false } }),
  'POST auth/approle/login': granted('hvs.of-the-login'),
  'POST auth/kubernetes/login': granted('hvs.of-the-login'),
  'GET sys/internal/ui/mounts/secret/app': mount('secret/'),
  'GET secret/data/app': secret({ key: 'value' }, 3),
}

/** A Vault whose answers are written down, reached without a network. */
export function vaultDouble(authConfig: VaultAuthConfig, answers: Answers = {}, settings = {}): VaultDouble {
  const requests: OutboundRequest[] = []
  const double = { requests, answers: { ...ANSWERS, ...answers } }
  const nameOf = ({ method, url }: OutboundRequest) => `${method} ${url.replace(`${authConfig.vault_addr}/v1/`, '')}`
  const transport: Transport = {
    async send(request) {
      requests.push(request)
      const answer = double.answers[nameOf(request)] ?? refused(403, 'permission denied')
      return responseOf(typeof answer === 'function' ? await answer(request) : answer)
    },
    close() {},
  }
  return Object.assign(double, openVault(authConfig, transport, settings), { asked: () => requests.map(nameOf) })
}

function responseOf({ status, body, headers }: CannedAnswer): OutboundResponse {
  if (body === undefined) return { status, headers: headers ?? {}, body: Buffer.alloc(0) }
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: Buffer.from(text) }
}

/** The adapter over any transport. */
export function openVault(authConfig: VaultAuthConfig, transport: Transport, settings: object = {}): OpenVault {
  const steps: string[] = []
  const client = hashicorpVault.open(authConfig, {
    transport,
    settings: settings as Config['secret_managers'],
    referenceId: '5f0c7f1e-0000-7000-8000-000000000001',
  })
  const never = new AbortController().signal
  const fetch: OpenVault['fetch'] = (secretPath = 'secret/app', signal = never) =>
    client.fetchSecret(secretPath, { signal, passed: (step) => void steps.push(step) })
  return {
    client,
    steps,
    fetch,
    async failure(secretPath, signal) {
      const outcome = await fetch(secretPath, signal).catch((error: unknown) => error)
      if (outcome instanceof ManagerError) return outcome
      throw new Error(`expected a ManagerError, got ${Bun.inspect(outcome)}`)
    },
  }
}
