/** A KV engine as Vault describes it: `secret/`. */
export interface KvMount {
  path: string
  version: 1 | 2
}

const AUTH_MOUNT = /^[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*$/

/** @returns the path that logs in at an auth method (decision 48); undefined where `vault_auth_mount` is none */
export function loginPath(authMount: string): string | undefined {
  const isMount = AUTH_MOUNT.test(authMount) && !authMount.split('/').some((part) => part === '.' || part === '..')
  return isMount ? `auth/${authMount}/login` : undefined
}

/** Where Vault tells which mount a path belongs to. */
export const mountQueryPath = (secretPath: string): string => `sys/internal/ui/mounts/${encoded(secretPath)}`

/** Whether a mount holds a path, or is the path itself. */
export const isBelow = (secretPath: string, { path: mount }: KvMount): boolean => `${secretPath}/`.startsWith(mount)

/**
 * @param secretPath `mount/path`; of a mount of version 2 `mount/data/path` as well, as its HTTP API writes it: there,
 *                   what is really called `data/path` is read as `mount/data/data/path`
 * @returns          the path to read; undefined for the mount itself
 */
export function readPath(secretPath: string, { path: mount, version }: KvMount): string | undefined {
  const below = secretPath.slice(mount.length)
  if (below === '') return undefined
  return encoded(version === 1 ? secretPath : `${mount}data/${below.replace(/^data\/(?=.)/, '')}`)
}

/** Segments `.` and `..` mean the same in any encoding: a path with them is refused before it comes here (SM-10). */
const encoded = (path: string): string => path.split('/').map(encodeURIComponent).join('/')
