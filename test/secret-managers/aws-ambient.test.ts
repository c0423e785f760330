import { afterAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freshFolder } from '../support/database.ts'
import { ACCESS_KEY, ASSUMED_ROLE, IMDS, lent, refused, refusedInXml, SERVICE_ROLE } from './aws-double.ts'
import type { Asked } from './aws-program.ts'

// The SDK would take credentials, endpoints and programs to run from all around it (P15, P25, decision 45). An executable
// loads it from itself, and its minifier gives the SDK's classes other names (SC-4, P20).

const folder = freshFolder()
afterAll(() => rmSync(folder, { recursive: true }))

const PROGRAM = join(import.meta.dir, 'aws-program.ts')
const ROOT = join(import.meta.dir, '../..')

function compiled(): string[] {
  const program = join(folder, 'program')
  const build = ['build', '--compile', '--minify', '--bytecode', `--outfile=${program}`, PROGRAM]
  const { success, stderr } = Bun.spawnSync([process.execPath, ...build], { cwd: folder })
  if (!success) throw new Error(`${stderr}`)
  return [program]
}

/** Whatever runs in it, or is asked because of it, leaves a trace. */
function hostileHome(): Record<string, string> {
  const trap = join(folder, 'trap')
  writeFileSync(
    trap,
    `#!/bin/sh\ntouch ${join(folder, 'ran')}\necho '{"Version":1,"AccessKeyId":"E","SecretAccessKey":"E"}'\n`,
  )
  chmodSync(trap, 0o755)
  const evil = `credential_process = ${trap}\nendpoint_url = https://evil.example.com\nregion = us-east-1\nretry_mode = evil\n`
  mkdirSync(join(folder, '.aws'), { recursive: true })
  writeFileSync(join(folder, '.aws/config'), `[default]\n${evil}[profile evil]\n${evil}`)
  writeFileSync(join(folder, '.aws/credentials'), `[default]\n${evil}`)
  return {
    HOME: folder,
    AWS_PROFILE: 'evil',
    AWS_CONFIG_FILE: join(folder, '.aws/config'),
    AWS_SHARED_CREDENTIALS_FILE: join(folder, '.aws/credentials'),
    AWS_ENDPOINT_URL: 'https://evil.example.com',
    AWS_ENDPOINT_URL_STS: 'https://evil.example.com',
    AWS_ENDPOINT_URL_SECRETS_MANAGER: 'https://evil.example.com',
    AWS_ACCESS_KEY_ID: 'EVIL',
    AWS_SECRET_ACCESS_KEY: 'evil',
    AWS_REGION: 'us-east-1',
    AWS_USE_FIPS_ENDPOINT: 'true',
    AWS_DEFAULTS_MODE: 'auto',
    AWS_RETRY_MODE: 'evil',
    HTTPS_PROXY: 'http://127.0.0.1:1',
  }
}

const SECRETS = 'secretsmanager.eu-west-1.amazonaws.com'
const STS = 'sts.eu-west-1.amazonaws.com'
const EC2 = '169.254.169.254'

const token = join(folder, 'token')
writeFileSync(token, 'token')
const READ = 'GetSecretValue'
const webIdentity = {
  aws_identity: 'web_identity',
  aws_web_identity_role_arn: 'arn:aws:iam::123456789012:role/of-the-cluster',
  aws_web_identity_token_file: token,
}

const READS: [Asked, expected: unknown[]][] = [
  [{ authConfig: ACCESS_KEY }, ['value', SECRETS]],
  [{ authConfig: ASSUMED_ROLE }, ['value', EC2, EC2, EC2, STS, SECRETS]],
  [{ authConfig: SERVICE_ROLE, settings: IMDS }, ['value', EC2, EC2, EC2, SECRETS]],
  [{ authConfig: SERVICE_ROLE, settings: webIdentity }, ['value', STS, SECRETS]],
  [{ authConfig: SERVICE_ROLE, settings: {} }, ['manager_config at login']],
  [
    { authConfig: ACCESS_KEY, answers: { [READ]: refused('UnrecognizedClientException') } },
    ['manager_auth_failed at login', SECRETS],
  ],
  [
    { authConfig: ACCESS_KEY, answers: { [READ]: refused('ResourceNotFoundException') } },
    ['manager_secret_missing at read', SECRETS],
  ],
  [
    { authConfig: ACCESS_KEY, answers: { [READ]: refused('DecryptionFailure') } },
    ['manager_secret_disabled at read', SECRETS],
  ],
  [
    { authConfig: ACCESS_KEY, answers: { [READ]: refused('ThrottlingException') } },
    ['manager_throttled at read', SECRETS],
  ],
  [{ authConfig: ACCESS_KEY, answers: { [READ]: refusedInXml('AccessDenied') } }, ['manager_denied at read', SECRETS]],
  [
    { authConfig: ACCESS_KEY, answers: { [READ]: { status: 200, body: '<html>' } } },
    ['manager_bad_response at parse', SECRETS],
  ],
  [
    {
      authConfig: SERVICE_ROLE,
      settings: webIdentity,
      answers: { AssumeRoleWithWebIdentity: refusedInXml('AccessDenied') },
    },
    ['manager_auth_failed at login', STS],
  ],
  [
    {
      authConfig: SERVICE_ROLE,
      settings: webIdentity,
      answers: { AssumeRoleWithWebIdentity: lent('AssumeRoleWithWebIdentity', '') },
    },
    ['manager_bad_response at login', STS],
  ],
]

test.each([
  ['from source', () => [process.execPath, PROGRAM]],
  ['compiled', compiled],
])(
  '%s, nothing around it counts: what was configured is asked for, under the right name, and nothing else',
  async (_how, program) => {
    const argv = [...program(), JSON.stringify(READS.map(([asked]) => asked))]
    const child = Bun.spawn(argv, { env: hostileHome(), stdout: 'pipe', stderr: 'pipe' })
    const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
    expect(err).toBe('')
    expect(JSON.parse(out)).toEqual(READS.map(([, expected]) => expected))
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  },
)

test('the trap is live: a chain of the SDK runs into it, until the environment is scrubbed', async () => {
  const run = async (...first: string[]) => {
    const script = [
      ...first,
      `const { STSClient, GetCallerIdentityCommand } = await import('@aws-sdk/client-sts')`,
      `const requestHandler = { handle: () => Promise.reject(new Error()) }`,
      `await new STSClient({ region: 'eu-west-1', maxAttempts: 1, requestHandler }).send(new GetCallerIdentityCommand({})).catch(() => {})`,
    ].join('\n')
    const { AWS_ACCESS_KEY_ID: _id, AWS_SECRET_ACCESS_KEY: _key, ...env } = hostileHome()
    await Bun.spawn([process.execPath, '-e', script], { cwd: ROOT, env, stderr: 'ignore' }).exited
    return existsSync(join(folder, 'ran'))
  }
  // the scrubbed one first: the trace stays
  expect(await run(`import ${JSON.stringify(join(ROOT, 'src/scrub-environment.ts'))}`)).toBe(false)
  expect(await run()).toBe(true)
})

test('the files of the SDK are out of reach after the scrub', async () => {
  const script = `import ${JSON.stringify(join(ROOT, 'src/scrub-environment.ts'))}; console.log(JSON.stringify(process.env))`
  const child = Bun.spawn([process.execPath, '-e', script], { env: hostileHome(), stdout: 'pipe' })
  const left = Object.entries(JSON.parse(await child.stdout.text())).filter(([name]) => name.startsWith('AWS_'))
  expect(Object.fromEntries(left)).toEqual({ AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' })
})
