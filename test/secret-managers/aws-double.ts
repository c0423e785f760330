import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import type { OutboundRequest, Transport } from '../../src/outbound/transport.ts'
import { awsSm } from '../../src/secret-managers/aws-sm.ts'
import { type FetchedSecret, type ManagerClient, ManagerError } from '../../src/secret-managers/manager.ts'

/** Text goes out as it is, anything else as JSON. */
export interface CannedAnswer {
  status: number
  body?: unknown
}

/**
 * By what is asked: `GetSecretValue`, `AssumeRole`, `AssumeRoleWithWebIdentity`; for an endpoint of this machine, method
 * and path (`PUT /latest/api/token`).
 */
export type Answers = Record<
  string,
  CannedAnswer | ((request: OutboundRequest) => CannedAnswer | Promise<CannedAnswer>)
>

export interface OpenAws {
  client: ManagerClient
  /** `login`, `read`, … as they were told */
  steps: string[]
  fetch(secretPath?: string, signal?: AbortSignal): Promise<FetchedSecret>
  /** the error of a fetch that must fail */
  failure(secretPath?: string, signal?: AbortSignal): Promise<ManagerError>
}

export interface AwsDouble extends OpenAws {
  requests: OutboundRequest[]
  /** names as in Answers, in the order of their coming */
  asked(): string[]
  answers: Answers
}

export const ACCESS_KEY: AwsAuthConfig = {
  aws_auth_type: 'accessKey',
  aws_access_key_id: 'AKIAOFTHECONFIG',
  aws_secret_access_key: 'secret-of-the-config',
  aws_region: 'eu-west-1',
}
export const ASSUMED_ROLE: AwsAuthConfig = {
  aws_auth_type: 'assumedRole',
  aws_role_arn: 'arn:aws:iam::123456789012:role/of-the-config',
  aws_external_id: 'external-id-of-the-config',
  aws_region: 'eu-west-1',
}
export const SERVICE_ROLE: AwsAuthConfig = { aws_auth_type: 'serviceRole', aws_region: 'eu-west-1' }

export const IMDS = { aws_identity: 'imds' }

export const ROLES = '/latest/meta-data/iam/security-credentials/'

const HOUR_MS = 3_600_000
export const later = (ms = HOUR_MS): string => new Date(Date.now() + ms).toISOString()

export const secret = (SecretString: string): CannedAnswer => ({ status: 200, body: { SecretString, VersionId: 'v1' } })
/** As services that speak JSON refuse. */
export const refused = (__type: string, message = '', status = 400): CannedAnswer => ({
  status,
  body: { __type, message },
})
/** As STS refuses. */
export const refusedInXml = (code: string, message = '', status = 403): CannedAnswer => ({
  status,
  body: `<ErrorResponse xmlns="${STS}"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error></ErrorResponse>`,
})
const STS = 'https://sts.amazonaws.com/doc/2011-06-15/'

/** @param id of the access key, by which the login is known again in what follows */
export function lent(action: 'AssumeRole' | 'AssumeRoleWithWebIdentity', id: string, ms = HOUR_MS): CannedAnswer {
  const credentials = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>lent</SecretAccessKey><SessionToken>token-of-${id}</SessionToken>`
  const whole = `<Credentials>${credentials}<Expiration>${later(ms)}</Expiration></Credentials>`
  return {
    status: 200,
    body: `<${action}Response xmlns="${STS}"><${action}Result>${whole}</${action}Result></${action}Response>`,
  }
}
export const hosted = (AccessKeyId: string, ms = HOUR_MS): CannedAnswer => ({
  status: 200,
  body: { AccessKeyId, SecretAccessKey: 'hosted', Token: `token-of-${AccessKeyId}`, Expiration: later(ms) },
})

const ANSWERS: Answers = {
  GetSecretValue: secret('value'),
  AssumeRole: lent('AssumeRole', 'ASIAOFTHEROLE'),
  AssumeRoleWithWebIdentity: lent('AssumeRoleWithWebIdentity', 'ASIAOFTHETOKEN'),
  'PUT /latest/api/token': { status: 200, body: 'token-of-imds' },
  [`GET ${ROLES}`]: { status: 200, body: 'role-of-the-instance\n' },
  [`GET ${ROLES}role-of-the-instance`]: hosted('ASIAOFTHEINSTANCE'),
}

/** An AWS whose answers are written down, reached without a network. */
export function awsDouble(authConfig: AwsAuthConfig, answers: Answers = {}, settings: object = IMDS): AwsDouble {
  const requests: OutboundRequest[] = []
  const double = { requests, answers: { ...ANSWERS, ...answers } }
  const transport: Transport = {
    async send(request) {
      requests.push(request)
      const answer = double.answers[nameOf(request)] ?? { status: 404 }
      const { status, body = '' } = typeof answer === 'function' ? await answer(request) : answer
      return { status, headers: {}, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) }
    },
    close() {},
  }
  return Object.assign(double, openAws(authConfig, transport, settings), { asked: () => requests.map(nameOf) })
}

/** The SDK writes JSON as bytes, and forms as text. */
export const sent = ({ body = '' }: OutboundRequest): string => Buffer.from(body as string).toString('utf8')

function nameOf(request: OutboundRequest): string {
  const { method, url, headers } = request
  const target = headers['x-amz-target']
  if (target !== undefined) return target.replace('secretsmanager.', '')
  return new URLSearchParams(sent(request)).get('Action') ?? `${method} ${new URL(url).pathname}`
}

/** Whose credentials signed a request. */
export const signer = ({ headers }: OutboundRequest): string | undefined =>
  /Credential=([^/]+)\//.exec(headers['authorization'] ?? '')?.[1]

/** The adapter over any transport. */
export function openAws(authConfig: AwsAuthConfig, transport: Transport, settings: object = {}): OpenAws {
  const steps: string[] = []
  const client = awsSm.open(authConfig, {
    transport,
    settings: { ...NO_IDENTITY, ...settings } as Config['secret_managers'],
    referenceId: '5f0c7f1e-0000-7000-8000-000000000001',
  })
  const never = new AbortController().signal
  const fetch: OpenAws['fetch'] = (secretPath = 'prod/app', signal = never) =>
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

const NO_IDENTITY = {
  aws_identity: 'none',
  aws_web_identity_role_arn: '',
  aws_web_identity_token_file: '',
  aws_container_credentials_path: '',
  aws_container_token_file: '',
}
