import { Kind, OptionalKind, TransformKind, type TSchema, Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { type Complaint, shown } from '../errors.ts'
import { isRawJson } from '../json.ts'
import { alternativesOf, describe } from './describe.ts'

/** A body of a million wrong items gets this many complaints, not a million. */
const MOST_COMPLAINTS = 100

/**
 * Everything that a contract has against a value, in the contract's order; empty exactly where TypeBox accepts the
 * value. Paths are dotted (`messages[0].content`), '' for the value itself. Values are never shown. A number kept as
 * text (decision 25) is judged as the integer it is.
 *
 * @param root put before every path: `parameters` gives `parameters.temperature`
 * @throws Error for a TypeBox kind or keyword without a rule here: passing it silently would accept anything
 */
export function complaints(schema: TSchema, value: unknown, root = ''): Complaint[] {
  const found: Complaint[] = []
  walk(schema, value, root, found)
  return found
}

/** The candidate that a misspelt name most likely meant, or undefined when none is near. */
export function nearest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > 64) return undefined
  const wanted = name.toLowerCase()
  let best: string | undefined
  let bestDistance = 1 + Math.max(1, Math.floor(wanted.length / 3))
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

type Walk = (schema: TSchema, value: unknown, path: string, found: Complaint[]) => void

const walk: Walk = (schema, value, path, found) => {
  if (found.length >= MOST_COMPLAINTS) return
  const rule = RULES[schema[Kind]]
  if (rule === undefined) throw new Error(`no rule for the TypeBox kind ${schema[Kind]}`)
  const keyword = UNSUPPORTED.find((each) => each in schema)
  if (keyword !== undefined || TransformKind in schema) throw new Error(`no rule for ${keyword ?? 'a transform'}`)
  rule(schema, value, path, found)
}

const UNSUPPORTED = ['format', 'multipleOf', 'contains', 'minContains', 'maxContains', 'unevaluatedProperties']

/** A rule for kinds whose whole complaint is their description. */
const must =
  (accepts: (schema: TSchema, value: unknown) => boolean): Walk =>
  (schema, value, path, found) => {
    if (!accepts(schema, value)) found.push({ path, message: `must be ${describe(schema)}` })
  }

const RULES: Record<string, Walk> = {
  Any: () => {},
  Unknown: () => {},
  Null: must((_, value) => value === null),
  Boolean: must((_, value) => typeof value === 'boolean'),
  Literal: must((schema, value) => value === schema.const),
  String: must(acceptsString),
  Number: must((schema, value) => typeof value === 'number' && Number.isFinite(value) && inRange(schema, value)),
  Integer: must(acceptsInteger),
  Array: walkArray,
  Object: walkObject,
  Record: walkRecord,
  Intersect: (schema, value, path, found) => {
    for (const part of schema.allOf as TSchema[]) walk(part, value, path, found)
  },
  Union: walkUnion,
}

function acceptsString({ minLength, maxLength, pattern }: TSchema, value: unknown): boolean {
  if (typeof value !== 'string') return false
  if (value.length < (minLength ?? 0) || value.length > (maxLength ?? Number.POSITIVE_INFINITY)) return false
  return pattern === undefined || new RegExp(pattern).test(value)
}

function acceptsInteger(schema: TSchema, value: unknown): boolean {
  if (isRawJson(value)) return /^-?\d+$/.test(value.rawJSON) && inRange(schema, BigInt(value.rawJSON))
  return Number.isInteger(value) && inRange(schema, value as number)
}

/** JavaScript compares a bigint with a number exactly. */
function inRange({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: TSchema, value: number | bigint): boolean {
  return (
    !(minimum !== undefined && value < minimum) &&
    !(maximum !== undefined && value > maximum) &&
    !(exclusiveMinimum !== undefined && value <= exclusiveMinimum) &&
    !(exclusiveMaximum !== undefined && value >= exclusiveMaximum)
  )
}

function walkArray(schema: TSchema, value: unknown, path: string, found: Complaint[]): void {
  const message = `must be ${describe(schema)}`
  if (!Array.isArray(value)) {
    found.push({ path, message })
    return
  }
  const { minItems = 0, maxItems = Number.POSITIVE_INFINITY } = schema
  if (value.length < minItems || value.length > maxItems) found.push({ path, message })
  else if (schema.uniqueItems === true && new Set(value.map(Value.Hash)).size < value.length)
    found.push({ path, message })
  for (const [index, item] of value.entries()) walk(schema.items, item, `${path}[${shown(String(index))}]`, found)
}

function walkObject(schema: TSchema, value: unknown, path: string, found: Complaint[]): void {
  if (!isObject(value)) {
    found.push({ path, message: 'must be an object' })
    return
  }
  complainOfSize(schema, value, path, found)
  const known = Object.entries(schema.properties as Record<string, TSchema>)
  for (const [key, property] of known) {
    if (value[key] !== undefined) walk(property, value[key], below(path, key), found)
    else if (!(OptionalKind in property)) found.push({ path: below(path, key), message: 'is required' })
  }
  if (schema.additionalProperties === undefined || schema.additionalProperties === true) return
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(schema.properties, key)) continue
    if (schema.additionalProperties === false) found.push({ path: below(path, key), message: unknownField(key, known) })
    else walk(schema.additionalProperties, value[key], below(path, key), found)
    if (found.length >= MOST_COMPLAINTS) return
  }
}

function walkRecord(schema: TSchema, value: unknown, path: string, found: Complaint[]): void {
  if (!isObject(value)) {
    found.push({ path, message: 'must be an object' })
    return
  }
  complainOfSize(schema, value, path, found)
  const [[pattern, property] = ['', undefined]] = Object.entries(schema.patternProperties as Record<string, TSchema>)
  const name = new RegExp(pattern)
  for (const [key, each] of Object.entries(value)) {
    if (name.test(key)) walk(property as TSchema, each, below(path, key), found)
    else if (schema.additionalProperties === false) {
      found.push({ path: below(path, key), message: `unknown field; names must match ${pattern}` })
    }
    if (found.length >= MOST_COMPLAINTS) return
  }
}

function complainOfSize(
  { minProperties = 0, maxProperties }: TSchema,
  value: object,
  path: string,
  found: Complaint[],
) {
  const size = Object.keys(value).length
  if (size < minProperties) found.push({ path, message: `must have at least ${minProperties} fields` })
  if (size > (maxProperties ?? size)) found.push({ path, message: `must have at most ${maxProperties} fields` })
}

/** Names few enough to be listed when none is near. */
const FEW_NAMES = 8

function unknownField(key: string, known: [string, TSchema][]): string {
  const names = known.map(([name]) => name)
  const meant = nearest(key, names)
  if (meant !== undefined) return `unknown field; did you mean "${meant}"?`
  return names.length > 0 && names.length <= FEW_NAMES
    ? `unknown field; known are ${names.join(', ')}`
    : 'unknown field'
}

function walkUnion(schema: TSchema, value: unknown, path: string, found: Complaint[]): void {
  const branches = choose(
    alternativesOf(schema).filter((branch) => takes(branch, value)),
    value,
  )
  const attempts = branches.map((branch) => complaints(branch, value, path)).sort((a, b) => a.length - b.length)
  const [best, next] = attempts
  if (best?.length === 0) return
  const isClear = best !== undefined && best.length < (next?.length ?? Number.POSITIVE_INFINITY)
  if (isClear && (isObject(value) || Array.isArray(value))) found.push(...best.slice(0, MOST_COMPLAINTS - found.length))
  else found.push({ path, message: `must be ${describe(schema)}` })
}

/** Whether a branch is meant for this type of JSON value, whatever it thinks of the value itself. */
function takes(branch: TSchema, value: unknown): boolean {
  switch (branch[Kind]) {
    case 'Object':
    case 'Record':
    case 'Intersect':
      return isObject(value)
    case 'Array':
      return Array.isArray(value)
    default:
      return value === null || typeof value !== 'object' || isRawJson(value)
  }
}

/** Of objects told apart by a literal (`role`, `type`) the one that the value names; else all of them. */
function choose(branches: TSchema[], value: unknown): TSchema[] {
  if (branches.length < 2 || !isObject(value)) return branches
  const key = Object.keys(branches[0]?.properties ?? {}).find((name) =>
    branches.every((branch) => branch.properties?.[name]?.[Kind] === 'Literal'),
  )
  if (key === undefined) return branches
  const named = branches.filter((branch) => branch.properties[key].const === value[key])
  return named.length > 0
    ? named
    : [Type.Object({ [key]: Type.Union(branches.map((branch) => branch.properties[key])) })]
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJson(value)

const below = (path: string, key: string): string => (path === '' ? shown(key) : `${path}.${shown(key)}`)

/** Levenshtein's distance, with swapped neighbours counted as one mistake. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const change = a[row - 1] === b[column - 1] ? 0 : 1
      let cost = Math.min((last[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, (last[column - 1] ?? 0) + change)
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1)
      current.push(cost)
    }
    beforeLast = last
    last = current
  }
  return last[b.length] ?? 0
}
