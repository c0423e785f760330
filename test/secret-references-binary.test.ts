import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROBLEMS } from '../schema/api/errors.ts'
import { type AuthConfig, type ManagerType, SECRET_FIELDS } from '../schema/api/secret-references.ts'
import { type ManagerFailure, STEPS } from '../src/secret-managers/manager.ts'
import { openAwsStage } from './secret-managers/aws-stage.ts'
import { openAzureStage } from './secret-managers/azure-stage.ts'
import {
  type Machine,
  type Shape,
  type Stage,
  secretManagerConformance,
  type Way,
} from './secret-managers/conformance.ts'
import { type RunningMachine, startMachine } from './secret-managers/machines.ts'
import { openVaultStage } from './secret-managers/vault-stage.ts'
import { freshFolder } from './support/database.ts'
import { buildExecutable } from './support/executable.ts'
import { heapOf } from './support/process-memory.ts'

// Every shape of a secret reference through the executable as it is shipped: bundled and minified, with the SDKs inside.

const folder = freshFolder()
const [aws, azure, vault] = await Promise.all([openAwsStage(folder), openAzureStage(folder), openVaultStage(folder)])
const stages: Stage[] = [aws, azure, vault].filter((stage) => stage !== undefined)
const shapes = stages.flatMap((stage) => stage.shapes)

/** One address, which is of one cloud at a time; the machines of this test are in both. */
const metadata = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch({ url, method, headers }) {
    const { pathname, search } = new URL(url)
    const cloud = pathname.startsWith('/metadata/') ? azure.metadata : aws?.metadata
    return fetch(`http://${cloud}${pathname}${search}`, { method, headers })
  },
})

const machines = {} as Record<Machine, RunningMachine>
const each = () => Object.values(machines)
beforeAll(async () => {
  const { path: program } = buildExecutable(join(folder, 'dist'))
  const options = { program, stages, metadata: `127.0.0.1:${metadata.port}`, folder }
  for (const machine of ['instance', 'task', 'pod'] as const) machines[machine] = await startMachine(machine, options)
}, 60_000)
afterAll(async () => {
  await Promise.all(each().map(({ stop }) => stop()))
  await Promise.all([metadata.stop(true), ...stages.map((stage) => stage.stop())])
  for (const { remove } of each()) remove()
  rmSync(folder, { recursive: true })
})

/** Text that each SDK makes in memory when it is loaded, and nobody else. */
const MADE_BY = {
  '@aws-sdk/client-secrets-manager': 'com.amazonaws.secretsmanager',
  '@aws-sdk/client-sts': 'AWSSecurityTokenService',
  '@azure/identity': 'AZURE_CLIENT_CERTIFICATE_PATH',
  '@azure/keyvault-secrets': 'Microsoft.KeyVault',
  'node-vault': 'awsIamLogin',
}
function loadedSdks(): string[] {
  const heaps = each().map(({ pid }) => heapOf(pid))
  return Object.entries(MADE_BY)
    .filter(([, text]) => heaps.some((heap) => heap.includes(text)))
    .map(([sdk]) => sdk)
}

let count = 0
const createBody = (managerType: ManagerType, auth_config: AuthConfig, secret_path: string) => ({
  ...{ name: `reference ${++count}`, manager_type: managerType, auth_config, secret_path },
  cache_seconds: 0,
})

async function create({ machine, managerType, authConfig }: Shape, secretPath: string): Promise<string> {
  const created = await machines[machine].admin(
    'POST',
    '/secret-references',
    createBody(managerType, authConfig, secretPath),
  )
  expect(created.status, created.text).toBe(200)
  return created.body.id
}

/** Created through the API, resolved by the system key; where that must fail, tested as well. */
const executable: Way = {
  name: 'through the executable',
  async open(_stage, shape, { authConfig, secretPath }) {
    const { admin, resolve } = machines[shape.machine]
    const id = await create({ ...shape, authConfig }, secretPath)
    return {
      async read(field) {
        const { status, text, body } = await resolve(id, field === undefined ? {} : { secret_key: field })
        expect(status, text).toBe(200)
        return body
      },
      async failure(field) {
        if (field !== undefined) await admin('PUT', `/secret-references/${id}`, { secret_key: field })
        const tested = await admin('POST', `/secret-references/${id}/test`, {})
        expect(tested.body, tested.text).toMatchObject({ ok: false, fingerprint: null })
        const { failed_step, steps } = tested.body
        const failed: { code: ManagerFailure; message: string } = steps[STEPS.indexOf(failed_step)]
        const { status, type } = PROBLEMS[failed.code]
        const resolved = await resolve(id)
        expect(resolved).toMatchObject({ status, body: { message: failed.message, error: { type } } })
        return { step: failed_step, failure: failed.code, message: failed.message, said: tested.text + resolved.text }
      },
      close() {},
    }
  },
}

test('an executable that was not asked for a secret yet has loaded no SDK', () => {
  expect(loadedSdks()).toEqual([])
})

for (const stage of stages) secretManagerConformance(executable, stage)

test.skipIf(stages.length < 3)('the SDKs that were asked for show where one looks for them', () => {
  expect(loadedSdks()).toEqual(Object.keys(MADE_BY))
})

test.skipIf(aws === undefined)('bytes come in base64, and have no fields', async () => {
  const path = await aws!.storeBinary('bytes', new Uint8Array([0, 128, 255, 10]))
  const id = await create(aws!.shapes[0]!, path)
  const { resolve } = machines.instance
  expect((await resolve(id)).body).toMatchObject({ value: 'AID/Cg==', encoding: 'base64' })
  expect((await resolve(id, { secret_key: 'key' })).body.error.type).toBe('manager_binary')
})

describe('gatehouse secret-references', () => {
  /** the body of a reference that is not stored */
  const fileOf = ({ managerType }: Shape, authConfig: AuthConfig, path: string): string => {
    const file = join(folder, `reference-${++count}.json`)
    writeFileSync(file, JSON.stringify(createBody(managerType, authConfig, path)))
    return file
  }
  const VALUE = 'value-of-the-command-line'
  const store = (stage: Stage) => stage.store('shell', { key: VALUE })

  /** one of each manager */
  let ids: string[]
  beforeAll(async () => {
    ids = await Promise.all(stages.map(async (stage) => create(stage.shapes[0]!, await store(stage))))
  })

  test('test ID goes through the steps beside the server, and shows no value', async () => {
    for (const id of ids) {
      const { exitCode, out, err } = await machines.instance.run('secret-references', 'test', id)
      expect({ exitCode, err, out }).toEqual({ exitCode: 0, err: '', out: expect.stringMatching(/^read +ok /m) })
      expect(out).not.toContain(VALUE)
    }
  })

  test('test FILE says that a login is refused, and repeats nothing of the file', async () => {
    for (const stage of stages) {
      const [shape] = stage.shapes
      const { authConfig = shape!.authConfig } = shape!.refused[0]!
      const { exitCode, out, err } = await machines.instance.run(
        ...['secret-references', 'test', fileOf(shape!, authConfig, await store(stage))],
      )
      expect({ exitCode, err, out }).toEqual({
        ...{ exitCode: 1, err: '', out: expect.stringMatching(/^login +failed +manager_auth_failed: /m) },
      })
      for (const secret of secretsOf(authConfig)) expect(out).not.toContain(secret)
    }
  })

  test('check finds nothing that the settings do not cover', async () => {
    const { exitCode, out } = await machines.instance.run('secret-references', 'check')
    expect({ exitCode, out }).toEqual({ exitCode: 0, out: expect.stringMatching(/^0 of [1-9]\d* /) })
  })

  test('when told to, the server ends; what it printed are lines of JSON, without a secret', async () => {
    for (const machine of each()) {
      expect(await machine.stop()).toBe(0)
      const printed = machine.printed()
      for (const line of printed.trimEnd().split('\n')) expect(() => JSON.parse(line), line).not.toThrow()
      for (const secret of [...shapes.flatMap(({ authConfig }) => secretsOf(authConfig)), VALUE])
        expect(printed).not.toContain(secret)
    }
  })

  test('test does without a server: ID', async () => {
    for (const id of ids) await expectGood(id)
  })

  test('test does without a server: FILE', async () => {
    for (const stage of stages) {
      const [shape] = stage.shapes
      await expectGood(fileOf(shape!, shape!.authConfig, await store(stage)))
    }
  })
  async function expectGood(named: string): Promise<void> {
    const { exitCode, out, err } = await machines.instance.run('secret-references', 'test', named, '--json')
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: '' })
    expect(JSON.parse(out)).toMatchObject({ ok: true, fingerprint: expect.any(String), used_cached_login: false })
  }
})

const secretsOf = (authConfig: AuthConfig): string[] =>
  Object.entries(authConfig).flatMap(([field, value]) =>
    SECRET_FIELDS.some((each) => each === field) ? [`${value}`] : [],
  )
