import { loadConfig } from '../../src/config/load.ts'
import { type Gatehouse, openGatehouse } from '../../src/gatehouse.ts'
import { readJson } from '../../src/http/body.ts'
import { newRequestId } from '../../src/http/request-id.ts'
import { createLog } from '../../src/log.ts'

// The floor that renders are measured against: what no server of this kind can leave out, and nothing else. The same
// strict body parser, key digest and look-up, compiled template, one serialisation and the same headers; no framework,
// no validation, no scopes, no metrics, no log.
//
//   floor <config.toml> <port>

const [configPath = '', port = '0'] = process.argv.slice(2)
openGatehouse(loadConfig({ path: configPath, env: {} }), createLog({ level: 'warn', write: () => {} })).then(serve)

function serve(gatehouse: Gatehouse): void {
  const server = Bun.serve({
    port: Number(port),
    hostname: '127.0.0.1',
    fetch: (request) => answer(gatehouse, request),
  })
  process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
}

async function answer({ keys, registry, digestKey }: Gatehouse, request: Request): Promise<Response> {
  const caller = keys.find(digestKey(request.headers.get('x-service-api-key') ?? ''), Date.now())
  const found = registry.find(slugOf(request.url))
  if (caller === undefined || found?.version === undefined) return new Response('refused', { status: 400 })
  const { value } = await readJson(request, 4 * 1024 * 1024)
  const { variables, ...sent } = value as { variables: Record<string, unknown> }
  const { template, prepared } = registry.compiled(found.prompt, found.version)
  const messages = template.fill(variables, prepared.defaults)
  const requestId = newRequestId()
  return new Response(JSON.stringify({ success: true, data: { ...prepared.saved, messages, ...sent } }), {
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': requestId,
      'x-portkey-request-id': requestId,
      'x-gatehouse-prompt-id': found.prompt.id,
      'x-gatehouse-prompt-version': `${found.number}`,
    },
  })
}

/** Of `http://host/v1/prompts/<slug>/render`. */
function slugOf(url: string): string {
  const start = url.indexOf('/v1/prompts/', 8) + '/v1/prompts/'.length
  return url.slice(start, url.indexOf('/', start))
}
