import type { TSchema } from '@sinclair/typebox'
import { isOfManager, PROBLEMS, problems } from '../../schema/api/errors.ts'
import { describeApp } from '../app.ts'

/** The interface's version (spec 9.2), which clients know; the program's own is another thing (decision 18). */
const INTERFACE_VERSION = '2.0.0'

const BASE_URL = { url: '{base_url}', variables: { base_url: { default: 'http://127.0.0.1:8787/v1' } } }
const SELF_HOSTED_URL = {
  url: '{self_hosted_url}',
  variables: { self_hosted_url: { default: 'http://127.0.0.1:8787' } },
}
const RENDER_PATH = '/v1/prompts/:promptId/render'

/** What a route declares, as far as its description goes. */
interface Route {
  method: string
  path: string
  hooks: {
    body?: TSchema
    query?: TSchema
    response?: Record<string, TSchema>
    detail?: { summary: string; hide?: boolean; 'x-contract'?: { body: TSchema; query: TSchema; response: TSchema } }
  }
}

type Schemas = Record<string, unknown>

/**
 * The OpenAPI document, from the contracts that the routes themselves use: OpenAPI 3.1 takes JSON Schema as it is.
 * The base URL ends in /v1, so paths start after it; render without /v1 is the same path under another server.
 */
export function openApiDocument(): object {
  const schemas: Schemas = {}
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of describeApp().routes as Route[]) {
    if (!route.path.startsWith('/v1/') || route.hooks.detail?.hide === true) continue
    const path = route.path.slice('/v1'.length).replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: nameSchemas(describe(route), schemas) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Gatehouse',
      version: INTERFACE_VERSION,
      description: 'The control plane of an AI gateway: prompts, their rendering, and the keys that may use them.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [BASE_URL],
    security: [{ apiKey: [] }],
    components: {
      securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-service-api-key' } },
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
    },
    paths,
  }
}

function describe({ method, path, hooks }: Route): object {
  const { 'x-contract': contract, ...detail } = hooks.detail ?? { summary: '' }
  const body = contract?.body ?? hooks.body
  const query = contract?.query ?? hooks.query
  const isDoneOnce = method === 'POST' && 'x-permissions' in detail && contract === undefined
  const response = {
    ...(contract && { 200: contract.response }),
    ...(isDoneOnce && problems('conflict')),
    ...hooks.response,
  }
  return {
    ...detail,
    operationId: operationId(method, path),
    parameters: [...pathParameters(path), ...queryParameters(query), ...(isDoneOnce ? [IDEMPOTENCY_KEY] : [])],
    ...(body !== undefined && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: Object.fromEntries(
      Object.entries(response).map(([status, schema]) => [
        status,
        { description: reasonsOf(status, schema), content: { 'application/json': { schema } } },
      ]),
    ),
    ...(path === RENDER_PATH && { servers: [BASE_URL, SELF_HOSTED_URL] }),
  }
}

/** What the guard takes with every POST that changes something (decision 8). */
const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes it safe to send a request again: within 24 hours it is done once, and the answer is given again with the header Idempotent-Replayed (for one hour, if it holds a secret). With another body: 409.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
}

/** `PUT /v1/prompts/:promptId/makeDefault` → `putPromptsByPromptIdMakeDefault` */
function operationId(method: string, path: string): string {
  const words = path.slice('/v1/'.length).replaceAll(':', 'by-').split(/[/_-]/)
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('')
}

const pathParameters = (path: string): object[] =>
  Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }))

function queryParameters(query: TSchema | undefined): object[] {
  const properties = (query?.['properties'] ?? {}) as Record<string, TSchema>
  const required = (query?.['required'] ?? []) as string[]
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

/** What a status means, from the one table of problems; those of secret managers only where the route names them. */
function reasonsOf(status: string, schema: TSchema): string {
  const anywhere = Object.entries(PROBLEMS)
    .filter(([code, problem]) => String(problem.status) === status && !isOfManager(code))
    .map(([, { type }]) => type)
  return [...anywhere, ...(schema['x-reasons'] ?? [])].join(', ') || 'done'
}

/** Moves every titled schema into `schemas`, once, and leaves a reference to it; writes unions of texts as enums. */
function nameSchemas(node: unknown, schemas: Schemas): unknown {
  if (Array.isArray(node)) return node.map((item) => nameSchemas(item, schemas))
  if (typeof node !== 'object' || node === null) return node
  const { $id: _, 'x-reasons': __, ...rest } = node as Record<string, unknown>
  const copy = asEnum(
    Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, nameSchemas(value, schemas)])),
  )
  const { title } = rest
  const isSchema = typeof title === 'string' && ('type' in rest || 'anyOf' in rest || 'allOf' in rest)
  if (!isSchema) return copy
  if (schemas[title] !== undefined && !Bun.deepEquals(schemas[title], copy))
    throw new Error(`two schemas are titled ${title}`)
  schemas[title] = copy
  return { $ref: `#/components/schemas/${title}` }
}

function asEnum(schema: Record<string, unknown>): Record<string, unknown> {
  const { anyOf, ...rest } = schema
  const isEnum =
    Array.isArray(anyOf) && anyOf.every((each) => typeof each === 'object' && each !== null && 'const' in each)
  return isEnum ? { ...rest, enum: anyOf.map((each: { const: unknown }) => each.const) } : schema
}
