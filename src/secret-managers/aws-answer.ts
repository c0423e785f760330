import type { OutboundResponse } from '../outbound/transport.ts'
import type { AwsRequest } from './aws-transport.ts'
import { ManagerError, type ManagerFailure, type Step } from './manager.ts'
import { managerMessage } from './manager-message.ts'
import { retryAfterSeconds } from './retry-after.ts'

type Meaning = [failure: ManagerFailure, message: string, step?: Step]

/**
 * What an answer means that is no success, or that the SDK could not read (SM-5, decision 47).
 *
 * @param error what the SDK threw
 */
export function awsRefusal(error: unknown, answer: OutboundResponse, request: AwsRequest): ManagerError {
  const { code, words } = complaintIn(error, answer)
  const [failure, message, step = request.step] = meaningOf(code, answer.status, request)
  return new ManagerError(step, failure, message, {
    managerMessage: managerMessage(words, request.withheld),
    retryAfterSeconds: retryAfterSeconds(answer),
  })
}

/** A success that holds nothing of what was asked for. */
export const unexpected = (step: Step): ManagerError => new ManagerError(step, 'manager_bad_response', NOT_AWS)

const NOT_AWS =
  'what answers in place of AWS does not answer as AWS does, or not to the end: look at connect in [outbound]'

interface Complaint {
  /** `AccessDeniedException`; undefined where the answer is no error of AWS */
  code: string | undefined
  words: unknown
}

/** The SDK names its errors as AWS does; what it could not read is named for the parser that gave up. */
function complaintIn(error: unknown, { body }: OutboundResponse): Complaint {
  if (error instanceof Error && '$fault' in error && error.name !== 'Unknown')
    return { code: error.name, words: error.message === 'UnknownError' ? undefined : error.message }
  // Services that speak JSON are refused in XML by what checks signatures before them (moto).
  return { code: /<Code>([A-Za-z.]{1,100})<\/Code>/.exec(body.toString('utf8'))?.[1], words: undefined }
}

function meaningOf(code: string | undefined, status: number, { step, refused }: AwsRequest): Meaning {
  if (status < 300) return ['manager_bad_response', NOT_AWS, step === 'read' ? 'parse' : 'login']
  if (status < 400) return ['manager_bad_response', 'AWS, or what answers for it, redirects elsewhere: not followed']
  if (status === 429 || THROTTLED.test(code ?? '')) return ['manager_throttled', 'AWS limits the rate of calls']
  if (status >= 500) return ['manager_unreachable', 'AWS, or a proxy before it, is out of order at the moment']
  if (code === undefined) return ['manager_bad_response', NOT_AWS]
  const name = code.replace(/Exception$/, '')
  const credentials = CREDENTIALS.get(name)
  if (credentials !== undefined) return credentials
  return step === 'login' ? ['manager_auth_failed', refused] : (READ.get(name) ?? UNKNOWN)
}

const THROTTLED = /Throttl|TooManyRequests|RequestLimitExceeded|SlowDown|BandwidthLimit/

const UNKNOWN_KEY: Meaning = [
  'manager_auth_failed',
  'AWS does not know the access key: it was deleted, belongs to another partition, or the account has not enabled this region',
  'login',
]
const WRONG_SIGNATURE: Meaning = [
  'manager_auth_failed',
  'AWS does not accept the signature: the secret access key is wrong, or the clock of this machine is',
  'login',
]
const EXPIRED: Meaning = ['manager_auth_expired', 'the credentials of this login have expired at AWS', 'login']

/** Whatever is asked, its credentials are looked at first: AWS has no login of its own for keys. */
const CREDENTIALS = new Map<string, Meaning>(
  Object.entries({
    UnrecognizedClient: UNKNOWN_KEY,
    InvalidClientTokenId: UNKNOWN_KEY,
    InvalidAccessKeyId: UNKNOWN_KEY,
    MissingAuthenticationToken: UNKNOWN_KEY,
    OptInRequired: UNKNOWN_KEY,
    InvalidSignature: WRONG_SIGNATURE,
    SignatureDoesNotMatch: WRONG_SIGNATURE,
    IncompleteSignature: WRONG_SIGNATURE,
    RequestExpired: WRONG_SIGNATURE,
    RequestTimeTooSkewed: WRONG_SIGNATURE,
    ExpiredToken: EXPIRED,
  }),
)

const DENIED: Meaning = [
  'manager_denied',
  'no permission to read this secret (secretsmanager:GetSecretValue), or to use its KMS key (kms:Decrypt)',
]
const UNREADABLE: Meaning = ['manager_config', 'AWS cannot read this secret_path: look at it, and at aws_region']

const READ = new Map<string, Meaning>(
  Object.entries({
    AccessDenied: DENIED,
    NotAuthorized: DENIED,
    ResourceNotFound: [
      'manager_secret_missing',
      'there is no such secret in this account and region: look at secret_path',
    ],
    InvalidRequest: ['manager_secret_disabled', 'AWS does not give this secret out: it is marked for deletion'],
    DecryptionFailure: [
      'manager_secret_disabled',
      'AWS cannot decrypt this secret: its KMS key is disabled, is to be deleted, or may not be used',
    ],
    InvalidParameter: UNREADABLE,
    Validation: UNREADABLE,
  }),
)

const UNKNOWN: Meaning = ['manager_bad_response', 'AWS refuses this in a way that has no name here: see a test of it']
