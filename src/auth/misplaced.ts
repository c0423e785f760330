import { holdsKey } from '../audit/mask.ts'
import { GatehouseError, invalidField, shown } from '../errors.ts'

/**
 * Refuses an API key in the URL (AK-6), percent-encoded too, and queries that could be read in two ways: a name that stands twice, a NUL.
 * Runs for each request, so a URL that holds none of it costs three searches.
 *
 * @param keyHeaders the headers that carry keys; as names in a query they are the same mistake
 */
export function assertPlainUrl(url: string, keyHeaders: readonly string[]): void {
  if (holdsKey(url)) throw keyInUrl(keyHeaders)
  const start = url.indexOf('?')
  if (start === -1) return
  if (url.includes('%00', start)) throw invalidField('', 'the query must not contain NUL')
  const seen = new Set<string>()
  for (const name of new URLSearchParams(url.slice(start + 1)).keys()) {
    if (keyHeaders.includes(name.toLowerCase())) throw keyInUrl(keyHeaders)
    if (seen.has(name)) throw invalidField(shown(name), 'stands twice in the query; send it once')
    seen.add(name)
  }
}

/** Refuses an API key in a body: of a render it would go on to the model. */
export function assertNoKeyInBody(body: unknown, keyHeaders: readonly string[]): void {
  if (typeof body !== 'object' || body === null) return
  for (const name of keyHeaders) {
    if (Object.hasOwn(body, name))
      throw new GatehouseError('key_in_url', `send the API key in the header ${keyHeaders[0]}, never in the body`)
  }
}

const keyInUrl = (keyHeaders: readonly string[]): GatehouseError =>
  new GatehouseError(
    'key_in_url',
    `send the API key in the header ${keyHeaders[0]}, never in the URL; revoke this one, it may be in logs now`,
  )
