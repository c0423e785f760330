import { readdirSync, readFileSync } from 'node:fs'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { complaints } from '../../src/http/complaints.ts'

const strict = <T extends Record<string, TSchema>>(fields: T) => Type.Object(fields, { additionalProperties: false })
const optional = <T extends Record<string, TSchema>>(fields: T) => Type.Partial(strict(fields))
const Words = Type.Array(Type.String())
const AnyObject = Type.Record(Type.String(), Type.Unknown())

// A case is a file of three JSON objects between lines of ten dashes: what is stored, what is asked, what must come of it.

/** Without `model` the prompt's model is `m`. */
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
  partials: Type.Record(
    Type.String(),
    Type.Union([Type.String(), strict({ versions: Words, published: Type.Integer() })]),
  ),
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
