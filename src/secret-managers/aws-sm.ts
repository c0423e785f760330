import type { GetSecretValueCommandOutput } from '@aws-sdk/client-secrets-manager'
import type { AwsAuthConfig } from '../../schema/api/secret-references.ts'
import { unexpected } from './aws-answer.ts'
import { type AwsMachine, machineLogin } from './aws-credentials.ts'
import { type AwsCredentials, type AwsLogins, keptLogins, staticLogins, withLogin } from './aws-logins.ts'
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
  const machine: AwsMachine = { transport, settings, sessionName: sessionNameOf(referenceId) }
  const logins = loginsOf(authConfig, machine)

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
      return withLogin(logins, inRegion, (credentials) => read(secretPath, credentials, inRegion))
    },
    loginExpiresAt: () => logins.endsAt(),
    close() {
      logins.close()
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

function loginsOf(authConfig: AwsAuthConfig, machine: AwsMachine): AwsLogins {
  if (authConfig.aws_auth_type === 'accessKey') return keyLogins(authConfig)
  const own = keptLogins((call) => machineLogin(machine, call))
  return told(authConfig.aws_auth_type === 'serviceRole' ? own : roleLogins(authConfig, machine, own))
}

type AccessKey = Extract<AwsAuthConfig, { aws_auth_type: 'accessKey' }>
type AssumedRole = Extract<AwsAuthConfig, { aws_auth_type: 'assumedRole' }>

/** A line break at the end of a copied key is no part of it, and AWS would only speak of signatures. */
function keyLogins(authConfig: AccessKey): AwsLogins {
  const { aws_access_key_id: accessKeyId, aws_secret_access_key: secretAccessKey } = authConfig
  const logins = staticLogins({ accessKeyId, secretAccessKey })
  const unclean = (['aws_access_key_id', 'aws_secret_access_key'] as const).find(
    (field) => !/^[\x21-\x7e]+$/.test(authConfig[field]),
  )
  if (unclean === undefined) return logins
  const complaint = unfit('login', `auth_config.${unclean}: must not contain spaces, line breaks or the like`)
  return { ...logins, current: () => Promise.reject(complaint) }
}

function roleLogins(authConfig: AssumedRole, { transport, sessionName }: AwsMachine, own: AwsLogins): AwsLogins {
  const { aws_role_arn: roleArn, aws_external_id: externalId } = authConfig
  const role = { roleArn, externalId, sessionName }
  const kept = keptLogins((call) =>
    withLogin(own, call, (credentials) => assumeRole(transport, call, role, credentials)),
  )
  return {
    ...kept,
    close() {
      kept.close()
      own.close()
    },
  }
}

/** With the step `login`, which access keys do not have: AWS looks at them when the secret is read. */
const told = (logins: AwsLogins): AwsLogins => ({
  ...logins,
  current: (call) => timed(call, 'login', () => logins.current(call)),
})

/** AWSCURRENT, since nothing else was asked for. */
function secretIn({ SecretString, SecretBinary, VersionId }: GetSecretValueCommandOutput): FetchedSecret {
  const content = SecretString ?? SecretBinary
  if (content === undefined) throw unexpected('parse')
  return { content, version: VersionId ?? null }
}

const unfit = (step: Step, message: string): ManagerError => new ManagerError(step, 'manager_config', message)
