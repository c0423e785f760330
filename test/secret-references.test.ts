import { beforeAll, describe } from 'bun:test'
import { createApiKey } from '../src/api-keys/service.ts'
import { DIALECTS } from './support/database.ts'
import { type Scenario, scenarios, useWorld, type World } from './support/scenario.ts'
import { addOrganisation, addWorkspace } from './support/tenants.ts'

// File 04: create, read, list, delete. What an update does is in `secret-references-update`, what a shape takes in
// `secret-references-auth-config`, what is kept sealed in `secret-references-sealed`.

const TOKEN = 'hvs.CAESIJ-a-token-of-nobody-XYZ'
const auth = { vault_auth_type: 'token', vault_addr: 'https://vault.example.com:8200', vault_token: TOKEN }
const good = { name: 'OpenAI prod', manager_type: 'hashicorp_vault', secret_path: 'secret/openai', auth_config: auth }
const BASE = '/v1/secret-references'

/** Refused, with this complaint. */
const refused = (name: string, body: object, mentions: string | string[]): Scenario => ({
  name,
  body: { ...good, ...body },
  expect: 'invalid',
  mentions,
  notMentions: TOKEN,
})

async function setUp({ gatehouse, made, names, keys }: World): Promise<void> {
  const other = await addWorkspace(gatehouse, made.organisation_id)
  const archived = await addWorkspace(gatehouse, made.organisation_id)
  const far = await addOrganisation(gatehouse)
  Object.assign(names, {
    other: other.workspaceId,
    other_slug: other.workspaceSlug,
    archived: archived.workspaceId,
    far_organisation: far.organisationId,
    far_workspace: far.workspaceId,
  })
  keys['far'] = far.adminKey
  gatehouse.peerIp = () => '127.0.0.1'
  const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
  const system = { type: 'system', name: 's', scopes: [], accountableUserId: made.user_id } as const
  keys['system'] = (await createApiKey(gatehouse, cli, system)).key
}

describe.each(DIALECTS)('secret references: %s', (dialect) => {
  const world = useWorld(dialect, setUp)
  const mapped = async (referenceId: string) => {
    const { gatehouse, made } = world()
    const cli = { kind: 'cli', uid: 0, organisationId: made.organisation_id, command: 'test' } as const
    await gatehouse.audited(cli, { action: 'test.map' }, async (tx) => {
      const { secretMappings: t } = tx.tables
      const holder = { holderKind: 'integration', holderId: Bun.randomUUIDv7(), organisationId: made.organisation_id }
      const field = { position: 0, targetField: 'key', secretReferenceId: referenceId, referenceAsGiven: 'a-holder' }
      await tx
        .insert(t)
        .values({ ...holder, ...field })
        .returning({ id: t.holderId })
    })
  }

  scenarios(`POST ${BASE}`, world, [
    {
      name: 'an archived workspace',
      call: 'DELETE /v1/admin/workspaces/$archived',
      body: { force_delete: true },
      expect: 200,
    },
    {
      name: 'the name becomes the slug',
      body: good,
      expect: 200,
      answer: { slug: 'openai-prod', object: 'secret-reference' },
      keep: { id: 'id', slug: 'slug' },
    },
    {
      name: 'the same name gets a slug of its own',
      body: good,
      expect: 200,
      mentions: '"slug":"openai-prod-',
      keep: { twin: 'id' },
    },
    {
      name: 'a name without a letter of ours has a slug all the same',
      body: { ...good, name: '日本語 🔑' },
      expect: 200,
      answer: { slug: 'secret-reference' },
    },
    {
      name: 'a name that reads as an id has a slug that does not',
      body: { ...good, name: '0190B8C4-0000-7000-8000-000000000000' },
      expect: 200,
      mentions: '"slug":"0190b8c4-0000-7000-8000-000000000000-',
    },
    {
      name: 'a long name has a slug of at most 255 characters',
      body: { ...good, name: `${'long '.repeat(51)}` },
      expect: 200,
      answer: { slug: `${'long-'.repeat(50)}long` },
      keep: { long: 'id' },
    },
    {
      name: 'everything that can be said',
      body: {
        ...good,
        name: 'Whole',
        slug: 'Whole_1-x',
        description: 'two\nlines',
        secret_key: 'api_key',
        tags: { team: 'core', tier: 1, owner: { name: 'Ann', since: [2024, 2025] }, big: 'x' },
        allowed_workspaces: ['$other_slug', '$workspace_id', '$other'],
        cache_seconds: 0,
        organisation_id: '$organisation_id',
      },
      expect: 200,
      answer: { slug: 'Whole_1-x' },
      keep: { whole: 'id' },
    },
    {
      name: 'nulls say nothing',
      body: {
        ...good,
        slug: null,
        description: null,
        secret_key: null,
        tags: null,
        allow_all_workspaces: null,
        allowed_workspaces: null,
        cache_seconds: null,
        organisation_id: null,
      },
      expect: 200,
      keep: { plain: 'id' },
    },
    {
      name: 'no workspace at all may be meant',
      body: { ...good, allow_all_workspaces: false },
      expect: 200,
      keep: { nobody: 'id' },
    },
    refused('a slug is given once', { slug: 'Whole_1-x' }, '"param":"slug"'),
    refused('a slug is no id', { slug: '0190b8c4-0000-7000-8000-000000000000' }, 'slug: must not look like an id'),
    refused('a slug has letters, digits, _ and -', { slug: 'a b' }, '"param":"slug"'),
    refused('a slug has at least one of them', { slug: '' }, '"param":"slug"'),
    refused('a slug has at most 255 of them', { slug: 'x'.repeat(256) }, '"param":"slug"'),
    refused('a name is required', { name: '' }, '"param":"name"'),
    refused('a name has at most 255 characters', { name: 'x'.repeat(256) }, '"param":"name"'),
    refused('a path is required', { secret_path: '' }, '"param":"secret_path"'),
    refused('a path has at most 1024 characters', { secret_path: `a/${'x'.repeat(1023)}` }, '"param":"secret_path"'),
    refused('a path is one of its manager', { secret_path: 'secret/../sys/seal' }, 'secret_path: must not contain'),
    refused('a manager is one of three', { manager_type: 'gcp_sm' }, 'aws_sm, azure_kv, hashicorp_vault'),
    refused('an auth_config is an object', { auth_config: TOKEN }, 'auth_config: must be an object'),
    refused('and no list', { auth_config: [TOKEN] }, 'auth_config: must be an object'),
    refused('a description has at most 1024 characters', { description: 'x'.repeat(1025) }, '"param":"description"'),
    refused('a secret_key has at most 255 characters', { secret_key: 'x'.repeat(256) }, '"param":"secret_key"'),
    refused('tags are an object', { tags: ['team'] }, '"param":"tags"'),
    refused(
      'of at most 64 keys',
      { tags: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, 1])) },
      '"param":"tags"',
    ),
    refused('and 8 KiB', { tags: { a: 'ä'.repeat(4093) } }, 'tags: must be at most 8192 bytes'),
    refused('nothing is cached for longer than a day', { cache_seconds: 86_401 }, '"param":"cache_seconds"'),
    refused('an empty list of workspaces means nothing', { allowed_workspaces: [] }, '"param":"allowed_workspaces"'),
    refused(
      'all workspaces and some are a contradiction',
      { allow_all_workspaces: true, allowed_workspaces: ['$other'] },
      'allowed_workspaces: cannot be given with',
    ),
    refused(
      'an unknown workspace is told by its place',
      { allowed_workspaces: ['$other', 'nowhere'] },
      '"path":"allowed_workspaces[1]","message":"is unknown"',
    ),
    refused('an archived one is gone', { allowed_workspaces: ['$archived'] }, 'allowed_workspaces[0]'),
    refused(
      'one of another organisation is unknown',
      { allowed_workspaces: ['$far_workspace'] },
      'allowed_workspaces[0]',
    ),
    refused('a misspelt field is not dropped', { secret_pth: 'x' }, 'did you mean \\"secret_path\\"'),
    refused(
      'everything that is wrong is told at once',
      {
        auth_config: { ...auth, vault_token: '', vault_tokn: TOKEN },
        secret_path: 'secret',
        slug: '0190b8c4-0000-7000-8000-000000000000',
      },
      ['auth_config.vault_token', 'auth_config.vault_tokn', '"path":"secret_path"', '"path":"slug"'],
    ),
    {
      name: 'another organisation is out of bounds',
      body: { ...good, organisation_id: '$far_organisation' },
      expect: 'forbidden',
      mentions: 'organisation_id',
    },
    { name: 'a stranger learns nothing about the body', as: 'nobody', body: {}, expect: 'unauthenticated' },
    { name: 'the system caller makes none', as: 'system', body: good, expect: 'forbidden' },
    {
      name: 'another organisation has slugs of its own',
      as: 'far',
      body: good,
      expect: 200,
      answer: { slug: 'openai-prod' },
      keep: { far: 'id' },
    },
  ])

  scenarios(`GET ${BASE}/$id`, world, [
    {
      name: 'what is secret is masked',
      expect: 200,
      answer: {
        id: '$id',
        organisation_id: '$organisation_id',
        name: 'OpenAI prod',
        slug: 'openai-prod',
        description: null,
        manager_type: 'hashicorp_vault',
        secret_path: 'secret/openai',
        secret_key: null,
        allow_all_workspaces: true,
        tags: null,
        status: 'ACTIVE',
        created_by: '$user_id',
        auth_config: {
          vault_auth_type: 'token',
          vault_addr: 'https://vault.example.com:8200',
          masked_vault_token: 'hv*****XYZ',
        },
        object: 'secret-reference',
      },
      notMentions: [TOKEN, '"vault_token"', 'allowed_workspaces', 'cache_seconds'],
    },
    { name: 'by its slug, too', call: `GET ${BASE}/openai-prod`, expect: 200, answer: { id: '$id' } },
    {
      name: 'what was said comes back as it was said',
      call: `GET ${BASE}/Whole_1-x`,
      expect: 200,
      answer: {
        id: '$whole',
        description: 'two\nlines',
        secret_key: 'api_key',
        tags: { team: 'core', tier: 1, owner: { name: 'Ann', since: [2024, 2025] }, big: 'x' },
        allow_all_workspaces: false,
        cache_seconds: 0,
      },
      notMentions: 'allowed_workspaces',
    },
    {
      name: 'nobody may be allowed',
      call: `GET ${BASE}/$nobody`,
      expect: 200,
      answer: { allow_all_workspaces: false },
    },
    { name: 'a slug is that to the letter', call: `GET ${BASE}/whole_1-x`, expect: 'not_found' },
    {
      name: 'the system caller sees it in clear, which is written down first',
      as: 'system',
      expect: 200,
      answer: { auth_config: auth },
      notMentions: 'masked',
      audit: 1,
    },
    { name: 'another organisation sees nothing', as: 'far', expect: 'not_found' },
    {
      name: 'nor by the slug that it has itself',
      as: 'far',
      call: `GET ${BASE}/openai-prod`,
      expect: 200,
      answer: { id: '$far' },
    },
  ])

  scenarios(`GET ${BASE}`, world, [
    {
      name: 'newest first, without auth_config',
      expect: 200,
      answer: {
        object: 'list',
        total: 8,
        data: [
          { id: '$nobody' },
          { id: '$plain' },
          { id: '$whole', description: 'two\nlines', secret_path: 'secret/openai' },
          {},
          {},
          {},
          {},
          { id: '$id' },
        ],
      },
      notMentions: ['auth_config', TOKEN],
    },
    {
      name: 'for the system caller no more than that',
      as: 'system',
      expect: 200,
      answer: { total: 8 },
      notMentions: ['auth_config', TOKEN],
    },
    { name: 'of its own organisation alone', as: 'far', expect: 200, answer: { total: 1, data: [{ id: '$far' }] } },
    {
      name: 'a page',
      call: `GET ${BASE}?page_size=3&current_page=2`,
      expect: 200,
      answer: { total: 8, data: [{}, { id: '$id' }] },
    },
    {
      name: 'pages have at most 100 rows',
      call: `GET ${BASE}?page_size=101`,
      expect: 'invalid',
      mentions: 'from 1 to 100"',
    },
    {
      name: 'and at least one',
      call: `GET ${BASE}?page_size=0`,
      expect: 'invalid',
      mentions: 'from 1 to 100"',
    },
    { name: 'of a manager', call: `GET ${BASE}?manager_type=azure_kv`, expect: 200, answer: { total: 0, data: [] } },
    { name: 'an unknown manager is refused', call: `GET ${BASE}?manager_type=x`, expect: 'invalid' },
    { name: 'by name', call: `GET ${BASE}?search=OPENAI`, expect: 200, answer: { total: 4 } },
    { name: 'wild cards are none', call: `GET ${BASE}?search=%25`, expect: 200, answer: { total: 0 } },
    { name: 'an empty search is refused', call: `GET ${BASE}?search=`, expect: 'invalid' },
    ...(
      [
        ['one pair', { team: 'core' }, 1],
        ['all pairs must match', { team: 'core', tier: 1 }, 1],
        ['one of them is not enough', { team: 'core', tier: 2 }, 0],
        ['a number is no text', { tier: '1' }, 0],
        ['part of a value is not the value', { team: 'cor' }, 0],
        ['an object matches whole, in whatever order', { owner: { since: [2024, 2025], name: 'Ann' } }, 1],
        ['but not in part', { owner: { name: 'Ann' } }, 0],
        ['nor with its list turned', { owner: { name: 'Ann', since: [2025, 2024] } }, 0],
        ['no pair asks for nothing', {}, 8],
      ] as const
    ).map(([name, tags, total]) => ({
      name: `by tags: ${name}`,
      call: `GET ${BASE}?tags=${encodeURIComponent(JSON.stringify(tags))}`,
      expect: 200,
      answer: { total },
    })),
    ...['{', '[]', '"x"', 'null', '1', '{"a":1,"a":2}', ''].map(
      (text): Scenario => ({
        name: `no tags: ${text}`,
        call: `GET ${BASE}?tags=${encodeURIComponent(text)}`,
        expect: 'invalid',
        mentions: '"param":"tags"',
      }),
    ),
  ])

  scenarios(`DELETE ${BASE}/$twin`, world, [
    { name: 'another organisation deletes nothing', as: 'far', expect: 'not_found' },
    { name: 'what nothing uses is deleted', expect: 200, answer: {} },
    { name: 'and gone', call: `GET ${BASE}/$twin`, expect: 'not_found' },
    { name: 'twice', expect: 'not_found' },
    { name: 'with its tags and workspaces', call: `DELETE ${BASE}/$whole`, expect: 200 },
    {
      name: 'its tags find nothing any more',
      call: `GET ${BASE}?tags=%7B%22team%22:%22core%22%7D`,
      expect: 200,
      answer: { total: 0 },
    },
    {
      name: 'its slug is free',
      call: `POST ${BASE}`,
      body: { ...good, slug: 'Whole_1-x' },
      expect: 200,
      keep: { again: 'id' },
    },
  ])

  describe('in use', () => {
    beforeAll(async () => {
      const { body } = await world().call('POST', BASE, { ...good, slug: 'used' })
      world().names['used'] = body.id
      await mapped(body.id)
    })
    scenarios(`DELETE ${BASE}/$used`, world, [
      {
        name: 'what something takes a value from stays, and it is not said what that is',
        expect: 'invalid',
        mentions: 'in use',
        notMentions: ['integration"', 'a-holder', TOKEN],
      },
      { name: 'it is all there', call: `GET ${BASE}/used`, expect: 200 },
    ])
  })
})
