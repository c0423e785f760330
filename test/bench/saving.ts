import { type Installation, PROMPT_VERSION } from './installation.ts'

export interface Saved {
  perSecond: number
  /** from the moment a save was due to its answer */
  p99Ms: number
}

/** Saves a new version of one prompt after another, each when it is due, whether or not earlier ones were answered. */
export function startSaving(url: string, { adminKey, prompts }: Installation, perSecond: number) {
  const headers = { 'content-type': 'application/json', 'x-service-api-key': adminKey }
  const body = JSON.stringify(PROMPT_VERSION)
  const startedAt = performance.now()
  const times: number[] = []
  const pending = new Set<Promise<void>>()
  const dueMs = (nth: number): number => (nth * 1000) / perSecond

  async function save(nth: number): Promise<void> {
    const response = await fetch(`${url}/v1/prompts/${prompts[nth % prompts.length]}`, { method: 'PUT', headers, body })
    if (!response.ok) throw new Error(`a save was answered ${response.status}: ${await response.text()}`)
    await response.text()
    times.push(performance.now() - startedAt - dueMs(nth))
  }

  let count = 0
  const timer = setInterval(() => {
    while (dueMs(count) <= performance.now() - startedAt) {
      const saving = save(count++)
      pending.add(saving)
      // One that failed stays, for `stop` to tell.
      saving.then(
        () => pending.delete(saving),
        () => {},
      )
    }
  }, 2)

  return {
    async stop(): Promise<Saved> {
      clearInterval(timer)
      const seconds = (performance.now() - startedAt) / 1000
      await Promise.all(pending)
      times.sort((a, b) => a - b)
      return { perSecond: times.length / seconds, p99Ms: times[Math.floor(times.length * 0.99)] ?? Number.NaN }
    },
  }
}
