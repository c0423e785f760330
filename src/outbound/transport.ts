/**
 * How far a request may go. `listed`: public addresses at port 443 and 8200, and what `[outbound] allow` names.
 * `private`: private addresses too, for hosts that we build ourselves (AWS, from a checked region). `machine_identity`:
 * the fixed endpoints of a granted machine identity, and nothing else (decision 11).
 */
export type Reach = 'listed' | 'private' | 'machine_identity'

export interface OutboundRequest {
  method: string
  url: string
  headers: Record<string, string>
  body?: string | Uint8Array
  /** the caller's one deadline: queueing, connecting and reading end with it */
  signal: AbortSignal
  reach: Reach
}

export interface OutboundResponse {
  status: number
  /** names in lower case; repeated ones joined with `, ` */
  headers: Record<string, string>
  /** at most 1 MiB; redirects are handed back like any other answer */
  body: Buffer
}

/** Connections of one client: never shared with another reference, nor with another revision of the same. */
export interface Transport {
  /** @throws OutboundError */
  send(request: OutboundRequest): Promise<OutboundResponse>
  /** closes idle connections and fails what is under way */
  close(): void
}

export type OutboundStep = 'address' | 'connect' | 'tls' | 'read'
export type OutboundFailure = 'address_refused' | 'unreachable' | 'timeout' | 'tls' | 'bad_response'

/** A request that got no whole answer. The message is ours, for operators: it names host and remedy, and holds no secret. */
export class OutboundError extends Error {
  override readonly name = 'OutboundError'
  readonly step: OutboundStep
  readonly failure: OutboundFailure

  constructor(step: OutboundStep, failure: OutboundFailure, message: string) {
    super(message)
    this.step = step
    this.failure = failure
  }
}
