import { OptionalKind, type TObject } from '@sinclair/typebox'
import { AUTH_SHAPES, type AuthConfig, type ManagerType } from '../../schema/api/secret-references.ts'
import { type Complaint, shown } from '../errors.ts'
import { nearest } from '../http/complaints.ts'
import { isAwsRegion } from '../secret-managers/aws-region.ts'
import { isMask, isSecretField } from './mask.ts'

/** An auth_config that nobody has looked at yet. */
export type AuthFields = Readonly<Record<string, unknown>>

/** The field that tells the shapes of a family apart. */
export const DISCRIMINATORS = {
  aws_sm: 'aws_auth_type',
  azure_kv: 'azure_auth_mode',
  hashicorp_vault: 'vault_auth_type',
} as const satisfies Record<ManagerType, string>

const MANAGER_TYPES = Object.keys(DISCRIMINATORS) as ManagerType[]

/** The shape that the discriminator names; undefined where it names none of the family. */
export const shapeOf = (managerType: ManagerType, fields: AuthFields): TObject | undefined =>
  AUTH_SHAPES[managerType].find((shape) => choiceOf(managerType, shape) === fields[DISCRIMINATORS[managerType]])

/**
 * Everything that keeps fields from being one of the nine shapes (file 04), in the order of the shape; values are never
 * repeated. Null counts as absent.
 *
 * @param allow `outbound.allow`: vaults on hosts of the operator's own
 */
export function authConfigComplaints(
  managerType: ManagerType,
  fields: AuthFields,
  allow: readonly string[],
): Complaint[] {
  const discriminator = DISCRIMINATORS[managerType]
  const shape = shapeOf(managerType, fields)
  if (shape === undefined && isAbsent(fields[discriminator])) {
    const foreign = Object.values(DISCRIMINATORS).find((name) => !isAbsent(fields[name]))
    // What else is there belongs to another manager as well.
    if (foreign !== undefined) return [complaint(foreign, familyWords(managerType))]
  }
  const known = shape === undefined ? fieldsOfFamily(managerType) : Object.keys(shape.properties)
  return [
    ...(shape === undefined ? [discriminatorComplaint(managerType, fields)] : []),
    ...known
      .filter((name) => name !== discriminator)
      .flatMap((name) => {
        const isRequired = shape !== undefined && !(OptionalKind in (shape.properties[name] ?? {}))
        if (isAbsent(fields[name]))
          return isRequired ? [complaint(name, `is required with ${choiceWords(managerType, fields)}`)] : []
        const message = valueComplaint(name, fields[name], allow)
        return message === undefined ? [] : [complaint(name, message)]
      }),
    ...Object.keys(fields)
      .filter((name) => !known.includes(name) && name !== discriminator)
      .flatMap((name) => unknownComplaint(managerType, fields, known, name)),
  ]
}

/** The fields of the shape that was meant, in its order; only of fields without complaints. */
export function pickAuthConfig(managerType: ManagerType, fields: AuthFields): AuthConfig {
  const names = Object.keys(shapeOf(managerType, fields)?.properties ?? {})
  const given = names.filter((name) => !isAbsent(fields[name]))
  return Object.fromEntries(given.map((name) => [name, fields[name]])) as unknown as AuthConfig
}

const isAbsent = (value: unknown): boolean => value === undefined || value === null
const complaint = (name: string, message: string): Complaint => ({ path: `auth_config.${shown(name)}`, message })

const choiceOf = (managerType: ManagerType, shape: TObject): string =>
  shape.properties[DISCRIMINATORS[managerType]]?.['const'] as string

const choicesOf = (managerType: ManagerType): string[] =>
  AUTH_SHAPES[managerType].map((shape) => choiceOf(managerType, shape))

const fieldsOfFamily = (managerType: ManagerType): string[] => [
  ...new Set(AUTH_SHAPES[managerType].flatMap((shape) => Object.keys(shape.properties))),
]

/** `vault_auth_type = "token"` */
const choiceWords = (managerType: ManagerType, fields: AuthFields): string =>
  `${DISCRIMINATORS[managerType]} = "${fields[DISCRIMINATORS[managerType]]}"`

const familyWords = (managerType: ManagerType): string =>
  `manager_type "${managerType}" takes ${DISCRIMINATORS[managerType]} = ${orWords(choicesOf(managerType))}`

const orWords = (words: string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

function discriminatorComplaint(managerType: ManagerType, fields: AuthFields): Complaint {
  const name = DISCRIMINATORS[managerType]
  const choices = orWords(choicesOf(managerType))
  return complaint(name, isAbsent(fields[name]) ? `is required: ${choices}` : `must be ${choices}`)
}

function unknownComplaint(
  managerType: ManagerType,
  fields: AuthFields,
  known: readonly string[],
  name: string,
): Complaint[] {
  if (Object.values<string>(DISCRIMINATORS).includes(name)) return [complaint(name, familyWords(managerType))]
  if (fieldsOfFamily(managerType).includes(name)) {
    // Of another shape of the family: null takes away what is not there.
    if (isAbsent(fields[name])) return []
    return [complaint(name, `is not for ${choiceWords(managerType, fields)}; leave it out`)]
  }
  const home = MANAGER_TYPES.find((each) => fieldsOfFamily(each).includes(name))
  if (home !== undefined) return [complaint(name, `is for manager_type "${home}"; leave it out`)]
  if (name.startsWith('masked_')) return [complaint(name, 'is a masked value; send the secret itself, without masked_')]
  const meant = nearest(name, known)
  return [
    complaint(
      name,
      meant === undefined ? `unknown field; known are ${known.join(', ')}` : `unknown field; did you mean "${meant}"?`,
    ),
  ]
}

const LONGEST = 4096

function valueComplaint(name: string, value: unknown, allow: readonly string[]): string | undefined {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST)
    return `must be a string of 1 to ${LONGEST} characters`
  if (/\p{Cc}/u.test(value) || value.trim() !== value)
    return 'must hold no line break or other control character, and no blank at either end'
  if (isSecretField(name) && isMask(value)) return 'is a masked value; send the secret itself'
  return RULES[name]?.(value, allow)
}

type Rule = (value: string, allow: readonly string[]) => string | undefined

const must =
  (pattern: RegExp, message: string): Rule =>
  (value) =>
    pattern.test(value) ? undefined : `must be ${message}`

/** What goes into a header. */
const visible = must(/^[\x21-\x7e]+$/, 'visible ASCII characters without blanks')

const RULES: Readonly<Record<string, Rule>> = {
  aws_access_key_id: visible,
  aws_region: (value) => (isAwsRegion(value) ? undefined : 'must be an AWS region, such as eu-west-1'),
  aws_role_arn: must(
    /^arn:aws(?:-[a-z]+)*:iam::\d{12}:role\/[\w+=,.@/-]{1,576}$/,
    'the ARN of a role, such as arn:aws:iam::123456789012:role/secrets-reader',
  ),
  aws_external_id: must(/^[\w+=,.@:/-]{2,1224}$/, '2 to 1224 letters, digits and _+=,.@:/-'),
  azure_entra_tenant_id: must(/^[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*$/, 'a directory id, or a domain of the directory'),
  azure_vault_url: azureVaultUrl,
  vault_addr: (value) =>
    originOf(value) === undefined
      ? 'must be a URL such as https://vault.example.com:8200, without user, path, query, fragment or a dot at the end of the host'
      : undefined,
  vault_namespace: visible,
  vault_token: visible,
  vault_auth_mount: must(
    /^(?!\.{1,2}(?:\/|$))[A-Za-z0-9_.-]+(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9_.-]+)*$/,
    'a path such as kubernetes-eu, or team/approle, of letters, digits and _.-',
  ),
}

/** Nothing but scheme, host and port: where a request goes must be plain to see (SM-12). */
function originOf(text: string): URL | undefined {
  const url = /^https?:\/\/[^\s/?#@\\]+\/?$/i.test(text) ? URL.parse(text) : null
  return url === null || url.hostname.split('.').includes('') ? undefined : url
}

const VAULT_SUFFIXES = ['.vault.azure.net', '.vault.azure.cn', '.vault.usgovcloudapi.net']

/** The login of a reference is good for every vault of its directory, so it goes to vaults alone (SM-9). */
function azureVaultUrl(text: string, allow: readonly string[]): string | undefined {
  const url = originOf(text)
  if (url === undefined || url.protocol !== 'https:')
    return 'must be a URL such as https://NAME.vault.azure.net, without user, path, query, fragment or a dot at the end of the host'
  if (VAULT_SUFFIXES.some((suffix) => url.hostname.endsWith(suffix))) return undefined
  return allow.some((entry) => entry.toLowerCase() === `${url.hostname}:${url.port || 443}`)
    ? undefined
    : 'must be a host below vault.azure.net, vault.azure.cn or vault.usgovcloudapi.net, or one of [outbound] allow'
}
