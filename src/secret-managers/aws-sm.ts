import type { GetSecretValueCommandOutput } from '@aws-sdk/client-secrets-manager'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { unexpected } from './aws-answer.ts'
import { type AwsMachine, machineLogin } from './aws-credentials.ts'
import { type AwsCredentials, type AwsLogins, keepAwsLogin, withLogin } from './aws-logins.ts'
import { isAwsRegion } from './aws-region.ts'
import { assumeRole, sessionNameOf } from './aws-sts.ts'
import { type AwsCall, askAws } from './aws-transport.ts'
import {
  type FetchedSecret,
  type ManagerClient,
  ManagerError,
  type ManagerSurroundings,
  type SecretManager,
  type Step,
} from './manager.ts'
import { regionOfArn, secretPathComplaint } from './secret-path.ts'
import { timed } from './timed.ts'

/** AWS Secrets Manager: the current version of a secret, text or binary (decision 49). */
export const awsSm: SecretManager<AwsAuthConfig> = { open: openAws }

function openAws(authConfig: AwsAuthConfig, { transport, settings, referenceId }: ManagerSurroundings): ManagerClient {
  const identity = identityOf(authConfig, { transport, settings, sessionName: sessionNameOf(referenceId) })

  async function read(secretPath: string, credentials: AwsCredentials, call: AwsCall): Promise<FetchedSecret> {
    const request = { step: 'read', refused: '', withheld: { ...authConfig, ...credentials } } as const
    const output = await timed(call, 'read', () =>
      askAws(transport, call, request, async (client) => {
        const { GetSecretValueCommand, SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager')
        return new SecretsManagerClient({ ...client, credentials }).send(
          new GetSecretValueCommand({ SecretId: secretPath }),
        )
      }),
    )
    return timed(call, 'parse', () => secretIn(output))
  }

  return {
    async fetchSecret(secretPath, call) {
      const complaint = secretPathComplaint('aws_sm', secretPath, authConfig.aws_region)
      if (complaint !== undefined) throw unfit('read', `secret_path: ${complaint}`)
      const inRegion = { ...call, region: regionFor(authConfig, secretPath) }
      return identity.use(inRegion, (credentials) => read(secretPath, credentials, inRegion))
    },
    loginExpiresAt: () => identity.endsAt(),
    close() {
      identity.close()
      transport.close()
    },
  }
}

/** Hosts are made of it, so nothing else may stand there. */
function regionFor({ aws_region }: AwsAuthConfig, secretPath: string): string {
  const region = aws_region ?? regionOfArn(secretPath)
  if (region === undefined) throw unfit('address', 'auth_config.aws_region: is missing, and secret_path is no ARN')
  if (isAwsRegion(region)) return region
  throw unfit('address', 'auth_config.aws_region: must be the name of a region, such as eu-west-1')
}

/** Whose credentials sign the reads. */
interface Identity {
  /** @throws ManagerError at the step `login`, or what the work throws */
  use<T>(call: AwsCall, work: (credentials: AwsCredentials) => Promise<T>): Promise<T>
  endsAt(): number | null
  close(): void
}

function identityOf(authConfig: AwsAuthConfig, machine: AwsMachine): Identity {
  if (authConfig.aws_auth_type === 'accessKey')
    return { use: async (_call, work) => work(keyIn(authConfig)), endsAt: () => null, close() {} }
  const own = keepAwsLogin((call) => machineLogin(machine, call))
  if (authConfig.aws_auth_type === 'serviceRole') return lentIdentity(own)
  return lentIdentity(roleLogins(authConfig, machine, own), own)
}

/** @param last the login whose credentials are used; what it stands on ends with it */
function lentIdentity(last: AwsLogins, ...below: AwsLogins[]): Identity {
  // AWS looks at access keys when a secret is read; with these, there is a step before it.
  const told: AwsLogins = { ...last, current: (call) => timed(call, 'login', () => last.current(call)) }
  return {
    use: (call, work) => withLogin(told, call, work),
    endsAt: () => last.endsAt(),
    close() {
      for (const logins of [last, ...below]) logins.close()
    },
  }
}

type AssumedRole = Extract<AwsAuthConfig, { aws_auth_type: 'assumedRole' }>

function roleLogins(authConfig: AssumedRole, { transport, sessionName }: AwsMachine, own: AwsLogins): AwsLogins {
  const { aws_role_arn: roleArn, aws_external_id: externalId } = authConfig
  const role = { roleArn, externalId, sessionName }
  return keepAwsLogin((call) => withLogin(own, call, (credentials) => assumeRole(transport, call, role, credentials)))
}

type AccessKey = Extract<AwsAuthConfig, { aws_auth_type: 'accessKey' }>

/** A line break at the end of a copied key is no part of it, and AWS would only speak of signatures. */
function keyIn(authConfig: AccessKey): AwsCredentials {
  for (const field of ['aws_access_key_id', 'aws_secret_access_key'] as const) {
    if (!/^[\x21-\x7e]+$/.test(authConfig[field]))
      throw unfit('login', `auth_config.${field}: must not contain spaces, line breaks or the like`)
  }
  return { accessKeyId: authConfig.aws_access_key_id, secretAccessKey: authConfig.aws_secret_access_key }
}

/** AWSCURRENT, since nothing else was asked for. */
function secretIn({ SecretString, SecretBinary, VersionId }: GetSecretValueCommandOutput): FetchedSecret {
  const content = SecretString ?? SecretBinary
  if (content === undefined) throw unexpected('parse')
  return { content, version: VersionId ?? null }
}

const unfit = (step: Step, message: string): ManagerError => new ManagerError(step, 'manager_config', message)
