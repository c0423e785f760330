import type { OutboundError, OutboundFailure } from '../outbound/transport.ts'
import { ManagerError, type ManagerFailure, type Step } from './manager.ts'

const FAILURES = {
  address_refused: 'manager_address_refused',
  unreachable: 'manager_unreachable',
  timeout: 'manager_timeout',
  tls: 'manager_tls',
  bad_response: 'manager_bad_response',
} as const satisfies Record<OutboundFailure, ManagerFailure>

const STEPS_OF = { address_refused: 'address', unreachable: 'connect', tls: 'tls' } as const

/**
 * What a request that got no whole answer means for the fetch.
 *
 * @param at the step that the request belongs to: a timeout, or a broken answer, on an open connection is its failure
 */
export function fromOutbound(error: OutboundError, at: 'login' | 'read'): ManagerError {
  return new ManagerError(stepOf(error, at), FAILURES[error.failure], error.message)
}

function stepOf({ failure, step }: OutboundError, at: 'login' | 'read'): Step {
  if (failure === 'bad_response') return at
  if (failure === 'timeout') return step === 'read' ? at : step
  return STEPS_OF[failure]
}
