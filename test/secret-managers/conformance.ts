import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type AuthConfig, type ManagerType, SECRET_FIELDS } from '../../schema/api/secret-references.ts'
import type { Config } from '../../schema/config.ts'
import { type ManagerFailure, type SecretManager, STEPS, type Step } from '../../src/secret-managers/manager.ts'

// What all managers have in common, whatever their SDKs make of it: one suite for every shape of a secret reference, on
// every way that leads to it.

/** A manager that was set up, with every shape that it takes. */
export interface Stage {
  name: string
  /** where the adapter is not the one of the program */
  manager?: SecretManager
  outbound: Config['outbound']
  /** authorities to trust, as a `ca_file` setting */
  caFile: string
  /** what kinds of machine say of themselves, for the shapes that log in as one */
  machines: Partial<Record<Machine, Partial<Config['secret_managers']>>>
  shapes: Shape[]
  /** Stores a new version of a secret, which every shape may read. Answers its secret_path. */
  store(name: string, fields: Record<string, string>): Promise<string>
  /** where nothing was ever stored */
  missingPath: string
  /** the requests for a login that the manager has seen, in their order */
  logins(): string[]
  /** by what goes wrong on the way to the manager, before anybody is asked to log in */
  unreachable?: Record<'nobody listens' | 'another authority', AuthConfig>
  stop(): Promise<void>
}

/** A server in a data centre, a container of ECS, a pod of Kubernetes. */
export type Machine = 'instance' | 'task' | 'pod'

/** One of the nine, or a variant of it. */
export interface Shape {
  name: string
  managerType: ManagerType
  authConfig: AuthConfig
  machine: Machine
  /** what one login asks the manager for */
  login: string[]
  /** access keys sign each read, and are looked at there: nothing is kept */
  isPerRead?: true
  /** around all of its tests */
  begin?(): Promise<void>
  end?(): Promise<void>
  /** Ends its logins at the manager, early; absent where there is no other to be had. */
  revoke?(): Promise<void>
  /** what is asked for after that; as `login` when absent */
  loginAgain?: string[]
  /** a login that is refused */
  refused: Wrong[]
  /** a login that may not read the secret; absent where the stand-in of the manager cannot tell */
  denied?: Wrong
}

/** What is wrong with a reference; or meanwhile with the manager, where nothing in a reference could be. */
export interface Wrong {
  what: string
  authConfig?: AuthConfig
  secretPath?: string
  during?: (work: () => Promise<void>) => Promise<void>
}

/** What a field of a stand-in is while something runs. */
export const meanwhile =
  <T extends object, K extends keyof T>(standIn: T, field: K, value: T[K]) =>
  async (work: () => Promise<void>): Promise<void> => {
    const before = standIn[field]
    standIn[field] = value
    await work().finally(() => {
      standIn[field] = before
    })
  }

/** How secrets are asked for: of an adapter, or of the program over HTTP. */
export interface Way {
  name: string
  /** A new reference. Its login is kept, and no value. */
  open(stage: Stage, shape: Shape, reference: { authConfig: AuthConfig; secretPath: string }): Promise<Door>
}

export interface Door {
  read(field?: string): Promise<Read>
  /** of a read that must fail */
  failure(field?: string): Promise<Failed>
  close(): void
}

export interface Read {
  value: string
  encoding: 'utf-8' | 'base64'
  version: string | null
}

export interface Failed {
  step: Step | null
  failure: ManagerFailure
  message: string
  /** all that was shown of it */
  said: string
}

const FIELDS = {
  api_key: 'line\nline\ttab "quotes" \\ {{tag}} ü 😀',
  empty: '',
  long: 'x'.repeat(16_384),
}

export function secretManagerConformance(way: Way, stage: Stage): void {
  describe(`${stage.name}, ${way.name}`, () => {
    let path: string
    beforeAll(async () => {
      path = await stage.store('conformance', FIELDS)
    })

    describe.each(stage.shapes)('$name', (shape) => {
      const { authConfig, login } = shape
      const open = (reference: Partial<Wrong> = {}) =>
        way.open(stage, shape, { authConfig, secretPath: path, ...reference })
      beforeAll(() => shape.begin?.())
      afterAll(() => shape.end?.())

      test('gives what was stored, whole and by field, and logs in once for it', async () => {
        const door = await open()
        const before = stage.logins().length
        const { value, encoding } = await door.read()
        expect({ fields: JSON.parse(value), encoding }).toEqual({ fields: FIELDS, encoding: 'utf-8' })
        for (const [field, expected] of Object.entries(FIELDS))
          expect(await door.read(field)).toMatchObject({ value: expected, encoding: 'utf-8' })
        const logins = shape.isPerRead ? Array(4).fill(login).flat() : login
        expect(stage.logins().slice(before)).toEqual(logins)
        door.close()
      })

      test('logs in once for many at a time', async () => {
        const door = await open()
        const before = stage.logins().length
        const reads = await Promise.all(Array.from({ length: 20 }, () => door.read('api_key')))
        expect(new Set(reads.map(({ value }) => value))).toEqual(new Set([FIELDS.api_key]))
        if (!shape.isPerRead) expect(stage.logins().slice(before)).toEqual(login)
        door.close()
      })

      test('gives what is stored now, with another version', async () => {
        const secretPath = await stage.store('changing', { key: 'old' })
        const door = await open({ secretPath })
        const old = await door.read('key')
        await stage.store('changing', { key: 'new' })
        const read = await door.read('key')
        expect([old.value, read.value]).toEqual(['old', 'new'])
        expect(read.version).toBeString()
        expect(read.version).not.toBe(old.version)
        door.close()
      })

      const { revoke, loginAgain = login } = shape
      if (revoke !== undefined)
        test('logs in again where its login has ended early', async () => {
          const door = await open()
          const before = stage.logins().length
          await door.read()
          await revoke()
          expect(await door.read('api_key')).toMatchObject({ value: FIELDS.api_key })
          expect(stage.logins().slice(before)).toEqual([...login, ...loginAgain])
          door.close()
        })

      test.each(shape.refused)('is refused at the step login: $what', async ({ during = atOnce, ...wrong }) => {
        const door = await open(wrong)
        const before = stage.logins().length
        await during(async () => {
          expectFailure(await door.failure(), 'login', 'manager_auth_failed', wrong.authConfig ?? authConfig)
        })
        expect(stage.logins().length).toBeGreaterThan(before)
        door.close()
      })

      test.each(shape.denied === undefined ? [] : [shape.denied])(
        'is denied at the step read: $what',
        async ({ during = atOnce, ...wrong }) => {
          const door = await open(wrong)
          await during(async () => expectFailure(await door.failure(), 'read', 'manager_denied', authConfig))
          door.close()
        },
      )

      test('says at which step a secret, or a field of it, is missing', async () => {
        const [nowhere, door] = [await open({ secretPath: stage.missingPath }), await open()]
        expectFailure(await nowhere.failure(), 'read', 'manager_secret_missing', authConfig)
        expectFailure(await door.failure('no_such_field'), 'field', 'manager_field_missing', authConfig)
        nowhere.close()
        door.close()
      })
    })

    const unreachable = Object.entries(stage.unreachable ?? {})
    test.each(unreachable)('where %s, nobody is asked to log in', async (what, authConfig) => {
      const [shape] = stage.shapes
      const before = stage.logins()
      const door = await way.open(stage, shape!, { authConfig, secretPath: path })
      const [step, failure] =
        what === 'nobody listens' ? (['connect', 'manager_unreachable'] as const) : (['tls', 'manager_tls'] as const)
      expectFailure(await door.failure(), step, failure, authConfig)
      expect(stage.logins()).toEqual(before)
      door.close()
    })
  })
}

const atOnce = (work: () => Promise<void>) => work()

/** Clients take 404 and "not found" for an answer of our own, and nobody may read a login off a failure. */
function expectFailure({ step, failure, message, said }: Failed, at: Step, as: ManagerFailure, authConfig: AuthConfig) {
  expect({ step, failure, message }).toEqual({ step: at, failure: as, message: expect.stringMatching(/\S{2}/) })
  expect(STEPS).toContain(at)
  expect(message).not.toMatch(/404|not found/i)
  const secrets = Object.entries(authConfig).filter(([field]) => SECRET_FIELDS.some((secret) => secret === field))
  for (const [field, value] of [...secrets, ...Object.entries(FIELDS)])
    if (value !== '') expect(said.includes(String(value)), field).toBe(false)
}
