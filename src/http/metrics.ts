/** Upper bounds of the latency buckets, in seconds. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

interface Histogram {
  counts: number[]
  sum: number
}

/** Counters and latencies of one process, in memory; label sets are bounded (route templates, statuses, reasons). */
export interface Metrics {
  /** `route` is the template (`/v1/prompts/:promptId`), never the path that was sent */
  request(method: string, route: string, status: number, seconds: number): void
  /** one successful render; separate from `request` because it is the hot path */
  render(seconds: number): void
  authentication(outcome: 'ok' | 'refused'): void
  /** a scheduled rotation of an API key has come due */
  rotationDue(): void
  mail(outcome: 'sent' | 'failed'): void
  /** rows could not be copied to `audit.sink` */
  auditSinkFailed(): void
  /** one call to a secret manager; `outcome` is `ok` or the reason of its failure */
  managerCall(call: { managerType: string; outcome: string; seconds: number }): void
  /** a resolve that was answered from memory, or had to wait for a secret manager */
  secretCache(outcome: 'hit' | 'miss'): void
  /** OpenMetrics text of everything, with the gauges given */
  text(gauges: Gauge[]): string
}

export interface Gauge {
  name: string
  help: string
  /** `{version="1"}` */
  labels?: string
  value: number
}

export function createMetrics(): Metrics {
  const requests = new Map<string, number>()
  const latencies = new Map<string, Histogram>()
  const renders: Histogram = newHistogram()
  const authentications = { ok: 0, refused: 0 }
  let rotationsDue = 0
  const mails = { sent: 0, failed: 0 }
  let auditSinkFailures = 0
  const managerCalls = new Map<string, number>()
  const managerSeconds = new Map<string, Histogram>()
  const secretCache = { hit: 0, miss: 0 }

  return {
    request(method, route, status, seconds) {
      const labels = `method="${method}",route="${route}"`
      increase(requests, `${labels},status="${status}"`)
      observeIn(latencies, labels, seconds)
    },
    render: (seconds) => observe(renders, seconds),
    authentication: (outcome) => {
      authentications[outcome]++
    },
    rotationDue: () => {
      rotationsDue++
    },
    mail: (outcome) => {
      mails[outcome]++
    },
    auditSinkFailed: () => {
      auditSinkFailures++
    },
    managerCall({ managerType, outcome, seconds }) {
      const labels = `manager_type="${managerType}"`
      increase(managerCalls, `${labels},outcome="${outcome}"`)
      observeIn(managerSeconds, labels, seconds)
    },
    secretCache: (outcome) => {
      secretCache[outcome]++
    },
    text(gauges) {
      return [
        ...family(
          'gatehouse_render_seconds',
          'histogram',
          'Successful renders and their seconds.',
          histogramLines('gatehouse_render_seconds', '', renders),
        ),
        ...family(
          'gatehouse_requests',
          'counter',
          'Requests by route and status; successful renders are not in here.',
          [...requests].map(([labels, n]) => `gatehouse_requests_total{${labels}} ${n}`),
        ),
        ...family(
          'gatehouse_request_seconds',
          'histogram',
          'Seconds from authentication to answer, by route.',
          [...latencies].flatMap(([labels, histogram]) =>
            histogramLines('gatehouse_request_seconds', labels, histogram),
          ),
        ),
        ...family(
          'gatehouse_authentications',
          'counter',
          'API keys presented, by outcome.',
          Object.entries(authentications).map(
            ([outcome, n]) => `gatehouse_authentications_total{outcome="${outcome}"} ${n}`,
          ),
        ),
        ...family(
          'gatehouse_mails',
          'counter',
          'E-mails that were to be sent, by outcome.',
          Object.entries(mails).map(([outcome, n]) => `gatehouse_mails_total{outcome="${outcome}"} ${n}`),
        ),
        ...family('gatehouse_api_key_rotations_due', 'counter', 'Scheduled rotations that have come due.', [
          `gatehouse_api_key_rotations_due_total ${rotationsDue}`,
        ]),
        ...family('gatehouse_audit_sink_failures', 'counter', 'Failed attempts to copy audit rows to audit.sink.', [
          `gatehouse_audit_sink_failures_total ${auditSinkFailures}`,
        ]),
        ...family(
          'gatehouse_secret_manager_calls',
          'counter',
          'Calls to secret managers, tests apart, by outcome.',
          [...managerCalls].map(([labels, n]) => `gatehouse_secret_manager_calls_total{${labels}} ${n}`),
        ),
        ...family(
          'gatehouse_secret_manager_call_seconds',
          'histogram',
          'Their seconds, login included.',
          [...managerSeconds].flatMap(([labels, histogram]) =>
            histogramLines('gatehouse_secret_manager_call_seconds', labels, histogram),
          ),
        ),
        ...family(
          'gatehouse_secret_cache',
          'counter',
          'Resolves that were answered from memory, and that were not.',
          Object.entries(secretCache).map(([outcome, n]) => `gatehouse_secret_cache_total{outcome="${outcome}"} ${n}`),
        ),
        ...[...Map.groupBy(gauges, ({ name }) => name)].flatMap(([name, samples]) =>
          family(
            name,
            'gauge',
            samples[0]?.help ?? '',
            samples.map(({ labels = '', value }) => `${name}${labels} ${value}`),
          ),
        ),
        '# EOF',
        '',
      ].join('\n')
    },
  }
}

const increase = (counts: Map<string, number>, labels: string): void =>
  void counts.set(labels, (counts.get(labels) ?? 0) + 1)

const newHistogram = (): Histogram => ({ counts: new Array<number>(BUCKETS.length + 1).fill(0), sum: 0 })

function observe(histogram: Histogram, seconds: number): void {
  let i = 0
  while (i < BUCKETS.length && seconds > (BUCKETS[i] ?? 0)) i++
  histogram.counts[i] = (histogram.counts[i] ?? 0) + 1
  histogram.sum += seconds
}

function observeIn(histograms: Map<string, Histogram>, labels: string, seconds: number): void {
  const histogram = histograms.get(labels) ?? newHistogram()
  histograms.set(labels, histogram)
  observe(histogram, seconds)
}

function histogramLines(name: string, labels: string, { counts, sum }: Histogram): string[] {
  const prefix = labels === '' ? '' : `${labels},`
  const braces = labels === '' ? '' : `{${labels}}`
  let total = 0
  const buckets = counts.map((count, i) => {
    total += count
    return `${name}_bucket{${prefix}le="${BUCKETS[i] ?? '+Inf'}"} ${total}`
  })
  return [...buckets, `${name}_sum${braces} ${sum}`, `${name}_count${braces} ${total}`]
}

const family = (name: string, type: string, help: string, samples: string[]): string[] => [
  `# TYPE ${name} ${type}`,
  `# HELP ${name} ${help}`,
  ...samples,
]
