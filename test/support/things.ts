import type { World } from './scenario.ts'
import { addKey, addOrganisation, addPerson, addWorkspace, defaultTenant } from './tenants.ts'

/** The body of a good secret reference. */
export const SECRET_REFERENCE = {
  name: 'openai prod',
  manager_type: 'hashicorp_vault',
  secret_path: 'secret/openai',
  auth_config: {
    vault_auth_type: 'token',
    vault_addr: 'https://vault.example.com:8200',
    vault_token: 'hvs.CAESIJ-a-token-of-nobody',
  },
}

/**
 * One of each thing in the default workspace, under its name: `$prompt`, `$version`, `$partial`, `$collection`, `$label`,
 * `$key` (an admin key), `$reference` (a secret reference), `$invite`, `$token` (of another invite), `$person` (a member), `$newcomer` (no member of any
 * workspace); a workspace beside it (`$next_slug`), another organisation (`$far_organisation`, `$far_workspace`,
 * `$far_slug`), and the keys `service` and `manager`.
 */
export async function addThings({ gatehouse, made, call, names, keys }: World): Promise<void> {
  const make = async (path: string, body: object) => {
    const answer = await call('POST', `/v1${path}`, body)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body
  }
  const prompt = await make('/prompts', { name: 'p', string: 'x', parameters: {}, model: 'm' })
  const person = await addPerson(gatehouse, made.organisation_id, 'member')
  await make(`/admin/workspaces/${made.workspace_id}/users`, { user_id: person, role: 'member' })
  const invite = (email: string) => make('/admin/users/invites', { email, role: 'member' })
  const next = await addWorkspace(gatehouse, made.organisation_id)
  const far = await addOrganisation(gatehouse)
  const theirs = await call('GET', `/v1/admin/workspaces/${far.workspaceId}`, undefined, { key: far.adminKey })
  Object.assign(names, {
    ...{ prompt: prompt.id, version: prompt.version_id, person, next_slug: next.workspaceSlug },
    partial: (await make('/prompts/partials', { name: 'p', string: 'x' })).id,
    collection: (await make('/collections', { name: 'c' })).id,
    label: (await make('/labels', { name: 'l' })).id,
    key: (await make('/api-keys/organisation/service', { name: 'k', scopes: ['prompts.read'] })).id,
    reference: (await make('/secret-references', SECRET_REFERENCE)).id,
    invite: (await invite('a@example.org')).id,
    token: (await invite('other@example.org')).invite_link.split('#')[1],
    newcomer: await addPerson(gatehouse, made.organisation_id, 'member'),
    ...{ far_organisation: far.organisationId, far_workspace: far.workspaceId, far_slug: theirs.body.slug },
  })
  const manager = await addPerson(gatehouse, made.organisation_id, 'member')
  await make(`/admin/workspaces/${made.workspace_id}/users`, { user_id: manager, role: 'manager' })
  const own = defaultTenant(made)
  keys['service'] = await addKey(gatehouse, own, 'workspace-service')
  keys['manager'] = await addKey(gatehouse, { ...own, userId: manager }, 'workspace-user')
}
