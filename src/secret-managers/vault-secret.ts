import type { VaultAuthConfig } from '../../schema/api/secret-references.ts'
import { type FetchedSecret, type ManagerCall, ManagerError } from './manager.ts'
import { timed } from './timed.ts'
import {
  isHarmless,
  isObject,
  jsonIn,
  refusal,
  unexpected,
  type VaultAnswer,
  wantsVersionedPath,
} from './vault-answer.ts'
import type { VaultSession } from './vault-login.ts'
import { isBelow, type KvMount, mountQueryPath, readPath } from './vault-path.ts'

export interface VaultReader {
  /**
   * @param secretPath one that `secretPathComplaint` has nothing against
   * @throws ManagerError
   */
  read(secretPath: string, session: VaultSession, call: ManagerCall): Promise<FetchedSecret>
}

/** Reads secrets of one reference, whose mount is asked for once. */
export function createVaultReader(authConfig: VaultAuthConfig): VaultReader {
  let mounts: KvMount[] = []
  const withheldIn = ({ token }: VaultSession) => ({ ...authConfig, token })

  async function mountOf(secretPath: string, session: VaultSession, signal: AbortSignal): Promise<KvMount> {
    const known = mounts.find((mount) => isBelow(secretPath, mount))
    if (known !== undefined) return known
    const answer = await session.read(mountQueryPath(secretPath), { signal, step: 'read' })
    const mount = kvMountIn(answer, secretPath, withheldIn(session))
    mounts.push(mount)
    return mount
  }

  async function answerFor(secretPath: string, session: VaultSession, signal: AbortSignal) {
    const mount = await mountOf(secretPath, session, signal)
    const path = readPath(secretPath, mount)
    if (path === undefined) throw unfit('secret_path: must go on below the mount: "secret/app"')
    const answer = await session.read(path, { signal, step: 'read' })
    if (answer.status === 200) return { answer, version: mount.version }
    // it may have been moved, or given versions
    if (answer.status === 404) mounts = mounts.filter(({ path }) => path !== mount.path)
    throw noSecret(answer, secretPath, mount, withheldIn(session))
  }

  return {
    async read(secretPath, session, call) {
      const { answer, version } = await timed(call, 'read', () => answerFor(secretPath, session, call.signal))
      return timed(call, 'parse', () => secretIn(answer, version, authConfig))
    },
  }
}

/** Other engines hand out more than secrets: `auth/token/lookup-self` gives the token that it is asked with. */
const KV_TYPES: unknown[] = ['kv', 'generic']

/** Whoever may read something of a mount may ask for its type, so a refusal here is one of the secret, too. */
function kvMountIn(answer: VaultAnswer, secretPath: string, withheld: object): KvMount {
  if (answer.status === 404) throw unfit('Vault does not know its own API here: look at vault_addr and vault_namespace')
  const { data } = jsonIn(answer, 'read', withheld)
  if (!isObject(data) || typeof data['path'] !== 'string') throw unexpected('read')
  if (!KV_TYPES.includes(data['type'])) throw unfit('secret_path: its mount is not of type kv; no other type is read')
  const options = isObject(data['options']) ? data['options'] : {}
  const mount: KvMount = { path: data['path'], version: options['version'] === '2' ? 2 : 1 }
  if (!isBelow(secretPath, mount)) throw unexpected('read')
  return mount
}

function noSecret(answer: VaultAnswer, secretPath: string, mount: KvMount, withheld: object): ManagerError {
  if (answer.status === 404 && wantsVersionedPath(answer)) return unfit(withVersions(secretPath, mount))
  const metadata = isObject(answer.json?.['data']) ? answer.json['data']['metadata'] : undefined
  if (answer.status !== 404 || !isObject(metadata)) return refusal(answer, 'read', withheld)
  const how = metadata['destroyed'] === true ? 'destroyed' : 'deleted'
  return new ManagerError('read', 'manager_secret_missing', `the newest version of this secret is ${how} in Vault`)
}

function withVersions(secretPath: string, mount: KvMount): string {
  const corrected = `${mount.path}data/${secretPath.slice(mount.path.length)}`
  const remedy = isHarmless(corrected) ? `write ${corrected}` : 'write MOUNT/data/PATH'
  return `secret_path: its mount keeps versions: ${remedy}`
}

function secretIn(answer: VaultAnswer, version: 1 | 2, authConfig: VaultAuthConfig): FetchedSecret {
  const { data } = jsonIn(answer, 'parse', authConfig)
  if (!isObject(data)) throw unexpected('parse')
  if (version === 1) return { content: data, version: null }
  const { data: content, metadata } = data
  const number = isObject(metadata) ? metadata['version'] : undefined
  if (!isObject(content) || !Number.isSafeInteger(number)) throw unexpected('parse')
  return { content, version: String(number) }
}

const unfit = (message: string): ManagerError => new ManagerError('read', 'manager_config', message)
