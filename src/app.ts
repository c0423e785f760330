import { Elysia } from 'elysia'
import { apiKeyRoutes } from './api-keys/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { createRequires } from './auth/guard.ts'
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
import { renderRoutes } from './prompts/render-routes.ts'
import { promptRoutes } from './prompts/routes.ts'
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

  const administration = new Elysia({ prefix: '/v1', normalize: false })
    .mapResponse(({ responseValue, ...context }) =>
      responseValue instanceof Response
        ? undefined
        : answers.success(context as unknown as AnswerContext, responseValue),
    )
    .use(partialRoutes(gatehouse, requires))
    .use(promptRoutes(gatehouse, requires))
    .use(collectionRoutes(gatehouse, requires))
    .use(labelRoutes(gatehouse, requires))
    .use(apiKeyRoutes(gatehouse, requires))
    .use(workspaceRoutes(gatehouse, requires))
    .use(memberRoutes(gatehouse, requires))
    .use(organisationRoutes(gatehouse, requires))
    .use(auditRoutes(gatehouse, requires))
    .use(userRoutes(gatehouse, requires))
    .use(inviteRoutes(gatehouse, requires))

  // Elysia looks for the path behind a fixed number of characters: it must be few enough for a host of one letter.
  const isTls = gatehouse.config.server.tls_cert_file !== ''
  const app = new Elysia({ normalize: false, handler: { standardHostname: isTls } })
    .onError(({ error, ...context }) => answers.failure(context as unknown as AnswerContext, error))
    .use(healthRoutes(gatehouse))
    .use(docsRoutes(gatehouse))
    .use(invitePageRoutes(gatehouse))
    .use(renderRoutes(gatehouse, requires, accessLog.rendered))
    .use(administration)

  const methods = methodsByPath(app.routes)
  if (!options.checkAnswers)
    for (const route of app.router.history) route.hooks = { ...route.hooks, response: undefined }
  return app
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

type AnswerContext = Parameters<ReturnType<typeof createAnswers>['success']>[0]
