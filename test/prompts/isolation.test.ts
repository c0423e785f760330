import { describe } from 'bun:test'
import { DIALECTS } from '../support/database.ts'
import { type Scenario, scenarios, useWorld, type World } from '../support/scenario.ts'
import { addKey, addOrganisation, addWorkspace, defaultTenant, type Tenant } from '../support/tenants.ts'

const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }

/** The same things in each workspace: a prompt, a partial and a label, all of the same names. */
async function furnish({ call, names, keys }: World, tenant: string): Promise<void> {
  const key = keys[tenant] ?? ''
  const make = async (path: string, body: object) => (await call('POST', path, body, { key })).body
  const partial = await make('/v1/prompts/partials', { name: 'same', string: `partial of ${tenant}` })
  const made = await make('/v1/prompts', {
    ...prompt,
    name: 'same',
    string: `prompt of ${tenant}, {{>${partial.slug}}}`,
  })
  const label = await make('/v1/labels', { name: 'same' })
  await call('PUT', `/v1/prompts/${made.id}/versions/${made.version_id}`, { label_id: label.id }, { key })
  names[`${tenant}_prompt`] = made.id
  names[`${tenant}_version`] = made.version_id
  names[`${tenant}_slug`] = made.slug
  names[`${tenant}_partial`] = partial.slug
  names[`${tenant}_label`] = label.id
}

describe.each(DIALECTS)('tenants do not meet: %s', (dialect) => {
  const world = useWorld(dialect, async (it) => {
    const { gatehouse, made, names, keys } = it
    const own = defaultTenant(made)
    const tenants: Record<string, Tenant> = {
      own,
      next: { ...own, ...(await addWorkspace(gatehouse, own.organisationId)) },
      far: await addOrganisation(gatehouse),
    }
    for (const [name, tenant] of Object.entries(tenants)) {
      keys[name] = await addKey(gatehouse, tenant, 'workspace-service')
      keys[`${name}_admin`] = await addKey(gatehouse, tenant, 'organisation-service')
      names[`${name}_workspace`] = tenant.workspaceId
      names[`${name}_collection`] = tenant.collectionId
      await furnish(it, name)
    }
  })

  const others = ['next', 'far']
  const each = (row: (other: string) => Scenario): Scenario[] => others.map(row)

  scenarios('GET /v1/prompts', world, [
    { name: 'a workspace key lists its own', as: 'own', expect: 200, answer: { total: 1 }, mentions: '$own_prompt' },
    { name: 'an admin key lists its organisation', as: 'own_admin', expect: 200, answer: { total: 2 } },
    {
      name: 'another admin key lists its own',
      as: 'far_admin',
      expect: 200,
      answer: { total: 1 },
      mentions: '$far_prompt',
    },
    ...['prompts/partials', 'collections'].map((list) => ({
      name: `${list} too`,
      as: 'own',
      call: `GET /v1/${list}`,
      expect: 200,
      answer: { total: 1 },
    })),
    ...each((other) => ({
      name: `a collection of ${other} is unknown to a filter`,
      as: 'own',
      call: `GET /v1/prompts?collection_id=$${other}_collection`,
      expect: 'invalid',
    })),
    ...each((other) => ({
      name: `a workspace key narrows to no workspace of ${other}`,
      as: 'own',
      call: `GET /v1/prompts?workspace_id=$${other}_workspace`,
      expect: 'forbidden',
    })),
    {
      name: 'an admin key finds no workspace of another organisation',
      as: 'own_admin',
      call: 'GET /v1/prompts?workspace_id=$far_workspace',
      expect: 'not_found',
    },
  ])

  scenarios('POST /v1/prompts', world, [
    ...each((other) => ({
      name: `nothing is put into a collection of ${other}`,
      as: 'own',
      body: { ...prompt, collection_id: `$${other}_collection` },
      expect: 'invalid',
      mentions: '"param":"collection_id"',
    })),
    {
      name: 'not with an admin key of another organisation either',
      as: 'far_admin',
      body: { ...prompt, collection_id: '$own_collection' },
      expect: 'invalid',
    },
    {
      name: 'not into a workspace of another organisation',
      as: 'far_admin',
      body: { ...prompt, workspace_id: '$own_workspace' },
      expect: 'not_found',
    },
    ...each((other) => ({
      name: `nothing is moved to a collection of ${other}`,
      as: 'own_admin',
      call: 'PUT /v1/prompts/$own_prompt',
      body: { collection_id: `$${other}_collection` },
      expect: 'invalid',
    })),
    ...each((other) => ({
      name: `no label of ${other} is put on a version`,
      as: 'own_admin',
      call: 'PUT /v1/prompts/$own_prompt/versions/$own_version',
      body: { label_id: `$${other}_label` },
      expect: 'invalid',
      mentions: '"param":"label_id"',
    })),
  ])

  scenarios('POST /v1/prompts/$own_prompt/render', world, [
    {
      name: 'its own key renders it',
      as: 'own',
      body: { variables: {} },
      expect: 200,
      mentions: 'prompt of own, partial of own',
    },
    ...[...others, 'far_admin'].flatMap((as) =>
      ['', '@1', '@same', '@latest', '@nope'].map((suffix) => ({
        name: `for ${as} there is no ${suffix || 'prompt'}`,
        as,
        call: `POST /v1/prompts/$own_slug${suffix}/render`,
        body: { variables: {} },
        expect: 'not_found' as const,
        mentions: suffix === '' ? '"prompt not found"' : '"prompt, version or label not found"',
      })),
    ),
    ...['own', ...others].map((as) => ({
      name: `a label of the same name is the own one: ${as}`,
      as,
      call: `POST /v1/prompts/$${as}_slug@same/render`,
      body: { variables: {} },
      expect: 200,
      mentions: `prompt of ${as}, partial of ${as}`,
    })),
    {
      name: 'an admin key renders in each workspace of its organisation',
      as: 'own_admin',
      call: 'POST /v1/prompts/$next_slug@same/render',
      body: { variables: {} },
      expect: 200,
      mentions: 'prompt of next, partial of next',
    },
    {
      name: 'a partial of another workspace is unknown by its slug',
      as: 'own',
      call: 'POST /v1/prompts',
      body: { ...prompt, string: '{{>$next_partial}}' },
      expect: 200,
      keep: { thief: 'id' },
    },
    {
      name: 'so its text stays there',
      as: 'own',
      call: 'POST /v1/prompts/$thief/render',
      body: { variables: {} },
      expect: 'not_found',
      notMentions: 'partial of',
    },
  ])
})
