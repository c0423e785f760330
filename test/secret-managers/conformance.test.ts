import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, rmSync } from 'node:fs'
import type { Config } from '../../schema/config.ts'
import { createOutbound } from '../../src/outbound/outbound.ts'
import { pickField } from '../../src/secret-managers/field.ts'
import { type FetchedSecret, ManagerError, STEPS, type Step } from '../../src/secret-managers/manager.ts'
import { MANAGERS } from '../../src/secret-managers/registry.ts'
import { freshFolder } from '../support/database.ts'
import { openAwsStage } from './aws-stage.ts'
import { openAzureStage } from './azure-stage.ts'
import { type Failed, type Read, type Shape, type Stage, secretManagerConformance, type Way } from './conformance.ts'
import { openFakeStage } from './fake-stage.ts'
import { openVaultStage } from './vault-stage.ts'

const folder = freshFolder()
const opened = await Promise.all([openAwsStage(folder), openAzureStage(folder), openVaultStage(folder)])
const stages = [...opened, openFakeStage()].filter((stage) => stage !== undefined)
afterAll(async () => {
  await Promise.all(stages.map((stage) => stage.stop()))
  rmSync(folder, { recursive: true })
})

/** Each SDK talks to its manager over our one transport. */
const adapter: Way = {
  name: 'by its adapter',
  async open(stage, shape, { authConfig, secretPath }) {
    const { fetch, close } = openClient(stage, { ...shape, authConfig })
    return {
      async read(field): Promise<Read> {
        const secret = await fetch(secretPath)
        return { ...pickField(secret, field ?? null), version: secret.version }
      },
      async failure(field): Promise<Failed> {
        const error = await fetch(secretPath).then(
          (secret) => thrownBy(() => pickField(secret, field ?? null)),
          (thrown: unknown) => thrown,
        )
        if (!(error instanceof ManagerError)) throw new Error(`expected a ManagerError, got ${Bun.inspect(error)}`)
        expect(error.cause).toBeUndefined()
        const { step, failure, message } = error
        return { step, failure, message, said: `${Bun.inspect(error)} ${JSON.stringify(error)}` }
      },
      close,
    }
  },
}

function openClient(
  { manager, outbound: config, caFile, machines }: Stage,
  { managerType, authConfig, machine }: Pick<Shape, 'managerType' | 'authConfig' | 'machine'>,
) {
  const ca = caFile === '' ? undefined : readFileSync(caFile, 'utf8')
  const client = (manager ?? MANAGERS[managerType]).open(authConfig, {
    transport: createOutbound({ config, ownListeners: () => [] }).open({ ca }),
    settings: { ...NO_IDENTITY, ...machines[machine] } as Config['secret_managers'],
    referenceId: crypto.randomUUID(),
  })
  const steps: Step[] = []
  return {
    client,
    steps,
    fetch: (secretPath: string, signal = AbortSignal.timeout(10_000)) =>
      client.fetchSecret(secretPath, { signal, passed: (step) => void steps.push(step) }),
    close: () => client.close(),
  }
}

const NO_IDENTITY = { aws_identity: 'none', azure_workload_token_file: '', vault_jwt_file: '' } as const

function thrownBy(work: () => unknown): unknown {
  try {
    return work()
  } catch (error) {
    return error
  }
}

for (const stage of stages) secretManagerConformance(adapter, stage)

describe.each(stages.filter(({ manager }) => manager === undefined))('$name', (stage) => {
  let path: string
  beforeAll(async () => {
    path = await stage.store('adapters', { key: 'value' })
  })

  describe.each(stage.shapes)('$name', (shape) => {
    beforeAll(() => shape.begin?.())
    afterAll(() => shape.end?.())
    const key = ({ content }: FetchedSecret) => pickField({ content, version: null }, 'key').value

    test('an abort, at whatever moment, is a timeout and nothing else, and hurts nobody after it', async () => {
      for (const ms of [0, 1, 2, 4, 8, 16]) {
        const { fetch, close } = openClient(stage, shape)
        const outcome = await fetch(path, AbortSignal.timeout(ms)).then(key, failureOf)
        expect(['value', 'manager_timeout']).toContain(outcome)
        expect(await fetch(path).then(key)).toBe('value')
        close()
      }
    })

    test('a login ends with its client, and steps are told in their order', async () => {
      const { client, fetch, steps, close } = openClient(stage, shape)
      expect(client.loginExpiresAt()).toBeNull()
      await fetch(path)
      expect(steps.at(-1)).toBe('parse')
      expect(steps).toEqual([...steps].sort((one, other) => STEPS.indexOf(one) - STEPS.indexOf(other)))
      const endsAt = client.loginExpiresAt()
      if (endsAt !== null) expect(endsAt).toBeGreaterThan(Date.now())
      close()
      expect(client.loginExpiresAt()).toBeNull()
      expect(await fetch(path).then(key, failureOf)).toBe('manager_unreachable')
    })
  })
})

const failureOf = (error: unknown) => (error instanceof ManagerError ? error.failure : Bun.inspect(error))
