import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { createApp } from '../../src/app.ts'
import type { Gatehouse } from '../../src/gatehouse.ts'
import { openEmptyGatehouse } from '../support/gatehouse.ts'
import { useWorld } from '../support/scenario.ts'

describe('before bootstrap', () => {
  let opened: Awaited<ReturnType<typeof openEmptyGatehouse>>
  let app: ReturnType<typeof createApp>
  beforeAll(async () => {
    opened = await openEmptyGatehouse()
    app = createApp(opened.gatehouse, { checkAnswers: true })
  })
  afterAll(async () => {
    await opened.gatehouse.close()
    rmSync(opened.dir, { recursive: true })
  })
  const send = (method: string, path: string, headers = {}) =>
    app.fetch(new Request(`http://localhost${path}`, { method, headers }))

  test('every call of the API is 503 not_initialised, whatever key comes with it', async () => {
    const calls = app.routes.filter(({ path }) => /^\/(?:v1|prompts)\//.test(path))
    expect(calls.length).toBeGreaterThan(30)
    for (const { method, path } of calls)
      for (const headers of [{}, { 'x-service-api-key': 'gth_a_000000000000000000000000000000_000000' }]) {
        const answer = await send(method, path, headers)
        expect(answer.status, `${method} ${path}`).toBe(503)
        expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
        expect(await answer.json()).toMatchObject({ errorCode: 'AB04', error: { type: 'not_initialised' } })
      }
  })

  test('health says so, and the rest that is public is there', async () => {
    expect((await send('GET', '/livez')).status).toBe(200)
    const ready = await send('GET', '/readyz')
    expect(ready.status).toBe(503)
    expect(await ready.json()).toEqual({ status: 'not ready', reasons: ['not_initialised'] })
    for (const path of ['/metrics', '/docs', '/openapi.json']) expect((await send('GET', path)).status).toBe(200)
  })
})

describe('health', () => {
  const world = useWorld()
  const readiness = async () => (await world().call('GET', '/readyz', undefined, { key: null })).body

  test('ready, until it drains; alive all the while', async () => {
    expect(await readiness()).toEqual({ status: 'ready' })
    world().gatehouse.drain()
    expect(await readiness()).toEqual({ status: 'not ready', reasons: ['draining'] })
    expect((await world().call('GET', '/livez', undefined, { key: null })).body).toEqual({ status: 'alive' })
  })

  test.each([
    ['takes no writes', () => Promise.reject(new Error('disk'))],
    ['says nothing', () => new Promise<never>(() => {})],
  ])('storage that %s is looked at once for many askers, and named within two seconds', async (_, look) => {
    const { gatehouse } = world()
    let looks = 0
    const broken: Gatehouse = {
      ...gatehouse,
      draining: () => false,
      probe: () => {
        looks++
        return look()
      },
    }
    const startedAt = performance.now()
    const app = createApp(broken, { checkAnswers: true })
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => app.fetch(new Request('http://localhost/readyz'))),
    )
    for (const answer of answers) {
      expect(answer.status).toBe(503)
      expect(await answer.json()).toEqual({ status: 'not ready', reasons: ['storage_unavailable'] })
    }
    expect(looks).toBe(1)
    expect(performance.now() - startedAt).toBeLessThan(2_000)
  })
})

describe('metrics', () => {
  const world = useWorld()

  test('are OpenMetrics, hold no id, and count what was done', async () => {
    const { call, names, made } = world()
    const { body } = await call('POST', '/v1/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' })
    await call('POST', `/v1/prompts/${body.id}/render`, { variables: {} })
    await call('GET', `/v1/prompts/${names['user_id']}`)
    await call('GET', '/some/path/of/a/scanner')
    await call('GET', '/v1/prompts', undefined, { key: 'x' })
    const { headers, text } = await call('GET', '/metrics', undefined, { key: null })
    expect(headers.get('content-type')).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8')
    const samples = readOpenMetrics(text)
    expect(samples.get('gatehouse_render_seconds_count')).toBe(1)
    expect(samples.get('gatehouse_requests_total{method="POST",route="/v1/prompts",status="200"}')).toBe(1)
    expect(samples.get('gatehouse_requests_total{method="GET",route="/v1/prompts/:promptId",status="404"}')).toBe(1)
    expect(samples.get('gatehouse_requests_total{method="GET",route="none",status="404"}')).toBe(1)
    expect(samples.get('gatehouse_authentications_total{outcome="refused"}')).toBe(1)
    expect(samples.get('gatehouse_prompts')).toBe(1)
    for (const secret of [body.id, body.slug, made.admin_key, made.user_id, 'scanner'])
      expect(text).not.toContain(secret)
  })
})

/**
 * Samples by name and labels. Throws where the text is not OpenMetrics 1.0 as far as we use it: families in one piece
 * with TYPE and HELP before their samples, counters that end in _total, histograms that add up, EOF.
 */
function readOpenMetrics(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  const types = new Map<string, string>()
  let family = ''
  if (!text.endsWith('\n# EOF\n')) throw new Error('no EOF')
  for (const line of text.slice(0, -'# EOF\n'.length).trimEnd().split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (TYPE|HELP) ([a-z_]+) (.+)$/.exec(line) ?? []
    if (kind === 'TYPE') {
      if (types.has(name)) throw new Error(`${name} comes in two pieces`)
      types.set(name, rest)
      family = name
    } else if (kind === 'HELP') {
      if (name !== family) throw new Error(`help of ${name} is out of place`)
    } else {
      const [, sample = '', labels = '', value] = /^([a-z_]+)(\{[^{}]+\})? ([0-9.e+-]+)$/.exec(line) ?? []
      const suffixes = { counter: '_total', gauge: '', histogram: '(?:_bucket|_sum|_count)' }[types.get(family) ?? '']
      if (!new RegExp(`^${family}${suffixes}$`).test(sample)) throw new Error(`not a sample of ${family}: ${line}`)
      if (labels !== '' && !/^\{([a-z_]+="[^"\\\n]*"(,(?!\})|(?=\})))+\}$/.test(labels))
        throw new Error(`odd labels: ${line}`)
      if (samples.has(sample + labels)) throw new Error(`twice: ${line}`)
      samples.set(sample + labels, Number(value))
    }
  }
  checkHistograms(samples)
  return samples
}

function checkHistograms(samples: ReadonlyMap<string, number>): void {
  let before = 0
  for (const [name, value] of samples) {
    const [, family, labels = '', bound] = /^(.+)_bucket\{(.*?),?le="(.+)"\}$/.exec(name) ?? []
    if (family === undefined) continue
    if (value < before) throw new Error(`${name} is less than the bucket below it`)
    before = bound === '+Inf' ? 0 : value
    const count = samples.get(`${family}_count${labels === '' ? '' : `{${labels}}`}`)
    if (bound === '+Inf' && value !== count) throw new Error(`${name} is not the count`)
  }
}

describe('the page that shows the interface', () => {
  const world = useWorld()
  const get = (path: string) => world().call('GET', path, undefined, { key: null })

  test('loads from this host alone', async () => {
    const page = await get('/docs')
    const loaded = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url ?? '')
    expect(loaded).toEqual(['/docs/swagger-ui.css', '/docs/swagger-ui.js', '/docs/start.js'])
    for (const path of loaded) {
      const { status, headers } = await get(path)
      expect(status, path).toBe(200)
      expect(headers.get('content-type'), path).toMatch(/^text\/(?:css|javascript); charset=utf-8$/)
    }
    const css = (await get('/docs/swagger-ui.css')).text
    expect(css.match(/@import|url\((?!\s*["']?data:)/g)).toBeNull()
    expect((await get('/docs/start.js')).text).not.toMatch(/https?:/)
  })

  test('and would not be let load from another', async () => {
    const policy = (await get('/docs')).headers.get('content-security-policy') ?? ''
    const rules = Object.fromEntries(policy.split('; ').map((rule) => rule.split(/ (.*)/s) as [string, string]))
    expect(rules['default-src']).toBe("'none'")
    expect(rules['frame-ancestors']).toBe("'none'")
    for (const sources of Object.values(rules)) expect(sources).not.toMatch(/https?:|\*/)
    expect(rules['script-src']).toBe("'self'")
    expect(rules['connect-src']).toBe("'self'")
  })

  test('shows the interface, under its own version', async () => {
    const { body } = await get('/openapi.json')
    expect(body.info.version).toBe('2.0.0')
    expect(Object.keys(body.paths)).toContain('/prompts/{promptId}/render')
    expect(JSON.stringify(body)).not.toMatch(/"\/?v1\/|\/livez/)
  })
})
