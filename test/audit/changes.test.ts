import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { auditTrail } from '../support/audit.ts'
import { DIALECTS } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

const prompt = { name: 'p', string: 'x', parameters: {}, model: 'm' }

describe.each(DIALECTS)('the row of a change says what was changed: %s', (dialect) => {
  let world: TestGatehouse
  beforeAll(async () => {
    world = await openTestGatehouse(dialect)
  })
  afterAll(() => world.close())

  async function done(method: string, path: string, body?: unknown) {
    const answer = await world.call(method, path, body)
    expect(answer.status, answer.text).toBe(200)
    return answer.body
  }
  const lastDetails = async () => (await auditTrail(world.gatehouse.read))[0]?.details

  test('a label: with what it was made, changed and removed', async () => {
    const { id } = await done('POST', '/v1/labels', { name: 'canary', description: 'a bird' })
    expect(await lastDetails()).toEqual({ after: { name: 'canary', description: 'a bird', color_code: null } })
    await done('PUT', `/v1/labels/${id}`, { name: 'canary', description: null })
    expect(await lastDetails()).toEqual({ before: { description: 'a bird' }, after: { description: null } })
    await done('DELETE', `/v1/labels/${id}`)
    expect(await lastDetails()).toEqual({ before: { name: 'canary', description: null, color_code: null } })
  })

  test('a collection', async () => {
    const { id, slug } = await done('POST', '/v1/collections', { name: 'a' })
    expect(await lastDetails()).toEqual({ after: { slug, name: 'a', parent_collection_id: null } })
    await done('PUT', `/v1/collections/${id}`, { name: 'b' })
    expect(await lastDetails()).toEqual({ before: { name: 'a' }, after: { name: 'b' } })
    await done('DELETE', `/v1/collections/${id}`)
    expect(await lastDetails()).toEqual({ before: { slug, name: 'b', parent_collection_id: null } })
  })

  test('a prompt that is removed, and a partial', async () => {
    const made = await done('POST', '/v1/prompts', prompt)
    await done('DELETE', `/v1/prompts/${made.id}`)
    const versions = { defaultVersion: 1, latestVersion: 1 }
    const collectionId = world.made.collection_id
    expect(await lastDetails()).toEqual({ before: { slug: made.slug, name: 'p', collectionId, ...versions } })
    const { id, slug } = await done('POST', '/v1/prompts/partials', { name: 'part', string: 'x' })
    await done('PUT', `/v1/prompts/partials/${id}`, { name: 'part', status: 'archived' })
    const archived = { before: { status: 'active' }, after: { status: 'archived' } }
    expect(await lastDetails()).toEqual({ kind: 'partial', ...archived })
    await done('PUT', `/v1/prompts/partials/${id}`, { version_description: 'first' })
    const described = { before: { version_description: null }, after: { version_description: 'first' } }
    expect(await lastDetails()).toEqual({ kind: 'partial', version: 1, ...described })
    await done('DELETE', `/v1/prompts/partials/${id}`)
    expect(await lastDetails()).toMatchObject({ kind: 'partial', before: { slug, name: 'part', status: 'archived' } })
  })

  test('a label that moves from one version to another, and is taken off it', async () => {
    const { id, version_id: first } = await done('POST', '/v1/prompts', prompt)
    const { prompt_version_id: second } = await done('PUT', `/v1/prompts/${id}`, { ...prompt, string: 'y' })
    const { id: label_id } = await done('POST', '/v1/labels', { name: 'moving' })
    const move = (version: string, to: string | null) =>
      done('PUT', `/v1/prompts/${id}/versions/${version}`, { label_id: to })
    await move(first, label_id)
    expect(await lastDetails()).toEqual({ label_id, before: { version: null }, after: { version: 1 } })
    await move(second, label_id)
    expect(await lastDetails()).toEqual({ label_id, before: { version: 1 }, after: { version: 2 } })
    await move(second, null)
    expect(await lastDetails()).toEqual({ version: 2, before: { label_ids: [label_id] }, after: { label_ids: [] } })
  })
})
