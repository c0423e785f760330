import { createFakeManager, failing, text } from '../support/fake-manager.ts'
import { meanwhile, type Stage } from './conformance.ts'

const authConfig = {
  vault_auth_type: 'token',
  vault_addr: 'https://vault.example.com',
  vault_token: 'hvs.of-the-config',
} as const

/** The fake on which other tests build: what holds for it has to hold for the managers. It has no logins to count. */
export function openFakeStage(): Stage {
  const stored = new Map<string, string[]>()
  const logins: string[] = []
  const told: { refusal?: 'manager_auth_failed' | 'manager_denied' | undefined } = { refusal: undefined }
  const manager = createFakeManager((call, path) => {
    const { refusal } = told
    if (refusal === 'manager_auth_failed') logins.push('refused')
    if (refusal !== undefined)
      return failing(refusal, { step: refusal === 'manager_denied' ? 'read' : 'login' })(call, path)
    const versions = stored.get(path)
    if (versions === undefined) return failing('manager_secret_missing')(call, path)
    return text(versions.at(-1) ?? '', `v${versions.length}`)
  })
  return {
    name: 'the fake manager',
    manager,
    outbound: { allow: [], allow_http: [], connect: {}, proxy: '' },
    caFile: '',
    machines: {},
    shapes: [
      {
        name: 'any shape',
        ...{ managerType: 'hashicorp_vault', authConfig, machine: 'instance', login: [] },
        refused: [{ what: 'as it was told', during: meanwhile(told, 'refusal', 'manager_auth_failed') }],
        denied: { what: 'as it was told', during: meanwhile(told, 'refusal', 'manager_denied') },
      },
    ],
    async store(name, fields) {
      stored.set(name, [...(stored.get(name) ?? []), JSON.stringify(fields)])
      return name
    },
    missingPath: 'never',
    logins: () => logins,
    async stop() {},
  }
}
