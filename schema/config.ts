import { type Static, Type } from '@sinclair/typebox'
import { outbound, secretManagers } from './outgoing.ts'
import { bytes, list, oneOf, path, reference, section } from './setting.ts'

/**
 * The configuration file: every setting with type, default and description. The environment name of a setting is
 * `GATEHOUSE_<SECTION>_<FIELD>`; validation, --help, `config.toml` and the README's table all come from this value.
 * An empty string stands for "not set".
 */
export const Config = Type.Object(
  {
    server: section({
      host: Type.String({
        default: '127.0.0.1',
        minLength: 1,
        description: 'address to listen on; anything but loopback needs TLS or behind_proxy',
      }),
      port: Type.Integer({ default: 8787, minimum: 0, maximum: 65535, description: 'TCP port; 0 picks a free one' }),
      unix_socket: path(
        'socket that answers as well, for programs of this user on this machine, such as the gateway; never for a proxy; empty: none',
      ),
      public_url: Type.String({
        default: '',
        pattern: '^(https?://[^\\s/?#@]+)?$',
        expects: 'an origin such as https://gatehouse.example.com, without a path',
        description: 'origin under which people reach this server, for the links of invites; empty: the address above',
      }),
      tls_cert_file: path('PEM file with the certificate chain; turns TLS on together with tls_key_file'),
      tls_key_file: path('PEM file with the private key, readable by the service user alone'),
      behind_proxy: Type.Boolean({
        default: false,
        description: 'a reverse proxy in front ends TLS; allows a non-loopback host without TLS',
      }),
      trusted_proxies: list(
        'proxies whose X-Forwarded-For names the client: addresses or CIDR blocks; empty never reads it',
        [],
      ),
      hosts: list('values of the Host header that are answered; empty answers all', []),
      key_headers: list('request headers that may carry the API key', ['x-service-api-key', 'x-portkey-api-key'], 1),
      request_id_headers: list(
        'response headers that carry the request id',
        ['x-request-id', 'x-portkey-request-id'],
        1,
      ),
      idle_timeout_seconds: Type.Integer({
        default: 30,
        minimum: 1,
        maximum: 255,
        description: 'a connection without traffic is closed after this long',
      }),
      drain_seconds: Type.Integer({
        default: 25,
        minimum: 0,
        maximum: 600,
        description: 'requests in flight at shutdown get this long to finish',
      }),
    }),
    data: section({
      dir: path('folder of the database, the lock and the admin socket; mode 0700', '/var/lib/gatehouse'),
    }),
    database: section({
      url: Type.String({
        default: '',
        pattern: '^(postgres(ql)?://\\S+)?$',
        expects: 'a URL such as postgres://user@host:5432/name, or empty',
        description: 'postgres://user@host/name?sslmode=verify-full; empty uses the embedded SQLite in data.dir',
      }),
      password: reference('reference to the PostgreSQL password'),
      pool_size: Type.Integer({
        default: 10,
        minimum: 2,
        maximum: 200,
        description: 'PostgreSQL connections of this node',
      }),
      poll_ms: Type.Integer({
        default: 500,
        minimum: 50,
        maximum: 10_000,
        description: 'milliseconds between looks at what other nodes changed (PostgreSQL)',
      }),
    }),
    master_key: section({
      source: reference(
        'reference to the master key: one line a key, `<id> <base64 of 32 bytes>`',
        'file:/etc/gatehouse/master.key',
      ),
      allow_env_master_key: Type.Boolean({
        default: false,
        description: 'allows an env: reference as source, although it stays readable in /proc',
      }),
    }),
    log: section({
      level: oneOf(['debug', 'info', 'warn', 'error'], 'info', 'lowest level that is written'),
      renders: oneOf(['none', 'sampled', 'all'], 'none', 'which successful renders get a line; failures always do'),
      renders_sample_rate: Type.Number({
        default: 0.01,
        minimum: 0,
        maximum: 1,
        description: 'share of the renders that get a line when renders = "sampled"',
      }),
    }),
    render: section({
      strict_openai_compliance: Type.Boolean({
        default: true,
        description: 'what counts when a call does not say; false admits `thinking`',
      }),
      strict_compliance_headers: list(
        'request headers with which a call sets strict_openai_compliance',
        ['x-gatehouse-strict-openai-compliance', 'x-portkey-strict-open-ai-compliance'],
        1,
      ),
      models: Type.Array(
        Type.Object(
          {
            match: Type.String({ minLength: 1, description: 'model name, or its beginning followed by *' }),
            provider: Type.Optional(Type.String({ minLength: 1, description: 'only for this provider' })),
            developer_role: Type.Optional(Type.Boolean({ description: 'takes messages with the developer role' })),
            thinking: Type.Optional(Type.Boolean({ description: 'takes `thinking`' })),
            suffix: Type.Optional(Type.Boolean({ description: 'takes `suffix`' })),
            context_length: Type.Optional(Type.Integer({ minimum: 1, description: 'tokens' })),
          },
          { additionalProperties: false },
        ),
        { default: [], description: 'what models can do: extends and overrides the shipped table' },
      ),
    }),
    limits: section({
      prompt_body_bytes: bytes(2_097_152, 'the body of a call that writes a prompt or a partial'),
      admin_body_bytes: bytes(262_144, 'the body of any other administrative call'),
      render_body_bytes: bytes(4_194_304, 'the body of a render'),
    }),
    cache: section({
      compiled_templates: Type.Integer({
        default: 10_000,
        minimum: 1,
        maximum: 1_000_000,
        description: 'compiled templates kept in memory',
      }),
      max_staleness_seconds: Type.Integer({
        default: 300,
        minimum: 1,
        maximum: 86_400,
        description: 'a node that could not look for changes this long answers 503 (PostgreSQL)',
      }),
    }),
    rotation: section({
      enforce: Type.Boolean({
        default: false,
        description:
          'refuses an API key whose scheduled rotation is overdue by its transition period; otherwise it is only reported as due',
      }),
    }),
    smtp: section({
      url: Type.String({
        default: '',
        pattern: '^(smtps?://[^\\s/?#]+)?$',
        expects: 'a URL such as smtps://user@mail.example.com:465, or empty',
        description:
          'mail server that sends invites, such as smtps://user@host:465; smtp:// uses STARTTLS, which only a loopback host may do without; empty sends none',
      }),
      password: reference('reference to the password of the user in smtp.url'),
      from: Type.String({
        default: '',
        pattern: '^([^\\s@<>,;]+@[^\\s@<>,;]+)?$',
        expects: 'an e-mail address',
        description: 'sender of the mails; required with smtp.url',
      }),
    }),
    audit: section({
      retention_min_days: Type.Integer({
        default: 365,
        minimum: 1,
        maximum: 36_500,
        description: 'rows of the audit trail younger than this cannot be pruned',
      }),
      sink: path('file or FIFO that gets a copy of every row of the audit trail, one JSON line each; empty: none'),
      sink_required: Type.Boolean({
        default: false,
        description: 'a change is answered only when its row is in audit.sink, and refused while that takes none',
      }),
    }),
    outbound,
    secret_managers: secretManagers,
    system: section({
      allow: list('peers that system keys are accepted from, never through a proxy: addresses or CIDR blocks', [
        '127.0.0.0/8',
        '::1/128',
      ]),
    }),
  },
  { additionalProperties: false },
)
export type Config = Static<typeof Config>
export type Section = keyof Config
