import { toOpenAPISchema } from '@elysiajs/openapi'
import type { TSchema } from '@sinclair/typebox'
import { PROBLEMS } from '../../schema/api/errors.ts'
import { describeApp } from '../app.ts'

/** The interface's version (spec 9.2), which clients know; the program's own is another thing (decision 18). */
const INTERFACE_VERSION = '2.0.0'

interface Operation {
  'x-contract'?: { body: TSchema; query: TSchema; response: TSchema }
  parameters?: unknown[]
  requestBody?: unknown
  responses?: Record<string, { description: string; content: unknown }>
  servers?: unknown[]
  [key: string]: unknown
}
type Paths = Record<string, Record<string, Operation>>

/** The OpenAPI document, from the contracts that the routes themselves use. */
export function openApiDocument(): object {
  const app = describeApp()
  const { paths } = toOpenAPISchema(app) as unknown as { paths: Paths }
  // The plugin documents no body for routes with a parser of their own, which all of ours are.
  for (const { method, path, hooks } of app.routes) {
    const operation = paths[path.replace(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    if (operation !== undefined && hooks.body !== undefined) operation.requestBody = jsonBody(hooks.body)
  }
  const schemas: Schemas = {}
  const named = nameSchemas(underBaseUrl(paths), schemas)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: INTERFACE_VERSION,
      description: 'The control plane of an AI gateway: prompts, their rendering, and the keys that may use them.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '{base_url}', variables: { base_url: { default: 'http://127.0.0.1:8787/v1' } } }],
    security: [{ apiKey: [] }],
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-service-api-key' } },
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
    paths: named,
  }
}

type Schemas = Record<string, unknown>

/** Moves every titled schema into `schemas`, once, and leaves a reference to it. */
function nameSchemas(node: unknown, schemas: Schemas): unknown {
  if (Array.isArray(node)) return node.map((item) => nameSchemas(item, schemas))
  if (typeof node !== 'object' || node === null) return node
  const { $id: _, ...rest } = node as Record<string, unknown>
  const copy = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, nameSchemas(value, schemas)]))
  const { title } = rest
  const isSchema = typeof title === 'string' && ('type' in rest || 'anyOf' in rest || 'allOf' in rest)
  if (!isSchema) return copy
  if (schemas[title] !== undefined && !Bun.deepEquals(schemas[title], copy))
    throw new Error(`two schemas are titled ${title}`)
  schemas[title] = copy
  return { $ref: `#/components/schemas/${title}` }
}

/** The base URL ends in /v1, so paths start after it; render without /v1 is the same path under another server. */
function underBaseUrl(paths: Paths): Paths {
  const result: Paths = {}
  for (const [path, operations] of Object.entries(paths)) {
    if (!path.startsWith('/v1/')) continue
    for (const operation of Object.values(operations)) finish(operation)
    result[path.slice('/v1'.length)] = operations
  }
  const render = result[RENDER_PATH]?.['post']
  if (render !== undefined)
    render.servers = [
      { url: '{base_url}', variables: { base_url: { default: 'http://127.0.0.1:8787/v1' } } },
      { url: '{self_hosted_url}', variables: { self_hosted_url: { default: 'http://127.0.0.1:8787' } } },
    ]
  return result
}

const jsonBody = (schema: unknown) => ({ required: true, content: { 'application/json': { schema } } })

/** What each status means, from the one table of problems. */
const REASONS: Record<string, string> = {}
for (const { status, type } of Object.values(PROBLEMS))
  REASONS[status] = [REASONS[status], type].filter(Boolean).join(', ')

const RENDER_PATH = '/prompts/{promptId}/render'

/** Render checks its merged request itself; its contracts come in by `x-contract`. */
function finish(operation: Operation): void {
  for (const [status, response] of Object.entries(operation.responses ?? {}))
    response.description = REASONS[status] ?? 'done'
  const contract = operation['x-contract']
  if (contract === undefined) return
  delete operation['x-contract']
  operation.requestBody = jsonBody(contract.body)
  operation.parameters = [
    ...(operation.parameters ?? []),
    ...Object.entries(contract.query['properties'] as Record<string, TSchema>).map(([name, schema]) => ({
      name,
      in: 'query',
      required: false,
      schema,
    })),
  ]
  const success = {
    description: 'Response for status 200',
    content: { 'application/json': { schema: contract.response } },
  }
  operation.responses = { 200: success, ...operation.responses }
}
