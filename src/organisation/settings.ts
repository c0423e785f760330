import { and, eq, sql } from 'drizzle-orm'
import type { MetadataSchema } from '../../schema/api/metadata.ts'
import type {
  OrganisationSettings,
  OrganisationSettingsUpdate,
  WorkspaceSettings,
} from '../../schema/api/organisation-settings.ts'
import { DEFAULT_SECURITY, type SecuritySettings } from '../../schema/api/security-settings.ts'
import type { KeyActor } from '../auth/caller.ts'
import { securityOf } from '../auth/key-rows.ts'
import type { Reader, Tx } from '../db/database.ts'
import { difference } from '../difference.ts'
import { invalidField } from '../errors.ts'
import type { Gatehouse } from '../gatehouse.ts'

/** What the organisation's settings are where nobody has set them. */
const DEFAULTS: Omit<OrganisationSettings, 'object'> = {
  debug_log: 0,
  user_api_key_ttl: 0,
  user_api_key_max_ttl: 0,
  user_api_key_count: 0,
  user_key_metadata: 0,
  user_key_metadata_override: 0,
  user_api_key_rotation_period: null,
  user_api_key_auto_create: false,
  default_workspace_user_api_key_auto_create: false,
  api_key_metadata_schema: null,
  workspace_metadata_schema: null,
  export_settings: { deniedFields: [] },
  security_settings: DEFAULT_SECURITY,
}

/** What is stored: those that were set. */
type Stored = Partial<Omit<OrganisationSettings, 'object' | 'security_settings'>> & {
  security_settings?: Partial<OrganisationSettings['security_settings']>
}

/** What binds the user keys of a workspace. */
export interface KeySettings {
  /** life of a key that is created without an expiry; null: none */
  ttlSeconds: number | null
  /** longest life; null: any */
  maxTtlSeconds: number | null
  /** live user keys of one person in the workspace; null: any number */
  maxCount: number | null
  rotationPeriod: 'weekly' | 'monthly' | null
  /** new members get a key without a secret (decision 35) */
  autoCreate: boolean
  /** for the metadata of keys of every type; `assertMetadata` checks it */
  metadataSchema: MetadataSchema | null
}

/** The organisation's settings for API keys, overridden by those of the workspace. */
export async function keySettings(db: Reader, organisationId: string, workspaceId: string): Promise<KeySettings> {
  const { organisations, workspaces } = db.tables
  const [row] = await db
    .select({ general: organisations.settings, own: workspaces.settings, isDefault: workspaces.isDefault })
    .from(organisations)
    .leftJoin(workspaces, and(eq(workspaces.organisationId, organisations.id), eq(workspaces.id, workspaceId)))
    .where(eq(organisations.id, organisationId))
    .limit(1)
  const general = withDefaults(row?.general ?? '{}')
  const settings = { ...general, ...(JSON.parse(row?.own ?? '{}') as Partial<WorkspaceSettings>) }
  const bound = (value: number | null | undefined) => (value === 0 ? null : (value ?? null))
  return {
    ttlSeconds: bound(settings.user_api_key_ttl),
    maxTtlSeconds: bound(settings.user_api_key_max_ttl),
    maxCount: bound(settings.user_api_key_count),
    rotationPeriod: general.user_api_key_rotation_period,
    autoCreate: row?.isDefault ? general.default_workspace_user_api_key_auto_create : general.user_api_key_auto_create,
    metadataSchema: general.api_key_metadata_schema,
  }
}

/** All settings of an organisation, defaults included. */
export const organisationSettings = async (db: Reader, organisationId: string): Promise<OrganisationSettings> =>
  withDefaults(await readStored(db, organisationId))

/**
 * What people may do in a workspace.
 *
 * @param own its own security settings, as they are stored
 */
export const workspaceSecurity = async (
  db: Reader,
  organisationId: string,
  own: string | null,
): Promise<SecuritySettings> => securityOf(await readStored(db, organisationId), own)

async function readStored(db: Reader, organisationId: string): Promise<string> {
  const { organisations: t } = db.tables
  const [row] = await db.select({ settings: t.settings }).from(t).where(eq(t.id, organisationId)).limit(1)
  return row?.settings ?? '{}'
}

/**
 * Absent keeps a setting, null sets it back to its default; security settings are merged one by one.
 *
 * @throws GatehouseError `invalid` for an update of nothing, or a default life beyond the longest one
 */
export async function updateOrganisationSettings(
  { audited }: Pick<Gatehouse, 'audited'>,
  actor: KeyActor,
  body: OrganisationSettingsUpdate,
): Promise<OrganisationSettings> {
  if (Object.keys(body).length === 0) throw invalidField('', 'nothing to update: send at least one setting')
  const { organisationId } = actor.caller
  const what = { action: 'organisation_settings.update', workspaceId: null, resourceId: organisationId }
  return audited(actor, what, async (tx) => {
    const { name, settings } = await lockOrganisation(tx, organisationId)
    const stored = merge(JSON.parse(settings) as Stored, body)
    const before = withDefaults(settings)
    const after = withDefaults(JSON.stringify(stored))
    assertLives(after)
    const { organisations: t } = tx.tables
    await tx
      .update(t)
      .set({ settings: JSON.stringify(stored) })
      .where(eq(t.id, organisationId))
      .returning({ id: t.id })
    tx.event.resourceName = name
    tx.event.details = difference(before, after)
    if (body.security_settings !== undefined) tx.changed('organisation', organisationId)
    return after
  })
}

/** The organisation's row; until the end of the change nobody else changes it. */
export async function lockOrganisation(tx: Tx, organisationId: string) {
  const { organisations: t } = tx.tables
  const [row] = await tx
    .update(t)
    .set({ name: sql`${t.name}` })
    .where(eq(t.id, organisationId))
    .returning()
  if (row === undefined) throw new Error('the organisation is gone')
  return row
}

function merge(stored: Stored, { security_settings: security, ...body }: OrganisationSettingsUpdate): Stored {
  const merged = mergeSettings<Stored>(stored, body)
  if (security === null) delete merged.security_settings
  else if (security !== undefined) merged.security_settings = mergeSettings(stored.security_settings ?? {}, security)
  return merged
}

/** Absent keeps, null removes, a boolean becomes 0 or 1 where the wire has integers. */
export function mergeSettings<T extends object>(stored: T, sent: object): T {
  const merged = { ...stored } as Record<string, unknown>
  for (const [name, value] of Object.entries(sent)) {
    if (value === null) delete merged[name]
    else merged[name] = typeof value === 'boolean' && ZERO_ONE.has(name) ? Number(value) : value
  }
  return merged as T
}

const ZERO_ONE = new Set(['debug_log', 'user_key_metadata', 'user_key_metadata_override'])

/** @throws GatehouseError `invalid` when keys would be born older than they may get */
export function assertLives(
  {
    user_api_key_ttl: ttl,
    user_api_key_max_ttl: max,
  }: Pick<OrganisationSettings, 'user_api_key_ttl' | 'user_api_key_max_ttl'>,
  path = '',
): void {
  if (max > 0 && ttl > max) throw invalidField(`${path}user_api_key_ttl`, 'must be no more than user_api_key_max_ttl')
}

function withDefaults(settings: string): OrganisationSettings {
  const stored = JSON.parse(settings) as Stored
  return { ...DEFAULTS, ...stored, security_settings: securityOf(settings, null), object: 'organisation-settings' }
}
