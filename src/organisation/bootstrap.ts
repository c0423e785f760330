import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GRANTABLE } from '../../schema/api/permissions.ts'
import { maskKey, newApiKey } from '../api-keys/key.ts'
import { auditKeys } from '../audit/keys.ts'
import { createDigest } from '../crypto/digest.ts'
import { newKeyringRows, openKeyring } from '../crypto/keyring.ts'
import type { Tx } from '../db/database.ts'
import type { Gatehouse } from '../gatehouse.ts'
import { newSlug } from '../slug.ts'
import { EXIT, StartError } from '../start-error.ts'

export interface Bootstrapped {
  organisation_id: string
  user_id: string
  workspace_id: string
  workspace_slug: string
  collection_id: string
  admin_key: string
}

const UNIVERSAL_LABELS = ['production', 'staging', 'development'] as const

/**
 * Makes an installation usable (decision 5): organisation, owner, default workspace with its default collection, the
 * three universal labels, the keyring and the first admin key; all of it in one transaction, once.
 *
 * @param input.uid who runs the command, for the audit row
 * @throws StartError 65 ALREADY_INITIALISED
 */
export async function bootstrap(
  gatehouse: Gatehouse,
  input: { organisation: string; email: string; uid: number },
): Promise<Bootstrapped> {
  const masterKeys = gatehouse.masterKeys()
  const keyringRows = newKeyringRows(masterKeys, Date.now())
  const keyring = openKeyring(keyringRows, masterKeys)
  const organisationId = Bun.randomUUIDv7()
  const userId = Bun.randomUUIDv7()
  const workspaceId = Bun.randomUUIDv7()
  const workspaceSlug = newSlug('ws', 'default')
  const collectionId = Bun.randomUUIDv7()
  const keyId = Bun.randomUUIDv7()
  const adminKey = newApiKey('a')
  const actor = { kind: 'cli', uid: input.uid, organisationId, command: 'bootstrap' } as const
  const what = { action: 'organisation.bootstrap', resourceId: organisationId, resourceName: input.organisation }
  const work = async (tx: Tx): Promise<void> => {
    const t = tx.tables
    const [existing] = await tx.select({ id: t.keyring.id }).from(t.keyring).limit(1)
    if (existing !== undefined)
      throw new StartError(
        'ALREADY_INITIALISED',
        EXIT.data,
        'this installation has an organisation already',
        'use the admin key of the first bootstrap, or gatehouse keys create --admin',
      )
    const createdAt = tx.now
    const times = { createdAt, lastUpdatedAt: createdAt }
    const digest = createDigest(keyring.apiKeyPepper.reveal())
    await tx.insert(t.keyring).values(keyringRows).returning({ id: t.keyring.id })
    await tx
      .insert(t.organisations)
      .values({ id: organisationId, name: input.organisation, createdAt })
      .returning({ id: t.organisations.id })
    await tx
      .insert(t.users)
      .values({
        id: userId,
        organisationId,
        email: input.email,
        firstName: '',
        lastName: '',
        role: 'owner',
        status: 'active',
        ...times,
      })
      .returning({ id: t.users.id })
    await tx
      .insert(t.workspaces)
      .values({
        id: workspaceId,
        organisationId,
        slug: workspaceSlug,
        name: 'Default',
        description: null,
        isDefault: true,
        status: 'active',
        ...times,
      })
      .returning({ id: t.workspaces.id })
    await tx
      .insert(t.workspaceMembers)
      .values({ workspaceId, userId, role: 'admin', ...times })
      .returning({ userId: t.workspaceMembers.userId })
    await tx
      .insert(t.collections)
      .values({
        id: collectionId,
        workspaceId,
        parentCollectionId: null,
        slug: newSlug('co', 'default'),
        name: 'Default',
        isDefault: true,
        ...times,
      })
      .returning({ id: t.collections.id })
    const label = {
      organisationId,
      workspaceId: null,
      scopeId: organisationId,
      description: null,
      colorCode: null,
      isUniversal: true,
      ...times,
    }
    await tx
      .insert(t.labels)
      .values(UNIVERSAL_LABELS.map((name) => ({ ...label, id: Bun.randomUUIDv7(), name })))
      .returning({ id: t.labels.id })
    const key = {
      id: keyId,
      organisationId,
      workspaceId: null,
      userId: null,
      accountableUserId: userId,
      type: 'organisation-service',
      name: 'first admin key',
      description: null,
      scopes: JSON.stringify([...GRANTABLE['organisation-service']]),
      digest: digest(adminKey),
      masked: maskKey(adminKey),
      creationMode: 'auto',
      createdByKeyId: null,
      expiresAt: null,
      deletedAt: null,
      ...times,
    }
    await tx.insert(t.apiKeys).values(key).returning({ id: t.apiKeys.id })
    // Other nodes of the same database wait for it too.
    tx.changed('*', organisationId)
  }
  await gatehouse.audited(actor, what, work, { keys: auditKeys(keyring) })
  markInitialised(gatehouse)
  return {
    organisation_id: organisationId,
    user_id: userId,
    workspace_id: workspaceId,
    workspace_slug: workspaceSlug,
    collection_id: collectionId,
    admin_key: adminKey,
  }
}

/** From now on a missing or empty database file is a loss, never a first start (FR-3). */
function markInitialised({ config, dialect }: Gatehouse): void {
  if (dialect === 'sqlite')
    writeFileSync(join(config.data.dir, 'INITIALISED'), `${new Date().toISOString()}\n`, { mode: 0o600 })
}
