import { readdirSync, readFileSync } from 'node:fs'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { Database } from '../../src/db/database.ts'
import { complaints } from '../../src/http/complaints.ts'
import { type Answer, openTestGatehouse, type TestGatehouse } from '../support/gatehouse.ts'

const strict = <T extends Record<string, TSchema>>(fields: T) => Type.Object(fields, { additionalProperties: false })
const optional = <T extends Record<string, TSchema>>(fields: T) => Type.Partial(strict(fields))
const Words = Type.Array(Type.String())
const AnyObject = Type.Record(Type.String(), Type.Unknown())

/** What is stored before the request. Without `model` the prompt's model is `m`. */
const Stored = optional({
  /** asserted of the saved prompt (`template_type`) */
  kind: Type.Union([Type.Literal('chat'), Type.Literal('text')]),
  /** the template as text, or as `messages` that become its JSON text */
  string: Type.String(),
  messages: Type.Array(Type.Unknown()),
  raw: Type.Literal(true),
  parameters: AnyObject,
  functions: Type.Unknown(),
  tools: Type.Unknown(),
  tool_choice: Type.Unknown(),
  model: Type.String(),
  virtual_key: Type.String(),
  /** `template_metadata` */
  metadata: AnyObject,
  /**
   * By name: a text, or several versions with the published one. `{{>name}}` means the partial of the case, whatever
   * slug it got; a first version can name only the partials above it, later ones name all.
   */
  partials: Type.Record(Type.String(), Type.Union([Type.String(), strict({ versions: Words, published: Type.Integer() })])),
  /** bodies of patches, each of which makes a further version */
  versions: Type.Array(AnyObject),
  /** a universal label → the number of the version that carries it */
  labels: Type.Record(Type.String(), Type.Integer()),
  /** lines of TOML for the installation */
  config: Type.String(),
})

const Request = optional({
  /** what follows the prompt's id in the path: `@2` */
  suffix: Type.String(),
  query: Type.String(),
  headers: Type.Record(Type.String(), Type.String()),
  /** sent with its numbers written as they are here */
  body: AnyObject,
  /** a body to the letter */
  text: Type.String(),
})

const texts = { mentions: Type.Optional(Words), never: Type.Optional(Words) }
const Success = strict({
  data: AnyObject,
  /** without the ids; partials by their names in the case */
  explain: Type.Optional(AnyObject),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  ...texts,
})
const Failure = strict({
  /** `error.type` */
  error: Type.String(),
  /** the path of the first complaint, null where no field is to blame */
  param: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  /** paths of all complaints */
  params: Type.Optional(Words),
  /** who refuses; render unless said otherwise */
  at: Type.Optional(Type.Literal('save')),
  ...texts,
})

export interface GoldenCase {
  name: string
  stored: Static<typeof Stored>
  request: Static<typeof Request>
  expected: Static<typeof Success> | Static<typeof Failure>
}

const FOLDER = `${import.meta.dir}/golden`
const SUFFIX = '.case'

/** Every case of the folder; a file that is none, or that has a field without a meaning here, fails all. */
export function readGoldenCases(): GoldenCase[] {
  const files = readdirSync(FOLDER).sort()
  return files.map((file) => {
    if (!file.endsWith(SUFFIX)) throw new Error(`test/prompts/golden/${file} is no ${SUFFIX} file`)
    return parseCase(file.slice(0, -SUFFIX.length), readFileSync(`${FOLDER}/${file}`, 'utf8'))
  })
}

/** @throws Error that names the case and every field that is wrong */
export function parseCase(name: string, text: string): GoldenCase {
  const [stored, request, expected, ...more] = text.split('\n----------\n')
  if (stored === undefined || request === undefined || expected === undefined || more.length > 0)
    throw new Error(`${name}: a case has three parts: stored, request, expected`)
  const outcome = parseExact(expected)
  const isFailure = typeof outcome === 'object' && outcome !== null && 'error' in outcome
  return {
    name,
    stored: checked(Stored, parseExact(stored), `${name}: stored`),
    request: checked(Request, parseExact(request), `${name}: request`),
    expected: checked(isFailure ? Failure : Success, outcome, `${name}: expected`),
  }
}

function checked<T extends TSchema>(schema: T, value: unknown, what: string): Static<T> {
  const found = complaints(schema, value)
  if (found.length > 0) throw new Error(found.map(({ path, message }) => `${what} ${path}: ${message}`).join('\n'))
  return value as Static<T>
}

/** JSON whose numbers keep their spelling wherever JavaScript would write them in another way: -0, 1.0, 2^63 - 1. */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? JSON.rawJSON(context.source)
      : value,
  )

export interface Ran {
  /** the first refusal on the way to the render, else the render's answer */
  answer: Answer
  refusedAt: 'save' | undefined
  /** partial's name in the case by its slug */
  partialNames: ReadonlyMap<string, string>
  promptId: string
  kind: 'chat' | 'text' | undefined
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
      const saved = await save(gatehouse, stored)
      if (saved.refusedAt !== undefined) return saved
      return { ...saved, answer: await render(gatehouse, saved.promptId, request) }
    },
    async close() {
      for (const gatehouse of open.values()) await (await gatehouse).close()
    },
  }
}

function render({ call }: TestGatehouse, promptId: string, { suffix = '', query, headers, body, text }: GoldenCase['request']) {
  const path = `/v1/prompts/${promptId}${suffix}/render${query === undefined ? '' : `?${query}`}`
  return call('POST', path, text ?? body, { headers: { 'content-type': 'application/json', ...headers } })
}

async function save(gatehouse: TestGatehouse, stored: GoldenCase['stored']): Promise<Ran> {
  const slugs = new Map<string, string>()
  const partialNames = new Map<string, string>()
  const ran = (answer: Answer, refusedAt?: 'save', promptId = '', kind?: Ran['kind']): Ran => ({
    answer,
    refusedAt,
    partialNames,
    promptId,
    kind,
  })
  const steps = savingSteps(stored, slugs)
  let prompt = { id: '' }
  for (const { method, path, body, then } of steps) {
    const answer = await gatehouse.call(method, path(prompt.id), body())
    if (answer.status !== 200) return ran(answer, 'save')
    if (then === 'prompt') prompt = answer.body
    else if (then !== undefined) slugs.set(then, answer.body.slug)
  }
  for (const [name, slug] of slugs) partialNames.set(slug, name)
  for (const [label, number] of Object.entries(stored.labels ?? {})) await putLabel(gatehouse, prompt.id, label, number)
  const read = await gatehouse.call('GET', `/v1/prompts/${prompt.id}`)
  return ran(read, undefined, prompt.id, read.body.template_type)
}

interface Step {
  method: string
  path: (promptId: string) => string
  body: () => unknown
  /** what the answer is the id of: the prompt, or the partial of this name */
  then?: string
}

function savingSteps(stored: GoldenCase['stored'], slugs: ReadonlyMap<string, string>): Step[] {
  const partials = Object.entries(stored.partials ?? {}).map(([name, partial]) => ({
    name,
    ...(typeof partial === 'string' ? { versions: [partial], published: 1 } : partial),
  }))
  const path = (name: string) => `/v1/prompts/partials/${slugs.get(name)}`
  const withSlugs = (text: string) => text.replace(PARTIAL_TAG, (tag, name) => tag.replace(name, slugs.get(name) ?? name))
  return [
    ...partials.map(({ name, versions: [first = ''] }): Step => ({
      method: 'POST',
      path: () => '/v1/prompts/partials',
      body: () => ({ name, string: withSlugs(first) }),
      then: name,
    })),
    ...partials.flatMap(({ name, versions }) =>
      versions.slice(1).map((text): Step => ({ method: 'PUT', path: () => path(name), body: () => ({ string: withSlugs(text) }) })),
    ),
    ...partials.map(({ name, published }): Step => ({
      method: 'PUT',
      path: () => `${path(name)}/makeDefault`,
      body: () => ({ version: published }),
    })),
    { method: 'POST', path: () => '/v1/prompts', body: () => promptBody(stored, withSlugs), then: 'prompt' },
    ...(stored.versions ?? []).map((patch): Step => ({
      method: 'PUT',
      path: (id) => `/v1/prompts/${id}`,
      body: () => ({ patch: true, ...patch }),
    })),
  ]
}

/** `{{>name`, `<%> name`; not `{{>>name`. */
const PARTIAL_TAG = /(?<!>)>\s*([a-z-]+)/g

function promptBody(stored: GoldenCase['stored'], withSlugs: (text: string) => string): Record<string, unknown> {
  const { string, messages, raw, parameters = {}, model = 'm', metadata, kind: _, partials: __, versions: ___, labels: ____, config: _____, ...same } = stored
  return {
    name: 'golden',
    string: withSlugs(string ?? JSON.stringify(messages)),
    parameters,
    model,
    ...(raw && { is_raw_template: 1 }),
    ...(metadata && { template_metadata: metadata }),
    ...same,
  }
}

async function putLabel({ call }: TestGatehouse, promptId: string, name: string, number: number): Promise<void> {
  const labels = (await call('GET', '/v1/labels')).body.data as { id: string; name: string }[]
  const versions = (await call('GET', `/v1/prompts/${promptId}/versions`)).body.data as { id: string; prompt_version: number }[]
  const version = versions.find((each) => each.prompt_version === number)
  const label = labels.find((each) => each.name === name)
  const { status } = await call('PUT', `/v1/prompts/${promptId}/versions/${version?.id}`, { label_id: label?.id })
  if (status !== 200) throw new Error(`no label ${name} on version ${number}`)
}
