import { describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { DIALECTS } from '../support/database.ts'
import { openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import { useWorld } from '../support/scenario.ts'
import { addWorkspace } from '../support/tenants.ts'

// Faults of comparable products that users reported, by their public threads: none of them here.

/** Shorthands for one installation; every call but a render must succeed. */
function tools(world: () => Pick<TestGatehouse, 'call'>) {
  const send = async (method: string, path: string, body?: unknown) => {
    const answer = await world().call(method, `/v1${path}`, body)
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.body
  }
  const render = (reference: string, body: unknown = { variables: {} }, query = '') =>
    world().call('POST', `/v1/prompts/${reference}/render${query}`, body)
  return {
    send,
    render,
    /** what the prompt says, whichever kind it is; the status where it is refused */
    async said(reference: string, variables: Record<string, unknown> = {}) {
      const { status, body } = await render(reference, { variables })
      return status === 200 ? (body.data.prompt ?? body.data.messages[0].content) : status
    },
    create: (string: string, fields: object = {}) =>
      send('POST', '/prompts', { name: 'p', string, parameters: {}, model: 'm', ...fields }),
    /** a further version, and its id */
    async revise(id: string, string: string): Promise<string> {
      return (await send('PUT', `/prompts/${id}`, { patch: true, string })).prompt_version_id
    },
    publish: (id: string, version: number) => send('PUT', `/prompts/${id}/makeDefault`, { version }),
    async labelId(name: string): Promise<string> {
      const { data } = await send('GET', '/labels')
      return data.find((label: { name: string }) => label.name === name).id
    },
    putLabel: (id: string, versionId: string, labelId: string | null) =>
      send('PUT', `/prompts/${id}/versions/${versionId}`, { label_id: labelId }),
  }
}

const user = (content: string) => JSON.stringify([{ role: 'user', content }])
/** Both ways to a message: filled as a string leaf, and as JSON text (decision 21). */
const FORMS = [
  { form: 'parsed', fields: {} },
  { form: 'raw', fields: { is_raw_template: 1 } },
]

describe('the closest render endpoint', () => {
  const { send, render, create, said } = tools(useWorld())

  for (const { form, fields } of FORMS) {
    test(`gateway 2.0.0: an object or array as a value inside a string is JSON text, not HTTP 500 (${form})`, async () => {
      const { id } = await create(user('See {{v}}'), fields)
      expect(await said(id, { v: { a: ['"'] } })).toBe('See {"a":["\\""]}')
      expect(await said(id, { v: [1, { b: null }] })).toBe('See [1,{"b":null}]')
    })

    test(`gateway 2.0.0: the escapes of a value are not doubled (${form})`, async () => {
      const { id } = await create(user('{{v}}|{{{v}}}|{{&v}}'), fields)
      const value = 'a\nb\t"c" \\d \\n é'
      expect(await said(id, { v: value })).toBe(`${value}|${value}|${value}`)
    })

    test(`gateway 2.0.0: a value that comes through a partial is not read as a template (${form})`, async () => {
      const { slug } = await send('POST', '/prompts/partials', { name: 'p', string: '<{{v}}>' })
      const { id } = await create(user(`{{>${slug}}}`), fields)
      expect(await said(id, { v: '{{secret}} {{>p}}', secret: 'LEAK' })).toBe('<{{secret}} {{>p}}>')
    })
  }

  test('gateway 2.0.0: a body without variables is 400 that names them, not HTTP 500', async () => {
    const { id } = await create('hi')
    const { status, body } = await render(id, {})
    expect([status, body.error.param]).toEqual([400, 'variables'])
  })

  test('gateway 2.0.0: a missing variable can be told, or refused, instead of blanked in silence', async () => {
    const { id } = await create('Dear {{name}}')
    expect((await render(id, { variables: {} }, '?explain=true')).body.explain.missing_variables).toEqual(['name'])
    expect((await render(id, { variables: {} }, '?strict=true')).status).toBe(400)
  })

  test('gateway 2.0.0: temperature 99 is refused, and what no table knows is told', async () => {
    const { id } = await create('hi')
    expect((await render(id, { variables: {}, temperature: 99 })).status).toBe(400)
    const { body } = await render(id, { variables: {}, temprature: 0.5 }, '?explain=true')
    expect(body.explain.unknown_parameters).toEqual(['temprature'])
  })
})

describe('templating (C2)', () => {
  const { render, create, said } = tools(useWorld())

  const TEXTS = [
    '{}',
    '{ }',
    '{"a": {"b": []}}',
    'f({x}) => {y}',
    "{'a': 1}",
    '$x {x}',
    '{% if x %}',
    '}} {',
    '{"k": "}"}',
  ]
  for (const text of TEXTS) {
    test(`langfuse#3054, #7084, #3773, #7469, #14721: ${text} in a prompt is text beside its variables`, async () => {
      const { id } = await create(user(`Answer as ${text} for {{name}}.`))
      expect(await said(id, { name: 'Ana', x: 'LEAK', y: 'LEAK', a: 'LEAK' })).toBe(`Answer as ${text} for Ana.`)
    })
  }

  test('langfuse#1467, langfuse-python#543, langfuse-rb#85, ossinsight#1226: no value is HTML-escaped', async () => {
    const { id } = await create(user('{{v}} {{#l}}{{.}}{{/l}} {{o.p}}'))
    const value = `<a href='x'>"&" /\`=</a>`
    expect(await said(id, { v: value, l: [value], o: { p: value } })).toBe(`${value} ${value} ${value}`)
  })

  test('langfuse#6906, mlflow#18169, coze-loop#203: a prompt has conditions and lists', async () => {
    const { id } = await create(user('{{#vip}}Dear{{/vip}}{{^vip}}Hi{{/vip}} {{name}}{{#items}}, {{n}}x{{/items}}'))
    expect(await said(id, { vip: true, name: 'Ana', items: [{ n: 1 }, { n: 2 }] })).toBe('Dear Ana, 1x, 2x')
    expect(await said(id, { name: 'Bo' })).toBe('Hi Bo')
  })

  test('braintrust-sdk-js#898, arthur-engine#652, future-agi#1302, langfuse-js#66: strict names all that is missing', async () => {
    const { id } = await create(user('{{a}} {{b.c}} {{d}}'), { parameters: { d: 1 } })
    const { status, body } = await render(id, { variables: { b: {} } }, '?strict=true')
    expect([status, body.errors.map(({ path }: { path: string }) => path)]).toEqual([
      400,
      ['variables.a', 'variables.b.c'],
    ])
  })
})

describe.each(DIALECTS)('consistency (C6): %s', (dialect) => {
  const world = useWorld(dialect)
  const { send, render, create, revise, publish, said, labelId, putLabel } = tools(world)

  test('litellm#41735: the version that was asked for is served, not the first one registered', async () => {
    const { id, slug } = await create('one')
    for (const text of ['two', 'three', 'four']) await revise(id, text)
    for (const [suffix, text] of [
      ['@1', 'one'],
      ['@2', 'two'],
      ['@3', 'three'],
      ['@latest', 'four'],
      ['', 'one'],
    ])
      expect([await said(id + suffix), await said(slug + suffix)]).toEqual([text, text])
    expect((await render(`${id}@3`)).headers.get('x-gatehouse-prompt-version')).toBe('3')
  })

  test('litellm#38440: one label means what each prompt and each workspace says', async () => {
    const production = await labelId('production')
    const [a, b] = [await create('a1'), await create('b1')]
    await putLabel(a.id, await revise(a.id, 'a2'), production)
    await putLabel(b.id, b.version_id, production)
    expect([await said(`${a.id}@production`), await said(`${b.id}@production`)]).toEqual(['a2', 'b1'])
    const { workspaceId: workspace_id } = await addWorkspace(world().gatehouse, world().made.organisation_id)
    const here = await send('POST', '/labels', { name: 'eu' })
    const there = await send('POST', '/labels', { name: 'eu', workspace_id })
    const elsewhere = await create('elsewhere', { workspace_id })
    await putLabel(a.id, a.version_id, here.id)
    await putLabel(elsewhere.id, elsewhere.version_id, there.id)
    expect([await said(`${a.id}@eu`), await said(`${elsewhere.id}@eu`)]).toEqual(['a1', 'elsewhere'])
  })

  test('litellm#37575: a prompt that cannot be rendered harms no other', async () => {
    const { slug } = await send('POST', '/prompts/partials', { name: 'p', string: 'x' })
    const broken = await create(`{{>${slug}}}`)
    const whole = await create('whole')
    await send('DELETE', `/prompts/partials/${slug}?force=true`)
    expect([await said(broken.id), await said(whole.id)]).toEqual([404, 'whole'])
    expect((await send('GET', '/prompts')).data.length).toBeGreaterThanOrEqual(2)
    await revise(broken.id, 'mended')
    expect(await said(`${broken.id}@latest`)).toBe('mended')
  })

  test('langfuse#10138: a label that is taken off or deleted is gone at once', async () => {
    const { id, version_id } = await create('one')
    const { id: label } = await send('POST', '/labels', { name: 'canary' })
    for (const remove of [() => putLabel(id, version_id, null), () => send('DELETE', `/labels/${label}`)]) {
      await putLabel(id, version_id, label)
      expect(await said(`${id}@canary`)).toBe('one')
      await remove()
      expect(await said(`${id}@canary`)).toBe(404)
    }
  })

  test('langfuse#7736, #11882: a label that moves, and a version that is published, count from the next render', async () => {
    const { id, version_id: first } = await create('one')
    const second = await revise(id, 'two')
    const production = await labelId('production')
    for (let round = 0; round < 5; round++) {
      for (const [number, version, text] of [
        [1, first, 'one'],
        [2, second, 'two'],
      ] as const) {
        await putLabel(id, version, production)
        await publish(id, number)
        expect([await said(`${id}@production`), await said(id)]).toEqual([text, text])
      }
    }
  })

  test('langfuse#14788, #14852: a label can never be taken for a version number', async () => {
    for (const name of ['2', '02', 'latest', 'default'])
      expect((await world().call('POST', '/v1/labels', { name })).status).toBe(400)
    const { id: label } = await send('POST', '/labels', { name: 'v2' })
    const { id, version_id } = await create('one')
    await revise(id, 'two')
    await putLabel(id, version_id, label)
    expect([await said(`${id}@v2`), await said(`${id}@2`)]).toEqual(['one', 'two'])
  })

  test('AutoGPT#14628: no caller needs a freshness layer: partial and prompt are new in the next render', async () => {
    const { slug } = await send('POST', '/prompts/partials', { name: 'p', string: 'v1' })
    const { id } = await create(`{{>${slug}}} {{>${slug}@latest}}`)
    for (let version = 2; version < 6; version++) {
      await said(id)
      await send('PUT', `/prompts/partials/${slug}`, { string: `v${version}` })
      expect(await said(id)).toBe(`v${version - 1} v${version}`)
      await send('PUT', `/prompts/partials/${slug}/makeDefault`, { version })
      expect(await said(id)).toBe(`v${version} v${version}`)
    }
  })

  test('litellm#25631: prompts, labels and partials are there after a restart', async () => {
    const installation = await openTestGatehouse(dialect)
    const before = tools(() => installation)
    const { slug } = await before.send('POST', '/prompts/partials', { name: 'p', string: 'partial' })
    const { id } = await before.create('one')
    const staging = await before.labelId('staging')
    await before.putLabel(id, await before.revise(id, `two {{>${slug}}}`), staging)
    await before.revise(id, 'three')
    await installation.gatehouse.close()
    const restarted = await installation.openNode()
    const { said } = tools(() => restarted)
    const texts = await Promise.all(['', '@staging', '@latest', '@1'].map((suffix) => said(id + suffix)))
    await restarted.gatehouse.close()
    rmSync(installation.dir, { recursive: true })
    expect(texts).toEqual(['one', 'two partial', 'three', 'one'])
  })
})

if (DIALECTS.includes('postgres')) {
  describe('consistency (C6) between nodes', () => {
    const world = useWorld('postgres')
    const { create, revise, publish, putLabel, labelId } = tools(world)

    test('litellm#38411: a change made through one node reaches the others within a second', async () => {
      const other = await world().openNode()
      const { said } = tools(() => other)
      const { id } = await create('one')
      await within(1000, async () => (await said(id)) === 'one')
      await putLabel(id, await revise(id, 'two'), await labelId('production'))
      await within(1000, async () => (await said(`${id}@production`)) === 'two')
      await publish(id, 2)
      await within(1000, async () => (await said(id)) === 'two')
      await other.gatehouse.close()
    })
  })
}

async function within(limitMs: number, isSo: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`not so within ${limitMs} ms`)
    await Bun.sleep(10)
  }
}
