import { describe, expect, test } from 'bun:test'
import type { AzureAuthConfig } from '../../schema/api/secret-references.ts'
import { openAzure } from './azure-open.ts'

// The same at a vault of Microsoft's, for who has one: test/servers/README.md says what it has to hold.

const url = process.env['GATEHOUSE_TEST_AZURE_VAULT_URL'] ?? ''
const name = process.env['GATEHOUSE_TEST_AZURE_SECRET'] ?? ''

const authConfig: AzureAuthConfig = {
  azure_auth_mode: 'entra',
  azure_entra_tenant_id: process.env['GATEHOUSE_TEST_AZURE_TENANT_ID'] ?? '',
  azure_entra_client_id: process.env['GATEHOUSE_TEST_AZURE_CLIENT_ID'] ?? '',
  azure_entra_client_secret: process.env['GATEHOUSE_TEST_AZURE_CLIENT_SECRET'] ?? '',
  azure_vault_url: url,
}
const open = (changes: object = {}) => openAzure({ connect: {} }, { ...authConfig, ...changes } as AzureAuthConfig)

describe.skipIf(url === '')('Azure', () => {
  test('gives the newest version, and that version by its name', async () => {
    const { fetch, client } = open()
    const latest = await fetch(name)
    expect(latest.version).toMatch(/^[0-9a-f]{32}$/)
    expect(await fetch(`${name}/${latest.version}`)).toEqual(latest)
    expect(client.loginExpiresAt()).toBeGreaterThan(Date.now())
  })

  test.each([
    ['a wrong client secret', { azure_entra_client_secret: 'wrong' }, 'login', 'manager_auth_failed', 'its value'],
    [
      'an unknown application',
      { azure_entra_client_id: crypto.randomUUID() },
      'login',
      'manager_auth_failed',
      'no such',
    ],
    ['another directory', { azure_entra_tenant_id: crypto.randomUUID() }, 'login', 'manager_auth_failed', 'another'],
    ['no directory', { azure_entra_tenant_id: 'nowhere.invalid' }, 'login', 'manager_auth_failed', 'directory'],
  ])('refuses %s', async (_what, changes, step, failure, mentions) => {
    const error = await open(changes).failure(name)
    expect({ step: error.step, failure: error.failure as string }).toEqual({ step, failure } as never)
    expect(error.message).toContain(mentions)
  })

  test('has no secret of another name', async () => {
    expect((await open().failure(`never-${Date.now()}`)).failure).toBe('manager_secret_missing')
  })
})
