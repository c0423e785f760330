import type { ManagerCall, Step } from './manager.ts'

/** Does the work of one step, and tells of it when it is done. */
export async function timed<T>(call: ManagerCall, step: Step, work: () => T | Promise<T>): Promise<T> {
  const startedAt = performance.now()
  const result = await work()
  call.passed(step, performance.now() - startedAt)
  return result
}
