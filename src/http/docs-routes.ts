import { Elysia } from 'elysia'
import swaggerCss from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import swaggerBundle from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }

/** `/openapi.json` and a page that shows it. The page loads nothing from another host (its policy forbids it). */
export function docsRoutes() {
  let document: string | undefined
  return new Elysia()
    .get(
      '/openapi.json',
      async () => {
        document ??= JSON.stringify((await import('./openapi.ts')).openApiDocument())
        return text(document, 'application/json; charset=utf-8')
      },
      HIDDEN,
    )
    .get('/docs', () => text(PAGE, 'text/html; charset=utf-8'), HIDDEN)
    .get('/docs/start.js', () => text(START, 'text/javascript; charset=utf-8'), HIDDEN)
    .get(
      '/docs/swagger-ui.js',
      () => new Response(Bun.file(swaggerBundle), { headers: head('text/javascript; charset=utf-8') }),
      HIDDEN,
    )
    .get(
      '/docs/swagger-ui.css',
      () => new Response(Bun.file(swaggerCss), { headers: head('text/css; charset=utf-8') }),
      HIDDEN,
    )
}

const HIDDEN = { detail: { hide: true } }

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const head = (type: string): Record<string, string> => ({
  'content-type': type,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': POLICY,
})

const text = (body: string, type: string): Response => new Response(body, { headers: head(type) })

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
