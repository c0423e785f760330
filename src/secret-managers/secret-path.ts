import type { ManagerType } from '../../schema/api/secret-references.ts'
import { isAwsRegion } from './aws-region.ts'

/**
 * What is wrong with a path as a path of its manager, as far as the text alone tells; undefined for a good one. The SDKs
 * send most of what they are given: `kv/data/../../sys/seal-status` reached another API of Vault (SM-8 to SM-10).
 *
 * @param region of the reference, where it names one: that of an ARN must be the same
 * @returns      what to write after the field's name; holds nothing of the path
 */
export function secretPathComplaint(
  managerType: ManagerType,
  secretPath: string,
  region?: string | undefined,
): string | undefined {
  if (managerType === 'aws_sm') return awsComplaint(secretPath, region)
  return managerType === 'azure_kv' ? azureComplaint(secretPath) : vaultComplaint(secretPath)
}

/** The region in the ARN of a secret; undefined where the path is a plain name. */
export const regionOfArn = (secretPath: string): string | undefined => SECRET_ARN.exec(secretPath)?.[1]

/** The six characters that AWS puts behind a name may be left out. */
const SECRET_ARN = /^arn:aws(?:-[a-z]+)*:secretsmanager:([a-z0-9-]+):\d{12}:secret:[A-Za-z0-9/_+=.@-]{1,519}$/
const SECRET_NAME = /^[A-Za-z0-9/_+=.@-]{1,512}$/

function awsComplaint(secretPath: string, region: string | undefined): string | undefined {
  if (!secretPath.startsWith('arn:'))
    return SECRET_NAME.test(secretPath)
      ? undefined
      : 'must be the name of a secret (letters, digits and /_+=.@-, at most 512 characters) or its ARN'
  const named = regionOfArn(secretPath)
  if (named === undefined || !isAwsRegion(named))
    return 'must be an ARN such as arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/openai-AbCdEf'
  return region === undefined || region === named ? undefined : 'is an ARN of another region than aws_region'
}

function azureComplaint(secretPath: string): string | undefined {
  return /^[0-9A-Za-z-]{1,127}(?:\/[0-9A-Fa-f]{32})?$/.test(secretPath)
    ? undefined
    : 'must be the name of a secret (1 to 127 letters, digits and -), perhaps with /VERSION (32 hexadecimal digits)'
}

function vaultComplaint(secretPath: string): string | undefined {
  if (/[?#%\\\p{Cc}]/u.test(secretPath)) return 'must not contain ?, #, %, a backslash or a control character'
  const segments = secretPath.split('/')
  if (segments.length < 2 || segments.includes(''))
    return 'must be MOUNT/PATH, such as secret/openai, without / at either end or twice in a row'
  return segments.some((segment) => segment === '.' || segment === '..')
    ? 'must not contain the segments . and ..'
    : undefined
}
