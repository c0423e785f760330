import { readFile } from 'node:fs/promises'
import type { Config } from '../../schema/config.ts'
import { OutboundError, type OutboundRequest, type OutboundResponse, type Transport } from '../outbound/transport.ts'
import { type AwsLogin, endingLogin } from './aws-logins.ts'
import { assumeRoleWithToken } from './aws-sts.ts'
import type { AwsCall } from './aws-transport.ts'
import { ManagerError, type ManagerFailure } from './manager.ts'
import { fromOutbound } from './outbound-failure.ts'

export interface AwsMachine {
  transport: Transport
  settings: Config['secret_managers']
  sessionName: string
}

/**
 * Logs in as this machine, in the way that `aws_identity` names and in no other (decision 45). The SDK's own providers
 * of the first two connect by themselves, past our transport (decision 43).
 *
 * @throws ManagerError, at the step `login` once there is a connection
 */
export async function machineLogin(machine: AwsMachine, call: AwsCall): Promise<AwsLogin> {
  const { aws_identity } = machine.settings
  if (aws_identity === 'imds') return fromInstance(machine, call)
  if (aws_identity === 'container') return fromContainer(machine, call)
  if (aws_identity === 'web_identity') return fromWebIdentity(machine, call)
  throw unfit('this machine has no AWS identity of its own: set aws_identity in [secret_managers] to what it runs on')
}

const INSTANCE = 'http://169.254.169.254/latest'
const ROLES = '/meta-data/iam/security-credentials/'

/** The metadata service of EC2, in its second version alone: whoever can be made to fetch a URL gets nothing of it. */
async function fromInstance(machine: AwsMachine, call: AwsCall): Promise<AwsLogin> {
  const ask = (method: string, path: string, headers: Record<string, string>) =>
    askHost(machine, call, { method, url: `${INSTANCE}${path}`, headers })
  const token = textOf(await ask('PUT', '/api/token', { 'x-aws-ec2-metadata-token-ttl-seconds': '60' }), machine)
  if (!isHeaderText(token)) throw unexpected(machine)
  const headers = { 'x-aws-ec2-metadata-token': token }
  const roles = await ask('GET', ROLES, headers)
  if (roles.status === 404) throw refused(machine, 'no role is attached to this instance')
  const [role = ''] = textOf(roles, machine).split('\n')
  if (!/^[\w+=,.@-]{1,128}$/.test(role)) throw unexpected(machine)
  return loginIn(await ask('GET', `${ROLES}${role}`, headers), machine)
}

const ECS = 'http://169.254.170.2'
const EKS_POD_IDENTITY = 'http://169.254.170.23/v1/credentials'

async function fromContainer(machine: AwsMachine, call: AwsCall): Promise<AwsLogin> {
  const { aws_container_credentials_path: path, aws_container_token_file: file } = machine.settings
  const url = path === '' ? EKS_POD_IDENTITY : `${ECS}${path}`
  const needsToken = path === '' || file !== ''
  const headers = needsToken ? { authorization: await readToken('aws_container_token_file', file) } : {}
  return loginIn(await askHost(machine, call, { method: 'GET', url, headers }), machine)
}

async function fromWebIdentity({ transport, settings, sessionName }: AwsMachine, call: AwsCall): Promise<AwsLogin> {
  const { aws_web_identity_role_arn: roleArn, aws_web_identity_token_file: file } = settings
  if (roleArn === '') throw unset('aws_web_identity_role_arn')
  const token = await readToken('aws_web_identity_token_file', file)
  return assumeRoleWithToken(transport, call, { roleArn, sessionName }, token)
}

/** Kubernetes replaces such files while they are in use, so they are read at each login. */
async function readToken(setting: string, file: string): Promise<string> {
  if (file === '') throw unset(setting)
  const token = (await readFile(file, 'utf8').catch(() => '')).trim()
  if (isHeaderText(token)) return token
  throw unfit(`the file that ${setting} in [secret_managers] names cannot be read, or holds no token`)
}

const isHeaderText = (text: string): boolean => /^[\x21-\x7e]+$/.test(text)

/** A fixed endpoint, which the host of this machine answers itself. */
async function askHost(
  { transport, settings }: AwsMachine,
  { signal }: AwsCall,
  request: Pick<OutboundRequest, 'method' | 'url' | 'headers'>,
): Promise<OutboundResponse> {
  try {
    return await transport.send({ ...request, signal, reach: 'machine_identity' })
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    const { step, failure, message } = fromOutbound(error, 'login')
    const hint = failure === 'manager_timeout' && settings.aws_identity === 'imds' ? HOP_LIMIT : ''
    throw new ManagerError(step, failure, `${ofMachine(settings)}: ${message}${hint}`)
  }
}

const HOP_LIMIT = ' (from inside a container, only if the hop limit of the metadata service is 2)'

/** What a 200 says; anything else is a login that failed (decision 47). */
function textOf({ status, body }: OutboundResponse, machine: AwsMachine): string {
  if (status === 200) return body.toString('utf8').trim()
  if (status === 429) throw failed(machine, 'manager_throttled', 'too many requests')
  if (status >= 500) throw failed(machine, 'manager_unreachable', 'the endpoint is out of order at the moment')
  if (status >= 400) throw refused(machine, 'the endpoint gives none out: look at the settings of this machine')
  throw unexpected(machine)
}

/** EC2 says `Code`; containers do not. */
function loginIn(answer: OutboundResponse, machine: AwsMachine): AwsLogin {
  const { Code = 'Success', AccessKeyId, SecretAccessKey, Token, Expiration } = objectIn(textOf(answer, machine))
  if (Code !== 'Success') throw refused(machine, 'AWS does not lend it the role: look at the trust policy of the role')
  const given = [AccessKeyId, SecretAccessKey, Token].filter((text) => typeof text === 'string' && text !== '')
  const [accessKeyId, secretAccessKey, sessionToken] = given as string[]
  const endsAt = typeof Expiration === 'string' ? Date.parse(Expiration) : Number.NaN
  if (!accessKeyId || !secretAccessKey || !sessionToken || Number.isNaN(endsAt)) throw unexpected(machine)
  return endingLogin({ accessKeyId, secretAccessKey, sessionToken }, endsAt)
}

function objectIn(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

const ofMachine = ({ aws_identity }: AwsMachine['settings']): string =>
  `credentials of this machine (aws_identity = "${aws_identity}")`

const failed = ({ settings }: AwsMachine, failure: ManagerFailure, words: string): ManagerError =>
  new ManagerError('login', failure, `${ofMachine(settings)}: ${words}`)

const refused = (machine: AwsMachine, words: string): ManagerError => failed(machine, 'manager_auth_failed', words)

const unexpected = (machine: AwsMachine): ManagerError =>
  failed(machine, 'manager_bad_response', 'what answers does not answer as AWS does, or not to the end')

const unfit = (message: string): ManagerError => new ManagerError('login', 'manager_config', message)

const unset = (setting: string): ManagerError => unfit(`${setting} in [secret_managers] is not set`)
