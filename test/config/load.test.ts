import { afterAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type LoadedConfig, loadConfig } from '../../src/config/load.ts'
import { StartError } from '../../src/start-error.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-config-'))
const path = join(folder, 'config.toml')
afterAll(() => rmSync(folder, { recursive: true }))

function load(toml: string, env: Record<string, string> = {}, mode = 0o600): LoadedConfig {
  rmSync(path, { force: true })
  writeFileSync(path, toml)
  chmodSync(path, mode)
  return loadConfig({ path, env })
}

function refusal(work: () => unknown): StartError {
  try {
    work()
  } catch (error) {
    if (error instanceof StartError) return error
    throw error
  }
  throw new Error('it was accepted')
}

/** The complaints with the file's name cut down to `config.toml`. */
const complaintsOf = (toml: string, env: Record<string, string> = {}) =>
  refusal(() => load(toml, env)).complaints.map((each) => each.replaceAll(`${folder}/`, ''))

describe('an empty file', () => {
  test('is a whole configuration, on loopback and on SQLite', () => {
    const { config, origins, warnings } = load('')
    expect(config.server).toMatchObject({ host: '127.0.0.1', port: 8787, idle_timeout_seconds: 30, drain_seconds: 25 })
    expect(config.database.url).toBe('')
    expect(config.limits).toMatchObject({
      admin_body_bytes: 262_144,
      prompt_body_bytes: 2_097_152,
      render_body_bytes: 4_194_304,
    })
    expect(new Set(origins.values())).toEqual(new Set(['default']))
    expect(warnings).toEqual([])
  })

  test('shares no list with the next one', () => {
    load('').config.server.key_headers.push('x-mine')
    expect(load('').config.server.key_headers).not.toContain('x-mine')
  })
})

describe('every complaint comes in one run, with its line', () => {
  const toml = [
    '# a comment', // 1
    '[server]',
    'host = "0.0.0.0"', // 3
    'prot = 1', // 4
    'port = 80_000', // 5
    'hosts = [', // 6
    '  "a", # ] no end',
    '  1,',
    ']',
    '[database]',
    'url = "postgres://a:hunter2@h/x"', // 11
    'password = "hunter2"', // 12
    'url = "again"', // 13
    'pool_size = = "hunter2"', // 14
    '[log]',
    'level = "loud"', // 16
    '[[render.models]]',
    'match = "x*"',
    '[[render.models]]', // 19
    'matches = "y"', // 20
    '[lmits]', // 21
    'x = """', // 22
    'hunter2',
    '"""',
    '[limits]',
    'port = 5', // 26
  ].join('\n')

  test('in the order of the file, the environment last', () => {
    expect(
      complaintsOf(toml, { GATEHOUSE_CACHE_COMPILED_TEMPLATES: 'many', GATEHOUSE_SERVER_BEHIND_PROXY: 'yes' }),
    ).toEqual([
      'config.toml:3: server.host: is not a loopback address, and neither TLS nor behind_proxy is set',
      'config.toml:4: server.prot: unknown setting; did you mean "port"?',
      'config.toml:5: server.port: must be an integer from 0 to 65535',
      'config.toml:6: server.hosts[1]: must be a string of at least 1 character',
      'config.toml:11: database.url: must not hold the password; put a reference to it into database.password',
      'config.toml:12: database.password: must be a reference: file:/path, env:NAME or credential:name, never the secret itself',
      "config.toml:13: Cannot redefine key 'url'",
      "config.toml:14: Expected a value but found '='",
      'config.toml:16: log.level: must be one of debug, info, warn, error',
      'config.toml:19: render.models[1].match: is required',
      'config.toml:20: render.models[1].matches: unknown field; did you mean "match"?',
      'config.toml:21: lmits: unknown setting; did you mean "limits"?',
      'config.toml:26: limits.port: unknown setting; did you mean "server.port"?',
      'env GATEHOUSE_SERVER_BEHIND_PROXY: server.behind_proxy: must be a boolean',
      'env GATEHOUSE_CACHE_COMPILED_TEMPLATES: cache.compiled_templates: must be an integer from 1 to 1000000',
    ])
  })

  test('and no secret is repeated', () => {
    const error = refusal(() => load(toml))
    expect(error).toMatchObject({ code: 'CONFIG_INVALID', exitCode: 78 })
    expect(error.message + error.fix).not.toContain('hunter2')
  })
})

describe('what TOML itself refuses', () => {
  test.each([
    ['a key given twice', '[server]\nport = 1\nport = 2', "config.toml:3: Cannot redefine key 'port'"],
    ['a table given twice', '[server]\n[log]\n[server]\nport = "x"', "config.toml:3: Cannot redefine table 'server'"],
    ['a number that would be rounded', '\n[server]\nport = 9223372036854775808', 'config.toml:3: '],
    ['a value without quotes', '[log]\nlevel = hunter2', 'config.toml:2: Strings must be quoted'],
    ['a string without an end', '[log]\nlevel = "info\n[server]', 'config.toml:2: Unterminated string'],
    ['a list without an end', '[server]\n\nhosts = [1,\n2\n', 'config.toml:3: '],
    ['a section that is a number', 'server = 1', 'config.toml:1: server: must be an object'],
  ])('%s', (_name, toml, expected) => {
    const complaints = complaintsOf(toml)
    expect(complaints).toHaveLength(1)
    expect(complaints[0]).toStartWith(expected)
    expect(complaints[0]).not.toContain('hunter2')
  })
})

describe('the environment', () => {
  test('overrides the file, and the origin says so', () => {
    const env = {
      GATEHOUSE_SERVER_PORT: '1234',
      GATEHOUSE_SERVER_HOSTS: '["a.example", "b.example"]',
      GATEHOUSE_LOG_LEVEL: 'warn',
      GATEHOUSE_RENDER_MODELS: '[{ match = "m*", thinking = true }]',
      GATEHOUSE_RENDER_STRICT_OPENAI_COMPLIANCE: 'false',
    }
    const { config, origins } = load('[server]\nport = 1\nhost = "localhost"', env)
    expect(config.server).toMatchObject({ port: 1234, hosts: ['a.example', 'b.example'], host: 'localhost' })
    expect(config.log.level).toBe('warn')
    expect(config.render).toMatchObject({ models: [{ match: 'm*', thinking: true }], strict_openai_compliance: false })
    expect(origins.get('server.port')).toBe('env GATEHOUSE_SERVER_PORT')
    expect(origins.get('server.host')).toBe(`${path}:3`)
  })

  test.each([
    ['an injected second key', { GATEHOUSE_SERVER_PORT: '1\nhost = "0.0.0.0"' }],
    ['an empty number', { GATEHOUSE_SERVER_PORT: '' }],
    ['a list without brackets', { GATEHOUSE_SERVER_HOSTS: 'a.example' }],
  ])('refuses %s', (_name, env: Record<string, string>) => {
    expect(complaintsOf('', env)).toHaveLength(1)
  })

  test('names that match no setting are said once, together, and change nothing', () => {
    const env = { GATEHOUSE_PORT: 'tcp://10.0.0.1:8787', GATEHOUSE_SERVICE_HOST: 'x', GATEHOUSE_CONFIG: 'y', HOME: '/' }
    expect(load('', env).warnings).toEqual([
      'environment variables that match no setting are ignored: GATEHOUSE_PORT, GATEHOUSE_SERVICE_HOST',
    ])
  })

  test('a variable that a reference names is known', () => {
    const toml = '[database]\npassword = "env:GATEHOUSE_SECRET"'
    const loaded = load(toml, { GATEHOUSE_SECRET: 'hunter2' })
    expect(loaded.warnings).toEqual([])
    expect(loaded.databasePassword?.reveal()).toBe('hunter2')
    expect(Bun.inspect(loaded) + JSON.stringify(loaded)).not.toContain('hunter2')
  })
})

describe('keys never cross a network in clear (IN-8)', () => {
  const tls = 'tls_cert_file = "/c.pem"\ntls_key_file = "/k.pem"'
  test.each([
    ['127.0.0.1', '', true],
    ['127.8.9.10', '', true],
    ['::1', '', true],
    ['localhost', '', true],
    ['0.0.0.0', '', false],
    ['::', '', false],
    ['10.0.0.1', '', false],
    ['::ffff:10.0.0.1', '', false],
    ['localhost.example', '', false],
    ['127.0.0.1.example', '', false],
    ['0.0.0.0', tls, true],
    ['0.0.0.0', 'behind_proxy = true', true],
    ['0.0.0.0', 'behind_proxy = false', false],
  ])('host %s with "%s": %p', (host, more, accepted) => {
    const toml = `[server]\nhost = "${host}"\n${more}`
    if (accepted) expect(load(toml).config.server.host).toBe(host)
    else expect(refusal(() => load(toml))).toMatchObject({ code: 'INSECURE_BIND', exitCode: 78 })
  })
})

describe('settings that cannot work are refused', () => {
  test.each([
    [
      'a public address with a path',
      '[server]\npublic_url = "https://example.com/gate"',
      'server.public_url: must be an origin',
    ],
    ['a mail server without a sender', '[smtp]\nurl = "smtps://mail.example.com"', 'smtp.from: is required'],
    [
      'a password in the address of the mail server',
      '[smtp]\nfrom = "a@example.com"\nurl = "smtps://me:hunter2@mail.example.com"',
      'smtp.url: must not hold the password',
    ],
    [
      'a mail password for nobody',
      '[smtp]\nfrom = "a@example.com"\nurl = "smtps://mail.example.com"\npassword = "env:MAIL"',
      'smtp.url: must name the user',
    ],
    ['a mail password in clear', '[smtp]\npassword = "hunter2"', 'smtp.password: must be a reference'],
    ['a sender with a name', '[smtp]\nfrom = "Us <us@example.com>"', 'smtp.from: must be an e-mail address'],
    ['a certificate without its key', '[server]\ntls_cert_file = "/c.pem"', 'server.tls_key_file'],
    ['a key without its certificate', '[server]\ntls_key_file = "/c.pem"', 'server.tls_cert_file'],
    ['a required audit sink that is not named', '[audit]\nsink_required = true', 'audit.sink: is required'],
    [
      'an audit sink beside the database',
      '[data]\ndir = "/d"\n[audit]\nsink = "/d/x/../gatehouse.db"',
      'audit.sink: must lie outside data.dir',
    ],
    ['a relative path', '[data]\ndir = "data"', 'data.dir: must be an absolute path'],
    ['no data folder', '[data]\ndir = ""', 'data.dir: must be an absolute path'],
    ['a proxy by name', '[server]\ntrusted_proxies = ["proxy.example"]', 'server.trusted_proxies[0]'],
    ['a peer by name', '[system]\nallow = ["proxy.example"]', 'system.allow[0]'],
    ['a block too wide to be one', '[system]\nallow = ["::1", "10.0.0.0/33"]', 'system.allow[1]'],
    ['a header in upper case', '[server]\nkey_headers = ["X-Key"]', 'server.key_headers[0]'],
    ['no header for keys', '[server]\nkey_headers = []', 'server.key_headers'],
    [
      'an address to allow without a port',
      '[outbound]\nallow = ["vault.int"]',
      'outbound.allow[0]: must be "host:port"',
    ],
    ['a URL to allow', '[outbound]\nallow = ["https://vault.int:8200"]', 'outbound.allow[0]: must be "host:port"'],
    ['a strange spelling to allow', '[outbound]\nallow = ["a.int:1", "127.1:80"]', 'outbound.allow[1]: must be'],
    ['a block wider than its family', '[outbound]\nallow_http = ["10.0.0.0/33:80"]', 'outbound.allow_http[0]: must be'],
    [
      'a metadata service to allow',
      '[outbound]\nallow = ["169.254.169.254:80"]',
      'outbound.allow[0]: names a metadata service, which is never reached',
    ],
    [
      'a connection to redirect without its port',
      '[outbound]\nconnect = { "vault.int" = "10.0.0.1:443" }',
      'outbound.connect.vault.int: must be named for the host and port of a URL',
    ],
    [
      'a target of connect that is a URL',
      '[outbound.connect]\n"vault.int:443" = "https://10.0.0.1:443"',
      'outbound.connect.vault.int:443: must be "host:port"',
    ],
    ['a proxy with a password', '[outbound]\nproxy = "http://me:hunter2@proxy.int:3128"', 'outbound.proxy: must be'],
    [
      'authorities in a file that is not there',
      '[secret_managers]\nvault_ca_file = "/nowhere/ca.pem"',
      'secret_managers.vault_ca_file: cannot be read (ENOENT)',
    ],
    [
      'authorities in a file that holds none',
      '[secret_managers]\naws_ca_file = "/etc/hostname"',
      'secret_managers.aws_ca_file: must hold certificates as PEM',
    ],
    ['another database', '[database]\nurl = "mysql://h/x"', 'database.url: must be a URL such as'],
    [
      'a password among the parameters',
      '[database]\nurl = "postgres://h/x?password=hunter2"',
      'database.url: must not hold',
    ],
    [
      'a clear master key',
      `[master_key]\nsource = "${Buffer.alloc(32, 7).toString('base64')}"`,
      'master_key.source: must be a reference',
    ],
    ['no master key', '[master_key]\nsource = ""', 'master_key.source: is required'],
    ['a master key in the environment', '[master_key]\nsource = "env:KEY"', 'master_key.source: stays readable'],
    ['a relative reference', '[master_key]\nsource = "file:master.key"', 'master_key.source: must be a reference'],
    [
      'a credential outside its folder',
      '[master_key]\nsource = "credential:../x"',
      'master_key.source: must be a reference',
    ],
    [
      'a reference to what is scrubbed',
      '[database]\npassword = "env:PGPASSWORD"',
      'database.password: names an environment variable',
    ],
  ])('%s', (_name, toml, expected) => {
    const complaints = complaintsOf(toml)
    expect(complaints).toHaveLength(1)
    expect(complaints[0]).toContain(expected)
    expect(complaints[0]).not.toContain('hunter2')
  })

  test('what secret references may reach is taken in each of its forms', () => {
    const allow = ['vault.int:8200', '10.2.0.0/16:8200', '127.0.0.1:8200', '[fd00::1]:443', '[fd00::/8]:443']
    const connect = '"t1.vault.azure.net:443" = "10.0.0.4:443", "[fd00::1]:443" = "vault.int:8200"'
    const ca = join(import.meta.dir, '../http/tls/certificate.pem')
    const toml = `[outbound]\nallow = ${JSON.stringify(allow)}\nconnect = { ${connect} }\nproxy = "http://proxy.int:3128"`
    const { config } = load(`${toml}\n[secret_managers]\nazure_ca_file = "${ca}"`)
    expect(config.outbound.allow).toEqual(allow)
    expect(Object.values(config.outbound.connect)).toEqual(['10.0.0.4:443', 'vault.int:8200'])
  })

  test('a master key in the environment is possible for whoever says so', () => {
    const toml = '[master_key]\nsource = "env:KEY"\nallow_env_master_key = true'
    expect(load(toml).config.master_key.source).toBe('env:KEY')
  })
})

describe('files that others can change or read', () => {
  test.each([0o620, 0o602, 0o666, 0o777])('a config of mode %o is refused with 77', (mode) => {
    const error = refusal(() => load('', {}, mode))
    expect(error).toMatchObject({ code: 'CONFIG_PERMISSIONS', exitCode: 77, fix: `chmod go-w ${path}` })
  })

  test('a config that others may read is fine: it holds no secret', () => {
    expect(load('', {}, 0o644).config.server.port).toBe(8787)
  })

  test.each([0o440, 0o404, 0o640, 0o660])('a secret of mode %o is refused with 77', (mode) => {
    const secret = join(folder, 'password')
    rmSync(secret, { force: true })
    writeFileSync(secret, 'hunter2\n')
    chmodSync(secret, mode)
    const toml = `[database]\npassword = "file:${secret}"`
    expect(refusal(() => load(toml))).toMatchObject({
      code: 'SECRET_PERMISSIONS',
      exitCode: 77,
      fix: `chmod 0400 ${secret}`,
    })
    chmodSync(secret, 0o400)
    expect(load(toml).databasePassword?.reveal()).toBe('hunter2')
  })

  test('systemd shows its ACL as group bits: a credential is taken', () => {
    writeFileSync(join(folder, 'db'), 'hunter2')
    chmodSync(join(folder, 'db'), 0o440)
    const loaded = load('[database]\npassword = "credential:db"', { CREDENTIALS_DIRECTORY: folder })
    expect(loaded.databasePassword?.reveal()).toBe('hunter2')
  })

  test.each([
    ['file:/nowhere/password', {}],
    [`file:${folder}`, {}],
    ['env:NOT_SET', {}],
    ['env:EMPTY', { EMPTY: '' }],
    ['credential:db', {}],
    ['credential:absent', { CREDENTIALS_DIRECTORY: folder }],
  ])('a reference to nothing, %s, is refused with 78', (reference, env: Record<string, string>) => {
    expect(refusal(() => load(`[database]\npassword = "${reference}"`, env))).toMatchObject({
      code: 'SECRET_MISSING',
      exitCode: 78,
    })
  })

  test('a missing config is refused with 78, and a folder is none', () => {
    expect(refusal(() => loadConfig({ path: '/nowhere/x.toml', env: {} }))).toMatchObject({
      code: 'CONFIG_MISSING',
      exitCode: 78,
    })
    expect(refusal(() => loadConfig({ path: '/', env: {} }))).toMatchObject({ code: 'CONFIG_MISSING', exitCode: 78 })
  })
})
