import { Elysia } from 'elysia'
import { problems } from '../../schema/api/errors.ts'
import { RenderQuery, RenderRequest, RenderResponse } from '../../schema/api/render.ts'
import { createAdmit, guarded, opaque, type Requires } from '../auth/guard.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { readJson } from '../http/body.ts'
import { createHead } from '../http/head.ts'
import { type Rendered, renderPrompt } from './render.ts'

const PERMISSION = ['prompts.render'] as const

/** With the /v1 of a base URL, and without for a client that has a self-hosted address. */
export const RENDER_PATHS = ['/v1/prompts/:promptId/render', '/prompts/:promptId/render'] as const

/**
 * The id or slug of the plainest kind of render URL, which is nearly every one; undefined for all others.
 *
 * @param url as Bun gives it: with scheme and host
 */
export function renderTarget(url: string): string | undefined {
  if (!url.endsWith('/render') || url.includes('%')) return undefined
  const path = url.indexOf('/', 'https://'.length)
  const start = url.startsWith('/v1', path) ? path + '/v1'.length : path
  if (!url.startsWith('/prompts/', start)) return undefined
  const id = url.slice(start + '/prompts/'.length, -'/render'.length)
  return id === '' || id === 'partials' || id.includes('/') || id.includes('?') ? undefined : id
}

export type Render = (context: RenderContext) => Promise<Response>

/** The hot path: it answers with a finished Response, so that none of the administrative hooks run. */
export function createRender(
  gatehouse: Gatehouse,
  requires: Requires,
  logRender: (context: RenderContext) => void,
): Render {
  const { metrics, config } = gatehouse
  const { strict_compliance_headers: complianceHeaders } = config.render
  const { render_body_bytes: limitBytes } = config.limits
  const head = createHead(config)
  const sends = config.log.renders !== 'none'

  const answer = (context: RenderContext, { promptId, version, data, explain }: Rendered): Response => {
    const { requestId, startedAt } = context.call
    const headers = head(requestId)
    headers['x-gatehouse-prompt-id'] = promptId
    headers['x-gatehouse-prompt-version'] = `${version}`
    if (context.caller.limiter !== undefined) Object.assign(headers, context.caller.limiter.headers(startedAt))
    const text = JSON.stringify(explain === undefined ? { success: true, data } : { success: true, data, explain })
    metrics.render((performance.now() - startedAt) / 1000)
    if (sends) logRender(context)
    return new Response(text, { headers })
  }

  const admit = createAdmit(gatehouse)
  const { transform } = guardOf(requires)

  return async (context) => {
    const { request, params } = context
    admit(context, PERMISSION)
    const { value: body, hasBigIntegers } = await readJson(request, limitBytes)
    context.body = body
    transform(context)
    if (typeof body !== 'object' || body === null || Array.isArray(body))
      throw invalidField('', 'the body must be a JSON object')
    // Most requests have no query: only then is Elysia's parsed one worth asking for.
    const query = request.url.includes('?') ? readQuery(request.url) : NO_QUERY
    const rendered = renderPrompt(gatehouse, context.caller, params.promptId, {
      body: body as Record<string, unknown>,
      hasBigIntegers,
      complianceHeader: () => oneHeader(request.headers, complianceHeaders),
      ...query,
    })
    return answer(context, rendered instanceof Promise ? await rendered : rendered)
  }
}

const guardOf = (requires: Requires) =>
  requires(PERMISSION, 'Render a prompt into a ready-to-send request', 'render_body_bytes')

export function renderRoutes(requires: Requires, render: Render) {
  const { detail } = guardOf(requires)
  const documented = {
    // Elysia's own reading of a body first makes a stream of it.
    parse: 'none' as const,
    // Documentation only: the merged request is what is checked (see RenderRequest).
    detail: { ...detail, 'x-contract': { body: RenderRequest, query: RenderQuery, response: RenderResponse } },
    response: problems(
      'invalid',
      'unauthenticated',
      'forbidden',
      'not_found',
      'payload_too_large',
      'unsupported_media_type',
    ),
  }
  const [path, selfHosted] = RENDER_PATHS
  return new Elysia({ normalize: false })
    .decorate(guarded)
    .post(path, opaque(render), documented)
    .post(selfHosted, opaque(render), documented)
}

export interface RenderContext {
  request: Request
  body: unknown
  params: { promptId: string }
  call: typeof guarded.call
  caller: typeof guarded.caller
}

const NO_QUERY = { strict: false, explain: false }
const FLAGS = new Set(['strict', 'explain'])

function readQuery(url: string): { strict: boolean; explain: boolean } {
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1))
  for (const [name, value] of query) {
    if (!FLAGS.has(name)) throw invalidField('', 'the query takes strict and explain only')
    if (value !== 'true' && value !== 'false') throw invalidField(name, 'must be true or false')
  }
  return { strict: query.get('strict') === 'true', explain: query.get('explain') === 'true' }
}

/** @throws GatehouseError `invalid` when two of the headers say different things */
function oneHeader(headers: Headers, names: readonly string[]): string | undefined {
  const values = new Set(names.map((name) => headers.get(name)).filter((value) => value !== null))
  if (values.size > 1)
    throw invalidField('', `send one of the headers ${names.join(' and ')}: they say different things`)
  return values.values().next().value
}
