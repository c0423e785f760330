import { type Static, Type } from '@sinclair/typebox'
import { Strict, sendable } from './common.ts'

const on = (description: string) => Type.Boolean({ default: true, description })
const off = (description: string) => Type.Boolean({ default: false, description })

/**
 * What people may see and do with their user keys in a workspace (file 00 section 2.3); an organisation's own values
 * stand for its workspaces, which may override each. The defaults are those of spec 5.3 and 5.4, not the ecosystem's
 * (decision 34): a Member works with prompts, configs and providers, and has nothing to do with API keys.
 */
const SETTINGS = {
  membersViewLogs: on('members read and export logs'),
  membersViewLogMetadata: on('members list logs'),
  membersViewAnalytics: on('members see analytics'),
  membersViewAllData: on('members see what others have made too, not only their own'),
  membersViewPrompts: on('members see prompts, partials, collections and labels'),
  membersWritePrompts: on('members change prompts, partials, collections and labels'),
  membersViewConfigs: on('members see configs'),
  membersWriteConfigs: on('members change configs'),
  membersViewGuardrails: on('members see guardrails'),
  membersWriteGuardrails: on('members change guardrails'),
  membersViewVirtualKeys: on('members see providers and virtual keys'),
  membersWriteVirtualKeys: on('members change providers and virtual keys'),
  membersViewApiKeys: off('members see their own user keys'),
  membersWriteApiKeys: off('members make, change, rotate and delete user keys of their own'),
  managersViewLogs: on('managers read and export logs'),
  managersViewLogMetadata: on('managers list logs'),
  managersViewAnalytics: on('managers see analytics'),
  managersViewAllData: on('managers see what others have made too, not only their own'),
  managersViewPrompts: on('managers see prompts, partials, collections and labels'),
  managersWritePrompts: on('managers change prompts, partials, collections and labels'),
  managersViewConfigs: on('managers see configs'),
  managersWriteConfigs: on('managers change configs'),
  managersViewGuardrails: on('managers see guardrails'),
  managersWriteGuardrails: on('managers change guardrails'),
  managersViewVirtualKeys: on('managers see providers and virtual keys'),
  managersWriteVirtualKeys: on('managers change providers and virtual keys'),
  managersViewApiKeys: on('managers see the API keys of the workspace'),
  managersWriteApiKeys: on('managers make, change, rotate and delete API keys of the workspace'),
  managersUpdateWs: off('keys of the workspace that act as a manager or more may change the workspace itself'),
  managersWriteWsUsers: off('keys of the workspace that act as a manager or more may add, change and remove members'),
  managersWriteMcpServers: on('managers change MCP and agent servers'),
  managersWriteWsIntegrations: on('managers change integrations of the workspace'),
  managersWriteWsMcpIntegrations: on('managers change MCP and agent integrations of the workspace'),
  organisationAdminsViewLogs: on('organisation owners and admins read and export logs'),
  organisationAdminsViewLogMetadata: on('organisation owners and admins list logs'),
}

export const SecuritySettings = Strict(SETTINGS, { title: 'SecuritySettings' })
export type SecuritySettings = Static<typeof SecuritySettings>
export type SecuritySetting = keyof SecuritySettings

/** What is stored of an organisation or a workspace: those that were set. */
export const OwnSecuritySettings = Type.Partial(SecuritySettings, { title: 'OwnSecuritySettings' })
export type OwnSecuritySettings = Static<typeof OwnSecuritySettings>

/** What a write sends. */
export const SecuritySettingsUpdate = Strict(sendable(SETTINGS), {
  title: 'SecuritySettingsUpdate',
  description:
    'absent keeps a setting; null takes it back: in a workspace to that of the organisation, there to the default',
})
export type SecuritySettingsUpdate = Static<typeof SecuritySettingsUpdate>

export const DEFAULT_SECURITY: Readonly<SecuritySettings> = Object.freeze(
  Object.fromEntries(Object.entries(SETTINGS).map(([name, { default: value }]) => [name, value])) as SecuritySettings,
)
