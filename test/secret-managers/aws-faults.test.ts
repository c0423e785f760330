import { describe, expect, test } from 'bun:test'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { OutboundError, type OutboundFailure, type OutboundStep } from '../../src/outbound/transport.ts'
import type { ManagerFailure, Step } from '../../src/secret-managers/manager.ts'
import {
  ACCESS_KEY,
  ASSUMED_ROLE,
  awsDouble,
  type CannedAnswer,
  hosted,
  IMDS,
  lent,
  openAws,
  ROLES,
  refused,
  refusedInXml,
  SERVICE_ROLE,
} from './aws-double.ts'

// What AWS, or something in its place, may answer, and what we make of it (SM-4, SM-5, decision 47).

type Expected = [failure: ManagerFailure, step: Step, mentions: string]

const HTML: CannedAnswer = { status: 200, body: '<!doctype html><title>Sign in</title><p>Sign in' }

async function expectFailure(
  authConfig: AwsAuthConfig,
  at: string,
  answer: CannedAnswer,
  [failure, step, mentions]: Expected,
): Promise<void> {
  const error = await awsDouble(authConfig, { [at]: answer }).failure()
  expect({ failure: error.failure, step: error.step }).toEqual({ failure, step })
  expect(error.message).toContain(mentions)
  expect(error.message).not.toMatch(/404|not found/i)
  expect(error.cause).toBeUndefined()
}

describe('at the read', () => {
  test.each<[what: string, answer: CannedAnswer, expected: Expected]>([
    // AWS has no login for keys: they are looked at here, and it is the login that failed
    ['an unknown key', refused('UnrecognizedClientException'), ['manager_auth_failed', 'login', 'access key']],
    ['an unknown key, as elsewhere', refused('InvalidClientTokenId'), ['manager_auth_failed', 'login', 'access key']],
    ['no key', refused('MissingAuthenticationTokenException'), ['manager_auth_failed', 'login', 'access key']],
    ['a wrong secret key', refused('InvalidSignatureException'), ['manager_auth_failed', 'login', 'secret access key']],
    [
      'a wrong clock',
      refused('InvalidSignatureException', 'Signature expired'),
      ['manager_auth_failed', 'login', 'clock'],
    ],
    ['half a signature', refused('IncompleteSignature'), ['manager_auth_failed', 'login', 'signature']],
    [
      'a signature, as elsewhere',
      refusedInXml('SignatureDoesNotMatch'),
      ['manager_auth_failed', 'login', 'secret access key'],
    ],
    ['a session that is over', refused('ExpiredTokenException'), ['manager_auth_expired', 'login', 'expired']],
    [
      'a namespace before the name',
      refused('com.amazonaws#ExpiredToken'),
      ['manager_auth_expired', 'login', 'expired'],
    ],
    ['no permission', refused('AccessDeniedException'), ['manager_denied', 'read', 'secretsmanager:GetSecretValue']],
    [
      'no permission for the key',
      refused('AccessDeniedException', 'Access to KMS is not allowed'),
      ['manager_denied', 'read', 'kms:Decrypt'],
    ],
    ['no permission, in XML', refusedInXml('AccessDenied'), ['manager_denied', 'read', 'permission']],
    ['no secret', refused('ResourceNotFoundException'), ['manager_secret_missing', 'read', 'secret_path']],
    [
      'a secret that is marked for deletion',
      refused('InvalidRequestException'),
      ['manager_secret_disabled', 'read', 'deletion'],
    ],
    ['a KMS key that is disabled', refused('DecryptionFailure'), ['manager_secret_disabled', 'read', 'KMS']],
    ['a parameter that does not fit', refused('InvalidParameterException'), ['manager_config', 'read', 'secret_path']],
    ['a value that is not valid', refused('ValidationException'), ['manager_config', 'read', 'secret_path']],
    ['too many requests', refused('ThrottlingException'), ['manager_throttled', 'read', 'rate']],
    ['too many requests, as elsewhere', refused('TooManyRequestsException'), ['manager_throttled', 'read', 'rate']],
    ['too many requests, by status', { status: 429, body: 'slow down' }, ['manager_throttled', 'read', 'rate']],
    ['an overload', refused('SlowDown', '', 503), ['manager_throttled', 'read', 'rate']],
    ['a fault of AWS', refused('InternalServiceError', '', 500), ['manager_unreachable', 'read', 'out of order']],
    ['a gateway without AWS behind it', { ...HTML, status: 502 }, ['manager_unreachable', 'read', 'proxy']],
    ['a redirect', { status: 301 }, ['manager_bad_response', 'read', 'not followed']],
    ['a redirect that keeps the method', { status: 307 }, ['manager_bad_response', 'read', 'not followed']],
    ['an error without a name', refused('AnotherException'), ['manager_bad_response', 'read', 'no name']],
    ['an error named as what objects inherit', refused('constructor'), ['manager_bad_response', 'read', 'no name']],
    [
      'an error that is none of AWS',
      { status: 400, body: {} },
      ['manager_bad_response', 'read', 'does not answer as AWS'],
    ],
    ['a page that forbids', { ...HTML, status: 403 }, ['manager_bad_response', 'read', 'connect']],
    ['a page', HTML, ['manager_bad_response', 'parse', 'does not answer as AWS']],
    [
      'an answer that is cut off',
      { status: 200, body: '{"SecretString":"val' },
      ['manager_bad_response', 'parse', 'end'],
    ],
    ['nothing', { status: 200 }, ['manager_bad_response', 'parse', 'end']],
    [
      'no secret in the answer',
      { status: 200, body: { Name: 'app' } },
      ['manager_bad_response', 'parse', 'as AWS does'],
    ],
    ['an answer that is no object', { status: 200, body: '"value"' }, ['manager_bad_response', 'parse', 'as AWS does']],
  ])('%s', async (_what, answer, expected) => {
    await expectFailure(ACCESS_KEY, 'GetSecretValue', answer, expected)
  })
})

describe('at the assumption of a role', () => {
  test.each<[what: string, answer: CannedAnswer, expected: Expected]>([
    ['no trust', refusedInXml('AccessDenied'), ['manager_auth_failed', 'login', 'aws_external_id']],
    [
      'no role of that form',
      refusedInXml('ValidationError', '', 400),
      ['manager_auth_failed', 'login', 'aws_role_arn'],
    ],
    [
      'an unknown key of the machine',
      refusedInXml('InvalidClientTokenId'),
      ['manager_auth_failed', 'login', 'access key'],
    ],
    ['a wrong clock', refusedInXml('SignatureDoesNotMatch'), ['manager_auth_failed', 'login', 'clock']],
    ['a login of the machine that is over', refusedInXml('ExpiredToken'), ['manager_auth_expired', 'login', 'expired']],
    ['too many requests', refusedInXml('Throttling', '', 400), ['manager_throttled', 'login', 'rate']],
    ['a fault of AWS', refusedInXml('InternalFailure', '', 500), ['manager_unreachable', 'login', 'out of order']],
    ['a redirect', { status: 302 }, ['manager_bad_response', 'login', 'not followed']],
    ['a page', HTML, ['manager_bad_response', 'login', 'as AWS does']],
    ['a page that forbids', { ...HTML, status: 403 }, ['manager_bad_response', 'login', 'as AWS does']],
    [
      'an answer that is cut off',
      { status: 200, body: '<AssumeRoleResponse><Assu' },
      ['manager_bad_response', 'login', 'end'],
    ],
    ['nothing', { status: 200 }, ['manager_bad_response', 'login', 'end']],
    [
      'no credentials',
      { status: 200, body: '<AssumeRoleResponse><AssumeRoleResult/></AssumeRoleResponse>' },
      ['manager_bad_response', 'login', 'end'],
    ],
    ['a login without a key', lent('AssumeRole', ''), ['manager_bad_response', 'login', 'end']],
  ])('%s', async (_what, answer, expected) => {
    await expectFailure(ASSUMED_ROLE, 'AssumeRole', answer, expected)
  })
})

describe('at the metadata service', () => {
  const TOKEN = 'PUT /latest/api/token'
  const LIST = `GET ${ROLES}`
  const CREDENTIALS = `GET ${ROLES}role-of-the-instance`
  test.each<[what: string, at: string, answer: CannedAnswer, expected: Expected]>([
    ['it is turned off', TOKEN, { status: 403 }, ['manager_auth_failed', 'login', 'aws_identity = "imds"']],
    [
      'it knows the first version only, which is not asked',
      TOKEN,
      { status: 404 },
      ['manager_auth_failed', 'login', 'none out'],
    ],
    [
      'a token that would end the header',
      TOKEN,
      { status: 200, body: 'a\r\nx: y' },
      ['manager_bad_response', 'login', 'as AWS does'],
    ],
    ['it takes no token', LIST, { status: 401 }, ['manager_auth_failed', 'login', 'none out']],
    ['no role', LIST, { status: 404 }, ['manager_auth_failed', 'login', 'no role is attached']],
    [
      'a role that leads elsewhere',
      LIST,
      { status: 200, body: '../../user-data' },
      ['manager_bad_response', 'login', 'as AWS does'],
    ],
    ['nothing for a role', LIST, { status: 200 }, ['manager_bad_response', 'login', 'as AWS does']],
    [
      'a role that is not lent',
      CREDENTIALS,
      { status: 200, body: { Code: 'AssumeRoleUnauthorizedAccess' } },
      ['manager_auth_failed', 'login', 'trust policy'],
    ],
    ['too many requests', CREDENTIALS, { status: 429 }, ['manager_throttled', 'login', 'too many']],
    ['it is out of order', CREDENTIALS, { status: 500 }, ['manager_unreachable', 'login', 'out of order']],
    ['a redirect', CREDENTIALS, { status: 302 }, ['manager_bad_response', 'login', 'as AWS does']],
    ['a page', CREDENTIALS, HTML, ['manager_bad_response', 'login', 'as AWS does']],
    [
      'an answer that is cut off',
      CREDENTIALS,
      { status: 200, body: '{"AccessKeyId":"A' },
      ['manager_bad_response', 'login', 'end'],
    ],
    ['null', CREDENTIALS, { status: 200, body: 'null' }, ['manager_bad_response', 'login', 'as AWS does']],
    ['no key', CREDENTIALS, hosted(''), ['manager_bad_response', 'login', 'as AWS does']],
    [
      'no end',
      CREDENTIALS,
      { status: 200, body: { AccessKeyId: 'A', SecretAccessKey: 'B', Token: 'C' } },
      ['manager_bad_response', 'login', 'as AWS does'],
    ],
  ])('%s', async (_what, at, answer, expected) => {
    await expectFailure(SERVICE_ROLE, at, answer, expected)
  })
})

describe('no whole answer', () => {
  const kinds: [OutboundStep, OutboundFailure, ManagerFailure][] = [
    ['address', 'address_refused', 'manager_address_refused'],
    ['connect', 'unreachable', 'manager_unreachable'],
    ['tls', 'tls', 'manager_tls'],
    ['connect', 'timeout', 'manager_timeout'],
  ]
  test.each(kinds)('%s: %s is told as it is, not as the SDK wraps it', async (step, outbound, failure) => {
    for (const authConfig of [ACCESS_KEY, ASSUMED_ROLE, SERVICE_ROLE]) {
      const send = () => Promise.reject(new OutboundError(step, outbound, 'host:443 in our words'))
      const error = await openAws(authConfig, { send, close() {} }, IMDS).failure()
      expect(error).toMatchObject({ step, failure, message: expect.stringContaining('host:443 in our words') })
    }
  })

  test('what ends while it is answered belongs to the step that was asked for', async () => {
    const send = (outbound: OutboundFailure) => () => Promise.reject(new OutboundError('read', outbound, 'too long'))
    const failureOf = (authConfig: AwsAuthConfig, outbound: OutboundFailure) =>
      openAws(authConfig, { send: send(outbound), close() {} }, IMDS).failure()
    expect(await failureOf(ACCESS_KEY, 'timeout')).toMatchObject({ step: 'read', failure: 'manager_timeout' })
    expect(await failureOf(ACCESS_KEY, 'bad_response')).toMatchObject({ step: 'read', failure: 'manager_bad_response' })
    const silent = await failureOf(SERVICE_ROLE, 'timeout')
    expect(silent).toMatchObject({ step: 'login', failure: 'manager_timeout' })
    expect(silent.message).toContain('hop limit')
  })
})

describe("the manager's own words", () => {
  const wordsOf = async (words: string) =>
    (await awsDouble(ACCESS_KEY, { GetSecretValue: refused('AccessDeniedException', words) }).failure()).managerMessage

  test('are handed on beside ours, in one line of at most 200 characters', async () => {
    expect(await wordsOf('User: u is not\nauthorized')).toBe('User: u is not authorized')
    expect((await wordsOf('a'.repeat(300)))?.length).toBe(200)
  })

  test('are dropped where they repeat what somebody brought', async () => {
    expect(await wordsOf('key AKIAOFTHECONFIG is not authorized')).toBeUndefined()
    expect(await wordsOf('secret-of-the-config')).toBeUndefined()
  })

  test('are dropped where they repeat a session', async () => {
    const answer = refused('InvalidSignatureException', 'canonical: x-amz-security-token:token-of-ASIAOFTHEROLE')
    expect((await awsDouble(ASSUMED_ROLE, { GetSecretValue: answer }).failure()).managerMessage).toBeUndefined()
  })

  test('are never those of the SDK', async () => {
    for (const GetSecretValue of [HTML, { status: 400, body: { __type: 'AccessDeniedException' } }]) {
      const error = await awsDouble(ACCESS_KEY, { GetSecretValue }).failure()
      expect(error.managerMessage).toBeUndefined()
    }
  })
})
