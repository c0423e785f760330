import { describe, expect, test } from 'bun:test'
import { createRegistry, type Registry } from '../../src/prompts/registry.ts'
import { DIALECTS } from '../support/database.ts'
import { useWorld } from '../support/scenario.ts'

// What only one's own registry shows: how a prompt comes back from the one string it is kept as.

const TEXT = 'a "quoted" line\nand another\\, a bell \u0007, ä, 😀, {{x}}'
const version = { string: TEXT, parameters: { temperature: 0.5 }, model: 'm' }

describe.each(DIALECTS)('prompts in memory: %s', (dialect) => {
  const world = useWorld(dialect, async ({ call, names }) => {
    const created = await call('POST', '/v1/prompts', { ...version, name: 'Many', is_raw_template: 1 })
    Object.assign(names, { many: created.body.id, slug: created.body.slug })
    const label = await call('POST', '/v1/labels', { name: 'live', organisation_id: names['organisation_id'] })
    const path = `/v1/prompts/${names['many']}`
    const versions: string[] = []
    for (const model of ['m-2', 'm-3', 'm-4']) {
      const saved = await call('PUT', path, { ...version, model })
      expect(saved.status, saved.text).toBe(200)
      versions.push(saved.body.prompt_version_id)
    }
    const labelled = await call('PUT', `${path}/versions/${versions[0]}`, { label_id: label.body.id })
    expect(labelled.status, labelled.text).toBe(200)
    for (const name of ['One', 'Two']) names[name] = (await call('POST', '/v1/prompts', { ...version, name })).body.id
  })

  async function loaded(maxCompiled: number): Promise<Registry> {
    const registry = createRegistry(world().gatehouse.read, maxCompiled)
    await registry.load()
    return registry
  }

  const compile = (registry: Registry, reference: string) => {
    const found = registry.find(reference)!
    return registry.compiled(found.prompt, found.version!)
  }

  test('every column of a version is what it was: text to the letter, yes and no, and nothing', async () => {
    const registry = await loaded(10)
    const { many } = world().names
    expect(registry.find(`${many}`)?.version).toMatchObject({
      number: 1,
      template: TEXT,
      isRaw: true,
      parameters: '{"temperature":0.5}',
      functions: null,
      tools: null,
      toolChoice: null,
      model: 'm',
    })
    expect(registry.find(`${many}@latest`)?.version).toMatchObject({ number: 4, isRaw: false, model: 'm-4' })
    expect(registry.find(`${many}@live`)?.version).toMatchObject({ number: 2, model: 'm-2' })
  })

  test('a version that nothing shows is read when it is asked for', async () => {
    const registry = await loaded(10)
    const { prompt, version } = registry.find(`${world().names['many']}@3`)!
    expect(version).toBeUndefined()
    expect(await registry.loadVersion(prompt, 3)).toMatchObject({ number: 3, model: 'm-3' })
    expect(await registry.loadVersion(prompt, 9)).toBeUndefined()
  })

  test('id and slug are one prompt, compiled once', async () => {
    const registry = await loaded(10)
    const { many, slug } = world().names
    expect(compile(registry, `${slug}`)).toBe(compile(registry, `${many}`))
  })

  test('a reload keeps what is compiled', async () => {
    const registry = await loaded(10)
    const id = `${world().names['many']}`
    const before = compile(registry, id)
    await registry.reloadPrompt(id)
    expect(compile(registry, id)).toBe(before)
    expect(registry.find(`${id}@live`)?.number).toBe(2)
    expect(registry.counts().prompts).toBe(3)
  })

  test('prompts take turns in a memory that is too small for them', async () => {
    const registry = await loaded(1)
    const { One, Two } = world().names
    const one = compile(registry, `${One}`)
    compile(registry, `${Two}`)
    expect(registry.counts()).toMatchObject({ prompts: 3, compiled: 1 })
    expect(compile(registry, `${One}`)).not.toBe(one)
    expect(registry.find(`${One}`)?.version?.template).toBe(TEXT)
  })
})
