import { describe, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { createApiKey } from '../src/api-keys/service.ts'
import { sealingKeyId } from '../src/crypto/cipher.ts'
import type { Gatehouse } from '../src/gatehouse.ts'
import { beginDataKeyRotation, resealBatch } from '../src/keyring/data-key.ts'
import { auditTrail, doneBy } from './support/audit.ts'
import { DIALECTS } from './support/database.ts'
import { expectProblem, useWorld, type World } from './support/scenario.ts'
import { addOrganisation } from './support/tenants.ts'

// What is sealed stays where it belongs, and nothing else holds it (SE-3, SE-6, decisions 16, 40, 41).

const BASE = '/v1/secret-references'
const newCanary = (): string => `Canary-${randomBytes(15).toString('hex')}`
const tokenAuth = (token: string) => ({
  vault_auth_type: 'token',
  vault_addr: 'https://vault.example.com:8200',
  vault_token: token,
})
const reference = (auth_config: object, more: object = {}) => ({
  name: 'r',
  manager_type: 'hashicorp_vault',
  secret_path: 'secret/a',
  auth_config,
  ...more,
})
const cliOf = ({ made }: Pick<World, 'made'>) =>
  ({ kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' }) as const

async function systemKey(world: World): Promise<string> {
  const { gatehouse, made } = world
  gatehouse.peerIp = () => '127.0.0.1'
  const system = { type: 'system', name: 's', scopes: [], accountableUserId: made.user_id } as const
  return (await createApiKey(gatehouse, cliOf(world), system)).key
}

async function setBlob(world: World, id: string, authConfig: Buffer): Promise<void> {
  await world.gatehouse.audited(cliOf(world), { action: 'test.set' }, async (tx) => {
    const { secretReferences: t } = tx.tables
    await tx.update(t).set({ authConfig }).where(eq(t.id, id)).returning({ id: t.id })
  })
}

async function blobOf({ read }: Gatehouse, id: string): Promise<Buffer> {
  const { secretReferences: t } = read.tables
  const [row] = await read.select({ sealed: t.authConfig }).from(t).where(eq(t.id, id))
  return row!.sealed
}

describe.each(DIALECTS)('sealed: %s', (dialect) => {
  const world = useWorld(dialect)
  const create = async (auth: object, key?: string): Promise<string> =>
    (await world().call('POST', BASE, reference(auth), key === undefined ? {} : { key })).body.id

  test('a value moved to another row, or of another organisation, opens for nobody', async () => {
    const { gatehouse, call } = world()
    const system = await systemKey(world())
    const far = await addOrganisation(gatehouse)
    const [mine, theirs] = [newCanary(), newCanary()]
    const id = await create(tokenAuth(mine))
    const others = [await create(tokenAuth(theirs)), await create(tokenAuth(theirs), far.adminKey)]
    const own = await blobOf(gatehouse, id)
    const damaged = Buffer.from(own)
    damaged[damaged.length - 1]! ^= 1
    const blobs = [...(await Promise.all(others.map((other) => blobOf(gatehouse, other)))), damaged, Buffer.alloc(0)]
    for (const blob of blobs) {
      await setBlob(world(), id, blob)
      const answers = [
        await call('GET', `${BASE}/${id}`),
        await call('GET', `${BASE}/${id}`, undefined, { key: system }),
        await call('PUT', `${BASE}/${id}`, { auth_config: { vault_token: newCanary() } }),
      ]
      for (const answer of answers) {
        expectProblem(answer, 'internal')
        for (const canary of [mine, theirs]) expect(answer.text).not.toContain(canary)
      }
      expect(await blobOf(gatehouse, id)).toEqual(blob)
    }
    await gatehouse.refusals.flush()
    const refused = (await auditTrail(gatehouse.read)).filter((row) => row.response_status_code === 500)
    expect(new Set(refused.map(doneBy))).toEqual(new Set(['secret_references.read', 'secret_references.update']))
    expect(refused.filter((row) => row.resource_id === id)).toHaveLength(3)
    const counts = refused.map(({ details }) => Number(details['count']))
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3 * blobs.length)
    // What cannot be opened any more can still be listed, and taken away.
    expect((await call('GET', BASE)).status).toBe(200)
    expect((await call('DELETE', `${BASE}/${id}`)).status).toBe(200)
  })

  test('a look at what is in clear is written down before it is answered, or there is none', async () => {
    const { gatehouse, call } = world()
    const key = await systemKey(world())
    const canary = newCanary()
    const id = await create(tokenAuth(canary))
    const seen = await call('GET', `${BASE}/${id}`, undefined, { key })
    expect(seen.body.auth_config).toEqual(tokenAuth(canary))
    const [row] = await auditTrail(gatehouse.read)
    expect(row && doneBy(row)).toBe('secret_references.read')
    expect(row).toMatchObject({ user_type: 'system', resource_id: id, resource_name: 'r', details: { unmasked: true } })
    expect(JSON.stringify(row)).not.toContain(canary)
    const { audited } = gatehouse
    gatehouse.audited = () => Promise.reject(new Error('the trail is full'))
    const refused = await call('GET', `${BASE}/${id}`, undefined, { key })
    gatehouse.audited = audited
    expectProblem(refused, 'internal')
    expect(refused.text).not.toContain(canary)
  })

  test('the trail tells what changed, secrets by their fingerprints', async () => {
    const { gatehouse, call, made } = world()
    const [first, second] = [newCanary(), newCanary()]
    const id = await create({ ...tokenAuth(first), vault_namespace: 'admin' })
    const [created] = await auditTrail(gatehouse.read)
    const hmac = { hmac: expect.stringMatching(/^[0-9a-f]{16}$/) }
    const auth = { vault_auth_type: 'token', vault_addr: hmac, vault_namespace: hmac, vault_token: hmac }
    expect(created?.details).toEqual({
      after: expect.objectContaining({
        name: 'r',
        manager_type: 'hashicorp_vault',
        secret_path: 'secret/a',
        allow_all_workspaces: true,
        auth_config: auth,
      }),
    })
    expect(created?.request_body).toMatchObject({ auth_config: auth })
    await call('PUT', `${BASE}/${id}`, {
      description: 'd',
      secret_path: 'secret/a',
      allowed_workspaces: [made.workspace_slug],
      auth_config: { vault_auth_type: 'token', vault_token: second, vault_namespace: null },
    })
    const [updated] = await auditTrail(gatehouse.read)
    expect(updated?.details).toEqual({
      before: {
        description: null,
        allow_all_workspaces: true,
        allowed_workspaces: null,
        auth_config: { vault_token: hmac, vault_namespace: hmac },
      },
      after: {
        description: 'd',
        allow_all_workspaces: false,
        allowed_workspaces: [made.workspace_id],
        auth_config: { vault_token: hmac, vault_namespace: null },
      },
    })
    await call('PUT', `${BASE}/${id}`, { description: 'e', auth_config: { vault_token: second } })
    const [unchanged] = await auditTrail(gatehouse.read)
    expect(unchanged?.details).toEqual({ before: { description: 'd' }, after: { description: 'e' } })
    await call('DELETE', `${BASE}/${id}`)
    const [deleted] = await auditTrail(gatehouse.read)
    expect(deleted?.details).toMatchObject({ before: { name: 'r', allowed_workspaces: [made.workspace_id] } })
    const trail = JSON.stringify(await auditTrail(gatehouse.read))
    for (const canary of [first, second]) expect(trail).not.toContain(canary)
  })

  test('every change is told to the caches of all nodes', async () => {
    const { gatehouse, call } = world()
    const id = await create(tokenAuth(newCanary()))
    await call('PUT', `${BASE}/${id}`, { description: 'd' })
    await call('DELETE', `${BASE}/${id}`)
    const { changes: t } = gatehouse.read.tables
    const told = await gatehouse.read.select({ kind: t.kind }).from(t).where(eq(t.id, id))
    // SQLite has one node, and no table of changes to fill.
    expect(told.map(({ kind }) => kind)).toEqual(dialect === 'sqlite' ? [] : Array(3).fill('secret_reference'))
  })

  test('a rotated data key opens them, and updates meanwhile are kept', async () => {
    const { gatehouse, call } = world()
    const canaries = Array.from({ length: 20 }, newCanary)
    const ids = await Promise.all(canaries.map((canary) => create(tokenAuth(canary))))
    const actor = cliOf(world())
    const { id: dataKeyId } = await beginDataKeyRotation(gatehouse, actor, gatehouse.masterKeys())
    const anew = newCanary()
    const rotate = async () => {
      for (let after: Parameters<typeof resealBatch>[2] = null; ; ) {
        const { next, unopened } = await resealBatch(gatehouse, actor, after)
        expect(unopened).toEqual([])
        if (next === null) return
        after = next
      }
    }
    const updates = ids.slice(0, 10).map((id) => call('PUT', `${BASE}/${id}`, { auth_config: { vault_token: anew } }))
    const [, ...answers] = await Promise.all([rotate(), ...updates])
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    const key = await systemKey(world())
    for (const [i, id] of ids.entries()) {
      expect(sealingKeyId(await blobOf(gatehouse, id))).toBe(dataKeyId)
      const { body } = await call('GET', `${BASE}/${id}`, undefined, { key })
      expect(body.auth_config.vault_token).toBe(i < 10 ? anew : canaries[i])
    }
  })

  test('numbers in tags keep their digits, and are found by them', async () => {
    const { call } = world()
    const body = JSON.stringify(reference(tokenAuth(newCanary()), { tags: { big: 1, deep: { big: [1] } } }))
    const sent = body.replaceAll(/1(?=[\],}])/g, '9007199254740993')
    const { body: made } = await call('POST', BASE, sent, { headers: { 'content-type': 'application/json' } })
    expect((await call('GET', `${BASE}/${made.id}`)).text).toContain(
      '"tags":{"big":9007199254740993,"deep":{"big":[9007199254740993]}}',
    )
    const totals = ['9007199254740993', '9007199254740992', '9007199254740994', '"9007199254740993"'].map(
      async (big) => (await call('GET', `${BASE}?tags=${encodeURIComponent(`{"big":${big}}`)}`)).body.total,
    )
    expect(await Promise.all(totals)).toEqual([1, 0, 0, 0])
  })
})

describe.each(DIALECTS)('a leak hunt: %s', (dialect) => {
  const world = useWorld(dialect)
  const NAMES = [
    'aws_auth_type',
    'aws_access_key_id',
    'aws_secret_access_key',
    'aws_role_arn',
    'aws_external_id',
    'aws_region',
    'azure_auth_mode',
    'azure_entra_tenant_id',
    'azure_entra_client_id',
    'azure_entra_client_secret',
    'azure_vault_url',
    'azure_managed_client_id',
    'vault_auth_type',
    'vault_addr',
    'vault_namespace',
    'vault_token',
    'vault_role_id',
    'vault_secret_id',
    'vault_role',
    'vault_auth_mount',
    'unknown_field',
    'masked_vault_token',
  ]
  const DISCRIMINATORS = [
    { aws_auth_type: 'accessKey' },
    { aws_auth_type: 'assumedRole' },
    { azure_auth_mode: 'entra' },
    { vault_auth_type: 'token' },
    { vault_auth_type: 'approle' },
    { aws_auth_type: 'accessKey', vault_auth_type: 'token' },
    {},
  ]

  test('a secret sent in any field, however it fares, is in no answer, log line, audit row or table', async () => {
    const { gatehouse, call, newKey, log, dir } = world()
    const canary = newCanary()
    const answers: string[] = []
    const send = async (...request: Parameters<typeof call>) => {
      const { text, headers } = await call(...request)
      answers.push(text, JSON.stringify([...headers]))
      // The first refusal of a minute leaves a row with its body: so that each is the first.
      await gatehouse.refusals.flush()
    }
    const weak = (await newKey('organisation/service', ['secret_references.list'])).key
    const created = await call('POST', BASE, reference(tokenAuth(canary)))
    const path = `${BASE}/${created.body.id}`
    const bodies = ['aws_sm', 'azure_kv', 'hashicorp_vault'].flatMap((manager_type) =>
      [
        ...NAMES.flatMap((name) => [{ [name]: canary }, { [name]: [{ a: canary }] }]),
        ...DISCRIMINATORS.flatMap((discriminator) => [
          { ...discriminator, ...Object.fromEntries(NAMES.map((name) => [name, canary])) },
          { ...Object.fromEntries(NAMES.map((name) => [name, canary])), ...discriminator },
        ]),
      ].map((auth_config) => ({ manager_type, auth_config })),
    )
    for (const body of bodies) {
      await send('POST', BASE, reference({}, body))
      await send('PUT', path, { auth_config: body.auth_config })
    }
    const body = reference(tokenAuth(canary))
    for (const more of [
      { auth_config: canary },
      { auth_config: [canary] },
      { slug: 'x y' },
      { slug: created.body.slug },
      { allowed_workspaces: ['nowhere'] },
      { organisation_id: Bun.randomUUIDv7() },
      { secret_path: 'x' },
      { vault_token: canary },
    ])
      await send('POST', BASE, { ...body, ...more })
    await send('POST', BASE, body, { key: weak })
    await send('POST', BASE, body, { key: null })
    await send('PUT', `${BASE}/nowhere`, { auth_config: tokenAuth(canary) })
    for (let i = 0; i < 2; i++) await send('POST', BASE, body, { headers: { 'idempotency-key': 'same' } })
    await send('POST', BASE, { ...body, description: canary.slice(0, 8) }, { headers: { 'idempotency-key': 'same' } })
    await send('PUT', path, { auth_config: { vault_token: `${canary}-2` } })
    const approle = { vault_auth_type: 'approle', vault_role_id: canary, vault_secret_id: `${canary}-3` }
    await send('PUT', path, { auth_config: approle })
    for (const each of [path, BASE, '/v1/audit-logs?page_size=500', '/metrics']) {
      const { text } = await call('GET', each)
      // Of what it is shown by there is one field that is no secret: the role id.
      answers.push(each === path ? text.replace(`"vault_role_id":"${canary}"`, '') : text)
    }
    await gatehouse.refusals.flush()
    const rows = await auditTrail(gatehouse.read)
    const trail = rows.map((row) => JSON.stringify(row))
    const tables = await Promise.all(
      Object.values(gatehouse.read.tables).map(async (table) => {
        const held = await gatehouse.read.select().from(table)
        const bytes = held.flatMap((row) => Object.values(row).filter((value) => value instanceof Uint8Array))
        return JSON.stringify(held) + bytes.map((each) => Buffer.from(each).toString('latin1')).join('\n')
      }),
    )
    const files = filesBelow(dir).map((file) => readFileSync(file, 'latin1'))
    expect(rows.filter((row) => row.response_status_code === 400).length).toBeGreaterThan(300)
    const forms = [canary, Buffer.from(canary).toString('base64').slice(0, -4), Buffer.from(canary).toString('hex')]
    for (const [where, texts] of Object.entries({ answers, log, trail, tables, files }))
      for (const form of forms) expect([where, texts.filter((text) => text.includes(form)).length]).toEqual([where, 0])
  })
})

const filesBelow = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((file) => statSync(file).isFile())
