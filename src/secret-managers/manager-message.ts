const MAX_CHARACTERS = 200

/** Fixed words of the contract, which managers use as well ("token"): no values that somebody brought. */
const DISCRIMINATORS = new Set(['aws_auth_type', 'azure_auth_mode', 'vault_auth_type'])

/**
 * A manager's own words, for `test` alone (decision 47): one line of at most 200 characters.
 *
 * @param text       of an error field of the manager's JSON answer
 * @param authConfig and whatever else must not be repeated, by name
 * @returns          undefined where there is no text, or it holds one of those values
 */
export function managerMessage(text: unknown, authConfig: object): string | undefined {
  if (typeof text !== 'string') return undefined
  const line = text.replace(/[\s\p{Cc}]+/gu, ' ').trim()
  const holds = (value: string) => formsOf(value).some((form) => text.includes(form) || line.includes(form))
  const values = Object.entries(authConfig).filter(([name, value]) => !DISCRIMINATORS.has(name) && value !== '')
  if (line === '' || values.some(([, value]) => typeof value === 'string' && holds(value))) return undefined
  return [...line].slice(0, MAX_CHARACTERS).join('')
}

/** As managers print what they were sent: as it is, quoted, or in a URL. */
function formsOf(value: string): string[] {
  return [value, JSON.stringify(value).slice(1, -1), encodeURIComponent(value.toWellFormed())]
}
