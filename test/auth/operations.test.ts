import { describe, expect, test } from 'bun:test'
import { GRANTABLE, type Permission, SYSTEM_PERMISSIONS } from '../../schema/api/permissions.ts'
import description from '../../schema/openapi.json'
import type { KeyType } from '../../src/auth/caller.ts'
import { EXTENSIONS, OPERATIONS, type Operation } from '../../src/auth/operations.ts'

const nameOf = ({ method, path }: Operation): string => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`
const all = [...OPERATIONS, ...EXTENSIONS]

/** What there is already, with the permissions that its guard asks for. */
const ROUTES: [string, readonly string[]][] = Object.entries(
  description.paths as Record<string, Record<string, { 'x-permissions'?: string[] }>>,
).flatMap(([path, methods]) =>
  Object.entries(methods).map(
    ([method, route]) => [`${method.toUpperCase()} ${path}`, route['x-permissions'] ?? []] as [string, string[]],
  ),
)

test('the contract has 149 operations, each once', () => {
  expect(OPERATIONS.length).toBe(149)
  expect(new Set(all.map(nameOf)).size).toBe(all.length)
})

// Operations by resource, as the index of the contract counts them.
test.each<[string, RegExp, number]>([
  ['prompts and render', /^\/prompts(?!\/partials)/, 10],
  ['partials', /^\/prompts\/partials/, 7],
  ['collections', /^\/collections/, 5],
  ['labels', /^\/labels/, 5],
  ['secret references', /^\/secret-references/, 5],
  ['integrations', /^\/integrations/, 10],
  ['providers and virtual keys', /^\/(?:providers|virtual-keys)/, 10],
  ['configs', /^\/configs/, 6],
  ['API keys', /^\/api-keys/, 9],
  ['users and invites', /^\/admin\/users/, 9],
  ['workspaces and members', /^\/admin\/workspaces/, 10],
  ['organisation settings', /^\/(?:admin\/organisation|workspace-exclusions)/, 6],
  ['audit logs', /^\/audit-logs/, 1],
  ['logs', /^\/logs/, 10],
  ['feedback', /^\/feedback/, 2],
  ['analytics', /^\/analytics/, 23],
  ['policies', /^\/policies/, 12],
  ['guardrails and SCIM', /^\/(?:guardrails|scim)/, 9],
])('%s: all of them', (_name, path, count) => {
  expect(OPERATIONS.filter((operation) => path.test(operation.path)).length).toBe(count)
})

describe('a type of key that may make a call can hold what it takes', () => {
  const holdable: Record<KeyType, ReadonlySet<Permission>> = { ...GRANTABLE, system: new Set(SYSTEM_PERMISSIONS) }
  test.each(all.filter(({ keys }) => keys.size > 0).map((operation) => [nameOf(operation), operation] as const))(
    '%s',
    (_name, { keys, permissions }) => {
      for (const type of keys) expect(permissions.some((permission) => holdable[type].has(permission))).toBe(true)
    },
  )

  // Where it could, the call is withheld from it by name: these and no others.
  test('and what is withheld from one that could', () => {
    const withheld = all.flatMap((operation) =>
      (Object.keys(holdable) as KeyType[])
        .filter((type) => !operation.keys.has(type) && operation.permissions.some((p) => holdable[type].has(p)))
        .map((type) => `${type}: ${nameOf(operation)}`),
    )
    expect(withheld.sort()).toEqual([
      'organisation-service: POST /secret-references/{secretReferenceId}/resolve',
      'system: GET /integrations/{integrationId}/workspaces',
      'system: GET /secret-references/{secretReferenceId}/health',
      'system: POST /feedback',
      'system: PUT /feedback/{feedbackId}',
    ])
  })
})

test('one call is public', () => {
  expect(all.filter(({ keys }) => keys.size === 0).map(nameOf)).toEqual(['POST /admin/users/invites/accept'])
})

test.each(ROUTES)('%s asks for what the table says', (route, permissions) => {
  const operation = all.find((one) => nameOf(one) === route)
  expect([...permissions].sort() as string[]).toEqual([...(operation?.permissions ?? ['no such operation'])].sort())
})
