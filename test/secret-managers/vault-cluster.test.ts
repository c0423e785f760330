import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Transport } from '../../src/outbound/transport.ts'
import { startVault, startVaultCluster, type VaultNode } from '../support/managers.ts'
import { openVault } from './vault-double.ts'
import { transportTo } from './vault-transport.ts'

// Vaults that point elsewhere, are sealed, or have a certificate of their own: servers that nobody here wrote.

const [cluster, safeVault] = await Promise.all([startVaultCluster(), startVault({ tls: true })])
afterAll(() => {
  for (const server of [cluster, safeVault]) server?.stop()
})

const withToken = (vault_addr: string, vault_token: string, transport = transportTo(vault_addr)) =>
  openVault({ vault_auth_type: 'token', vault_addr, vault_token }, transport)

describe.skipIf(cluster === undefined)('of two nodes of Vault', () => {
  const [active, standby] = (cluster?.nodes ?? []) as [VaultNode, VaultNode]
  const at = ({ address }: VaultNode, transport?: Transport) => withToken(address, cluster!.rootToken, transport)

  async function until(node: VaultNode, isReady: (status: number) => boolean): Promise<void> {
    const deadline = Date.now() + 20_000
    while (!isReady((await node.request('GET', 'secret/data/app')).status)) {
      if (Date.now() > deadline) throw new Error(`${node.address} has not come so far`)
      await Bun.sleep(50)
    }
  }

  beforeAll(async () => {
    await active.request('POST', 'sys/mounts/secret', { type: 'kv', options: { version: '2' } })
    await until(active, (status) => status === 404)
    await active.request('POST', 'secret/data/app', { data: { key: 'value' } })
    await until(standby, (status) => status === 200)
  })

  test('the standby reads through the active one', async () => {
    expect((await at(standby).fetch()).content).toEqual({ key: 'value' })
  })

  test('the standby that hands nothing on says where the active one is; that is not followed', async () => {
    const direct = transportTo(standby.address)
    const urls: string[] = []
    const transport: Transport = {
      ...direct,
      send(request) {
        urls.push(request.url)
        return direct.send({ ...request, headers: { ...request.headers, 'X-Vault-No-Request-Forwarding': 'true' } })
      },
    }
    const error = await at(standby, transport).failure()
    expect(error).toMatchObject({ failure: 'manager_standby', step: 'login' })
    expect(error.message).toContain(new URL(active.address).host)
    expect(urls).toEqual([`${standby.address}/v1/auth/token/lookup-self`])
  })

  test('a login outlives the loss of the active one, its restart and its unsealing', async () => {
    const beside = at(standby)
    const before = at(active)
    await beside.fetch()
    await before.fetch()

    active.kill()
    expect((await before.failure()).failure).toBe('manager_unreachable')
    await until(standby, (status) => status !== 200)
    expect(await beside.failure()).toMatchObject({ failure: 'manager_standby', step: 'read' })

    await active.restart()
    expect(await before.failure()).toMatchObject({ failure: 'manager_sealed', step: 'read' })
    await active.unseal()
    await until(active, (status) => status === 200)
    await until(standby, (status) => status === 200)
    for (const opened of [before, beside]) expect((await opened.fetch()).content).toEqual({ key: 'value' })
  })
})

describe.skipIf(safeVault === undefined)('a Vault with an authority of its own', () => {
  test('is trusted with that authority alone', async () => {
    await safeVault!.request('POST', 'secret/data/app', { data: { key: 'value' } })
    const ca = readFileSync(safeVault!.caFile!, 'utf8')
    expect((await withToken(safeVault!.address, 'root', transportTo(safeVault!.address, ca)).fetch()).content).toEqual({
      key: 'value',
    })
    const error = await withToken(safeVault!.address, 'root').failure()
    expect(error).toMatchObject({ failure: 'manager_tls', step: 'tls' })
  })
})
