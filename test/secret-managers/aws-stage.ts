import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { type AccessKey, type MotoServer, startMoto } from '../support/moto.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { ROLES } from './aws-double.ts'
import { meanwhile, type Shape, type Stage } from './conformance.ts'
import { FEDERATED, lend, type MotoGate, startMotoGate, TASK, TASK_TOKEN } from './moto-gate.ts'

const aws_region = 'us-east-1'
const [DEAD_REGION, STRANGE_REGION] = ['eu-north-1', 'eu-west-3']
const hostIn = (region: string) => `secretsmanager.${region}.amazonaws.com`

export interface AwsStage extends Stage {
  /** where the host's own endpoint is (169.254.169.254:80) */
  metadata: string
  storeBinary(name: string, value: Uint8Array): Promise<string>
}

/**
 * An account of moto, behind the host names of AWS, and machines of each kind in it.
 *
 * @param folder for the tokens of the machines
 * @returns      undefined where there is no moto
 */
export async function openAwsStage(folder: string): Promise<AwsStage | undefined> {
  const moto = await startMoto()
  if (moto === undefined) return undefined
  const account = await createAccount(moto)
  const gate = startMotoGate(moto, account.task)
  const front = await startTlsFront({ names: [hostIn(aws_region), `sts.${aws_region}.amazonaws.com`], to: gate.port })
  const strange = await startTlsFront({ names: [hostIn(STRANGE_REGION)], to: gate.port })
  const metadata = `127.0.0.1:${gate.port}`
  const stored = new Set<string>()

  return {
    name: 'AWS Secrets Manager (moto)',
    outbound: {
      allow: [],
      allow_http: [],
      connect: {
        [`${hostIn(aws_region)}:443`]: `127.0.0.1:${front.port}`,
        [`sts.${aws_region}.amazonaws.com:443`]: `127.0.0.1:${front.port}`,
        [`${hostIn(DEAD_REGION)}:443`]: '127.0.0.1:1',
        [`${hostIn(STRANGE_REGION)}:443`]: `127.0.0.1:${strange.port}`,
        '169.254.169.254:80': metadata,
        '169.254.170.2:80': metadata,
      },
      proxy: '',
    },
    caFile: front.caFile,
    metadata,
    machines: machinesOf(account, folder),
    shapes: shapesOf(moto, account, gate),
    async store(name, fields) {
      const [path, text] = [`prod/${name}`, JSON.stringify(fields)]
      if (stored.has(path)) await moto.secretsManager('PutSecretValue', { SecretId: path, SecretString: text })
      else await moto.createSecret(path, text)
      stored.add(path)
      return path
    },
    async storeBinary(name, value) {
      await moto.createSecret(`prod/${name}`, value)
      return `prod/${name}`
    },
    missingPath: 'prod/never',
    logins: () => gate.logins,
    unreachable: {
      'nobody listens': withKey(account.reader, { aws_region: DEAD_REGION }),
      'another authority': withKey(account.reader, { aws_region: STRANGE_REGION }),
    },
    async stop() {
      front.stop()
      strange.stop()
      gate.stop()
      await moto.stop()
    },
  }
}

type Account = Awaited<ReturnType<typeof createAccount>>

async function createAccount(moto: MotoServer) {
  const mayRead = { effect: 'Allow', actions: 'secretsmanager:GetSecretValue' } as const
  const mayAssume = { effect: 'Allow', actions: 'sts:AssumeRole' } as const
  const starter = await moto.createUser('starter', mayAssume)
  const task = await lend(moto, starter, 'task', mayRead, mayAssume)
  const idleTask = await lend(moto, starter, 'idle-task')
  const externalId = 'external-id-of-the-config'
  const trust = { principal: task.arn, externalId }
  return {
    reader: await moto.createUser('reader', mayRead),
    idle: await moto.createUser('idle'),
    task,
    idleTask,
    externalId,
    role: await moto.createRole('of-the-config', trust, mayRead),
    idleRole: await moto.createRole('idle', trust),
    strangeRole: await moto.createRole('strange', { ...trust, principal: idleTask.arn }, mayRead),
    podRole: await moto.createRole('pod', { principal: '*' }, mayRead),
  }
}

function machinesOf({ podRole }: Account, folder: string): Stage['machines'] {
  const [taskToken, podToken] = [join(folder, 'task-token'), join(folder, 'pod-token')]
  writeFileSync(taskToken, TASK_TOKEN)
  writeFileSync(podToken, 'token-of-the-pod')
  return {
    instance: { aws_identity: 'imds' },
    task: {
      aws_identity: 'container',
      aws_container_credentials_path: '/task/credentials',
      aws_container_token_file: taskToken,
    },
    pod: {
      aws_identity: 'web_identity',
      aws_web_identity_role_arn: podRole,
      aws_web_identity_token_file: podToken,
    },
  }
}

const withKey = ({ accessKeyId, secretAccessKey }: AccessKey, changes: object = {}): AwsAuthConfig => ({
  ...{ aws_auth_type: 'accessKey', aws_region },
  ...{ aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey },
  ...changes,
})

const withRole = (aws_role_arn: string, aws_external_id: string): AwsAuthConfig => ({
  ...{ aws_auth_type: 'assumedRole', aws_region },
  ...{ aws_role_arn, aws_external_id },
})

const OWN_ROLE: AwsAuthConfig = { aws_auth_type: 'serviceRole', aws_region }

function shapesOf(moto: MotoServer, account: Account, gate: MotoGate): Shape[] {
  const { reader, idle, idleTask, role, idleRole, strangeRole, externalId } = account
  const { revoke } = gate
  const managerType = 'aws_sm'
  const wrongSecret = { ...reader, secretAccessKey: idle.secretAccessKey }
  const noKey = { ...reader, accessKeyId: 'AKIAOFNOBODYATALL000' }
  return [
    {
      name: 'aws accessKey',
      ...{ managerType, authConfig: withKey(reader), machine: 'instance' },
      login: [`key ${reader.accessKeyId}`],
      isPerRead: true,
      refused: [
        { what: 'another secret access key', authConfig: withKey(wrongSecret) },
        { what: 'an unknown key', authConfig: withKey(noKey) },
      ],
      denied: { what: 'a user without a policy', authConfig: withKey(idle) },
    },
    {
      name: 'aws assumedRole, of a container',
      ...{ managerType, authConfig: withRole(role, externalId), machine: 'task' },
      login: [TASK, 'AssumeRole'],
      revoke,
      loginAgain: ['AssumeRole'],
      refused: [
        { what: 'another external id', authConfig: withRole(role, 'external-id-of-nobody') },
        { what: 'a role that trusts another', authConfig: withRole(strangeRole, externalId) },
      ],
      denied: { what: 'a role without a policy', authConfig: withRole(idleRole, externalId) },
    },
    {
      name: 'aws serviceRole, of an instance',
      ...{ managerType, authConfig: OWN_ROLE, machine: 'instance' },
      login: ['PUT /latest/api/token', `GET ${ROLES}`, `GET ${ROLES}default-role`],
      revoke,
      // What moto's metadata service lends belongs to nobody.
      begin: () => moto.enforcePolicies(false),
      end: () => moto.enforcePolicies(true),
      refused: [{ what: 'credentials of nobody', during: enforcing(moto) }],
    },
    {
      name: 'aws serviceRole, of a container',
      ...{ managerType, authConfig: OWN_ROLE, machine: 'task' },
      login: [TASK],
      revoke,
      refused: [{ what: 'another token', during: meanwhile(gate, 'refused', TASK) }],
      denied: { what: 'a task without a policy', during: meanwhile(gate, 'task', idleTask) },
    },
    {
      name: 'aws serviceRole, of a pod (web identity)',
      ...{ managerType, authConfig: OWN_ROLE, machine: 'pod' },
      login: [FEDERATED],
      revoke,
      // moto takes any token
      refused: [{ what: 'a token that the role does not trust', during: meanwhile(gate, 'refused', FEDERATED) }],
    },
  ]
}

const enforcing = (moto: MotoServer) => async (work: () => Promise<void>) => {
  await moto.enforcePolicies(true)
  await work().finally(() => moto.enforcePolicies(false))
}
