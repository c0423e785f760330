import { expect, test } from 'bun:test'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')

const run = (args: string[], env: Record<string, string> = {}) => spawn([process.execPath, ...args], env)
/** `$0` is Bun. */
const runShell = (script: string) => spawn(['sh', '-c', script, process.execPath], {})

async function spawn(command: string[], env: Record<string, string>) {
  const child = Bun.spawn(command, {
    env: { PATH: process.env['PATH'], ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { out, err, exitCode }
}

test('what SDKs and drivers would read is gone before anything else is loaded (CF-7)', async () => {
  const ambient = [
    'VAULT_TOKEN',
    'AWS_PROFILE',
    'AZURE_CLIENT_ID',
    'MSI_ENDPOINT',
    'IDENTITY_HEADER',
    'PGPASSWORD',
    'DATABASE_URL',
    'POSTGRES_URL',
  ]
  const more = ['HTTPS_PROXY', 'https_proxy', 'NODE_TLS_REJECT_UNAUTHORIZED', 'NODE_EXTRA_CA_CERTS', 'DEBUG']
  const env = Object.fromEntries([...ambient, ...more, 'KEPT', 'GATEHOUSE_LOG_LEVEL'].map((name) => [name, '1']))
  const script = `import ${JSON.stringify(join(root, 'src/scrub-environment.ts'))}; console.log(JSON.stringify(process.env))`
  const left = JSON.parse((await run(['-e', script], env)).out)
  for (const name of [...ambient, ...more]) expect(left).not.toHaveProperty(name)
  expect(left).toMatchObject({ KEPT: '1', GATEHOUSE_LOG_LEVEL: '1' })
})

test('main.ts imports the scrubbing first: imports run in order, before any line of code', async () => {
  const [first] = new Bun.Transpiler({ loader: 'ts' }).scanImports(await Bun.file(join(root, 'src/main.ts')).text())
  expect(first?.path).toBe('./scrub-environment.ts')
})

test.if(process.platform === 'linux')('a process that dies leaves no copy of its memory (decision 42)', async () => {
  const forbid = JSON.stringify(join(root, 'src/forbid-core-dumps.ts'))
  const read =
    "['limits', 'coredump_filter'].map((name) => require('node:fs').readFileSync('/proc/self/' + name, 'utf8')).join('')"
  const script = `ulimit -c unlimited 2>/dev/null; exec "$0" -e '${`import ${forbid}; console.log(${read})`.replaceAll("'", "'\\''")}'`
  const { out } = await runShell(script)
  expect(out).toMatch(/^Max core file size +0 +0 /m)
  expect(out.trim()).toEndWith('00000000')
  expect(await Bun.file(join(root, 'src/main.ts')).text()).toContain("import './forbid-core-dumps.ts'")
})

test('the exit code and the two streams reach the shell', async () => {
  const main = join(root, 'src/main.ts')
  expect(await run([main, 'version'])).toMatchObject({
    exitCode: 0,
    err: '',
    out: expect.stringMatching(/^gatehouse /),
  })
  expect(await run([main, 'config', 'check', '--config', '/nowhere'])).toMatchObject({ exitCode: 78, out: '' })
})
