import type { AuthConfig } from '../../schema/api/secret-references.ts'
import type { Reader } from '../db/database.ts'
import { difference } from '../difference.ts'
import { parseNullable } from '../json.ts'
import { listAllowedWorkspaces, type SecretReferenceRow } from './store.ts'

/** What an audit row says of a reference, its auth_config aside. */
export const toldOf = async (db: Reader, row: SecretReferenceRow) => ({
  name: row.name,
  slug: row.slug,
  description: row.description,
  manager_type: row.managerType,
  secret_path: row.secretPath,
  secret_key: row.secretKey,
  tags: parseNullable(row.tags),
  allow_all_workspaces: row.allowAllWorkspaces,
  allowed_workspaces: row.allowAllWorkspaces ? null : (await listAllowedWorkspaces(db, row.id)).map(({ id }) => id),
  cache_seconds: row.cacheSeconds,
})

type Told = Awaited<ReturnType<typeof toldOf>>

/** What an update changed, field by field of the auth_config too; the trail keeps fingerprints of its values (`audit/mask.ts`). */
export function detailsOfUpdate([before, stored]: [Told, AuthConfig], [after, authConfig]: [Told, AuthConfig]) {
  const none = Object.fromEntries(Object.keys({ ...stored, ...authConfig }).map((name) => [name, null]))
  const auth = difference({ ...none, ...stored }, { ...none, ...authConfig })
  const rest = difference(before, after)
  if (Object.keys(auth.after).length === 0) return rest
  return {
    before: { ...rest.before, auth_config: auth.before },
    after: { ...rest.after, auth_config: auth.after },
  }
}
