import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { ProblemCode } from '../schema/api/errors.ts'
import type { AuthConfig } from '../schema/api/secret-references.ts'
import { createApiKey } from '../src/api-keys/service.ts'
import type { SecretManager } from '../src/secret-managers/manager.ts'
import { checkSecretReferences } from '../src/secret-references/check.ts'
import { createFakeManager, everyManager, text } from './support/fake-manager.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from './support/gatehouse.ts'
import { expectProblem } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'
import { addKey, addOrganisation, addWorkspace, defaultTenant } from './support/tenants.ts'

// Who may write a reference has the machine's own identity, the stored logins and the values of others within reach of a
// name. What lends them on must not be talked into it (decisions 11, 33, 44 and 45).

const BASE = '/v1/secret-references'
const VALUE = 'canary-of-the-machine'
const RESEARCH = '7d2c5a1e-0000-4000-8000-000000000001'
const ACCOUNT = 'arn:aws:secretsmanager:eu-west-1:123456789012'
const ROLE = 'arn:aws:iam::123456789012:role'
const ONE_ROLE = `${ROLE}/canary-of-a-role`

/** To `payments` by its slug, to `research` by its id, to all, and to one that was archived since. */
const GRANTS = `[[secret_managers.machine_identity]]
kind = "aws_service_role"
workspaces = ["payments"]
paths = ["prod/*"]
[[secret_managers.machine_identity]]
kind = "aws_service_role"
workspaces = ["${RESEARCH}"]
paths = ["research/key"]
[[secret_managers.machine_identity]]
kind = "aws_service_role"
workspaces = ["*"]
paths = ["shared/*", "${ACCOUNT}:secret:shared/*", "arn:aws:secretsmanager:us*", "arn:aws:secretsmanager:eu-west-1:9*"]
[[secret_managers.machine_identity]]
kind = "aws_service_role"
workspaces = ["given-up"]
paths = ["*"]
[[secret_managers.machine_identity]]
kind = "aws_assumed_role"
workspaces = ["payments"]
paths = ["prod/*", "partner/*"]
role_arns = ["${ONE_ROLE}", "${ROLE}/team/*"]
[[secret_managers.machine_identity]]
kind = "azure_managed"
workspaces = ["payments"]
paths = ["*"]
client_ids = ["client-of-payments"]
vault_addr = ["https://payments.vault.azure.net"]
[[secret_managers.machine_identity]]
kind = "azure_default"
workspaces = ["payments"]
paths = ["openai"]
vault_addr = ["https://payments.vault.azure.net"]
[[secret_managers.machine_identity]]
kind = "vault_kubernetes"
workspaces = ["payments"]
paths = ["kv/prod/*"]
vault_addr = ["https://vault.example.com:8200"]
vault_roles = ["gateway"]`

interface Body {
  manager_type: string
  auth_config: object
  secret_path: string
  allowed_workspaces?: string[]
}

const serviceRole = (secret_path: string): Body => ({
  manager_type: 'aws_sm',
  auth_config: { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' },
  secret_path,
})
const assumedRole = (aws_role_arn: string, secret_path = 'prod/openai'): Body => ({
  manager_type: 'aws_sm',
  auth_config: { aws_auth_type: 'assumedRole', aws_role_arn, aws_region: 'eu-west-1' },
  secret_path,
})
const managed = (auth_config: object = {}): Body => ({
  manager_type: 'azure_kv',
  auth_config: {
    ...{ azure_auth_mode: 'managed', azure_managed_client_id: 'client-of-payments' },
    ...{ azure_vault_url: 'https://payments.vault.azure.net', ...auth_config },
  },
  secret_path: 'openai',
})
const anyManaged: Body = {
  ...managed(),
  auth_config: { azure_auth_mode: 'managed', azure_vault_url: 'https://payments.vault.azure.net' },
}
const azureDefault = (host = 'payments.vault.azure.net', secret_path = 'openai'): Body => ({
  manager_type: 'azure_kv',
  auth_config: { azure_auth_mode: 'default', azure_vault_url: `https://${host}` },
  secret_path,
})
const kubernetes = (auth_config: object = {}, secret_path = 'kv/prod/openai'): Body => ({
  manager_type: 'hashicorp_vault',
  auth_config: {
    ...{ vault_auth_type: 'kubernetes', vault_addr: 'https://vault.example.com:8200', vault_role: 'gateway' },
    ...auth_config,
  },
  secret_path,
})
const token = (vault_addr = 'https://vault.example.com:8200'): Body => ({
  manager_type: 'hashicorp_vault',
  auth_config: { vault_auth_type: 'token', vault_addr, vault_token: 'hvs.canary-of-the-token' },
  secret_path: 'kv/prod/openai',
})

/** A manager that gives out whatever it is asked for, and remembers with which login it was asked. */
const manager = createFakeManager(() => text(VALUE))
const opened: AuthConfig[] = []
const open: SecretManager['open'] = (authConfig, surroundings) => {
  opened.push(authConfig)
  return manager.open(authConfig, surroundings)
}
const managers = everyManager({ ...manager, open })
/** The double counts for itself. */
const calls = () => manager.calls

let gatehouse: TestGatehouse
let systemKey: string
beforeAll(async () => {
  gatehouse = await openTestGatehouse('sqlite', GRANTS, { managers })
  systemKey = await addSystemKey(gatehouse)
  const { made, call } = gatehouse
  for (const slug of ['payments', 'given-up']) await addWorkspace(gatehouse.gatehouse, made.organisation_id, { slug })
  await addWorkspace(gatehouse.gatehouse, made.organisation_id, { workspaceId: RESEARCH, slug: 'research' })
  expect((await call('DELETE', '/v1/admin/workspaces/given-up', { force_delete: true })).status).toBe(200)
})
afterAll(() => gatehouse.close())
beforeEach(() => {
  opened.length = 0
})

type On = Pick<TestGatehouse, 'gatehouse' | 'call'>

async function made(body: Body, on: On = gatehouse): Promise<string> {
  const answer = await on.call('POST', BASE, { name: 'of a deputy', ...body })
  expect(answer.status, answer.text).toBe(200)
  return answer.body.id
}
const resolved = (id: string, workspace: string | null, body: object = {}, on: On = gatehouse): Promise<Answer> =>
  on.call('POST', `${BASE}/${id}/resolve`, { workspace_id: workspace, ...body }, { key: systemKey })
async function put(id: string, body: object): Promise<void> {
  const answer = await changed(id, body)
  expect(answer.status, answer.text).toBe(200)
}
const changed = (id: string, body: object): Promise<Answer> => gatehouse.call('PUT', `${BASE}/${id}`, body)

/** What the four that look at a grant say of a reference, and of one that is like it but not stored. */
async function verdicts(id: string, body: Body, workspace: string | null) {
  const { gatehouse: inner, call, newKey } = gatehouse
  const { key } = await newKey('organisation/service', ['secret_references.test'])
  const [stored, unsaved, health, resolve] = [
    await call('POST', `${BASE}/${id}/test`, {}),
    await call('POST', `${BASE}/test`, { name: 'not stored', ...body }, { key }),
    await call('GET', `${BASE}/${id}/health`),
    await resolved(id, workspace),
  ]
  const grants = inner.config.secret_managers.machine_identity
  const outbound = { refusalOf: async () => undefined }
  const { uncovered } = await checkSecretReferences(inner, { grants, outbound })
  return {
    test: stored.body.failed_step,
    unsaved: unsaved.body.failed_step,
    health: health.body.granted,
    resolve: resolve.body.error?.type ?? resolve.status,
    check: uncovered.find((each) => each.id === id)?.problem,
    said: [stored, unsaved, health, resolve].map((answer) => answer.text).join(),
  }
}

const GRANTED = { test: null, unsaved: null, health: true, resolve: 200, check: undefined }
const REFUSED = {
  test: 'grant',
  unsaved: 'grant',
  health: false,
  resolve: 'machine_identity_not_granted',
  check: 'grant',
} as const

const of = (workspace: string, body: Body): Body => ({ ...body, allowed_workspaces: [workspace] })

describe('the machine’s own identity is lent to', () => {
  type Row = [what: string, isGranted: boolean, body: Body, workspace: string | null]
  const rows: Row[] = [
    ['a workspace by its slug', true, of('payments', serviceRole('prod/openai')), 'payments'],
    ['a workspace by its id', true, of('research', serviceRole('research/key')), RESEARCH],
    ['not to another with its grant', false, of('research', serviceRole('prod/openai')), 'research'],
    ['nor the other way round', false, of('payments', serviceRole('research/key')), 'payments'],
    ['not to two, of whom one is granted', false, both(serviceRole('prod/openai')), 'payments'],
    ['not to two of one grant each', false, both(serviceRole('research/key')), 'research'],
    ['not to all for the one that is granted', false, serviceRole('prod/openai'), 'payments'],
    ['all by *', true, serviceRole('shared/openai'), 'payments'],
    ['one of them by *', true, of('payments', serviceRole('shared/openai')), 'payments'],
    ['the organisation itself by *', true, nobody(serviceRole('shared/openai')), null],
    ['not to the organisation by the grant of a workspace', false, nobody(serviceRole('prod/openai')), null],

    ['not for another path', false, of('payments', serviceRole('staging/openai')), 'payments'],
    ['not for one that begins alike', false, of('payments', serviceRole('prod-x/openai')), 'payments'],
    ['not for the bare prefix', false, of('payments', serviceRole('prod')), 'payments'],
    ['not in another case', false, of('payments', serviceRole('Prod/openai')), 'payments'],
    ['not below the prefix elsewhere', false, of('payments', serviceRole('x/prod/openai')), 'payments'],
    // AWS takes dots for letters of the name, and has no folders to leave
    ['for a name with dots in it', true, of('payments', serviceRole('prod/../shared')), 'payments'],
    ['for no more than a whole path says', false, of('research', serviceRole('research/key2')), RESEARCH],
    ['not for an ARN by the grant of a name', false, of('payments', arn('prod/openai-AbCdEf')), 'payments'],
    ['for an ARN of the account and region', true, arn('shared/openai-AbCdEf'), 'payments'],
    ['not of another account', false, arn('shared/openai-AbCdEf', 'eu-west-1:999999999999'), 'payments'],
    ['not of another region', false, arn('shared/openai-AbCdEf', 'us-east-1:123456789012'), 'payments'],
    ['not of another partition', false, arn('shared/a-AbCdEf', 'cn-north-1:123456789012', 'aws-cn'), 'payments'],

    ['a role that is named', true, of('payments', assumedRole(ONE_ROLE)), 'payments'],
    ['roles below a path that is named', true, of('payments', assumedRole(`${ROLE}/team/a`)), 'payments'],
    ['not to another role', false, of('payments', assumedRole(`${ROLE}/admin`)), 'payments'],
    ['not to one that begins alike', false, of('payments', assumedRole(`${ONE_ROLE}2`)), 'payments'],
    [
      'not to the same role of another account',
      false,
      of('payments', assumedRole(ONE_ROLE.replace('123456789012', '999999999999'))),
      'payments',
    ],
    ['not to a role for another path', false, of('payments', assumedRole(ONE_ROLE, 'shared/openai')), 'payments'],
    ['not to a role of another workspace', false, of('research', assumedRole(ONE_ROLE)), 'research'],

    ['a managed identity that is named', true, of('payments', managed()), 'payments'],
    ['not to another', false, of('payments', managed({ azure_managed_client_id: 'client-of-x' })), 'payments'],
    ['not to whichever there is', false, of('payments', anyManaged), 'payments'],
    [
      'not for another vault',
      false,
      of('payments', managed({ azure_vault_url: 'https://x.vault.azure.net' })),
      'payments',
    ],
    ['the default of Azure', true, of('payments', azureDefault()), 'payments'],
    [
      'not for a vault of the same name elsewhere',
      false,
      of('payments', azureDefault('payments.vault.azure.cn')),
      'payments',
    ],
    ['not for another secret', false, of('payments', azureDefault(undefined, 'anthropic')), 'payments'],
    [
      'not for an older version of it',
      false,
      of('payments', azureDefault(undefined, `openai/${'a'.repeat(32)}`)),
      'payments',
    ],

    ['a role of Vault', true, of('payments', kubernetes()), 'payments'],
    [
      'its address with a slash',
      true,
      of('payments', kubernetes({ vault_addr: 'https://vault.example.com:8200/' })),
      'payments',
    ],
    ['not to another role of it', false, of('payments', kubernetes({ vault_role: 'admin' })), 'payments'],
    ...[
      'https://vault.example.com',
      'https://vault.example.com:8201',
      'http://vault.example.com:8200',
      'https://VAULT.example.com:8200',
      'https://vault.example.com.attacker.example:8200',
      'https://attacker.example:8200',
    ].map(
      (vault_addr): Row => [
        `not at an address that is written otherwise (${vault_addr})`,
        false,
        of('payments', kubernetes({ vault_addr })),
        'payments',
      ],
    ),
    ['not for another path of it', false, of('payments', kubernetes({}, 'kv/production/openai')), 'payments'],
    ['not for another mount', false, of('payments', kubernetes({}, 'other/kv/prod/openai')), 'payments'],
    ['not for the long form of the path', false, of('payments', kubernetes({}, 'kv/data/prod/openai')), 'payments'],
  ]

  test.each(rows)('%s', async (_what, isGranted, body, workspace) => {
    const id = await made(body)
    const before = calls()
    const { said, ...told } = await verdicts(id, body, workspace)
    expect(told).toEqual(isGranted ? GRANTED : REFUSED)
    // both tests, and the resolve; nobody is asked before the grant is looked at, nor is anything opened
    expect([calls() - before, opened.length]).toEqual(isGranted ? [3, 3] : [0, 0])
    if (isGranted) return
    expect(said).toContain('[[secret_managers.machine_identity]]')
    for (const canary of [VALUE, '123456789012:role', 'canary-of-a-role']) expect(said).not.toContain(canary)
  })

  test.each([
    'kv/prod/../secret',
    'kv/prod/./openai',
    'kv/prod//openai',
    'kv/prod/%2e%2e/x',
    'kv/prod/a?x',
    'kv\\prod',
  ])('no path of Vault leaves its prefix: %s cannot be written', async (secret_path) => {
    const answer = await gatehouse.call('POST', BASE, { name: 'x', ...kubernetes({}, secret_path) })
    expectProblem(answer, 'invalid')
    const id = await made(of('payments', kubernetes()))
    expectProblem(await changed(id, { secret_path }), 'invalid')
  })

  test('nobody who takes the slug that a grant names: it stays with its workspace, archived or not', async () => {
    const { call } = gatehouse
    expectProblem(await call('PUT', '/v1/admin/workspaces/research', { slug: 'payments' }), 'invalid')
    for (const slug of ['payments', 'given-up'])
      expectProblem(await call('POST', '/v1/admin/workspaces', { name: 'late', slug }), 'conflict')
    expectProblem(await call('POST', '/v1/admin/workspaces', { name: 'late', slug: RESEARCH }), 'invalid')
    expectProblem(await call('POST', BASE, { name: 'x', ...of('given-up', serviceRole('prod/openai')) }), 'invalid')
  })
})

function both(body: Body): Body {
  return { ...body, allowed_workspaces: ['payments', 'research'] }
}
function nobody(body: Body): Body {
  return { ...body, allow_all_workspaces: false } as Body
}
function arn(name: string, place = 'eu-west-1:123456789012', partition = 'aws'): Body {
  const auth_config = { aws_auth_type: 'serviceRole' }
  return { ...serviceRole(`arn:${partition}:secretsmanager:${place}:secret:${name}`), auth_config }
}

describe('a value in memory goes with its grant:', () => {
  const payments = (body: Body) => of('payments', body)
  test.each<[what: string, body: Body, change: object]>([
    ['another path', payments(serviceRole('prod/openai')), { secret_path: 'staging/openai' }],
    ['one more workspace', payments(serviceRole('prod/openai')), { allowed_workspaces: ['payments', 'research'] }],
    ['all workspaces', payments(serviceRole('prod/openai')), { allow_all_workspaces: true }],
    ['another role', payments(assumedRole(ONE_ROLE)), { auth_config: { aws_role_arn: `${ROLE}/admin` } }],
    [
      'another shape',
      payments(assumedRole(ONE_ROLE, 'partner/openai')),
      { auth_config: { aws_auth_type: 'serviceRole' } },
    ],
    ['another identity', payments(managed()), { auth_config: { azure_managed_client_id: 'client-of-x' } }],
    ['whichever identity there is', payments(managed()), { auth_config: { azure_managed_client_id: null } }],
    ['another vault', payments(managed()), { auth_config: { azure_vault_url: 'https://x.vault.azure.net' } }],
    ['another Vault', payments(kubernetes()), { auth_config: { vault_addr: 'https://attacker.example:8200' } }],
    ['another role of Vault', payments(kubernetes()), { auth_config: { vault_role: 'admin' } }],
  ])('%s', async (_what, body, change) => {
    const id = await made(body)
    expect((await resolved(id, 'payments')).body.value).toBe(VALUE)
    const before = calls()
    await put(id, change)
    for (const more of [{}, { refresh: true }]) {
      const refused = await resolved(id, 'payments', more)
      expectProblem(refused, 'machine_identity_not_granted')
      expect(refused.text).not.toContain(VALUE)
    }
    expect((await gatehouse.call('GET', `${BASE}/${id}/health`)).body).toMatchObject({ granted: false, cached: false })
    expect(calls()).toBe(before)
    // what was changed back is fetched anew: nothing was kept beside
    await put(id, body)
    expect((await resolved(id, 'payments')).body.value).toBe(VALUE)
    expect(calls()).toBe(before + 1)
  })

  test('and with the configuration: after a restart without it nothing is left to give', async () => {
    const first = await openTestGatehouse('sqlite', GRANTS, { managers })
    const key = await addSystemKey(first)
    const id = await made(serviceRole('shared/openai'), first)
    const ask = ({ call }: On) => call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key })
    expect((await ask(first)).body.value).toBe(VALUE)
    await first.gatehouse.close()
    const second = await first.openNode('')
    second.gatehouse.peerIp = () => '127.0.0.1'
    const before = calls()
    expectProblem(await ask(second), 'machine_identity_not_granted')
    expect(calls()).toBe(before)
    await second.gatehouse.close()
    rmSync(first.dir, { recursive: true })
  })
})

describe('a stored login goes only where it went', () => {
  const approle: Body = {
    ...token(),
    auth_config: {
      ...{ vault_auth_type: 'approle', vault_addr: 'https://vault.example.com:8200' },
      ...{ vault_role_id: 'role', vault_secret_id: 'canary-of-the-secret-id' },
    },
  }
  const entra: Body = {
    manager_type: 'azure_kv',
    auth_config: {
      ...{ azure_auth_mode: 'entra', azure_entra_tenant_id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301' },
      ...{ azure_entra_client_id: 'client', azure_entra_client_secret: 'canary-of-the-client-secret' },
      azure_vault_url: 'https://payments.vault.azure.net',
    },
    secret_path: 'openai',
  }
  test.each<[what: string, body: Body, auth_config: object]>([
    ['not to another Vault', token(), { vault_addr: 'https://attacker.example:8200' }],
    ['not to another port', token(), { vault_addr: 'https://vault.example.com' }],
    [
      'not to one whose name only begins alike',
      token(),
      { vault_addr: 'https://vault.example.com.attacker.example:8200' },
    ],
    ['not into another namespace', token(), { vault_namespace: 'attacker' }],
    ['not to the auth method of another', approle, { vault_auth_mount: 'attacker' }],
    [
      'not with a masked value in its place',
      token(),
      { vault_addr: 'https://attacker.example:8200', vault_token: '*****' },
    ],
    [
      'not with the masked value of before',
      token(),
      { vault_addr: 'https://attacker.example:8200', masked_vault_token: 'x' },
    ],
    ['not with an empty one', token(), { vault_addr: 'https://attacker.example:8200', vault_token: '' }],
    ['not to another vault', entra, { azure_vault_url: 'https://attacker.vault.azure.net' }],
    ['not into another directory', entra, { azure_entra_tenant_id: '11111111-1111-4111-8111-111111111111' }],
  ])('%s', async (_what, body, auth_config) => {
    const id = await made(body)
    const answer = await changed(id, { auth_config })
    expectProblem(answer, 'invalid')
    expect(answer.text).not.toContain('canary-of')
    expect((await resolved(id, null)).body.value).toBe(VALUE)
    expect(opened).toEqual([body.auth_config as AuthConfig])
  })

  test('but where it is sent again, the old one is neither sent nor left in memory', async () => {
    const id = await made(token())
    await resolved(id, null)
    const auth_config = { vault_addr: 'https://other.example:8200', vault_token: 'hvs.another' }
    await put(id, { auth_config })
    const before = calls()
    await resolved(id, null)
    expect(calls()).toBe(before + 1)
    expect(opened.at(-1)).toEqual({ vault_auth_type: 'token', ...auth_config })
  })
})

describe('a value goes to whom the reference names', () => {
  /** All of an answer that could tell one refusal from another. */
  const shown = ({ status, body, headers }: Answer) => {
    const own = [...headers].filter(([name]) => !/request-id|^date$|^x-ratelimit/.test(name))
    return { status, body: { ...body, request_id: '' }, own: own.sort() }
  }

  test('out of reach is the same as not there, word by word, and before memory is looked at', async () => {
    const { made: installed, call } = gatehouse
    const far = await addOrganisation(gatehouse.gatehouse)
    const theirs = await call('POST', BASE, { name: 'theirs', ...token() }, { key: far.adminKey })
    const limited = await made(of('payments', token()))
    const gone = await addWorkspace(gatehouse.gatehouse, installed.organisation_id)
    const ofGone = await made(of(gone.workspaceId, token()))
    await call('DELETE', `/v1/admin/workspaces/${gone.workspaceId}`, { force_delete: true })
    expect((await resolved(limited, 'payments')).body.value).toBe(VALUE)
    const before = calls()

    const missing = shown(await resolved('0190b8c4-0000-7000-8000-000000000000', 'payments'))
    expect(missing).toMatchObject({ status: 404, body: { error: { code: 'AB08' } } })
    const others: [reference: string, workspace: string | null, more?: object][] = [
      ['no-such-slug', 'payments'],
      [limited, 'research'],
      [limited, RESEARCH, { refresh: true }],
      [limited, null],
      [limited, 'nowhere'],
      [limited, far.workspaceId],
      [limited, gone.workspaceId],
      [limited, 'PAYMENTS'],
      [ofGone, gone.workspaceId],
      [ofGone, null],
      [theirs.body.id, null],
      [theirs.body.id, far.workspaceId],
      [theirs.body.slug, null],
    ]
    for (const [reference, workspace, more] of others)
      expect(shown(await resolved(reference, workspace, more)), `${reference} for ${workspace}`).toEqual(missing)
    expect(calls()).toBe(before)
  })

  test('the system key of another organisation has none of ours', async () => {
    const { gatehouse: inner, call } = gatehouse
    const far = await addOrganisation(inner)
    const cli = { kind: 'cli', uid: 0, organisationId: far.organisationId, command: 'test' } as const
    const asked = { type: 'system', name: 's', scopes: [], accountableUserId: far.userId } as const
    const { key } = await createApiKey(inner, cli, asked)
    const id = await made(token())
    const { slug } = (await call('GET', `${BASE}/${id}`)).body
    const theirs = (await call('POST', BASE, { name: 'theirs', ...token() }, { key: far.adminKey })).body.id
    for (const [reference, expected] of [
      [id, 404],
      [slug, 404],
      [theirs, 200],
    ])
      for (const workspace_id of [null, far.workspaceId]) {
        const answer = await call('POST', `${BASE}/${reference}/resolve`, { workspace_id }, { key })
        expect(answer.status, `${reference} ${workspace_id}`).toBe(expected)
      }
  })

  test.each<[who: string, code: ProblemCode, key: () => Promise<string | null>]>([
    ['an admin key', 'forbidden', async () => gatehouse.made.admin_key],
    ['a service key of the workspace', 'forbidden', () => keyOf('workspace-service')],
    ['a user key of the workspace', 'forbidden', () => keyOf('workspace-user')],
    [
      'an admin key of another organisation',
      'forbidden',
      async () => (await addOrganisation(gatehouse.gatehouse)).adminKey,
    ],
    ['nobody', 'unauthenticated', async () => null],
  ])('%s gets none, whether or not there is one', async (_who, code, key) => {
    const id = await made(token())
    await resolved(id, null)
    const asked = { key: await key() }
    const body = { workspace_id: gatehouse.made.workspace_id }
    const there = await gatehouse.call('POST', `${BASE}/${id}/resolve`, body, asked)
    expectProblem(there, code)
    const missing = await gatehouse.call('POST', `${BASE}/no-such-slug/resolve`, body, asked)
    expect(shown(missing)).toEqual(shown(there))
  })

  const keyOf = (type: 'workspace-service' | 'workspace-user') =>
    addKey(gatehouse.gatehouse, defaultTenant(gatehouse.made), type)
})

// The adapters themselves, and no network: nothing here may get as far.
describe('a machine whose identity is off', () => {
  const all = ['aws_service_role', 'aws_assumed_role', 'azure_managed', 'azure_default', 'vault_kubernetes']
    .map((kind) => `[[secret_managers.machine_identity]]\nkind = "${kind}"\n${EVERYTHING}`)
    .join('\n')
  // The endpoints of the machine lead nowhere, and to nobody's surprise, should they be asked.
  const nowhere = `[outbound.connect]
"169.254.169.254:80" = "127.0.0.1:1"
"169.254.169.254:443" = "127.0.0.1:1"
[secret_managers]
vault_jwt_file = "/nonexistent/token"`

  const worlds: Record<'granted' | 'not granted', TestGatehouse | undefined> = {
    granted: undefined,
    'not granted': undefined,
  }
  const keys = { granted: '', 'not granted': '' }
  beforeAll(async () => {
    for (const [name, config] of [
      ['granted', `${nowhere}\n${all}`],
      ['not granted', nowhere],
    ] as const) {
      const world = await openTestGatehouse('sqlite', config)
      worlds[name] = world
      keys[name] = await addSystemKey(world)
    }
  })
  afterAll(() => Promise.all(Object.values(worlds).map((world) => world?.close())))

  async function asked(name: keyof typeof worlds, body: Body): Promise<Answer> {
    const world = worlds[name]!
    const id = await made(body, world)
    return world.call('POST', `${BASE}/${id}/resolve`, { workspace_id: null }, { key: keys[name] })
  }

  test.each<[shape: string, body: Body]>([
    ['aws serviceRole', serviceRole('prod/openai')],
    ['aws assumedRole', assumedRole(ONE_ROLE)],
    ['azure managed', managed()],
    ['azure default', azureDefault()],
    ['vault kubernetes', kubernetes()],
  ])('lends none that nobody granted: %s', async (_shape, body) => {
    expectProblem(await asked('not granted', body), 'machine_identity_not_granted')
  })

  test.each<[shape: string, body: Body, mentions: string]>([
    ['aws serviceRole', serviceRole('prod/openai'), 'aws_identity'],
    ['aws assumedRole', assumedRole(ONE_ROLE), 'aws_identity'],
    ['vault kubernetes', kubernetes(), 'vault_jwt_file'],
  ])('has none to lend where one is granted: %s', async (_shape, body, mentions) => {
    const answer = await asked('granted', body)
    expectProblem(answer, 'manager_config')
    expect(answer.body.message).toContain(mentions)
  })

  test.each([
    'http://169.254.169.254',
    'https://169.254.169.254',
    'https://169.254.170.2',
    'https://169.254.170.23',
    'https://[::ffff:169.254.169.254]',
    'https://2852039166',
    'https://0xa9.254.169.254',
    'https://[fd00:ec2::254]',
    'https://127.0.0.1',
  ])('is not asked for it by the address of a reference: %s', async (vault_addr) => {
    expectProblem(await asked('granted', token(vault_addr)), 'manager_address_refused')
  })
})

const EVERYTHING = ['workspaces', 'paths', 'role_arns', 'client_ids', 'vault_addr', 'vault_roles']
  .map((list) => `${list} = ["*"]`)
  .join('\n')
