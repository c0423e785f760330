import { type Static, type TObject, Type } from '@sinclair/typebox'
import { FreeObject, IdOrSlug, ListOf, Name, Nullable, Paging, Strict, Timestamp, Uuid } from './common.ts'

const Text = (description: string) => Type.String({ minLength: 1, maxLength: 4096, description })

/** Where and how to log in: nine shapes, told apart by the discriminator of their family (file 04). */
export const AwsAccessKey = Strict(
  {
    aws_auth_type: Type.Literal('accessKey'),
    aws_access_key_id: Text('access key id'),
    aws_secret_access_key: Text('secret access key'),
    aws_region: Text('region of the secret'),
  },
  { title: 'AwsAccessKey' },
)
export const AwsAssumedRole = Strict(
  {
    aws_auth_type: Type.Literal('assumedRole'),
    aws_role_arn: Text('role that this machine assumes'),
    aws_external_id: Type.Optional(Type.Union([Text('external id of the trust policy'), Type.Null()])),
    aws_region: Text('region of the secret'),
  },
  { title: 'AwsAssumedRole' },
)
export const AwsServiceRole = Strict(
  {
    aws_auth_type: Type.Literal('serviceRole'),
    aws_region: Type.Optional(Text('region of the secret; without it, from an ARN in secret_path')),
  },
  { title: 'AwsServiceRole' },
)
export const AzureEntra = Strict(
  {
    azure_auth_mode: Type.Literal('entra'),
    azure_entra_tenant_id: Text('directory (tenant) id'),
    azure_entra_client_id: Text('application (client) id'),
    azure_entra_client_secret: Text('client secret'),
    azure_vault_url: Text('https://NAME.vault.azure.net'),
  },
  { title: 'AzureEntra' },
)
export const AzureManaged = Strict(
  {
    azure_auth_mode: Type.Literal('managed'),
    azure_vault_url: Text('https://NAME.vault.azure.net'),
    azure_managed_client_id: Type.Optional(Text('client id of a user-assigned identity')),
  },
  { title: 'AzureManaged' },
)
export const AzureDefault = Strict(
  {
    azure_auth_mode: Type.Literal('default'),
    azure_vault_url: Text('https://NAME.vault.azure.net'),
  },
  { title: 'AzureDefault' },
)
const vault = { vault_addr: Text('https://vault.example.com:8200'), vault_namespace: Type.Optional(Text('namespace')) }
const VaultAuthMount = Type.Optional(Text('path that the auth method is mounted at'))
export const VaultToken = Strict(
  { vault_auth_type: Type.Literal('token'), ...vault, vault_token: Text('token') },
  { title: 'VaultToken' },
)
export const VaultAppRole = Strict(
  {
    vault_auth_type: Type.Literal('approle'),
    ...vault,
    vault_role_id: Text('role id'),
    vault_secret_id: Text('secret id'),
    vault_auth_mount: VaultAuthMount,
  },
  { title: 'VaultAppRole' },
)
export const VaultKubernetes = Strict(
  {
    vault_auth_type: Type.Literal('kubernetes'),
    ...vault,
    vault_role: Text('role'),
    vault_auth_mount: VaultAuthMount,
  },
  { title: 'VaultKubernetes' },
)

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

/** `manager_type` decides the family of shapes, and one field of each which of them it is. */
export const AUTH_SHAPES = {
  aws_sm: [AwsAccessKey, AwsAssumedRole, AwsServiceRole],
  azure_kv: [AzureEntra, AzureManaged, AzureDefault],
  hashicorp_vault: [VaultToken, VaultAppRole, VaultKubernetes],
} as const satisfies Record<ManagerType, readonly TObject[]>

/** Shown masked, under `masked_<field>` (file 04); the system caller alone sees them as they are. */
export const SECRET_FIELDS = [
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_role_arn',
  'aws_external_id',
  'azure_entra_client_secret',
  'vault_token',
  'vault_secret_id',
] as const

/** Any object: what is wrong with it is told better by whoever knows the shape that was meant. */
const AuthConfigInput = Type.Record(Type.String(), Type.Unknown(), {
  oneOf: Object.values(AUTH_SHAPES).flat(),
  description: 'one of nine shapes, of the family of manager_type',
})

const CleanText = (maxLength: number, description: string) =>
  Type.String({ maxLength, pattern: '^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]*$', description })
const SecretPath = Type.String({ minLength: 1, maxLength: 1024, description: 'where the manager keeps the secret' })
export const SecretKey = Type.String({ minLength: 1, maxLength: 255, description: "field of the secret's JSON" })
const Slug = Type.String({ minLength: 1, maxLength: 255, pattern: '^[a-zA-Z0-9_-]+$' })
const Tags = Type.Record(Type.String(), Type.Unknown(), {
  maxProperties: 64,
  description: 'free-form, at most 8 KiB; given back as it was sent',
})
const CacheSeconds = Type.Integer({
  minimum: 0,
  maximum: 86_400,
  description: 'how long a fetched value is used; without it, as the settings say',
})

const settable = {
  description: Type.Optional(Nullable(CleanText(1024, 'what it is for'))),
  secret_key: Type.Optional(Nullable(SecretKey)),
  tags: Type.Optional(Nullable(Tags)),
  allow_all_workspaces: Type.Optional(
    Nullable(Type.Boolean({ description: 'true unless allowed_workspaces is given; not with both' })),
  ),
  allowed_workspaces: Type.Optional(
    Nullable(
      Type.Array(IdOrSlug, {
        minItems: 1,
        maxItems: 1000,
        description: 'the workspaces that may use it, by id or slug',
      }),
    ),
  ),
  cache_seconds: Type.Optional(Nullable(CacheSeconds)),
  organisation_id: Type.Optional(Nullable(Uuid)),
}

export const CreateSecretReference = Strict(
  {
    name: Name,
    manager_type: ManagerType,
    auth_config: AuthConfigInput,
    secret_path: SecretPath,
    slug: Type.Optional(Nullable(Slug)),
    ...settable,
  },
  { title: 'CreateSecretReference' },
)
export type CreateSecretReference = Static<typeof CreateSecretReference>
export const SecretReferenceCreated = Strict({
  id: Uuid,
  slug: Type.String(),
  object: Type.Literal('secret-reference'),
})

export const UpdateSecretReference = Strict(
  {
    name: Type.Optional(Name),
    auth_config: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'laid over the stored one, key by key: what is absent stays, null clears what is optional, masked_ fields are ignored; a new address takes its secrets again',
      }),
    ),
    secret_path: Type.Optional(SecretPath),
    manager_type: Type.Optional(Type.Unknown({ description: 'ignored' })),
    slug: Type.Optional(Type.Unknown({ description: 'ignored' })),
    ...settable,
  },
  { title: 'UpdateSecretReference' },
)
export type UpdateSecretReference = Static<typeof UpdateSecretReference>

const rowFields = {
  id: Uuid,
  name: Type.String(),
  slug: Type.String(),
  description: Nullable(Type.String()),
  manager_type: ManagerType,
  secret_path: Type.String(),
  status: Type.Literal('ACTIVE'),
  created_at: Timestamp,
  last_updated_at: Timestamp,
  object: Type.Literal('secret-reference'),
}
export const SecretReferenceRow = Strict(rowFields, { title: 'SecretReferenceRow' })
export type SecretReferenceRow = Static<typeof SecretReferenceRow>
export const SecretReferenceList = ListOf(SecretReferenceRow)

export const SecretReference = Strict(
  {
    ...rowFields,
    organisation_id: Uuid,
    secret_key: Nullable(Type.String()),
    allow_all_workspaces: Type.Boolean(),
    tags: Nullable(FreeObject),
    cache_seconds: Type.Optional(CacheSeconds),
    created_by: Type.String(),
    auth_config: Type.Record(Type.String(), Type.String(), {
      description: 'a secret X stands masked under masked_X; the system caller gets X itself',
    }),
  },
  { title: 'SecretReference' },
)
export type SecretReference = Static<typeof SecretReference>

export const ListSecretReferencesQuery = Strict({
  manager_type: Type.Optional(ManagerType),
  tags: Type.Optional(Type.String({ description: 'a JSON object, all of whose pairs must be among the tags' })),
  search: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'part of the name' })),
  ...Paging,
})
