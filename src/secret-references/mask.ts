import { type AuthConfig, SECRET_FIELDS } from '../../schema/api/secret-references.ts'

const SECRETS: ReadonlySet<string> = new Set(SECRET_FIELDS)
const MASK = '*****'
/** A shorter value would be given away by its ends. */
const SHORTEST_SHOWN = 20

export const isSecretField = (name: string): boolean => SECRETS.has(name)

/** What may be shown of a secret (decision 7): of a long one the first two characters and the last three. */
export function maskedValue(secret: string): string {
  const characters = [...secret]
  if (characters.length < SHORTEST_SHOWN) return MASK
  return characters.slice(0, 2).join('') + MASK + characters.slice(-3).join('')
}

/** Whether a text can only be what `maskedValue` gave: no secret has such a middle. */
export const isMask = (text: string): boolean => /^(?:\*{5}|..\*{5}...)$/su.test(text)

/** An auth_config as callers may see it: each secret X is left out, and stands masked under `masked_X` (file 04). */
export const maskAuthConfig = (authConfig: AuthConfig): Record<string, string> =>
  Object.fromEntries(
    Object.entries(authConfig as Record<string, string>).map(([name, value]) =>
      isSecretField(name) ? [`masked_${name}`, maskedValue(value)] : [name, value],
    ),
  )
