import { Elysia } from 'elysia'
import { PROBE_MS, settledWithin } from '../db/closure.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { VERSION } from '../version.ts'
import { createHead } from './head.ts'

/** How long one look at the storage counts: `/readyz` is public, and a look is a write. */
const LOOK_MS = 2000

/** Health and metrics: public, without anything of a tenant in them. */
export function healthRoutes(gatehouse: Gatehouse) {
  const head = createHead(gatehouse.config)
  let probedAt = Number.NEGATIVE_INFINITY
  let storage: Promise<string | undefined> = Promise.resolve(undefined)

  function storageReason(): Promise<string | undefined> {
    if (performance.now() - probedAt > LOOK_MS) {
      probedAt = performance.now()
      storage = settledWithin(PROBE_MS, gatehouse.probe).then(
        () => undefined,
        () => 'storage_unavailable',
      )
    }
    return storage
  }

  async function reasons(): Promise<string[]> {
    const found = [await storageReason()]
    if (!gatehouse.initialised()) found.push('not_initialised')
    if (gatehouse.draining()) found.push('draining')
    if (gatehouse.isAuditSinkMissing()) found.push('audit_sink_unavailable')
    if (gatehouse.trailCheck.isBroken()) found.push('audit_chain_broken')
    return found.filter((reason) => reason !== undefined)
  }

  const json = (value: unknown, status: number): Response =>
    new Response(JSON.stringify(value), { status, headers: head() })

  return new Elysia()
    .get('/livez', () => json({ status: 'alive' }, 200), {
      detail: { summary: 'Whether the process lives', hide: true },
    })
    .get(
      '/readyz',
      async () => {
        const found = await reasons()
        return found.length === 0 ? json({ status: 'ready' }, 200) : json({ status: 'not ready', reasons: found }, 503)
      },
      { detail: { summary: 'Whether requests should be sent here', hide: true } },
    )
    .get(
      '/metrics',
      () => new Response(gatehouse.metrics.text(gauges(gatehouse)), { headers: head(undefined, OPENMETRICS) }),
      {
        detail: { summary: 'OpenMetrics text', hide: true },
      },
    )
}

const OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

function gauges({ keys, registry, trailCheck, secretValues }: Gatehouse) {
  const { prompts, partials, compiled } = registry.counts()
  const { held, healthy, failing, logins, underWay, breakersOpen } = secretValues.counts()
  const references = { healthy, failing, pending: held - healthy - failing }
  return [
    { name: 'gatehouse_build_info', labels: `{version="${VERSION}"}`, help: 'The running version.', value: 1 },
    { name: 'gatehouse_api_keys', help: 'API keys in memory.', value: keys.count() },
    { name: 'gatehouse_prompts', help: 'Prompts in memory.', value: prompts },
    { name: 'gatehouse_partials', help: 'Partials in memory.', value: partials },
    { name: 'gatehouse_compiled_templates', help: 'Compiled templates in memory.', value: compiled },
    ...Object.entries(references).map(([state, value]) => ({
      name: 'gatehouse_secret_references',
      labels: `{state="${state}"}`,
      help: 'Secret references that this node holds, by how their last fetch ended.',
      value,
    })),
    { name: 'gatehouse_secret_manager_logins', help: 'Open logins at secret managers.', value: logins },
    { name: 'gatehouse_secret_manager_calls_under_way', help: 'Calls to secret managers under way.', value: underWay },
    {
      name: 'gatehouse_secret_manager_breakers_open',
      help: 'Secret managers that are left alone for a while, since they did not answer.',
      value: breakersOpen,
    },
    {
      name: 'gatehouse_audit_chain_ok',
      help: 'Whether the last check of the audit trail found nothing wrong.',
      value: trailCheck.isBroken() ? 0 : 1,
    },
    {
      name: 'gatehouse_resident_memory_bytes',
      help: 'Resident memory of the process.',
      value: process.memoryUsage.rss(),
    },
  ]
}
