import type { OrganisationSettings, WorkspaceSettings } from '../../schema/api/organisation-settings.ts'
import type { UpdateWorkspace } from '../../schema/api/workspaces.ts'
import { invalidField } from '../errors.ts'
import { assertMetadata } from '../organisation/metadata.ts'
import { assertLives, mergeSettings } from '../organisation/settings.ts'
import { readUsageLimits } from '../usage-limits.ts'
import { contentOf } from './present.ts'
import type { WorkspaceRow } from './store.ts'

/**
 * A workspace after an update: what is absent stays. Null clears description, limits, metadata and own settings; for
 * any other field it counts as absent (file 10).
 *
 * @param general the organisation's settings
 * @param now UTC milliseconds
 * @throws GatehouseError `invalid`
 */
export function changed(
  row: WorkspaceRow,
  body: UpdateWorkspace,
  general: OrganisationSettings,
  now: number,
): WorkspaceRow {
  const { description, usage_limits: usage, rate_limits: rates } = body
  const before = contentOf(row).usageLimits
  const readUsage = () => usage?.map((each, i) => readUsageLimits(each, `usage_limits[${i}]`, now, before?.[i]))
  return {
    ...row,
    ...named(row, body),
    ...(description !== undefined && { description }),
    ...(usage !== undefined && { usageLimits: listOrNull(readUsage()) }),
    ...(rates !== undefined && { rateLimits: listOrNull(rates) }),
    ...withDefaults(row, body.defaults ?? {}, general),
    ...withSettings(row, body, general),
    lastUpdatedAt: now,
  }
}

const LEADING_EMOJI = /^(\p{RGI_Emoji}) (\S.*)$/v

/** An emoji before the name becomes the icon, which is displayed there: clients read back the name that they wrote. */
function named(
  row: WorkspaceRow,
  { name: written, icon: wanted }: UpdateWorkspace,
): Pick<WorkspaceRow, 'name' | 'icon'> {
  const icon = wanted === undefined || wanted === null ? undefined : wanted === '' ? null : wanted
  const name = written ?? row.name
  if (icon !== undefined)
    return { icon, name: icon !== null && name.startsWith(`${icon} `) ? name.slice(icon.length + 1) : name }
  const [, emoji, rest] = (written && LEADING_EMOJI.exec(written)) || []
  return emoji === undefined || rest === undefined ? { icon: row.icon, name } : { icon: emoji, name: rest }
}

const listOrNull = (list: readonly unknown[] | null | undefined): string | null =>
  list && list.length > 0 ? JSON.stringify(list) : null

type Defaults = NonNullable<UpdateWorkspace['defaults']>

/** Merged by key: only metadata is there to be kept until configs and guardrails are. */
function withDefaults(row: WorkspaceRow, sent: Defaults, general: OrganisationSettings): Partial<WorkspaceRow> {
  const { metadata, is_default: isDefault } = sent
  if (isDefault !== undefined && isDefault !== null && Boolean(isDefault) !== row.isDefault)
    throw invalidField('defaults.is_default', 'cannot be changed: the default workspace is the one of the first start')
  for (const list of ['input_guardrails', 'output_guardrails'] as const)
    if (sent[list]?.length) throw invalidField(`defaults.${list}[0]`, 'is unknown: there are no guardrails yet')
  if (sent.user_api_key_config)
    throw invalidField('defaults.user_api_key_config', 'is unknown: there are no configs yet')
  if (metadata === undefined) return {}
  assertMetadata(general.workspace_metadata_schema, metadata, 'defaults.metadata')
  return { defaults: metadata === null || isEmpty(metadata) ? null : JSON.stringify({ metadata }) }
}

function withSettings(
  row: WorkspaceRow,
  { settings, security_settings: security }: UpdateWorkspace,
  general: OrganisationSettings,
): Partial<WorkspaceRow> {
  const before = contentOf(row)
  const own: Partial<WorkspaceSettings> = settings === null ? {} : mergeSettings(before.settings, settings ?? {})
  if (settings !== undefined) assertLives({ ...general, ...own } as OrganisationSettings, 'settings.')
  return {
    ...(settings !== undefined && { settings: objectOrNull(own) }),
    ...(security !== undefined && {
      securitySettings: security === null ? null : objectOrNull(mergeSettings(before.securitySettings, security)),
    }),
  }
}

const isEmpty = (object: object): boolean => Object.keys(object).length === 0
const objectOrNull = (object: object): string | null => (isEmpty(object) ? null : JSON.stringify(object))
