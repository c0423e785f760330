import { GatehouseError } from '../errors.ts'

/**
 * Which methods each path takes, for 405 and `Allow` (Elysia answers 404 to a wrong method).
 *
 * @param routes templates such as `/v1/prompts/:promptId`
 */
export function methodsByPath(routes: readonly { method: string; path: string }[]): (path: string) => string[] {
  const patterns = routes.map(({ method, path }) => ({
    method,
    pattern: new RegExp(
      `^${path
        .replace(/[.]/g, '\\.')
        .replace(/:promptId/g, '(?!partials(?:/|$))[^/]+')
        .replace(/:[^/]+/g, '[^/]+')}/?$`,
    ),
  }))
  return (path) => {
    const methods = new Set(patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))
    // what answers GET answers HEAD (RFC 9110, 9.3.2)
    if (methods.has('GET')) methods.add('HEAD')
    return [...methods].sort()
  }
}

export function methodNotAllowed(allow: string[]): GatehouseError | undefined {
  if (allow.length === 0) return undefined
  return new GatehouseError('method_not_allowed', `this path takes ${allow.join(', ')}`, { allow })
}
