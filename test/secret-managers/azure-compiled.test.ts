import { afterAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { startAzureDouble } from '../support/azure-double.ts'
import { freshFolder } from '../support/database.ts'
import { CLIENT_ID, CLIENT_SECRET, entra, MANAGED } from './azure-open.ts'

// An executable loads the SDKs from itself, and its minifier gives their classes other names (SC-4, P20).

const azure = await startAzureDouble()
const folder = freshFolder()
afterAll(() => {
  azure.stop()
  rmSync(folder, { recursive: true })
})

const version = 'a'.repeat(32)
azure.applications = { [CLIENT_ID]: { secrets: [{ value: CLIENT_SECRET }] } }
azure.identities = ['identity']
azure.secrets = { openai: [{ version, value: 'value' }], off: [{ version, value: 'hidden', enabled: false }] }
azure.instead.secret = ({ path }) =>
  path.startsWith('/secrets/moved/') ? Response.redirect('https://elsewhere.example/', 307) : undefined

const PROGRAM = join(import.meta.dir, 'azure-program.ts')

function compiled(): string[] {
  const program = join(folder, 'program')
  const build = ['build', '--compile', '--minify', '--bytecode', `--outfile=${program}`, PROGRAM]
  const { success, stderr } = Bun.spawnSync([process.execPath, ...build], { cwd: folder })
  if (!success) throw new Error(`${stderr}`)
  return [program]
}

test.each([
  ['from source', () => [process.execPath, PROGRAM]],
  ['compiled', compiled],
])('%s, secrets and failures are the same', async (_how, program) => {
  const reads = [
    { authConfig: entra(azure), secretPath: 'openai' },
    { authConfig: MANAGED, secretPath: 'openai' },
    { authConfig: entra(azure), secretPath: 'never' },
    { authConfig: entra(azure), secretPath: 'off' },
    { authConfig: entra(azure), secretPath: 'moved' },
    { authConfig: entra(azure, { azure_entra_client_secret: 'other' }), secretPath: 'openai' },
    { authConfig: entra(azure, { azure_entra_tenant_id: crypto.randomUUID() }), secretPath: 'openai' },
    { authConfig: { ...MANAGED, azure_managed_client_id: 'other' }, secretPath: 'openai' },
  ]
  const asked = JSON.stringify({ connect: azure.connect, ca: azure.ca, reads })
  const child = Bun.spawn([...program(), asked], { env: {}, stdout: 'pipe', stderr: 'inherit' })
  expect(JSON.parse(await child.stdout.text())).toEqual([
    { content: 'value', version },
    { content: 'value', version },
    'manager_secret_missing at read',
    'manager_secret_disabled at read',
    'manager_bad_response at read',
    'manager_auth_failed at login',
    'manager_auth_failed at login',
    'manager_auth_failed at login',
  ])
})
