import { Redacted } from '../redacted.ts'
import { type FetchedSecret, ManagerError, STEPS, type Step } from './manager.ts'
import type { TestReport, TestStep } from './values.ts'

/** Collects the steps of one test as they are told, and says in the end which was the first that failed. */
export interface StepLog {
  passed(step: Step, ms: number): void
  /** the step took the time since the last one that was told */
  passedNow(step: Step): void
  /** @param outcome the secret with the value that was meant, or why there is none */
  report(outcome: { secret: FetchedSecret; value: string } | ManagerError, usedCachedLogin: boolean): TestReport
}

export function createStepLog(): StepLog {
  const times = new Map<Step, number>()
  let toldAt = performance.now()
  const sinceTold = () => performance.now() - toldAt

  function passed(step: Step, ms: number): void {
    times.set(step, (times.get(step) ?? 0) + ms)
    toldAt = performance.now()
  }

  return {
    passed,
    passedNow: (step) => passed(step, sinceTold()),
    report(outcome, usedCachedLogin) {
      const failure = outcome instanceof ManagerError ? outcome : undefined
      const failedAt = failure === undefined ? STEPS.length : STEPS.indexOf(failure.step)
      const steps = STEPS.map((step, i): TestStep => {
        if (failure !== undefined && i === failedAt) return failed(failure, sinceTold())
        return i > failedAt ? untold(step, 'not_reached') : passedStep(step, times.get(step))
      })
      const secret = outcome instanceof ManagerError ? undefined : outcome
      return {
        ok: failure === undefined,
        failedStep: failure?.step ?? null,
        steps,
        value: secret === undefined ? null : new Redacted(secret.value),
        version: secret?.secret.version ?? null,
        usedCachedLogin,
      }
    },
  }
}

/** A step that was not told was passed together with a later one, or with the connection that was open already. */
function passedStep(step: Step, ms: number | undefined): TestStep {
  if (ms === undefined) return untold(step, 'not_told_apart')
  return { step, ok: true, ms: Math.round(ms), code: null, message: null, manager_message: null }
}

const untold = (step: Step, code: 'not_told_apart' | 'not_reached'): TestStep => ({
  step,
  ok: null,
  ms: null,
  code,
  message: null,
  manager_message: null,
})

const failed = ({ step, failure, message, managerMessage }: ManagerError, ms: number): TestStep => ({
  step,
  ok: false,
  ms: Math.round(ms),
  code: failure,
  message,
  manager_message: managerMessage ?? null,
})
