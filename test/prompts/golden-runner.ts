import type { Database } from '../../src/db/database.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'
import type { GoldenCase } from './golden-case.ts'

export interface Ran {
  /** the first refusal on the way to the render, else the render's answer */
  answer: Answer
  refusedAt: 'save' | undefined
  promptId: string
  kind: 'chat' | 'text' | undefined
  /** a partial's name in the case by its slug */
  partialNames: ReadonlyMap<string, string>
}

export interface GoldenRunner {
  run(golden: GoldenCase): Promise<Ran>
  close(): Promise<void>
}

/** Runs cases through the whole program; installations are opened as the cases ask for them, one for each config. */
export function openGoldenRunner(dialect: Database['dialect'] = 'sqlite'): GoldenRunner {
  const open = new Map<string, Promise<TestGatehouse>>()
  return {
    async run({ stored, request }) {
      const config = stored.config ?? ''
      const opening = open.get(config) ?? openTestGatehouse(dialect, config)
      open.set(config, opening)
      const gatehouse = await opening
      try {
        const saved = await save(gatehouse, stored)
        return { ...saved, refusedAt: undefined, answer: await render(gatehouse, saved.promptId, request) }
      } catch (error) {
        const answer = refusalIn(error)
        return { answer, refusedAt: 'save', promptId: '', kind: undefined, partialNames: new Map() }
      }
    },
    async close() {
      for (const gatehouse of open.values()) await (await gatehouse).close()
    },
  }
}

function render({ call }: TestGatehouse, promptId: string, request: GoldenCase['request']): Promise<Answer> {
  const { suffix = '', query, headers, body, text } = request
  const path = `/v1/prompts/${promptId}${suffix}/render${query === undefined ? '' : `?${query}`}`
  return call('POST', path, text ?? body, { headers: { 'content-type': 'application/json', ...headers } })
}

type Send = (method: string, path: string, body?: unknown) => Promise<Answer['body']>

/** Calls that are to succeed: the first that is refused ends the saving. */
const sender =
  ({ call }: TestGatehouse): Send =>
  async (method, path, body) => {
    const answer = await call(method, `/v1${path}`, body)
    if (answer.status !== 200) throw new Error('refused', { cause: answer })
    return answer.body
  }

function refusalIn(error: unknown): Answer {
  if (error instanceof Error && error.message === 'refused') return error.cause as Answer
  throw error
}

async function save(gatehouse: TestGatehouse, stored: GoldenCase['stored']) {
  const send = sender(gatehouse)
  const slugs = await savePartials(send, stored.partials ?? {})
  const { id } = await send('POST', '/prompts', promptBody(stored, slugs))
  for (const patch of stored.versions ?? []) await send('PUT', `/prompts/${id}`, { patch: true, ...patch })
  for (const [label, number] of Object.entries(stored.labels ?? {})) await putLabel(send, id, label, number)
  const { template_type: kind } = await send('GET', `/prompts/${id}`)
  return { promptId: id as string, kind, partialNames: new Map([...slugs].map(([name, slug]) => [slug, name])) }
}

/** First versions first, so that later ones can name every partial. */
async function savePartials(send: Send, partials: NonNullable<GoldenCase['stored']['partials']>) {
  const slugs = new Map<string, string>()
  const all = Object.entries(partials).map(([name, partial]) =>
    typeof partial === 'string' ? { name, versions: [partial], published: 1 } : { name, ...partial },
  )
  for (const { name, versions } of all) {
    const { slug } = await send('POST', '/prompts/partials', { name, string: withSlugs(versions[0] ?? '', slugs) })
    slugs.set(name, slug)
  }
  for (const { name, versions, published } of all) {
    const path = `/prompts/partials/${slugs.get(name)}`
    for (const text of versions.slice(1)) await send('PUT', path, { string: withSlugs(text, slugs) })
    await send('PUT', `${path}/makeDefault`, { version: published })
  }
  return slugs
}

/** `{{>name` and `<%> name`, but not `{{>>name`. */
const PARTIAL_TAG = /(?<!>)>\s*([a-z-]+)/g

const withSlugs = (text: string, slugs: ReadonlyMap<string, string>): string =>
  text.replace(PARTIAL_TAG, (tag, name: string) => tag.replace(name, slugs.get(name) ?? name))

function promptBody(stored: GoldenCase['stored'], slugs: ReadonlyMap<string, string>): Record<string, unknown> {
  const { string, messages, raw, metadata, functions, tools, tool_choice, virtual_key } = stored
  return {
    name: 'golden',
    string: withSlugs(string ?? JSON.stringify(messages), slugs),
    parameters: stored.parameters ?? {},
    model: stored.model ?? 'm',
    is_raw_template: raw ? 1 : 0,
    template_metadata: metadata,
    functions,
    tools,
    tool_choice,
    virtual_key,
  }
}

async function putLabel(send: Send, promptId: string, name: string, number: number): Promise<void> {
  const labels = await send('GET', '/labels')
  const versions = await send('GET', `/prompts/${promptId}/versions`)
  const label = labels.data.find((each: { name: string }) => each.name === name)
  const version = versions.data.find((each: { prompt_version: number }) => each.prompt_version === number)
  await send('PUT', `/prompts/${promptId}/versions/${version.id}`, { label_id: label.id })
}
