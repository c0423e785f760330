import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import type { OutboundRequest, Transport } from '../../src/outbound/transport.ts'
import { freshFolder } from '../support/database.ts'
import { type AccessKey, type Statement, startMoto } from '../support/moto.ts'
import { startTlsFront } from '../support/tls-front.ts'
import { IMDS, type OpenAws, openAws, signer } from './aws-double.ts'

// Against moto, over our one transport, under the names that AWS has.

const aws_region = 'us-east-1'
const moto = await startMoto()
const motoPort = Number(new URL(moto?.url ?? 'http://localhost:1').port)
const front = await startTlsFront({ names: [`*.${aws_region}.amazonaws.com`], to: motoPort })
const folder = freshFolder()

interface Session {
  AccessKeyId: string
  SecretAccessKey: string
  Token: string
}

/** What this machine is lent. What moto's own metadata service lends is of nobody. */
let lent: Session | undefined
const container = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    const isPod = request.headers.get('authorization') === 'token.of.the.pod'
    const Expiration = new Date(Date.now() + 3_600_000).toISOString()
    return isPod && lent !== undefined ? Response.json({ ...lent, Expiration }) : new Response('', { status: 401 })
  },
})
const tokenFile = join(folder, 'token')
writeFileSync(tokenFile, 'token.of.the.pod\n')

afterAll(async () => {
  front.stop()
  await container.stop(true)
  await moto?.stop()
  rmSync(folder, { recursive: true })
})

const connect = {
  [`secretsmanager.${aws_region}.amazonaws.com:443`]: `127.0.0.1:${front.port}`,
  [`sts.${aws_region}.amazonaws.com:443`]: `127.0.0.1:${front.port}`,
  '169.254.169.254:80': `127.0.0.1:${motoPort}`,
  '169.254.170.23:80': `127.0.0.1:${container.port}`,
}
const outbound = createOutbound({
  config: { allow: [], allow_http: [], connect, proxy: '' },
  ownListeners: () => [],
})

interface OpenMoto extends OpenAws {
  requests: OutboundRequest[]
}

function open(authConfig: AwsAuthConfig, settings: object = {}, ca: string | null = front.ca): OpenMoto {
  const steps: string[] = []
  const requests: OutboundRequest[] = []
  const { send, close } = outbound.open({ ca: ca ?? undefined, onStep: (step) => void steps.push(step) })
  const transport: Transport = {
    send(request) {
      requests.push(request)
      return send(request)
    },
    close,
  }
  const opened = openAws(authConfig, transport, settings)
  return {
    ...opened,
    requests,
    get steps() {
      return [...steps, ...opened.steps]
    },
  }
}

const keyOf = ({ accessKeyId, secretAccessKey }: AccessKey): AwsAuthConfig => ({
  aws_auth_type: 'accessKey',
  aws_access_key_id: accessKeyId,
  aws_secret_access_key: secretAccessKey,
  aws_region,
})
const SERVICE_ROLE: AwsAuthConfig = { aws_auth_type: 'serviceRole', aws_region }
const POD = { aws_identity: 'container', aws_container_token_file: tokenFile }

describe.skipIf(moto === undefined)('AWS Secrets Manager', () => {
  const mayRead = { effect: 'Allow', actions: 'secretsmanager:GetSecretValue' } as const
  const mayAssume = { effect: 'Allow', actions: 'sts:AssumeRole' } as const
  let reader: AccessKey
  let idle: AccessKey
  let denied: AccessKey
  let caller: AccessKey
  let textArn: string
  /** of machines: one that may do all, one that may not read, one that no role trusts */
  let machine: Session
  let idleMachine: Session
  let strangeMachine: Session
  let readingRole: string
  let idleRole: string

  /** A session `pod` of a role of that name, as a pod of EKS has one. */
  async function machineOf(name: string, ...policies: Statement[]): Promise<Session> {
    const RoleArn = await moto!.createRole(name, { principal: caller.arn }, ...policies)
    const sts = new STSClient({ region: aws_region, endpoint: moto!.url, credentials: caller })
    const { Credentials } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'pod' }))
    const { AccessKeyId, SecretAccessKey, SessionToken } = Credentials!
    return { AccessKeyId: AccessKeyId!, SecretAccessKey: SecretAccessKey!, Token: SessionToken! }
  }

  beforeAll(async () => {
    reader = await moto!.createUser('reader', mayRead)
    idle = await moto!.createUser('idle')
    denied = await moto!.createUser('denied', mayRead, { ...mayRead, effect: 'Deny' })
    caller = await moto!.createUser('caller', mayAssume)
    machine = await machineOf('machine', mayRead, mayAssume)
    idleMachine = await machineOf('idle-machine')
    strangeMachine = await machineOf('strange-machine', mayAssume)
    const trust = { principal: 'arn:aws:sts::123456789012:assumed-role/machine/pod', externalId: 'right' }
    readingRole = await moto!.createRole('reading', trust, mayRead)
    idleRole = await moto!.createRole('idle', trust)
    textArn = await moto!.createSecret('prod/text', 'value\r\n')
    await moto!.createSecret('prod/json', { key: 'value' })
    await moto!.createSecret('prod/binary', new Uint8Array([0, 128, 255]))
  })

  describe('with an access key', () => {
    test('gives text, JSON and bytes as they are, by name and by ARN', async () => {
      const { fetch } = open(keyOf(reader))
      expect(await fetch('prod/text')).toEqual({ content: 'value\r\n', version: expect.any(String) })
      expect((await fetch('prod/json')).content).toBe('{"key":"value"}')
      expect((await fetch('prod/binary')).content).toEqual(new Uint8Array([0, 128, 255]))
      expect((await fetch(textArn)).content).toBe('value\r\n')
    })

    test('gives the current version, and tells which', async () => {
      await moto!.createSecret('turned', 'old')
      const { fetch } = open(keyOf(reader))
      const before = await fetch('turned')
      const { VersionId } = await moto!.secretsManager('PutSecretValue', { SecretId: 'turned', SecretString: 'new' })
      expect(await fetch('turned')).toEqual({ content: 'new', version: VersionId! })
      expect(before.version).not.toBe(VersionId!)
    })

    test('goes through the steps that there are', async () => {
      const opened = open(keyOf(reader))
      await opened.fetch('prod/text')
      expect(opened.steps).toEqual(['address', 'connect', 'tls', 'read', 'parse'])
    })

    test('that is wrong fails at the login', async () => {
      const wrong = [
        { ...reader, secretAccessKey: 'wrong' },
        { ...reader, accessKeyId: 'AKIAIOSFODNN7EXAMPLE' },
      ]
      for (const key of wrong)
        expect(await open(keyOf(key)).failure('prod/text')).toMatchObject({
          step: 'login',
          failure: 'manager_auth_failed',
        })
    })

    test('that may not read is denied', async () => {
      for (const key of [idle, denied])
        expect(await open(keyOf(key)).failure('prod/text')).toMatchObject({ step: 'read', failure: 'manager_denied' })
    })

    test('is told of a secret that is missing, or about to be deleted', async () => {
      await moto!.createSecret('leaving', 'value')
      await moto!.secretsManager('DeleteSecret', { SecretId: 'leaving' })
      const { failure } = open(keyOf(reader))
      expect(await failure('prod/never')).toMatchObject({ step: 'read', failure: 'manager_secret_missing' })
      expect(await failure('leaving')).toMatchObject({ step: 'read', failure: 'manager_secret_disabled' })
    })

    test('is not sent to whom the authority does not vouch for', async () => {
      const { requests, failure } = open(keyOf(reader), {}, null)
      expect(await failure('prod/text')).toMatchObject({ step: 'tls', failure: 'manager_tls' })
      expect(requests.length).toBe(1)
    })
  })

  describe('with an assumed role', () => {
    const role = (aws_role_arn: string, aws_external_id?: string): AwsAuthConfig => ({
      aws_auth_type: 'assumedRole',
      aws_role_arn,
      ...(aws_external_id !== undefined && { aws_external_id }),
      aws_region,
    })
    const hosts = ({ requests }: OpenMoto) => requests.map(({ url }) => new URL(url).hostname.split('.')[0])

    test('reads with the session that the machine is lent for the external id, and keeps it', async () => {
      lent = machine
      const opened = open(role(readingRole, 'right'), POD)
      expect((await opened.fetch('prod/text')).content).toBe('value\r\n')
      expect((await opened.fetch('prod/json')).content).toBe('{"key":"value"}')
      expect(hosts(opened)).toEqual(['169', 'sts', 'secretsmanager', 'secretsmanager'])
      const [, assume, read] = opened.requests
      expect(signer(assume!)).toBe(machine.AccessKeyId)
      expect(signer(read!)).not.toBe(machine.AccessKeyId)
      expect(opened.client.loginExpiresAt()).toBeGreaterThan(Date.now())
    })

    test('fails at the login with a wrong external id, from a stranger, and with a wrong key of the machine', async () => {
      const refusals: [Session, externalId: string][] = [
        [machine, 'wrong'],
        [strangeMachine, 'right'],
        [{ ...machine, SecretAccessKey: 'wrong' }, 'right'],
        [{ ...machine, Token: 'wrong' }, 'right'],
      ]
      for (const [session, externalId] of refusals) {
        lent = session
        const opened = open(role(readingRole, externalId), POD)
        expect(await opened.failure('prod/text')).toMatchObject({ step: 'login', failure: 'manager_auth_failed' })
        expect(hosts(opened)).toEqual(['169', 'sts'])
      }
    })

    test('may read no more than the role', async () => {
      lent = machine
      const { failure } = open(role(idleRole, 'right'), POD)
      expect(await failure('prod/text')).toMatchObject({ step: 'read', failure: 'manager_denied' })
    })
  })

  describe('with the role of this machine', () => {
    test('in a pod reads what its role may, and no more', async () => {
      lent = machine
      const opened = open(SERVICE_ROLE, POD)
      expect((await opened.fetch('prod/text')).content).toBe('value\r\n')
      expect(signer(opened.requests.at(-1)!)).toBe(machine.AccessKeyId)
      lent = idleMachine
      expect(await open(SERVICE_ROLE, POD).failure('prod/text')).toMatchObject({ failure: 'manager_denied' })
      lent = undefined
      const refused = await open(SERVICE_ROLE, POD).failure('prod/text')
      expect(refused).toMatchObject({ step: 'login', failure: 'manager_auth_failed' })
    })

    test('on EC2 fails at the login where AWS does not know it', async () => {
      const opened = open(SERVICE_ROLE, IMDS)
      expect(await opened.failure('prod/text')).toMatchObject({ step: 'login', failure: 'manager_auth_failed' })
      expect(opened.requests.map(({ method }) => method)).toEqual(['PUT', 'GET', 'GET', 'POST'])
    })

    // Nobody's credentials, and requests without a signature, pass only while moto looks at no policies.
    describe('to whom moto lets everything pass', () => {
      beforeAll(() => moto!.enforcePolicies(false))
      afterAll(() => moto!.enforcePolicies(true))

      test('on EC2 reads with what the metadata service lends', async () => {
        const opened = open({ aws_auth_type: 'serviceRole' }, IMDS)
        expect((await opened.fetch(textArn)).content).toBe('value\r\n')
        expect(signer(opened.requests.at(-1)!)).toBe('test-key')
      })

      test('reads with what STS lends for a web identity', async () => {
        const opened = open(SERVICE_ROLE, {
          aws_identity: 'web_identity',
          aws_web_identity_role_arn: readingRole,
          aws_web_identity_token_file: tokenFile,
        })
        expect((await opened.fetch('prod/text')).content).toBe('value\r\n')
        expect(signer(opened.requests.at(-1)!)).toStartWith('ASIA')
        expect(opened.steps.filter((step) => step !== 'address' && step !== 'connect')).toEqual([
          'tls',
          'tls',
          'login',
          'read',
          'parse',
        ])
      })
    })
  })
})
