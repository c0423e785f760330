import { Type } from '@sinclair/typebox'
import { list, oneOf, path, section } from './setting.ts'

/** Settings of calls that leave this machine (decisions 11, 43, 45, 46). */
export const outbound = section({
  allow: list(
    'what secret references may reach besides public addresses at port 443 and 8200: "host:port", "10.2.0.0/16:8200"',
    [],
  ),
  allow_http: list('what may be spoken to without TLS; it needs no entry in allow: "127.0.0.1:8200"', []),
  connect: Type.Record(Type.String({ minLength: 1 }), Type.String({ minLength: 1 }), {
    default: {},
    description:
      'where connections really go, by "host:port" of the URL (private endpoints): URL and TLS name stay; { "t1.vault.azure.net:443" = "10.0.0.4:443" }',
  }),
  proxy: Type.String({
    default: '',
    pattern: '^(https?://[^\\s/?#@]+)?$',
    expects: 'an origin such as http://proxy.int:3128, or empty',
    description: 'HTTP proxy that all calls to secret managers go through (CONNECT); proxy variables are not read',
  }),
})

export const secretManagers = section({
  timeout_seconds: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 25,
    description: 'most seconds of one fetch from a secret manager: queueing, connecting, login and reading',
  }),
  cache_seconds: Type.Integer({
    default: 300,
    minimum: 0,
    maximum: 86_400,
    description: 'how long a fetched value is used, where the reference does not say',
  }),
  cache_entries: Type.Integer({
    default: 1000,
    minimum: 1,
    maximum: 100_000,
    description: 'fetched values, and logins, kept in memory',
  }),
  serve_stale_seconds: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 86_400,
    description: 'how long an expired value is still used while its manager is down, slow, throttling or sealed',
  }),
  aws_ca_file: path('PEM file with the certificate authorities of AWS endpoints; empty: the public ones'),
  azure_ca_file: path('PEM file with the certificate authorities of Azure endpoints; empty: the public ones'),
  vault_ca_file: path('PEM file with the certificate authorities of Vault servers; empty: the public ones'),
  aws_identity: oneOf(
    ['none', 'imds', 'web_identity', 'container'],
    'none',
    'where this machine gets its own AWS credentials',
  ),
  aws_web_identity_role_arn: Type.String({ default: '', description: 'role that the web identity token is for' }),
  aws_web_identity_token_file: path('token file of aws_identity = "web_identity"'),
  aws_container_credentials_path: Type.String({
    default: '',
    pattern: '^(/\\S*)?$',
    expects: 'a path such as /v2/credentials/…, or empty',
    description: 'path at the container endpoint; empty: EKS Pod Identity (/v1/credentials at 169.254.170.23)',
  }),
  aws_container_token_file: path('token file of aws_identity = "container"; needed by EKS Pod Identity'),
  azure_workload_tenant_id: Type.String({ default: '', description: 'tenant of the workload identity' }),
  azure_workload_client_id: Type.String({ default: '', description: 'client id of the workload identity' }),
  azure_workload_token_file: path('federated token file of the workload identity; empty: there is none'),
  vault_jwt_file: path(
    'service account token that Kubernetes logins send to Vault',
    '/var/run/secrets/kubernetes.io/serviceaccount/token',
  ),
  machine_identity: Type.Array(
    Type.Object(
      {
        kind: Type.Union(
          [
            Type.Literal('aws_service_role'),
            Type.Literal('aws_assumed_role'),
            Type.Literal('azure_managed'),
            Type.Literal('azure_default'),
            Type.Literal('vault_kubernetes'),
          ],
          { description: 'which shape of a secret reference' },
        ),
        workspaces: patterns('workspaces (id or slug) that may use it; "*" covers organisation-level use as well'),
        paths: patterns('secret paths, whole or with a * at the end'),
        role_arns: patterns('roles of aws_assumed_role'),
        client_ids: patterns('client ids of azure_managed; "*" covers references without one'),
        vault_addr: patterns('addresses of vault_kubernetes or azure vault URLs, as the references write them'),
        vault_roles: patterns('roles of vault_kubernetes'),
      },
      { additionalProperties: false },
    ),
    {
      default: [],
      description: "what may be read with this machine's own identity; nothing unless a table here says so",
    },
  ),
})

/** Nothing is granted by leaving a list out: an empty one matches nothing, `*` has to be written (decision 45). */
function patterns(description: string) {
  return Type.Optional(Type.Array(Type.String({ minLength: 1 }), { description }))
}
