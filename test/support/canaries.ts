import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

// Secrets to be found again. Every one holds a mark of its kind, twice, among characters that JSON, URLs, HTML and
// base64 write in another way: whoever shows a piece of it shows a mark.

/** Lower-case letters and digits, so that a mark may stand in a host name. */
const newMark = (): string => [...randomBytes(14)].map((byte) => (byte % 36).toString(36)).join('')

export interface Canaries {
  marks: {
    /** what logs in: nobody but the system caller's clear read may show it */
    secret: string
    /** fields of an auth_config that are no secrets: for readers of the reference alone */
    plain: string
    /** where managers are, which our own messages name */
    host: string
    /** what managers keep: for resolve alone */
    value: string
  }
  /** a text of visible ASCII that holds the secret mark */
  secret(label: string): string
  /** create bodies of the nine shapes, by shape */
  shapes: Record<Shape, ShapeBody>
  /** JSON text of an object with the field `api_key` */
  value: string
  hosts: { vault: string; azure: string }
  /** tokens that this machine proves itself with, and logins that managers lend */
  lent: { imds: string; token: string; session: string }
}

export type Shape =
  | 'accessKey'
  | 'assumedRole'
  | 'serviceRole'
  | 'entra'
  | 'managed'
  | 'default'
  | 'token'
  | 'approle'
  | 'kubernetes'

export interface ShapeBody {
  manager_type: string
  secret_path: string
  auth_config: Record<string, string>
}

export function createCanaries(): Canaries {
  const marks = { secret: newMark(), plain: newMark(), host: newMark(), value: newMark() }
  const secret = (label: string) => `${label}."${marks.secret}\\+/%<&'${marks.secret}~=.xyz`
  const hosts = { vault: `vault-${marks.host}.example.com`, azure: `v${marks.host}.vault.azure.net` }
  const azure = (auth_config: Record<string, string>): ShapeBody => ({
    manager_type: 'azure_kv',
    secret_path: 'app',
    auth_config: { azure_vault_url: `https://${hosts.azure}`, ...auth_config },
  })
  const aws = (auth_config: Record<string, string>): ShapeBody => ({
    manager_type: 'aws_sm',
    secret_path: 'prod/app',
    auth_config: { aws_region: 'eu-west-1', ...auth_config },
  })
  const vault = (auth_config: Record<string, string>): ShapeBody => ({
    manager_type: 'hashicorp_vault',
    secret_path: 'secret/app',
    auth_config: {
      vault_addr: `https://${hosts.vault}:8200`,
      vault_namespace: `team-${marks.plain}`,
      ...auth_config,
    },
  })
  return {
    marks,
    secret,
    hosts,
    value: JSON.stringify({ api_key: `sk-"${marks.value}\\é/%<&${marks.value}` }),
    lent: { imds: secret('imds'), token: secret('lent'), session: secret('session') },
    shapes: {
      accessKey: aws({
        aws_auth_type: 'accessKey',
        aws_access_key_id: secret('AKIA'),
        aws_secret_access_key: secret('wJalr'),
      }),
      assumedRole: aws({
        aws_auth_type: 'assumedRole',
        aws_role_arn: `arn:aws:iam::123456789012:role/${marks.secret}/+=,.@-${marks.secret}/reader`,
        aws_external_id: `ext+=,.@:/-${marks.secret}+=${marks.secret}:xyz`,
      }),
      serviceRole: aws({ aws_auth_type: 'serviceRole' }),
      entra: azure({
        azure_auth_mode: 'entra',
        azure_entra_tenant_id: `contoso-${marks.plain}.example`,
        azure_entra_client_id: `application-${marks.plain}`,
        azure_entra_client_secret: `${secret('Q~8')} é 😀 xyz`,
      }),
      managed: azure({ azure_auth_mode: 'managed', azure_managed_client_id: `identity-${marks.plain}` }),
      default: azure({ azure_auth_mode: 'default' }),
      token: vault({ vault_auth_type: 'token', vault_token: secret('hvs') }),
      approle: vault({
        vault_auth_type: 'approle',
        vault_role_id: `role ${marks.plain}`,
        vault_secret_id: `${secret('id')} é 😀 xyz`,
        vault_auth_mount: `approle-${marks.plain}`,
      }),
      kubernetes: vault({ vault_auth_type: 'kubernetes', vault_role: `gatehouse-${marks.plain}` }),
    },
  }
}

/** Settings under which all nine shapes reach the managers at `connect`; the machine's tokens are written to `folder`. */
export function settingsFor(canaries: Canaries, folder: string, to: { connect: object; caFile: string }): string {
  const { shapes, secret } = canaries
  const fileWith = (name: string): string => {
    const path = join(folder, name)
    writeFileSync(path, secret(name))
    return JSON.stringify(path)
  }
  const caFile = JSON.stringify(to.caFile)
  const grant = (kind: string, more: object = {}) =>
    [
      '[[secret_managers.machine_identity]]',
      `kind = "${kind}"`,
      ...Object.entries({ workspaces: ['*'], paths: ['*'], ...more }).map(
        ([name, list]) => `${name} = ${JSON.stringify(list)}`,
      ),
    ].join('\n')
  const { azure_vault_url } = shapes.default.auth_config
  const { vault_addr, vault_role } = shapes.kubernetes.auth_config
  return [
    '[outbound]',
    `connect = { ${Object.entries(to.connect)
      .map(([from, target]) => `"${from}" = "${target}"`)
      .join(', ')} }`,
    '[secret_managers]',
    'timeout_seconds = 2',
    `aws_ca_file = ${caFile}\nazure_ca_file = ${caFile}\nvault_ca_file = ${caFile}`,
    'aws_identity = "imds"',
    'aws_web_identity_role_arn = "arn:aws:iam::123456789012:role/of-the-machine"',
    `aws_web_identity_token_file = ${fileWith('web-identity')}`,
    `aws_container_token_file = ${fileWith('container')}`,
    'azure_workload_tenant_id = "contoso.example"',
    'azure_workload_client_id = "workload"',
    `azure_workload_token_file = ${fileWith('workload')}`,
    `vault_jwt_file = ${fileWith('service-account')}`,
    grant('aws_service_role'),
    grant('aws_assumed_role', { role_arns: ['*'] }),
    grant('azure_managed', { vault_addr: [azure_vault_url], client_ids: ['*'] }),
    grant('azure_default', { vault_addr: [azure_vault_url] }),
    grant('vault_kubernetes', { vault_addr: [vault_addr], vault_roles: [vault_role] }),
  ].join('\n')
}
