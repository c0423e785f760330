import { type Static, Type } from '@sinclair/typebox'
import { Strict } from './common.ts'

const Text = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description })

/** Where and how to log in: nine shapes, told apart by the discriminator of their family (file 04). */
export const AwsAccessKey = Strict({
  aws_auth_type: Type.Literal('accessKey'),
  aws_access_key_id: Text('access key id'),
  aws_secret_access_key: Text('secret access key'),
  aws_region: Text('region of the secret'),
})
export const AwsAssumedRole = Strict({
  aws_auth_type: Type.Literal('assumedRole'),
  aws_role_arn: Text('role that this machine assumes'),
  aws_external_id: Type.Optional(Type.Union([Text('external id of the trust policy'), Type.Null()])),
  aws_region: Text('region of the secret'),
})
export const AwsServiceRole = Strict({
  aws_auth_type: Type.Literal('serviceRole'),
  aws_region: Type.Optional(Text('region of the secret; without it, from an ARN in secret_path')),
})
export const AzureEntra = Strict({
  azure_auth_mode: Type.Literal('entra'),
  azure_entra_tenant_id: Text('directory (tenant) id'),
  azure_entra_client_id: Text('application (client) id'),
  azure_entra_client_secret: Text('client secret'),
  azure_vault_url: Text('https://NAME.vault.azure.net'),
})
export const AzureManaged = Strict({
  azure_auth_mode: Type.Literal('managed'),
  azure_vault_url: Text('https://NAME.vault.azure.net'),
  azure_managed_client_id: Type.Optional(Text('client id of a user-assigned identity')),
})
export const AzureDefault = Strict({
  azure_auth_mode: Type.Literal('default'),
  azure_vault_url: Text('https://NAME.vault.azure.net'),
})
const vault = { vault_addr: Text('https://vault.example.com:8200'), vault_namespace: Type.Optional(Text('namespace')) }
const VaultAuthMount = Type.Optional(Text('path that the auth method is mounted at'))
export const VaultToken = Strict({ vault_auth_type: Type.Literal('token'), ...vault, vault_token: Text('token') })
export const VaultAppRole = Strict({
  vault_auth_type: Type.Literal('approle'),
  ...vault,
  vault_role_id: Text('role id'),
  vault_secret_id: Text('secret id'),
  vault_auth_mount: VaultAuthMount,
})
export const VaultKubernetes = Strict({
  vault_auth_type: Type.Literal('kubernetes'),
  ...vault,
  vault_role: Text('role'),
  vault_auth_mount: VaultAuthMount,
})

export type AwsAuthConfig = Static<typeof AwsAccessKey> | Static<typeof AwsAssumedRole> | Static<typeof AwsServiceRole>
export type AzureAuthConfig = Static<typeof AzureEntra> | Static<typeof AzureManaged> | Static<typeof AzureDefault>
export type VaultAuthConfig = Static<typeof VaultToken> | Static<typeof VaultAppRole> | Static<typeof VaultKubernetes>
export type AuthConfig = AwsAuthConfig | AzureAuthConfig | VaultAuthConfig

export const ManagerType = Type.Union([
  Type.Literal('aws_sm'),
  Type.Literal('azure_kv'),
  Type.Literal('hashicorp_vault'),
])
export type ManagerType = Static<typeof ManagerType>
