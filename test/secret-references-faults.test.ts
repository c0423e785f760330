import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { rmSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { MANAGER_PROBLEMS, PROBLEMS } from '../schema/api/errors.ts'
import { type AuthConfig, SECRET_FIELDS } from '../schema/api/secret-references.ts'
import type { ManagerFailure, Step } from '../src/secret-managers/manager.ts'
import type { TestStep } from '../src/secret-managers/values.ts'
import { openAwsStage } from './secret-managers/aws-stage.ts'
import { openAzureStage } from './secret-managers/azure-stage.ts'
import type { Shape, Stage } from './secret-managers/conformance.ts'
import { openVaultStage } from './secret-managers/vault-stage.ts'
import { auditTrail } from './support/audit.ts'
import { freshFolder } from './support/database.ts'
import { type Line, type Misbehaviour, type PassingRequest, startFaultyFront } from './support/faulty-front.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from './support/gatehouse.ts'
import { startVaultCluster, type VaultNode } from './support/managers.ts'
import { expectProblem } from './support/scenario.ts'
import { addSystemKey } from './support/system-key.ts'

// What goes wrong at a manager, over HTTP: each with its status, its code and what to do, within the deadline, on the
// trail; with no secret in it, and over when it is over (SM-2, SM-4 to SM-6, SM-13, decision 47).

const BASE = '/v1/secret-references'
const TIMEOUT_SECONDS = 2
/** How much longer an answer may take on a busy machine. */
const LATER_MS = 3_000
const VALUE = 'canary-of-the-secret'
const CANARY = 'canary-of-an-answer'
const FIELDS = { api_key: VALUE }

const folder = freshFolder()
const [aws, azure, vault, cluster] = await Promise.all([
  openAwsStage(folder),
  openAzureStage(folder),
  openVaultStage(folder),
  startVaultCluster(),
])
const STANDBY = 'vault-2.example.com:8200'

interface Place {
  name: 'aws' | 'azure' | 'vault'
  stage: Stage
  /** with a request for a login, and one for the secret */
  shape: Shape
}

const place = (name: Place['name'], stage: Stage | undefined, shape: string): Place[] =>
  stage === undefined ? [] : [{ name, stage, shape: stage.shapes.find(({ name }) => name === shape)! }]
const places = [
  ...place('aws', aws, 'aws assumedRole, of a container'),
  ...place('azure', azure, 'azure entra'),
  ...place('vault', vault, 'vault approle'),
]

/** Where each is reached when nothing is in the way. */
const servers: Record<string, string> = {
  ...Object.fromEntries(places.flatMap(({ stage }) => serversOf(stage))),
  ...(cluster && { [STANDBY]: cluster.nodes[1]!.address }),
}
const front = await startFaultyFront(servers)

function serversOf({ outbound, shapes, unreachable }: Stage): [string, string][] {
  const apart = Object.values(unreachable ?? {}).map(hostOf)
  const mapped = Object.entries(outbound.connect).filter(([host]) => host.endsWith(':443') && !apart.includes(host))
  const address = shapes.map(({ authConfig }) => authConfig).find((authConfig) => 'vault_addr' in authConfig)
  const direct = address === undefined ? [] : [[hostOf(address), hostOf(address)]]
  return [...mapped, ...direct].map(([host = '', to]) => [host, `https://${to}`])
}

function hostOf(authConfig: AuthConfig): string {
  if ('aws_auth_type' in authConfig) return `secretsmanager.${authConfig.aws_region}.amazonaws.com:443`
  const { host, port } = new URL('vault_addr' in authConfig ? authConfig.vault_addr : authConfig.azure_vault_url)
  return port === '' ? `${host}:443` : host
}

let gatehouse: TestGatehouse
let systemKey: string
const paths = {} as Record<Place['name'], string>

beforeAll(async () => {
  gatehouse = await openTestGatehouse('sqlite', configOf())
  systemKey = await addSystemKey(gatehouse)
  for (const { name, stage } of places) paths[name] = await stage.store('faults', FIELDS)
  // An SDK takes a while to load, which is no fault of its manager.
  await Promise.all(places.map(async (each) => untilWell(await newReference(each))))
}, 60_000)

afterAll(async () => {
  await gatehouse.close()
  front.stop()
  await Promise.all([...places.map(({ stage }) => stage.stop()), cluster?.stop()])
  rmSync(folder, { recursive: true })
})

afterEach(() => {
  front.mend()
  setSystemTime()
})

function configOf(): string {
  const connect = Object.assign({}, ...places.map(({ stage }) => stage.outbound.connect), front.connect)
  const { task } = aws?.machines ?? {}
  const settings = { timeout_seconds: TIMEOUT_SECONDS, ...task }
  const caFiles = ['aws_ca_file', 'azure_ca_file', 'vault_ca_file'].map((setting) => [setting, front.caFile])
  const toml = (table: object) => Object.entries(table).map(([key, value]) => `"${key}" = ${JSON.stringify(value)}`)
  return [
    ...['[outbound]', `allow = ${JSON.stringify(places.flatMap(({ stage }) => stage.outbound.allow))}`],
    ...['[outbound.connect]', ...toml(connect)],
    ...['[secret_managers]', ...toml({ ...settings, ...Object.fromEntries(caFiles) })],
    ...['[[secret_managers.machine_identity]]', 'kind = "aws_assumed_role"'],
    ...['workspaces', 'paths', 'role_arns'].map((list) => `${list} = ["*"]`),
  ].join('\n')
}

interface Given {
  authConfig?: AuthConfig
  secretPath?: string
  secretKey?: string
}

const bodyOf = ({ name, shape }: Place, { authConfig, secretPath, secretKey }: Given = {}) => ({
  manager_type: shape.managerType,
  auth_config: authConfig ?? shape.authConfig,
  secret_path: secretPath ?? paths[name],
  secret_key: secretKey ?? 'api_key',
})

async function newReference(at: Place, given: Given = {}): Promise<string> {
  const answer = await gatehouse.call('POST', BASE, { name: 'of a fault', ...bodyOf(at, given) })
  expect(answer.status, answer.text).toBe(200)
  return answer.body.id
}
const resolved = (id: string, body: object = {}): Promise<Answer> =>
  gatehouse.call('POST', `${BASE}/${id}/resolve`, { workspace_id: null, ...body }, { key: systemKey })
const tested = (id: string): Promise<Answer> => gatehouse.call('POST', `${BASE}/${id}/test`, {})

async function untilWell(id: string): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt++) {
    if ((await tested(id)).body.ok) return
    await Bun.sleep(100)
  }
  throw new Error((await tested(id)).text)
}

interface Expected {
  failure: ManagerFailure
  step: Step
  mentions: string
  retryAfter?: string
}

const seen = new Set<ManagerFailure>()

/** A test and a resolve of a reference while something is wrong. */
async function expectFailing(at: Place, expected: Expected, given: Given = {}): Promise<string> {
  const id = await newReference(at, given)
  const startedAt = performance.now()
  const [told, answer] = await Promise.all([tested(id), resolved(id)])
  expect(performance.now() - startedAt, at.name).toBeLessThan(TIMEOUT_SECONDS * 1_000 + LATER_MS)
  expectTested(at, told, expected)
  await expectUnresolved(at, id, answer, expected)
  return id
}

function expectTested(at: Place, { body, text }: Answer, { failure, step, mentions }: Expected): void {
  const failed: TestStep | undefined = body.steps.find(({ ok }: TestStep) => ok === false)
  const { failed_step, fingerprint } = body
  const { step: at_step, code, message = '' } = failed ?? {}
  const expected = { failed_step: step, step, code: failure, fingerprint: null }
  expect({ failed_step, step: at_step, code, fingerprint }, `${at.name}: ${message}`).toEqual(expected)
  expect(message).toContain(mentions)
  // what a manager says itself may hold these words
  expect(message).not.toMatch(/404|not found/i)
  expectNoCanary(at, text)
}

async function expectUnresolved(
  at: Place,
  id: string,
  answer: Answer,
  { failure, step, mentions, retryAfter }: Expected,
) {
  expect(answer.body.error?.type, `${at.name}: ${answer.text}`).toBe(PROBLEMS[failure].type)
  seen.add(failure)
  expectProblem(answer, failure)
  expect(answer.body.message).toContain(mentions)
  const waits = Number(answer.headers.get('retry-after'))
  if (retryAfter !== undefined) expect(answer.headers.get('retry-after')).toBe(retryAfter)
  else expect(waits > 0, 'retry-after').toBe(PROBLEMS[failure].status === 503)
  expectNoCanary(at, answer.text)

  const { status } = PROBLEMS[failure]
  const rows = (await auditTrail(gatehouse.gatehouse.read)).filter(({ resource_id }) => resource_id === id)
  const [resolve] = rows.filter(({ action }) => action === 'resolve')
  expect(resolve).toMatchObject({
    ...{ resource_type: 'secret_references', resource_name: 'of a fault', response_status_code: status },
    details: { manager_type: at.shape.managerType, outcome: failure, step },
  })
  for (const { details } of rows.filter(({ action }) => action === 'test'))
    expect(details).toMatchObject({ ok: false, failed_step: step, code: failure })
  expectNoCanary(at, JSON.stringify(rows))
}

/** Neither what the manager holds, nor what anybody logs in with. */
function expectNoCanary({ stage }: Place, text: string): void {
  const logins = stage.shapes.map(({ authConfig }) => authConfig as Record<string, unknown>)
  const secrets = logins.flatMap((authConfig) => SECRET_FIELDS.map((field) => authConfig[field]))
  for (const canary of [VALUE, CANARY, ...secrets]) if (typeof canary === 'string') expect(text).not.toContain(canary)
}

/** A minute later nobody is spared a call any more. */
async function expectWell(...ids: string[]): Promise<void> {
  front.mend()
  setSystemTime(new Date(Date.now() + 61_000))
  for (const id of ids) await expectValue(id)
  setSystemTime()
}

async function expectValue(id: string): Promise<void> {
  const answer = await resolved(id)
  expect(answer.body.value, answer.text).toBe(VALUE)
}

/** At all managers together: most of the time is spent waiting. */
async function everywhere(check: (at: Place) => Promise<string>): Promise<void> {
  await expectWell(...(await Promise.all(places.map(check))))
}

/** Which of the two requests it is; undefined for what comes before them. */
function partOf({ host, path, headers, body }: PassingRequest): 'login' | 'read' | undefined {
  if (/\/(?:login|token)(?:\?|$)/.test(path) || body.includes('Action=AssumeRole')) return 'login'
  const isRead = host.includes('.vault.azure.') ? 'authorization' in headers : /^\/v1\/secret\//.test(path)
  return isRead || 'x-amz-target' in headers ? 'read' : undefined
}

describe('a connection', () => {
  const faults: [line: Line, failure: ManagerFailure, step: Step, mentions: string][] = [
    ['closed', 'manager_unreachable', 'connect', 'closed the connection'],
    ['silent', 'manager_timeout', 'tls', 'did not finish the TLS handshake in time'],
    ['not TLS', 'manager_tls', 'tls', 'does not speak TLS'],
    ['wrong name', 'manager_tls', 'tls', 'use the name that stands in it'],
    ['unknown authority', 'manager_tls', 'tls', 'name the authority in the ca_file'],
    ['expired', 'manager_tls', 'tls', 'expired certificate'],
  ]
  test.each(faults)('%s', async (line, failure, step, mentions) => {
    front.cut(line)
    await everywhere((at) => expectFailing(at, { failure, step, mentions }))
  })

  test('refused: nobody listens', async () => {
    const expected = { failure: 'manager_unreachable', step: 'connect', mentions: 'nothing listens there' } as const
    await everywhere(async (at) => {
      const id = await expectFailing(at, expected, { authConfig: at.stage.unreachable!['nobody listens'] })
      return righted(at, id)
    })
  })
})

/** What was wrong with a reference is put right, by its id. */
async function righted(at: Place, id: string): Promise<string> {
  const { manager_type: _, ...body } = bodyOf(at)
  const answer = await gatehouse.call('PUT', `${BASE}/${id}`, body)
  expect(answer.status, answer.text).toBe(200)
  return id
}

describe('an answer', () => {
  const JSON_TYPE = { 'content-type': 'application/json' }
  const says =
    (status: number, body: string, headers: Record<string, string> = {}): Misbehaviour =>
    (response) => {
      response.writeHead(status, { ...JSON_TYPE, ...headers })
      response.end(body)
    }
  const page = (status: number): Misbehaviour => says(status, `<html>${CANARY}</html>`, { 'content-type': 'text/html' })

  /** A byte now and then, so that no silence ends it. */
  const drips: Misbehaviour = (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': 100_000 })
    response.write(`{"${CANARY}":"`)
    const timer = setInterval(() => response.write('x'), 20)
    response.on('close', () => clearInterval(timer))
  }
  const cutOff: Misbehaviour = (response) => {
    response.writeHead(200, { ...JSON_TYPE, 'content-length': 1_000 })
    response.write(`{"data":{"data":{"api_key":"${CANARY}`)
    setTimeout(() => response.socket?.destroy(), 20)
  }
  let written = 0
  const part = Buffer.alloc(65_536, 'x')
  const huge: Misbehaviour = (response) => {
    response.writeHead(200, JSON_TYPE)
    response.write(`{"${CANARY}":"`)
    flood(response)
  }
  function flood(response: ServerResponse): void {
    while (written < 100e6 && !response.destroyed) {
      written += part.length
      if (!response.write(part)) return void response.once('drain', () => flood(response))
    }
    response.end()
  }

  /** Nobody may go where an answer sends them: the token would go there, too. */
  const elsewhere: string[] = []
  const stranger = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      elsewhere.push(url)
      return new Response(VALUE)
    },
  })
  afterAll(() => stranger.stop(true))
  const moved = (status: number): Misbehaviour =>
    says(status, '', { location: `http://127.0.0.1:${stranger.port}/${CANARY}` })

  type Means = [failure: ManagerFailure, login: Step, read: Step, mentions: string]
  const rows: [what: string, how: Misbehaviour, means: Means, ofVault?: Means][] = [
    ['that never comes', () => {}, ['manager_timeout', 'login', 'read', 'did not answer in time']],
    ['that drips', drips, ['manager_timeout', 'login', 'read', 'did not answer in time']],
    ['that is cut off', cutOff, ['manager_bad_response', 'login', 'read', 'before it was whole']],
    ['of 100 MB', huge, ['manager_bad_response', 'login', 'read', 'more than 1 MiB']],
    [
      'of 100 MB, as it says',
      says(200, '', { 'content-length': '100000000' }),
      ['manager_bad_response', 'login', 'read', 'more than 1 MiB'],
    ],
    ['of 200 that is a page', page(200), ['manager_bad_response', 'login', 'parse', 'does not answer as']],
    ['that is half JSON', says(200, `{"${CANARY}":`), ['manager_bad_response', 'login', 'parse', 'not to the end']],
    ['that is other JSON', says(200, '{}'), ['manager_bad_response', 'login', 'parse', 'does not answer as']],
    ['of 503 that is a page', page(503), ['manager_unreachable', 'login', 'read', 'a proxy']],
    ['of 302 elsewhere', moved(302), ['manager_bad_response', 'login', 'read', 'not followed']],
    [
      'of 307 elsewhere',
      moved(307),
      ['manager_bad_response', 'login', 'read', 'not followed'],
      ['manager_standby', 'login', 'read', 'standby'],
    ],
    [
      'that throttles',
      says(429, '{}', { 'retry-after': '7' }),
      ['manager_throttled', 'login', 'read', 'rate of calls'],
    ],
  ]

  describe.each(['login', 'read'] as const)('to the %s', (which) => {
    test.each(rows)('%s', async (_what, how, means, ofVault = means) => {
      written = 0
      front.instead = (request) => (partOf(request) === which ? how : undefined)
      await everywhere((at) => {
        const [failure, login, read, mentions] = at.name === 'vault' ? ofVault : means
        const step = which === 'login' ? login : read
        const retryAfter = failure === 'manager_throttled' ? { retryAfter: '7' } : {}
        return expectFailing(at, { failure, step, mentions, ...retryAfter })
      })
      expect(elsewhere).toEqual([])
      // of 600 MB in six answers; what lies in buffers of sockets counts as written
      expect(written).toBeLessThan(200e6)
    })
  })

  test('of AWS that throttles has a name of its own', async () => {
    const [at] = places.filter(({ name }) => name === 'aws')
    if (at === undefined) return
    const limited = says(400, `{"__type":"ThrottlingException","message":"Rate exceeded"}`)
    front.instead = (request) => (partOf(request) === 'read' ? limited : undefined)
    const expected = { failure: 'manager_throttled', step: 'read', mentions: 'rate of calls' } as const
    await expectWell(await expectFailing(at, expected))
  })
})

describe('a manager refuses', () => {
  const refusals = places.flatMap((at) => at.shape.refused.map((wrong) => [at.name, wrong.what, at, wrong] as const))
  test.each(refusals)('the login, at %s: %s', async (_name, _what, at, { during = atOnce, ...wrong }) => {
    const mentions = at.name === 'azure' ? 'auth_config.' : at.name === 'aws' ? 'aws_external_id' : 'auth_config'
    let id = ''
    await during(async () => {
      id = await expectFailing(at, { failure: 'manager_auth_failed', step: 'login', mentions }, wrong)
    })
    await expectWell(await righted(at, id))
  })

  test.each(places.map((at) => [at.name, at] as const))('to let it be read, at %s', async (_name, at) => {
    const { during = atOnce, what: _, ...wrong } = at.shape.denied!
    const mentions = { aws: 'secretsmanager:GetSecretValue', azure: 'role that reads secrets', vault: 'policies' }
    let id = ''
    await during(async () => {
      id = await expectFailing(at, { failure: 'manager_denied', step: 'read', mentions: mentions[at.name] }, wrong)
    })
    await expectWell(await righted(at, id))
  })

  test('what is not there', async () => {
    const expected = { failure: 'manager_secret_missing', step: 'read', mentions: 'secret_path' } as const
    await everywhere(async (at) => righted(at, await expectFailing(at, expected, { secretPath: at.stage.missingPath })))
  })

  test('nothing: a field is not there, and the secret is in memory all the same', async () => {
    const expected = { failure: 'manager_field_missing', step: 'field', mentions: 'secret_key' } as const
    for (const at of places) {
      const id = await expectFailing(at, expected, { secretKey: 'api_kye' })
      front.cut('closed')
      expect((await resolved(id, { secret_key: 'api_key' })).body.value).toBe(VALUE)
      front.mend()
      await expectWell(await righted(at, id))
    }
  })
})

const atOnce = (work: () => Promise<void>) => work()

describe('a login that ends half-way', () => {
  const EXPIRED = '{"__type":"ExpiredTokenException","message":"The security token included in the request is expired"}'

  /** The manager itself refuses the token, which is not what it gave; moto does not look so closely. */
  function ending(request: PassingRequest): Misbehaviour | undefined {
    const { headers } = request
    if (partOf(request) !== 'read') return undefined
    if ('x-vault-token' in headers) headers['x-vault-token'] = 'hvs.of-yesterday'
    else if (headers.authorization?.startsWith('Bearer ')) headers.authorization = 'Bearer of-yesterday'
    else
      return (response) => {
        response.writeHead(400, { 'content-type': 'application/x-amz-json-1.1' })
        response.end(EXPIRED)
      }
    return undefined
  }

  test('is made again, once, and nobody notices', async () => {
    for (const at of places) {
      const id = await newReference(at)
      await expectValue(id)
      const before = at.stage.logins().length
      let reads = 0
      front.instead = (request) => (partOf(request) === 'read' && reads++ === 0 ? ending(request) : undefined)
      const answer = await resolved(id, { refresh: true })
      expect(answer.body, `${at.name}: ${answer.text}`).toMatchObject({ value: VALUE, stale: false })
      expect(reads, at.name).toBe(2)
      const login = at.stage.logins().slice(before)
      expect(login, at.name).toEqual(at.shape.login.slice(-login.length))
      expect(login.length, at.name).toBeGreaterThan(0)
      front.mend()
    }
  })

  test('and again is a failure of the login, after which nothing is served from memory', async () => {
    front.instead = ending
    await everywhere(async (at) => {
      const expected = { failure: 'manager_auth_expired', step: 'login', mentions: '' } as const
      return expectFailing(at, expected)
    })
    for (const at of places) {
      const id = await newReference(at)
      await expectValue(id)
      front.instead = ending
      for (const refresh of [true, false]) {
        const answer = await resolved(id, { refresh })
        expectProblem(answer, 'manager_auth_expired')
        expectNoCanary(at, answer.text)
      }
      await expectWell(id)
    }
  })

  test.skipIf(vault === undefined)('cannot be made again of a token alone: it says so', async () => {
    const [at] = places.filter(({ name }) => name === 'vault')
    const { authConfig } = vault!.shapes.find(({ name }) => name === 'vault token')!
    const id = await newReference(at!, { authConfig })
    await expectValue(id)
    front.instead = ending
    const answer = await resolved(id, { refresh: true })
    await expectUnresolved(at!, id, answer, { failure: 'manager_auth_expired', step: 'login', mentions: 'token' })
    await expectWell(id)
  })
})

describe.skipIf(cluster === undefined)('a Vault of two nodes', () => {
  const [active, standby] = (cluster?.nodes ?? []) as [VaultNode, VaultNode]
  let at: Place
  beforeAll(async () => {
    await active.request('POST', 'sys/mounts/secret', { type: 'kv', options: { version: '2' } })
    await until(active, (status) => status === 404)
    await active.request('POST', 'secret/data/faults', { data: FIELDS })
    await until(standby, (status) => status === 200)
    const authConfig: AuthConfig = {
      vault_auth_type: 'token',
      vault_addr: `https://${STANDBY}`,
      vault_token: cluster!.rootToken,
    }
    const shape: Shape = {
      ...{ name: 'vault token', managerType: 'hashicorp_vault', machine: 'instance' },
      ...{ authConfig, login: [], refused: [] },
    }
    at = { name: 'vault', shape, stage: { ...vault!, shapes: [shape] } }
    paths.vault = 'secret/faults'
  }, 60_000)

  async function until(node: VaultNode, isReady: (status: number) => boolean): Promise<void> {
    const deadline = Date.now() + 20_000
    while (!isReady((await node.request('GET', 'secret/data/faults')).status)) {
      if (Date.now() > deadline) throw new Error(`${node.address} has not come so far`)
      await Bun.sleep(50)
    }
  }

  test('the standby names the active one, which is not asked', async () => {
    front.instead = ({ headers }) => {
      headers['x-vault-no-request-forwarding'] = 'true'
      return undefined
    }
    const mentions = new URL(active.address).host
    await expectWell(await expectFailing(at, { failure: 'manager_standby', step: 'login', mentions }))
  })

  test('one that was killed, and comes back sealed, is well when it is unsealed', async () => {
    await standby.kill()
    const down = await expectFailing(at, { failure: 'manager_unreachable', step: 'connect', mentions: 'closed' })
    await standby.restart()
    const sealed = await expectFailing(at, { failure: 'manager_sealed', step: 'login', mentions: 'sealed' })
    await standby.unseal()
    await until(standby, (status) => status === 200)
    await expectWell(down, sealed)
  }, 60_000)
})

test.skipIf(places.length < 3 || cluster === undefined)(
  'nothing of it was left out, and the log holds no secret',
  () => {
    const ofReferences = ['manager_config', 'manager_address_refused', 'machine_identity_not_granted']
    const ofSecrets = ['manager_secret_disabled', 'manager_not_json', 'manager_binary']
    const elsewhere = [...ofReferences, ...ofSecrets]
    expect([...seen].sort()).toEqual(
      MANAGER_PROBLEMS.filter((code) => !elsewhere.includes(code)).sort() as ManagerFailure[],
    )
    for (const at of places) expectNoCanary(at, gatehouse.log.join('\n'))
  },
)
