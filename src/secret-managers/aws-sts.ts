import type { Transport } from '../outbound/transport.ts'
import { unexpected } from './aws-answer.ts'
import { type AwsCredentials, type AwsLogin, endingLogin } from './aws-logins.ts'
import { type AwsCall, askAws } from './aws-transport.ts'

/** The least that AWS lends. A role that is assumed from another one has an hour at most, whatever it says itself. */
const SESSION_SECONDS = 900

/**
 * Who calls: shown in the trail of the AWS account.
 *
 * @param referenceId at most 64 characters of `gatehouse-<id>` are used, those that AWS takes
 */
export const sessionNameOf = (referenceId: string): string =>
  `gatehouse-${referenceId.replace(/[^\w+=,.@-]/g, '-')}`.slice(0, 64)

interface Role {
  roleArn: string
  externalId?: string | null | undefined
  sessionName: string
}

/**
 * Lends the credentials of a role to whoever has these.
 *
 * @throws ManagerError at the step `login`
 */
export function assumeRole(
  transport: Transport,
  call: AwsCall,
  { roleArn, externalId, sessionName }: Role,
  credentials: AwsCredentials,
): Promise<AwsLogin> {
  const refused =
    'AWS does not let this machine assume the role: look at aws_role_arn, aws_external_id and its trust policy'
  const withheld = { roleArn, externalId, ...credentials }
  return askAws(transport, call, { step: 'login', refused, withheld }, async (settings) => {
    const { AssumeRoleCommand, STSClient } = await import('@aws-sdk/client-sts')
    const input = {
      RoleArn: roleArn,
      RoleSessionName: sessionName,
      DurationSeconds: SESSION_SECONDS,
      ...(typeof externalId === 'string' && { ExternalId: externalId }),
    }
    return new STSClient({ ...settings, ...STS, credentials }).send(new AssumeRoleCommand(input))
  }).then(loginOf)
}

/**
 * The same for whoever has a token that the role trusts. Nothing is signed.
 *
 * @throws ManagerError at the step `login`
 */
export function assumeRoleWithToken(
  transport: Transport,
  call: AwsCall,
  { roleArn, sessionName }: Role,
  token: string,
): Promise<AwsLogin> {
  const refused =
    'AWS does not accept the web identity of this machine: look at aws_web_identity_role_arn and its trust policy'
  return askAws(transport, call, { step: 'login', refused, withheld: { roleArn, token } }, async (settings) => {
    const { AssumeRoleWithWebIdentityCommand, STSClient } = await import('@aws-sdk/client-sts')
    const input = {
      RoleArn: roleArn,
      RoleSessionName: sessionName,
      WebIdentityToken: token,
      DurationSeconds: SESSION_SECONDS,
    }
    // never the SDK's own chain, were it to look for credentials after all
    const credentials = () => Promise.reject(new Error('there are none'))
    return new STSClient({ ...settings, ...STS, credentials }).send(new AssumeRoleWithWebIdentityCommand(input))
  }).then(loginOf)
}

/** The endpoint of the region, as for any other service. */
const STS = { useGlobalEndpoint: false, sigv4aSigningRegionSet: [] }

interface Lent {
  Credentials?:
    | {
        AccessKeyId: string | undefined
        SecretAccessKey: string | undefined
        SessionToken: string | undefined
        Expiration: Date | undefined
      }
    | undefined
}

function loginOf({ Credentials: lent }: Lent): AwsLogin {
  const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = lent ?? {}
  const endsAt = Expiration?.getTime() ?? Number.NaN
  if (!AccessKeyId || !SecretAccessKey || !SessionToken || Number.isNaN(endsAt)) throw unexpected('login')
  return endingLogin({ accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken }, endsAt)
}
