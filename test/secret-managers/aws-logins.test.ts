import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OutboundRequest } from '../../src/outbound/transport.ts'
import { endingLogin } from '../../src/secret-managers/aws-logins.ts'
import { sessionNameOf } from '../../src/secret-managers/aws-sts.ts'
import {
  ACCESS_KEY,
  ASSUMED_ROLE,
  awsDouble,
  hosted,
  IMDS,
  lent,
  ROLES,
  refused,
  refusedInXml,
  SERVICE_ROLE,
  secret,
  sent,
  signer,
} from './aws-double.ts'

// Whose credentials are sent where, how long they are kept, and what is never asked (decisions 43 and 45, SM-8).

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-aws-'))
afterAll(() => rmSync(folder, { recursive: true }))
function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const READ = 'GetSecretValue'
const TOKEN = 'PUT /latest/api/token'
const LIST = `GET ${ROLES}`
const CREDENTIALS = `GET ${ROLES}role-of-the-instance`
const LOGIN_BY_IMDS = [TOKEN, LIST, CREDENTIALS]
const form = (request: OutboundRequest) => Object.fromEntries(new URLSearchParams(sent(request)))

describe('an access key', () => {
  test('signs the one request that there is, to the host of its region', async () => {
    const double = awsDouble(ACCESS_KEY)
    expect(await double.fetch()).toEqual({ content: 'value', version: 'v1' })
    expect(double.asked()).toEqual([READ])
    const [request] = double.requests
    expect(request).toMatchObject({
      method: 'POST',
      url: 'https://secretsmanager.eu-west-1.amazonaws.com/',
      reach: 'private',
    })
    expect(sent(request!)).toBe('{"SecretId":"prod/app"}')
    expect(signer(request!)).toBe('AKIAOFTHECONFIG')
    expect(request!.headers).not.toHaveProperty('x-amz-security-token')
    expect(double.steps).toEqual(['read', 'parse'])
    expect(double.client.loginExpiresAt()).toBeNull()
  })

  test('is sent once, whatever the answer: no retries of the SDK', async () => {
    const refusals = [
      refused('ExpiredTokenException'),
      refused('ThrottlingException'),
      { status: 500 },
      { status: 503 },
    ]
    for (const answer of refusals) {
      const double = awsDouble(ACCESS_KEY, { [READ]: answer })
      await double.failure()
      expect(double.asked()).toEqual([READ])
    }
  })

  test('with a line break in it is told so, and not sent', async () => {
    for (const field of ['aws_access_key_id', 'aws_secret_access_key'] as const) {
      const double = awsDouble({ ...ACCESS_KEY, [field]: 'AKIA\n' })
      const error = await double.failure()
      expect(error).toMatchObject({ step: 'login', failure: 'manager_config' })
      expect(error.message).toContain(`auth_config.${field}`)
      expect(double.requests).toEqual([])
    }
  })
})

describe('where it is sent', () => {
  test.each([
    ['eu-west-1', 'secretsmanager.eu-west-1.amazonaws.com'],
    ['us-gov-west-1', 'secretsmanager.us-gov-west-1.amazonaws.com'],
    ['cn-north-1', 'secretsmanager.cn-north-1.amazonaws.com.cn'],
    ['us-iso-east-1', 'secretsmanager.us-iso-east-1.c2s.ic.gov'],
    ['eusc-de-east-1', 'secretsmanager.eusc-de-east-1.amazonaws.eu'],
  ])('%s is at %s', async (aws_region, host) => {
    const double = awsDouble({ ...ACCESS_KEY, aws_region })
    await double.fetch()
    expect(double.requests.map(({ url }) => url)).toEqual([`https://${host}/`])
  })

  test.each(['evil', 'eu-west-1.evil.com#', 'fips-us-east-1', 'aws-global', ''])(
    '%p is no region',
    async (aws_region) => {
      for (const authConfig of [ACCESS_KEY, ASSUMED_ROLE, SERVICE_ROLE]) {
        const double = awsDouble({ ...authConfig, aws_region })
        expect(await double.failure()).toMatchObject({ step: 'address', failure: 'manager_config' })
        expect(double.requests).toEqual([])
      }
    },
  )

  const arn = 'arn:aws:secretsmanager:ap-south-1:123456789012:secret:prod/app-AbCdEf'
  test('a service role takes the region of an ARN, which is asked for as it is', async () => {
    const double = awsDouble({ aws_auth_type: 'serviceRole' })
    await double.fetch(arn)
    const request = double.requests.at(-1)!
    expect(request.url).toBe('https://secretsmanager.ap-south-1.amazonaws.com/')
    expect(JSON.parse(sent(request))).toEqual({ SecretId: arn })
    const error = await double.failure('prod/app')
    expect(error).toMatchObject({ step: 'address', failure: 'manager_config' })
    expect(error.message).toContain('aws_region')
  })

  test.each([arn, 'arn:aws:iam::123456789012:role/r', 'app?x', 'a b', 'a\n', ''])(
    '%p is no secret of this region, and nobody is asked',
    async (secretPath) => {
      const double = awsDouble(ACCESS_KEY)
      const error = await double.failure(secretPath)
      expect(error).toMatchObject({ step: 'read', failure: 'manager_config' })
      expect(error.message).toStartWith('secret_path: ')
      expect(double.requests).toEqual([])
    },
  )
})

describe('the machine', () => {
  test('of aws_identity = "none" has no identity to lend', async () => {
    for (const authConfig of [ASSUMED_ROLE, SERVICE_ROLE]) {
      const double = awsDouble(authConfig, {}, {})
      const error = await double.failure()
      expect(error).toMatchObject({ step: 'login', failure: 'manager_config' })
      expect(error.message).toContain('aws_identity')
      expect(double.requests).toEqual([])
    }
  })

  test('on EC2 asks for a token first, and for nothing that an address in a reference could lead to', async () => {
    const double = awsDouble(SERVICE_ROLE)
    expect((await double.fetch()).content).toBe('value')
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, READ])
    const [token, list, credentials, read] = double.requests
    expect([token, list, credentials].map((request) => [new URL(request!.url).origin, request!.reach])).toEqual(
      Array(3).fill(['http://169.254.169.254', 'machine_identity']),
    )
    expect(token!.headers).toEqual({ 'x-aws-ec2-metadata-token-ttl-seconds': '60' })
    expect(list!.headers).toEqual({ 'x-aws-ec2-metadata-token': 'token-of-imds' })
    expect(credentials!.headers).toEqual({ 'x-aws-ec2-metadata-token': 'token-of-imds' })
    expect(signer(read!)).toBe('ASIAOFTHEINSTANCE')
    expect(read!.headers['x-amz-security-token']).toBe('token-of-ASIAOFTHEINSTANCE')
    expect(double.steps).toEqual(['login', 'read', 'parse'])
  })

  const container = { aws_identity: 'container' }
  test.each<[what: string, settings: object, url: string, headers: object]>([
    [
      'ECS is asked at the path of the task',
      { aws_container_credentials_path: '/v2/credentials/id' },
      'http://169.254.170.2/v2/credentials/id',
      {},
    ],
    [
      'ECS may want a token, too',
      { aws_container_credentials_path: '/v2/credentials/id', aws_container_token_file: file('ecs', 'token-1') },
      'http://169.254.170.2/v2/credentials/id',
      { authorization: 'token-1' },
    ],
    [
      'EKS is asked with the token of the pod',
      { aws_container_token_file: file('eks', 'token-2\n') },
      'http://169.254.170.23/v1/credentials',
      { authorization: 'token-2' },
    ],
  ])('in a container: %s', async (_what, settings, url, headers) => {
    const answers = { [`GET ${new URL(url).pathname}`]: hosted('ASIAOFTHECONTAINER') }
    const double = awsDouble(SERVICE_ROLE, answers, { ...container, ...settings })
    await double.fetch()
    const [login, read] = double.requests
    expect(login).toMatchObject({ method: 'GET', url, reach: 'machine_identity' })
    expect(login!.headers).toEqual(headers as Record<string, string>)
    expect(signer(read!)).toBe('ASIAOFTHECONTAINER')
  })

  const role = 'arn:aws:iam::123456789012:role/of-the-cluster'
  test('with a web identity trades its token, unsigned, in the region of the secret', async () => {
    const token = file('web', 'the.web.token\n')
    const settings = {
      aws_identity: 'web_identity',
      aws_web_identity_role_arn: role,
      aws_web_identity_token_file: token,
    }
    const double = awsDouble(SERVICE_ROLE, {}, settings)
    await double.fetch()
    expect(double.asked()).toEqual(['AssumeRoleWithWebIdentity', READ])
    const [trade, read] = double.requests
    expect(trade).toMatchObject({ url: 'https://sts.eu-west-1.amazonaws.com/', reach: 'private' })
    expect(trade!.headers).not.toHaveProperty('authorization')
    expect(form(trade!)).toMatchObject({
      RoleArn: role,
      WebIdentityToken: 'the.web.token',
      RoleSessionName: 'gatehouse-5f0c7f1e-0000-7000-8000-000000000001',
      DurationSeconds: '900',
    })
    expect(signer(read!)).toBe('ASIAOFTHETOKEN')
    writeFileSync(token, 'the.next.token')
    double.answers[READ] = refused('ExpiredTokenException')
    await double.failure()
    expect(form(double.requests.findLast(({ url }) => url.includes('sts'))!)['WebIdentityToken']).toBe('the.next.token')
  })

  test.each<[what: string, settings: object, mentions: string]>([
    [
      'no role',
      { aws_identity: 'web_identity', aws_web_identity_token_file: file('t', 'x') },
      'aws_web_identity_role_arn',
    ],
    ['no token file', { aws_identity: 'web_identity', aws_web_identity_role_arn: role }, 'aws_web_identity_token_file'],
    [
      'a token file that is not there',
      {
        aws_identity: 'web_identity',
        aws_web_identity_role_arn: role,
        aws_web_identity_token_file: join(folder, 'absent'),
      },
      'aws_web_identity_token_file',
    ],
    ['EKS without a token file', container, 'aws_container_token_file'],
    [
      'an empty token file',
      { ...container, aws_container_token_file: file('empty', '\n') },
      'aws_container_token_file',
    ],
    [
      'a token that would end the header',
      { ...container, aws_container_token_file: file('split', 'a\r\nx: y') },
      'aws_container_token_file',
    ],
  ])('with %s is told which setting', async (_what, settings, mentions) => {
    const double = awsDouble(SERVICE_ROLE, {}, settings)
    const error = await double.failure()
    expect(error).toMatchObject({ step: 'login', failure: 'manager_config' })
    expect(error.message).toContain(mentions)
    expect(error.message).not.toContain(folder)
    expect(double.requests).toEqual([])
  })
})

describe('an assumed role', () => {
  test('is asked for with the external id, for as short as AWS lends, by a name that its trail shows', async () => {
    const double = awsDouble(ASSUMED_ROLE)
    await double.fetch()
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, 'AssumeRole', READ])
    const assume = double.requests[3]!
    expect(assume).toMatchObject({ url: 'https://sts.eu-west-1.amazonaws.com/', reach: 'private' })
    expect(signer(assume)).toBe('ASIAOFTHEINSTANCE')
    expect(form(assume)).toEqual({
      Action: 'AssumeRole',
      Version: '2011-06-15',
      RoleArn: 'arn:aws:iam::123456789012:role/of-the-config',
      RoleSessionName: 'gatehouse-5f0c7f1e-0000-7000-8000-000000000001',
      DurationSeconds: '900',
      ExternalId: 'external-id-of-the-config',
    })
    expect(signer(double.requests[4]!)).toBe('ASIAOFTHEROLE')
    expect(double.steps).toEqual(['login', 'read', 'parse'])
  })

  test('has a name of a form that AWS takes, whatever is tested', () => {
    for (const id of ['5f0c7f1e-0000-7000-8000-000000000001', 'a test: of/it', 'ü'.repeat(100), ''])
      expect(sessionNameOf(id)).toMatch(/^gatehouse-[\w+=,.@-]{0,54}$/)
  })

  test.each([null, undefined])('sends no external id where it is %p', async (aws_external_id) => {
    const double = awsDouble({ ...ASSUMED_ROLE, aws_external_id } as typeof ASSUMED_ROLE)
    await double.fetch()
    expect(form(double.requests[3]!)).not.toHaveProperty('ExternalId')
  })
})

describe('a login', () => {
  test('is kept for the next reads', async () => {
    const double = awsDouble(ASSUMED_ROLE)
    await double.fetch()
    const endsAt = double.client.loginExpiresAt() ?? 0
    expect(endsAt).toBeGreaterThan(Date.now() + 3_500_000)
    await double.fetch()
    expect(double.asked().filter((name) => name !== READ)).toEqual([...LOGIN_BY_IMDS, 'AssumeRole'])
    expect(double.steps.filter((step) => step === 'login').length).toBe(2)
  })

  test('is used to 80 % of its life, or to 5 minutes before its end where that is later', () => {
    const dueIn = (seconds: number) => {
      const now = Date.now()
      const { dueAt } = endingLogin({ accessKeyId: 'a', secretAccessKey: 'b' }, now + seconds * 1000)
      return Math.round(((dueAt ?? 0) - now) / 1000)
    }
    expect(dueIn(900)).toBe(720)
    expect(dueIn(21_600)).toBe(21_300)
    expect(dueIn(0)).toBe(0)
    expect(dueIn(-60)).toBeLessThanOrEqual(0)
  })

  test('is made again when it is due; that of the machine is still used meanwhile', async () => {
    const double = awsDouble(ASSUMED_ROLE, { AssumeRole: lent('AssumeRole', 'ASIASHORT', 0) })
    await double.fetch()
    await double.fetch()
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, 'AssumeRole', READ, 'AssumeRole', READ])
  })

  test('is made once for all who wait for it', async () => {
    const double = awsDouble(ASSUMED_ROLE)
    await Promise.all(Array.from({ length: 20 }, () => double.fetch()))
    expect(double.asked().filter((name) => name !== READ)).toEqual([...LOGIN_BY_IMDS, 'AssumeRole'])
    expect(double.asked().filter((name) => name === READ).length).toBe(20)
  })

  test('that fails is not kept', async () => {
    const double = awsDouble(SERVICE_ROLE, { [CREDENTIALS]: { status: 500 } })
    await double.failure()
    double.answers[CREDENTIALS] = hosted('ASIAAGAIN')
    expect((await double.fetch()).content).toBe('value')
  })

  test('whose first caller gives up goes on for the others, each to their own deadline', async () => {
    const gate = Promise.withResolvers<void>()
    const first = new AbortController()
    const impatient = new AbortController()
    const double = awsDouble(SERVICE_ROLE, {
      [TOKEN]: async ({ signal }) => {
        if (signal === first.signal) await gate.promise
        return { status: 200, body: 'token-of-imds' }
      },
    })
    const one = double.failure(undefined, first.signal)
    const other = double.fetch()
    const third = double.failure(undefined, impatient.signal)
    impatient.abort()
    expect(await third).toMatchObject({ step: 'login', failure: 'manager_timeout' })
    first.abort()
    expect(await one).toMatchObject({ step: 'login', failure: 'manager_timeout' })
    expect((await other).content).toBe('value')
    gate.resolve()
  })

  test('that AWS calls expired is made again once, and the read done again', async () => {
    let isOver = true
    const double = awsDouble(SERVICE_ROLE, {
      [READ]: () => {
        const answer = isOver ? refused('ExpiredTokenException') : secret('after')
        isOver = false
        return answer
      },
    })
    expect((await double.fetch()).content).toBe('after')
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, READ, ...LOGIN_BY_IMDS, READ])
  })

  test('that AWS calls expired again is given up', async () => {
    const double = awsDouble(SERVICE_ROLE, { [READ]: refused('ExpiredTokenException') })
    expect(await double.failure()).toMatchObject({ step: 'login', failure: 'manager_auth_expired' })
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, READ, ...LOGIN_BY_IMDS, READ])
  })

  test('of the machine that STS calls expired is made again once, before the role is asked for again', async () => {
    let isOver = true
    const double = awsDouble(ASSUMED_ROLE, {
      AssumeRole: () => {
        const answer = isOver ? refusedInXml('ExpiredToken') : lent('AssumeRole', 'ASIAAFTER')
        isOver = false
        return answer
      },
    })
    await double.fetch()
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, 'AssumeRole', ...LOGIN_BY_IMDS, 'AssumeRole', READ])
  })

  test('that AWS refuses is not sent again: the next read begins with a new one', async () => {
    const double = awsDouble(SERVICE_ROLE, { [READ]: refused('UnrecognizedClientException') })
    expect(await double.failure()).toMatchObject({ step: 'login', failure: 'manager_auth_failed' })
    double.answers[READ] = secret('value')
    await double.fetch()
    expect(double.asked()).toEqual([...LOGIN_BY_IMDS, READ, ...LOGIN_BY_IMDS, READ])
  })

  test('stays where the secret alone is refused', async () => {
    for (const code of ['AccessDeniedException', 'ResourceNotFoundException']) {
      const double = awsDouble(SERVICE_ROLE, { [READ]: refused(code) })
      await double.failure()
      await double.failure()
      expect(double.asked()).toEqual([...LOGIN_BY_IMDS, READ, READ])
    }
  })

  test('is forgotten at the end, the one under way too', async () => {
    const gate = Promise.withResolvers<void>()
    const slow = awsDouble(SERVICE_ROLE, { [TOKEN]: () => gate.promise.then(() => ({ status: 200, body: 'token' })) })
    const fetched = slow.fetch()
    slow.client.close()
    gate.resolve()
    await fetched
    expect(slow.client.loginExpiresAt()).toBeNull()
    const double = awsDouble(ASSUMED_ROLE, {}, IMDS)
    await double.fetch()
    double.client.close()
    expect(double.client.loginExpiresAt()).toBeNull()
  })
})

describe('a secret', () => {
  test('is text as it is, or bytes', async () => {
    const text = 'line\r\n{"a":1}\u0000 ü'
    expect((await awsDouble(ACCESS_KEY, { [READ]: secret(text) }).fetch()).content).toBe(text)
    expect((await awsDouble(ACCESS_KEY, { [READ]: secret('') }).fetch()).content).toBe('')
    const binary = { status: 200, body: { SecretBinary: 'AP8=' } }
    const { content, version } = await awsDouble(ACCESS_KEY, { [READ]: binary }).fetch()
    expect(content).toEqual(new Uint8Array([0, 255]))
    expect(version).toBeNull()
  })
})
