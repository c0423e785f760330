import type { AuthConfig } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import type { Reference } from './values.ts'

type Grant = Config['secret_managers']['machine_identity'][number]
/** What a grant has to name, by the list that names it. */
type Needs = Partial<Record<'role_arns' | 'client_ids' | 'vault_addr' | 'vault_roles', string | undefined>>

/**
 * Whether the operator lets a reference use this machine's own identity (decision 45). One table has to cover all of
 * it: every workspace that may use the reference, its path, and what its shape names. An absent or empty list covers
 * nothing. A name in `paths` counts in every region of AWS; an ARN names one account and region. It depends on the
 * reference alone, so resolve, test, health and `secret-references check` agree.
 *
 * @param grants `secret_managers.machine_identity`
 * @returns      undefined where nothing is missing (shapes with credentials of their own need no grant), else the
 *               lines of TOML that would grant it
 */
export function missingGrant(
  authConfig: AuthConfig,
  reference: Pick<Reference, 'secretPath' | 'workspaces'>,
  grants: readonly Grant[],
): string | undefined {
  const wanted = identityOf(authConfig)
  if (wanted === undefined) return undefined
  const granted = grants.some(
    (grant) =>
      grant.kind === wanted.kind &&
      coversWorkspaces(grant.workspaces ?? [], reference.workspaces) &&
      covers(grant.paths, reference.secretPath) &&
      coversNeeds(grant, wanted.needs),
  )
  return granted ? undefined : lines(wanted, reference)
}

interface Identity {
  kind: Grant['kind']
  needs: Needs
}

/** The machine's identity that a shape uses; undefined: none. */
function identityOf(authConfig: AuthConfig): Identity | undefined {
  if ('aws_auth_type' in authConfig) {
    if (authConfig.aws_auth_type === 'serviceRole') return { kind: 'aws_service_role', needs: {} }
    if (authConfig.aws_auth_type === 'assumedRole')
      return { kind: 'aws_assumed_role', needs: { role_arns: authConfig.aws_role_arn } }
    return undefined
  }
  if ('azure_auth_mode' in authConfig) {
    const vault_addr = authConfig.azure_vault_url
    if (authConfig.azure_auth_mode === 'default') return { kind: 'azure_default', needs: { vault_addr } }
    if (authConfig.azure_auth_mode === 'managed')
      return { kind: 'azure_managed', needs: { vault_addr, client_ids: authConfig.azure_managed_client_id } }
    return undefined
  }
  if (authConfig.vault_auth_type !== 'kubernetes') return undefined
  // the service account's token is sent to this address, so the path alone says too little
  return { kind: 'vault_kubernetes', needs: { vault_addr: authConfig.vault_addr, vault_roles: authConfig.vault_role } }
}

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Open references, and those that only the organisation itself may use, need `*`. */
function coversWorkspaces(named: readonly string[], workspaces: Reference['workspaces']): boolean {
  if (named.includes('*')) return true
  if (workspaces === 'all' || workspaces.length === 0) return false
  // a workspace whose slug is another one's id does not pass for it
  return workspaces.every(({ id, slug }) => named.includes(id) || (!UUID.test(slug) && named.includes(slug)))
}

function coversNeeds(grant: Grant, needs: Needs): boolean {
  return Object.entries(needs).every(([list, value]) =>
    list === 'vault_addr'
      ? coversAddress(grant.vault_addr, value)
      : covers(grant[list as Exclude<keyof Needs, 'vault_addr'>], value),
  )
}

/** @param value undefined: the reference names none, which `*` alone covers */
function covers(patterns: readonly string[] = [], value: string | undefined): boolean {
  return patterns.some((pattern) => {
    if (pattern === '*') return true
    if (value === undefined) return false
    return pattern.endsWith('*') ? beginsWith(pattern.slice(0, -1), value) : pattern === value
  })
}

/**
 * A `*` stands for the end of a name, never for an account or a region: before it, an ARN has to be written up to its
 * resource (`arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/*`).
 */
function beginsWith(prefix: string, value: string): boolean {
  if (!value.startsWith(prefix)) return false
  return !value.startsWith('arn:') || prefix.split(':').length > 5
}

/** No prefixes: `https://vault.int*` would cover `https://vault.int.example.com`. */
function coversAddress(addresses: readonly string[] = [], value: string | undefined): boolean {
  return value !== undefined && addresses.some((address) => address === '*' || bare(address) === bare(value))
}

const bare = (address: string): string => address.replace(/\/$/, '')

/** A role ARN is masked wherever a reference is shown, so it is not written here either (file 04). */
const UNWRITTEN = 'the aws_role_arn of the reference'

function lines({ kind, needs }: Identity, { secretPath, workspaces }: Pick<Reference, 'secretPath' | 'workspaces'>) {
  const named = workspaces === 'all' || workspaces.length === 0 ? ['*'] : workspaces.map(nameOf)
  const lists: [list: string, values: string[]][] = [
    ['workspaces', named],
    ['paths', [secretPath]],
    ...Object.entries(needs).map(([list, value]): [string, string[]] => [
      list,
      [list === 'role_arns' ? UNWRITTEN : (value ?? '*')],
    ]),
  ]
  return [
    '[[secret_managers.machine_identity]]',
    `kind = "${kind}"`,
    ...lists.map(([list, values]) => `${list} = [${values.map((value) => JSON.stringify(value)).join(', ')}]`),
  ].join('\n')
}

const nameOf = ({ id, slug }: { id: string; slug: string }): string => (UUID.test(slug) ? id : slug)
