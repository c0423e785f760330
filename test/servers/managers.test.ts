import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import { startVault, startVaultCluster, type VaultNode } from '../support/managers.ts'
import { type AccessKey, startMoto } from '../support/moto.ts'
import { serviceAccountToken, startTokenReviews } from '../support/token-review.ts'

interface Key {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string
}

// What the tests of our adapters take for granted of the managers themselves.

const [vault, safeVault, cluster, moto] = await Promise.all([
  startVault(),
  startVault({ tls: true }),
  startVaultCluster(),
  startMoto(),
])
afterAll(async () => {
  await Promise.all([vault, safeVault, cluster, moto].map((server) => server?.stop()))
})

describe.skipIf(vault === undefined)('Vault', () => {
  const ask = (method: string, path: string, body?: unknown, token?: string) =>
    vault!.request(method, path, body, token)
  const readers = { policy: 'path "secret/data/app" { capabilities = ["read"] }' }

  test('is the version that the adapters are written for', async () => {
    expect((await ask('GET', 'sys/health')).body.version).toMatch(/^1\.21\./)
  })

  test('KV version 2 wraps what is stored and keeps its versions; a deleted one is 404 with metadata', async () => {
    await ask('POST', 'secret/data/kept', { data: { key: 'old' } })
    await ask('POST', 'secret/data/kept', { data: { key: 'new\nline' } })
    expect((await ask('GET', 'secret/data/kept')).body.data).toMatchObject({
      data: { key: 'new\nline' },
      metadata: { version: 2 },
    })
    expect((await ask('GET', 'secret/data/kept?version=1')).body.data.data).toEqual({ key: 'old' })
    await ask('DELETE', 'secret/data/kept')
    const deleted = await ask('GET', 'secret/data/kept')
    expect(deleted).toMatchObject({ status: 404, body: { data: { data: null, metadata: { version: 2 } } } })
    expect(await ask('GET', 'secret/data/never')).toMatchObject({ status: 404, body: { errors: [] } })
  })

  test('KV version 1 gives what was stored as it is', async () => {
    await ask('POST', 'sys/mounts/first', { type: 'kv', options: { version: '1' } })
    await ask('POST', 'first/app', { key: 'value' })
    expect((await ask('GET', 'first/app')).body.data).toEqual({ key: 'value' })
    expect((await ask('GET', 'sys/internal/ui/mounts/first/app')).body.data.options).toEqual({ version: '1' })
  })

  test('an AppRole logs in, reads what its policy names and nothing else', async () => {
    await ask('PUT', 'sys/policies/acl/readers', readers)
    await ask('POST', 'sys/auth/approle', { type: 'approle' })
    await ask('POST', 'auth/approle/role/app', { token_policies: 'readers', token_ttl: '1m' })
    await ask('POST', 'secret/data/app', { data: { key: 'value' } })
    const role_id = (await ask('GET', 'auth/approle/role/app/role-id')).body.data.role_id
    const secret_id = (await ask('POST', 'auth/approle/role/app/secret-id')).body.data.secret_id
    const login = await ask('POST', 'auth/approle/login', { role_id, secret_id }, '')
    expect(login.body.auth).toMatchObject({ lease_duration: 60, policies: ['default', 'readers'] })
    const { client_token } = login.body.auth
    expect((await ask('GET', 'secret/data/app', undefined, client_token)).status).toBe(200)
    expect((await ask('GET', 'secret/data/other', undefined, client_token)).status).toBe(403)
    expect((await ask('POST', 'auth/approle/login', { role_id, secret_id: 'wrong' }, '')).status).toBe(400)
  })

  test('a service account logs in when Kubernetes vouches for its token and the role names it', async () => {
    const account = { namespace: 'prod', name: 'gatehouse' }
    const valid = serviceAccountToken(account)
    const reviews = startTokenReviews((token) => token === valid)
    await ask('PUT', 'sys/policies/acl/readers', readers)
    await ask('POST', 'sys/auth/kubernetes', { type: 'kubernetes' })
    await ask('POST', 'auth/kubernetes/config', {
      kubernetes_host: reviews.url,
      kubernetes_ca_cert: reviews.authority,
      token_reviewer_jwt: serviceAccountToken({ namespace: 'vault', name: 'vault' }),
      disable_local_ca_jwt: true,
    })
    await ask('POST', 'auth/kubernetes/role/app', {
      bound_service_account_names: ['gatehouse'],
      bound_service_account_namespaces: ['prod'],
      token_policies: ['readers'],
    })
    const login = (jwt: string) => ask('POST', 'auth/kubernetes/login', { role: 'app', jwt }, '')
    expect(await login(valid)).toMatchObject({ status: 200, body: { auth: { policies: ['default', 'readers'] } } })
    expect((await login(`${valid}x`)).status).toBe(403)
    expect((await login(serviceAccountToken({ ...account, name: 'other' }))).status).toBe(403)
    expect(reviews.asked).toEqual([valid, `${valid}x`])
    reviews.stop()
  })

  test('over TLS, it is trusted through its own authority alone', async () => {
    expect((await safeVault!.request('GET', 'sys/health')).status).toBe(200)
    await expect(fetch(`${safeVault!.address}/v1/sys/health`)).rejects.toThrow('certificate')
  })
})

describe.skipIf(cluster === undefined)('two nodes of Vault', () => {
  /** An election may be lost and held again. */
  const ELECTION_MS = 20_000
  const read = (node: VaultNode | undefined) => node!.request('GET', 'kv/app')

  /** Which node answers for itself, once there is one. */
  async function activeNode(): Promise<number> {
    for (const _ of Array(400)) {
      const health = (node: VaultNode) => node.request('GET', 'sys/health', undefined, '').catch(() => undefined)
      const found = (await Promise.all(cluster!.nodes.map(health))).findIndex((answer) => answer?.status === 200)
      if (found !== -1) return found
      await Bun.sleep(25)
    }
    throw new Error('no node is active after ten seconds')
  }

  beforeAll(async () => {
    await cluster!.nodes[0]!.request('POST', 'sys/mounts/kv', { type: 'kv', options: { version: '1' } })
    await cluster!.nodes[0]!.request('POST', 'kv/app', { key: 'value' })
  })

  test('keep their keys to their owner', () => {
    for (const name of ['root-token', 'unseal-key'])
      expect(statSync(`${cluster!.folder}/${name}`).mode & 0o777).toBe(0o600)
  })

  test('the standby asks the active node, or points at it when it may not', async () => {
    const [active, standby] = cluster!.nodes
    expect((await standby!.request('GET', 'sys/health', undefined, '')).status).toBe(429)
    expect(await read(standby)).toMatchObject({ status: 200, body: { data: { key: 'value' } } })
    const headers = { 'x-vault-token': cluster!.rootToken, 'x-vault-no-request-forwarding': '1' }
    const pointed = await fetch(`${standby!.address}/v1/kv/app?x=1`, { headers, redirect: 'manual' })
    expect(pointed.status).toBe(307)
    expect(pointed.headers.get('location')).toBe(`${active!.address}/v1/kv/app?x=1`)
  })

  test(
    'a sealed one says so, and the other, left alone, points at it or has nobody',
    async () => {
      const active = await activeNode()
      const sealed = cluster!.nodes[active]!
      await sealed.request('PUT', 'sys/seal')
      expect(await read(sealed)).toMatchObject({ status: 503, body: { errors: ['Vault is sealed'] } })
      expect([307, 500]).toContain((await read(cluster!.nodes[1 - active])).status)
      await sealed.unseal()
      expect((await read(cluster!.nodes[await activeNode()])).status).toBe(200)
    },
    ELECTION_MS,
  )

  test(
    'a killed one comes back sealed, with what it held',
    async () => {
      const killed = cluster!.nodes[await activeNode()]!
      await killed.kill()
      await expect(read(killed)).rejects.toThrow()
      await killed.restart()
      expect((await read(killed)).status).toBe(503)
      await killed.unseal()
      expect((await read(cluster!.nodes[await activeNode()])).body.data).toEqual({ key: 'value' })
    },
    ELECTION_MS,
  )

  // Last: it will not be active again for ten seconds.
  test(
    'one takes over when the other steps down',
    async () => {
      const active = await activeNode()
      await cluster!.nodes[active]!.request('PUT', 'sys/step-down')
      const left = await read(cluster!.nodes[active])
      expect([307, 500]).toContain(left.status)
      expect(await activeNode()).toBe(1 - active)
      expect((await read(cluster!.nodes[1 - active])).status).toBe(200)
    },
    ELECTION_MS,
  )
})

describe.skipIf(moto === undefined)('moto', () => {
  const mayRead = { effect: 'Allow', actions: 'secretsmanager:GetSecretValue' } as const
  let reader: AccessKey

  beforeAll(async () => {
    reader = await moto!.createUser('reader', mayRead)
    await moto!.createSecret('text', 'value\n')
    await moto!.createSecret('json', { key: 'value' })
    await moto!.createSecret('binary', new Uint8Array([0, 255]))
  })

  const settingsOf = (credentials: Key) => ({
    region: 'us-east-1',
    credentials,
    endpoint: moto!.url,
    maxAttempts: 1,
  })
  const read = (key: Key, SecretId = 'text') =>
    new SecretsManagerClient(settingsOf(key)).send(new GetSecretValueCommand({ SecretId }))

  /** Undefined for success. */
  const refusal = (answer: Promise<unknown>): Promise<number | undefined> =>
    answer.then(
      () => undefined,
      (error: { $metadata?: { httpStatusCode?: number } }) => error.$metadata?.httpStatusCode,
    )

  test('gives text, JSON and bytes unchanged to a key whose policy allows it', async () => {
    expect((await read(reader)).SecretString).toBe('value\n')
    expect((await read(reader, 'json')).SecretString).toBe('{"key":"value"}')
    expect((await read(reader, 'binary')).SecretBinary).toEqual(new Uint8Array([0, 255]))
  })

  test('refuses a key that nothing allows, that is denied, that is signed wrongly, and of nobody', async () => {
    const idle = await moto!.createUser('idle')
    const denied = await moto!.createUser('denied', mayRead, { ...mayRead, effect: 'Deny' })
    expect(await refusal(read(idle))).toBe(403)
    expect(await refusal(read(denied))).toBe(403)
    expect(await refusal(read({ ...reader, secretAccessKey: 'wrong' }))).toBe(403)
    expect(await refusal(read({ ...reader, accessKeyId: 'AKIAIOSFODNN7EXAMPLE' }))).toBe(403)
    expect(await refusal(read(reader))).toBeUndefined()
  })

  test('keeps versions, and marks for deletion what may be restored', async () => {
    await moto!.createSecret('turned', 'old')
    await moto!.secretsManager('PutSecretValue', { SecretId: 'turned', SecretString: 'new' })
    expect((await read(reader, 'turned')).SecretString).toBe('new')
    await moto!.secretsManager('DeleteSecret', { SecretId: 'turned' })
    await expect(read(reader, 'turned')).rejects.toMatchObject({ name: 'InvalidRequestException' })
    await expect(read(reader, 'never')).rejects.toMatchObject({ name: 'ResourceNotFoundException' })
  })

  test('a role is assumed by whom it trusts with its external id, and its session reads with its token', async () => {
    const caller = await moto!.createUser('caller', { effect: 'Allow', actions: 'sts:AssumeRole' })
    const trust = { principal: caller.arn, externalId: 'right' }
    const role = await moto!.createRole('reading', trust, mayRead)
    const assume = (key: Key, ExternalId: string) =>
      new STSClient(settingsOf(key)).send(new AssumeRoleCommand({ RoleArn: role, RoleSessionName: 'test', ExternalId }))
    const { Credentials: given } = await assume(caller, 'right')
    const session = {
      accessKeyId: given!.AccessKeyId!,
      secretAccessKey: given!.SecretAccessKey!,
      sessionToken: given!.SessionToken!,
    }
    expect((await read(session)).SecretString).toBe('value\n')
    expect(await refusal(read({ ...session, sessionToken: 'wrong' }))).toBe(403)
    await expect(assume(caller, 'wrong')).rejects.toMatchObject({ name: 'AccessDenied' })
    await expect(assume(reader, 'right')).rejects.toMatchObject({ name: 'AccessDenied' })
  })

  test('the metadata service gives credentials that read once policies are not enforced', async () => {
    const metadata = async (path: string, init?: RequestInit) =>
      (await fetch(`${moto!.url}/latest/${path}`, init)).text()
    const ttl = { 'x-aws-ec2-metadata-token-ttl-seconds': '60' }
    const token = await metadata('api/token', { method: 'PUT', headers: ttl })
    const headers = { 'x-aws-ec2-metadata-token': token }
    expect(await metadata('meta-data/iam/security-credentials/', { headers })).toBe('default-role')
    const given = JSON.parse(await metadata('meta-data/iam/security-credentials/default-role', { headers }))
    expect(Date.parse(given.Expiration)).toBeGreaterThan(Date.now())
    const key = { accessKeyId: given.AccessKeyId, secretAccessKey: given.SecretAccessKey, sessionToken: given.Token }
    expect(await refusal(read(key))).toBe(403)
    await moto!.enforcePolicies(false)
    expect((await read(key)).SecretString).toBe('value\n')
    await moto!.enforcePolicies(true)
    expect(await refusal(read(key))).toBe(403)
  })

  test('a reset forgets all and still enforces', async () => {
    await moto!.reset()
    expect(await refusal(read(reader))).toBe(403)
    await moto!.createSecret('text', 'again')
    expect((await read(await moto!.createUser('reader', mayRead))).SecretString).toBe('again')
  })
})
