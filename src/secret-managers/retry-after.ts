import type { OutboundResponse } from '../outbound/transport.ts'

const MOST_RETRY_AFTER_SECONDS = 3_600

/** What a manager asks to wait; seconds are all that they send, not dates. */
export function retryAfterSeconds({ headers }: Pick<OutboundResponse, 'headers'>): number | undefined {
  const text = headers['retry-after'] ?? ''
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), MOST_RETRY_AFTER_SECONDS) : undefined
}
