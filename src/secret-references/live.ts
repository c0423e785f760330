import type { ManagerType } from '../../schema/api/secret-references.ts'
import type { Keyring } from '../crypto/keyring.ts'
import type { Reader } from '../db/database.ts'
import type { Reference } from '../secret-managers/values.ts'
import { createLookup, isId, type Lookup, type Thing } from './lookup.ts'
import { openAuthConfig } from './sealed-auth-config.ts'
import { findWithWorkspaces, findWorkspaces } from './store.ts'

/** What a use of a secret reference needs of it. */
export interface LiveReference extends Thing {
  name: string
  secretKey: string | null
  /** one object as long as nothing changes: what it was granted is remembered with it */
  reference: Reference
  /** no workspace is named, so that the organisation itself may use it */
  isForOrganisation: boolean
}

/** The references and workspaces that resolves name, in memory; each commit that touches them empties it (decision 13). */
export interface LiveReferences {
  references: Lookup<LiveReference>
  /** active ones */
  workspaces: Lookup<Thing>
  clear(): void
}

/** @param max references that are held, and workspaces */
export function createLiveReferences(read: Reader, keyring: () => Keyring, max: number): LiveReferences {
  const references = createLookup<LiveReference>(max, async (organisationId, idOrSlug) => {
    const found = await findWithWorkspaces(read, organisationId, idOrSlug)
    if (found === undefined) return undefined
    const { row, named } = found
    const { id, slug, name, revision, secretKey, secretPath, cacheSeconds } = row
    const reference: Reference = {
      ...{ id, organisationId, revision, secretPath, cacheSeconds },
      managerType: row.managerType as ManagerType,
      authConfig: () => openAuthConfig(keyring(), row),
      workspaces: row.allowAllWorkspaces ? 'all' : named.filter(({ status }) => status === 'active'),
    }
    // One that only archived workspaces may use is nobody's, not everybody's.
    const isForOrganisation = row.allowAllWorkspaces || named.length === 0
    return { id, slug, name, organisationId, secretKey, reference, isForOrganisation }
  })
  const workspaces = createLookup<Thing>(max, async (organisationId, idOrSlug) => {
    const found = await findWorkspaces(read, organisationId, [idOrSlug])
    const meant = found.find(({ id, slug }) => idOrSlug === (isId(idOrSlug) ? id : slug))
    return meant && { ...meant, organisationId }
  })
  return {
    references,
    workspaces,
    clear() {
      references.clear()
      workspaces.clear()
    },
  }
}
