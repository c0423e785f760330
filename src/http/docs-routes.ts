import { Elysia } from 'elysia'
import swaggerCss from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import swaggerBundle from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import type { Gatehouse } from '../gatehouse.ts'
import { createHead } from './head.ts'

/** `/openapi.json` and a page that shows it. The page loads nothing from another host (its policy forbids it). */
export function docsRoutes({ config }: Pick<Gatehouse, 'config'>) {
  const head = createHead(config)
  const answer = (body: string | Blob, type: string): Response =>
    new Response(body, { headers: { ...head(undefined, type), 'content-security-policy': POLICY } })

  let document: string | undefined
  return new Elysia()
    .get(
      '/openapi.json',
      async () => {
        document ??= JSON.stringify((await import('./openapi.ts')).openApiDocument())
        return answer(document, 'application/json; charset=utf-8')
      },
      HIDDEN,
    )
    .get('/docs', () => answer(PAGE, 'text/html; charset=utf-8'), HIDDEN)
    .get('/docs/start.js', () => answer(START, 'text/javascript; charset=utf-8'), HIDDEN)
    .get('/docs/swagger-ui.js', () => answer(Bun.file(swaggerBundle), 'text/javascript; charset=utf-8'), HIDDEN)
    .get('/docs/swagger-ui.css', () => answer(Bun.file(swaggerCss), 'text/css; charset=utf-8'), HIDDEN)
}

const HIDDEN = { detail: { hide: true } }

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Gatehouse API</title>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<div id="ui"></div>
<script src="/docs/swagger-ui.js"></script>
<script src="/docs/start.js"></script>
</html>
`

/** Servers come from the page's own address: the document's placeholders are for clients. */
const START = `fetch('/openapi.json').then((answer) => answer.json()).then((spec) => {
  spec.servers = [{ url: location.origin + '/v1' }]
  for (const path of Object.values(spec.paths)) for (const operation of Object.values(path)) delete operation.servers
  SwaggerUIBundle({ spec, dom_id: '#ui', deepLinking: true, validatorUrl: null })
})
`
