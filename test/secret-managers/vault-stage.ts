import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { startVault, type VaultServer } from '../support/managers.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { serviceAccountToken, startTokenReviews, type TokenReviews } from '../support/token-review.ts'
import { meanwhile, type Shape, type Stage } from './conformance.ts'

const POLICY = 'path "secret/data/open/*" { capabilities = ["read"] }'
const ACCOUNT = { namespace: 'prod', name: 'gatehouse' }

/**
 * A Vault, over TLS, with each way to log in; its own audit log tells who did.
 *
 * @param folder for that log, and for the token of the pod
 * @returns      undefined where there is no Vault
 */
export async function openVaultStage(folder: string): Promise<Stage | undefined> {
  const vault = await startVault({ tls: true })
  if (vault === undefined) return undefined
  const ask = asking(vault)
  const [log, jwtFile] = [join(folder, 'vault-audit.log'), join(folder, 'jwt')]
  const jwt = serviceAccountToken(ACCOUNT)
  writeFileSync(jwtFile, jwt)
  await ask('PUT', 'sys/audit/file', { type: 'file', options: { file_path: log } })
  await ask('POST', 'secret/data/closed', { data: { key: 'closed' } })

  const kubernetes = { knows: [jwt] }
  const reviews = startTokenReviews((token) => kubernetes.knows.includes(token))
  const logins = await createLogins(ask, reviews)
  const front = await startTlsFront({ names: ['127.0.0.1'], to: 1 })
  const strange = `127.0.0.1:${front.port}`
  const withToken = (vault_addr: string): VaultAuthConfig => ({
    ...{ vault_auth_type: 'token', vault_addr, vault_token: logins.token },
  })

  return {
    name: 'HashiCorp Vault',
    outbound: { allow: [new URL(vault.address).host, '127.0.0.1:1', strange], allow_http: [], connect: {}, proxy: '' },
    caFile: vault.caFile ?? '',
    machines: { pod: { vault_jwt_file: jwtFile } },
    shapes: shapesOf(ask, vault.address, logins, meanwhile(kubernetes, 'knows', [])),
    async store(name, fields) {
      await ask('POST', `secret/data/open/${name}`, { data: fields })
      return `secret/open/${name}`
    },
    missingPath: 'secret/open/never',
    logins: () => loginsIn(readFileSync(log, 'utf8')),
    unreachable: {
      'nobody listens': withToken('https://127.0.0.1:1'),
      'another authority': withToken(`https://${strange}`),
    },
    async stop() {
      front.stop()
      reviews.stop()
      await vault.stop()
    },
  }
}

type Ask = ReturnType<typeof asking>

const asking = (vault: VaultServer) => async (method: string, path: string, body?: unknown) => {
  const answer = await vault.request(method, path, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

interface AppRole {
  vault_role_id: string
  vault_secret_id: string
}

/** All of them may read below `secret/open`, and nothing else. */
async function createLogins(ask: Ask, reviews: TokenReviews) {
  await ask('PUT', 'sys/policies/acl/reader', { policy: POLICY })
  const { auth } = await ask('POST', 'auth/token/create', { policies: ['reader'], ttl: '1h' })
  for (const mount of ['kubernetes', 'kubernetes-prod']) await enableKubernetes(ask, mount, reviews)
  const token: string = auth.client_token
  return { token, own: await enableAppRole(ask, 'approle'), apart: await enableAppRole(ask, 'teams/approle') }
}

async function enableAppRole(ask: Ask, mount: string): Promise<AppRole> {
  await ask('POST', `sys/auth/${mount}`, { type: 'approle' })
  await ask('POST', `auth/${mount}/role/reader`, { token_policies: 'reader', token_ttl: '1h' })
  const { role_id } = (await ask('GET', `auth/${mount}/role/reader/role-id`)).data
  const { secret_id } = (await ask('POST', `auth/${mount}/role/reader/secret-id`)).data
  return { vault_role_id: role_id, vault_secret_id: secret_id }
}

async function enableKubernetes(ask: Ask, mount: string, { url, authority }: TokenReviews): Promise<void> {
  await ask('POST', `sys/auth/${mount}`, { type: 'kubernetes' })
  await ask('POST', `auth/${mount}/config`, {
    kubernetes_host: url,
    kubernetes_ca_cert: authority,
    token_reviewer_jwt: serviceAccountToken({ namespace: 'vault', name: 'vault' }),
    disable_local_ca_jwt: true,
  })
  await ask('POST', `auth/${mount}/role/role-at-${mount}`, {
    bound_service_account_names: [ACCOUNT.name],
    bound_service_account_namespaces: [ACCOUNT.namespace],
    token_policies: ['reader'],
  })
}

type Logins = Awaited<ReturnType<typeof createLogins>>

function shapesOf(
  ask: Ask,
  vault_addr: string,
  { token, own, apart }: Logins,
  whileUnknown: ReturnType<typeof meanwhile>,
): Shape[] {
  const withToken = (vault_token: string): VaultAuthConfig => ({ vault_auth_type: 'token', vault_addr, vault_token })
  const withAppRole = (role: AppRole, mount = {}): VaultAuthConfig => ({
    ...{ vault_auth_type: 'approle', vault_addr },
    ...role,
    ...mount,
  })
  const withKubernetes = (vault_role: string, mount = {}): VaultAuthConfig => ({
    ...{ vault_auth_type: 'kubernetes', vault_addr, vault_role },
    ...mount,
  })
  const [APART, PROD] = [{ vault_auth_mount: 'teams/approle' }, { vault_auth_mount: 'kubernetes-prod' }]
  const common = {
    managerType: 'hashicorp_vault',
    denied: { what: 'a policy that does not name it', secretPath: 'secret/closed' },
  } as const
  const loginAt = (mount: string) => ({
    login: [`auth/${mount}/login`],
    revoke: () => ask('POST', `sys/leases/revoke-prefix/auth/${mount}/login`),
  })
  const unknown = { what: 'Kubernetes does not know the token', during: whileUnknown }

  return [
    {
      name: 'vault token',
      ...{ ...common, authConfig: withToken(token), machine: 'instance', login: ['auth/token/lookup-self'] },
      refused: [{ what: 'a token of nobody', authConfig: withToken('hvs.of-nobody') }],
    },
    {
      name: 'vault approle',
      ...{ ...common, authConfig: withAppRole(own), machine: 'instance', ...loginAt('approle') },
      refused: [
        { what: 'another secret id', authConfig: withAppRole({ ...own, vault_secret_id: crypto.randomUUID() }) },
        { what: 'an unknown role id', authConfig: withAppRole({ ...own, vault_role_id: crypto.randomUUID() }) },
      ],
    },
    {
      name: 'vault approle, at a mount of its own',
      ...{ ...common, authConfig: withAppRole(apart, APART), machine: 'instance', ...loginAt('teams/approle') },
      refused: [{ what: 'at the other mount', authConfig: withAppRole(apart) }],
    },
    {
      name: 'vault kubernetes',
      ...{ ...common, authConfig: withKubernetes('role-at-kubernetes'), machine: 'pod', ...loginAt('kubernetes') },
      refused: [unknown, { what: 'no such role', authConfig: withKubernetes('role-at-kubernetes-prod') }],
    },
    {
      name: 'vault kubernetes, at a mount of its own',
      ...{ ...common, authConfig: withKubernetes('role-at-kubernetes-prod', PROD), machine: 'pod' },
      ...loginAt('kubernetes-prod'),
      refused: [unknown],
    },
  ]
}

/** Each request is there twice: as it came, and as it was answered. */
function loginsIn(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => line.includes('"path":"auth/'))
    .map((line): { type: string; request: { path: string } } => JSON.parse(line))
    .filter(({ type, request }) => type === 'response' && LOGINS.test(request.path))
    .map(({ request }) => request.path)
}

const LOGINS = /\/login$|^auth\/token\/lookup-self$/
