import { type AnyElysia, Elysia } from 'elysia'
import { apiKeyRoutes } from './api-keys/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { createRequires, guarded, opaque } from './auth/guard.ts'
import { collectionRoutes } from './collections/routes.ts'
import type { Gatehouse } from './gatehouse.ts'
import { createAccessLog } from './http/access-log.ts'
import { createAnswers } from './http/answers.ts'
import { docsRoutes } from './http/docs-routes.ts'
import { healthRoutes } from './http/health-routes.ts'
import { methodsByPath } from './http/methods.ts'
import { invitePageRoutes } from './invites/page-routes.ts'
import { inviteRoutes } from './invites/routes.ts'
import { labelRoutes } from './labels/routes.ts'
import { memberRoutes } from './members/routes.ts'
import { organisationRoutes } from './organisation/routes.ts'
import { partialRoutes } from './partials/routes.ts'
import { createRender, RENDER_PATHS, renderRoutes, renderTarget } from './prompts/render-routes.ts'
import { promptRoutes } from './prompts/routes.ts'
import { createResolve, RESOLVE_PATH, resolveRoutes, resolveTarget } from './secret-references/resolve-routes.ts'
import { secretReferenceRoutes } from './secret-references/routes.ts'
import { userRoutes } from './users/routes.ts'
import { workspaceRoutes } from './workspaces/routes.ts'

/**
 * The whole HTTP interface: a table of contents.
 *
 * @param options.checkAnswers checks every answer against its contract: in tests and `dev`, not in production
 */
export function createApp(gatehouse: Gatehouse, options: { checkAnswers: boolean }) {
  const requires = createRequires(gatehouse)
  const accessLog = createAccessLog(gatehouse)
  const answers = createAnswers(gatehouse, accessLog, (path) => methods(path))

  const feature = <Routes extends AnyElysia>(routes: Routes): Routes =>
    options.checkAnswers ? routes : uncheck(routes)

  const administration = new Elysia({ prefix: '/v1', normalize: false })
    .decorate(guarded)
    .mapResponse(({ responseValue, request, route, call }) =>
      responseValue instanceof Response ? undefined : answers.success({ request, route, call }, responseValue),
    )
    .use(feature(partialRoutes(gatehouse, requires)))
    .use(feature(promptRoutes(gatehouse, requires)))
    .use(feature(collectionRoutes(gatehouse, requires)))
    .use(feature(labelRoutes(gatehouse, requires)))
    .use(feature(apiKeyRoutes(gatehouse, requires)))
    .use(feature(workspaceRoutes(gatehouse, requires)))
    .use(feature(memberRoutes(gatehouse, requires)))
    .use(feature(organisationRoutes(gatehouse, requires)))
    .use(feature(auditRoutes(gatehouse, requires)))
    .use(feature(userRoutes(gatehouse, requires)))
    .use(feature(inviteRoutes(gatehouse, requires)))
    .use(feature(secretReferenceRoutes(gatehouse, requires)))

  // Elysia looks for the path behind a fixed number of characters: it must be few enough for a host of one letter.
  const isTls = gatehouse.config.server.tls_cert_file !== ''
  const app = new Elysia({ normalize: false, handler: { standardHostname: isTls } })
    .decorate(guarded)
    .onError(
      Object.assign(
        opaque((context: Parameters<typeof answers.failure>[0] & { error: unknown }) =>
          answers.failure(context, context.error),
        ),
        // All that Elysia is to see: were the body named here, it would parse one for every route.
        { toString: () => 'async ({ error, request, route, call }) => { return }' },
      ),
    )
    .use(healthRoutes(gatehouse))
    .use(docsRoutes(gatehouse))
    .use(invitePageRoutes(gatehouse))
    .use(feature(renderRoutes(requires, createRender(gatehouse, requires, accessLog.rendered))))
    .use(
      feature(
        resolveRoutes(
          requires,
          createResolve(gatehouse, requires, (each) => accessLog.answered(each, 200)),
        ),
      ),
    )
    .use(administration)

  const methods = methodsByPath(app.routes)
  return app
}

/** Takes the contracts of answers off, before the app reads them: with them each answer would be checked. */
function uncheck<Routes extends AnyElysia>(routes: Routes): Routes {
  for (const route of routes.router.history) route.hooks = { ...route.hooks, response: undefined }
  return routes
}

/**
 * Render and resolve once more, for the server to call before the app is asked: the framework alone costs a render a
 * tenth of its throughput. They are the same functions with the same failures, and the app still has them, so what is
 * left to the app (a query, an encoded id, a trailing slash, another method) is answered as ever.
 *
 * @returns undefined for every other request
 */
export function createHotEndpoints(gatehouse: Gatehouse): (request: Request) => Promise<Response> | undefined {
  const accessLog = createAccessLog(gatehouse)
  const answers = createAnswers(gatehouse, accessLog, () => [])
  const requires = createRequires(gatehouse)
  const render = createRender(gatehouse, requires, accessLog.rendered)
  const resolve = createResolve(gatehouse, requires, (context) => accessLog.answered(context, 200))
  return (request) => {
    if (request.method !== 'POST') return undefined
    const promptId = renderTarget(request.url)
    if (promptId !== undefined) {
      const context = { request, route: RENDER_PATHS[0], params: { promptId }, body: undefined, ...guarded }
      return render(context).catch((error) => answers.failure(context, error))
    }
    const secretReferenceId = resolveTarget(request.url)
    if (secretReferenceId === undefined) return undefined
    const context = { request, route: RESOLVE_PATH, params: { secretReferenceId }, body: undefined, ...guarded }
    return resolve(context).catch((error) => answers.failure(context, error))
  }
}

/** The interface alone, for its description: nothing is opened, no request is ever served by it. */
export function describeApp() {
  const limits = { admin_body_bytes: 0, prompt_body_bytes: 0, render_body_bytes: 0 }
  const server = { key_headers: [], request_id_headers: [], tls_cert_file: '' }
  const config = {
    limits,
    server,
    system: { allow: [] },
    render: { strict_compliance_headers: [] },
    log: { renders: 'none' },
  }
  return createApp({ config } as unknown as Gatehouse, { checkAnswers: true })
}
