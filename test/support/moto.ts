import { startManager, stopManager } from './managers.ts'

/** An AWS account on this machine: Secrets Manager, STS, IAM and the instance metadata service. Region: us-east-1. */
export interface MotoServer {
  /** the endpoint of every service, the metadata service too */
  url: string
  /** forgets users, roles and secrets */
  reset(): Promise<void>
  /**
   * On at the start. The credentials of the metadata service are of nobody: to use them, this must be off.
   */
  enforcePolicies(on: boolean): Promise<void>
  createUser(name: string, ...policies: Statement[]): Promise<AccessKey>
  /** @returns its ARN */
  createRole(name: string, trust: Trust, ...policies: Statement[]): Promise<string>
  /**
   * @param value text; a JSON object as text; bytes as SecretBinary
   * @returns     its ARN
   */
  createSecret(name: string, value: string | Record<string, unknown> | Uint8Array): Promise<string>
  /** Any action of Secrets Manager, with everything allowed: `DeleteSecret`, `PutSecretValue`. */
  secretsManager(action: string, input: Record<string, unknown>): Promise<Record<string, string>>
  stop(): Promise<void>
}

export interface AccessKey {
  arn: string
  accessKeyId: string
  secretAccessKey: string
}

/**
 * @param actions   `secretsmanager:GetSecretValue`
 * @param resources `*` when absent. Only sts:AssumeRole is held against another one, the role's ARN.
 */
export interface Statement {
  effect: 'Allow' | 'Deny'
  actions: string | string[]
  resources?: string
}

export interface Trust {
  /** ARN of who may assume the role */
  principal: string
  /** Another one is refused; moto takes none at all for a match. */
  externalId?: string
}

const IAM_VERSION = '2010-05-08'
const STS_ACTION = 'sts:AssumeRole'

/**
 * A moto of its own, which enforces policies.
 *
 * What makes users, roles and secrets lets everything through while it runs: no call that should be refused may be under
 * way meanwhile.
 *
 * @returns undefined, with the reason printed, where there is no moto
 * @throws Error with the reason, where GATEHOUSE_TEST_MANAGERS=required
 */
export async function startMoto(): Promise<MotoServer | undefined> {
  const started = await startManager('moto', (folder) => ['start', folder, String(process.pid)])
  if (started === undefined) return undefined
  const { folder, said: url } = started
  let isEnforcing = true

  /** The number of requests that pass before policies are looked at. Plain text: a form is not read. */
  const letPass = (count: '0' | 'inf') => post('/moto-api/reset-auth', { 'content-type': 'text/plain' }, count)
  const iam = (action: string, input: Record<string, string>) =>
    asAnyone('iam', {}, new URLSearchParams({ Action: action, Version: IAM_VERSION, ...input }))

  async function post(path: string, headers: Record<string, string>, body: string | URLSearchParams): Promise<string> {
    const response = await fetch(`${url}${path}`, { method: 'POST', headers, body })
    const text = await response.text()
    if (!response.ok) throw new Error(`moto ${response.status}: ${text}`)
    return text
  }

  async function asAnyone(
    service: string,
    headers: Record<string, string>,
    body: string | URLSearchParams,
  ): Promise<string> {
    // moto reads the service from here, and the rest not at all
    const scope = `AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/${service}/aws4_request`
    await letPass('inf')
    try {
      return await post('/', { authorization: `${scope}, SignedHeaders=host, Signature=0`, ...headers }, body)
    } finally {
      if (isEnforcing) await letPass('0')
    }
  }

  const moto: MotoServer = {
    url,
    reset: async () => void (await post('/moto-api/reset', {}, '')),
    async enforcePolicies(on) {
      isEnforcing = on
      await letPass(on ? '0' : 'inf')
    },
    async createUser(name, ...statements) {
      const user = await iam('CreateUser', { UserName: name })
      const key = await iam('CreateAccessKey', { UserName: name })
      if (statements.length > 0)
        await iam('PutUserPolicy', { UserName: name, PolicyName: 'test', PolicyDocument: policyOf(statements) })
      return {
        arn: element(user, 'Arn'),
        accessKeyId: element(key, 'AccessKeyId'),
        secretAccessKey: element(key, 'SecretAccessKey'),
      }
    },
    async createRole(name, trust, ...statements) {
      const role = await iam('CreateRole', { RoleName: name, AssumeRolePolicyDocument: trustPolicyOf(trust) })
      if (statements.length > 0)
        await iam('PutRolePolicy', { RoleName: name, PolicyName: 'test', PolicyDocument: policyOf(statements) })
      return element(role, 'Arn')
    },
    async createSecret(name, value) {
      const isBinary = value instanceof Uint8Array
      const text = typeof value === 'string' ? value : JSON.stringify(value)
      const stored = isBinary ? { SecretBinary: Buffer.from(value).toString('base64') } : { SecretString: text }
      return (await moto.secretsManager('CreateSecret', { Name: name, ...stored }))['ARN'] ?? ''
    },
    async secretsManager(action, input) {
      const headers = { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': `secretsmanager.${action}` }
      return JSON.parse(await asAnyone('secretsmanager', headers, JSON.stringify(input)))
    },
    stop: () => stopManager(folder),
  }
  return moto
}

function policyOf(statements: Statement[]): string {
  const statement = statements.map(({ effect, actions, resources = '*' }) => ({
    Effect: effect,
    Action: actions,
    Resource: resources,
  }))
  return JSON.stringify({ Version: '2012-10-17', Statement: statement })
}

function trustPolicyOf({ principal, externalId }: Trust): string {
  const condition = externalId !== undefined && { Condition: { StringEquals: { 'sts:ExternalId': externalId } } }
  const statement = { Effect: 'Allow', Principal: { AWS: principal }, Action: STS_ACTION, ...condition }
  return JSON.stringify({ Version: '2012-10-17', Statement: [statement] })
}

function element(xml: string, name: string): string {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1]
  if (found === undefined) throw new Error(`moto: no ${name} in ${xml}`)
  return found
}
