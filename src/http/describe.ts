import { Kind, type TSchema } from '@sinclair/typebox'

/**
 * What a contract takes, in the words of a complaint: "a number from -2 to 2 or null", "one of auto, low, high",
 * "an array of 1 to 4 strings".
 * @throws Error for a TypeBox kind that has no words here: a contract that cannot be explained is a fault of ours
 */
export function describe(schema: TSchema): string {
  const words = WORDS[schema[Kind]]
  if (words === undefined) throw new Error(`no words for the TypeBox kind ${schema[Kind]}`)
  return words(schema)
}

const literalsOf = (schemas: readonly TSchema[]): TSchema[] => schemas.filter((each) => each[Kind] === 'Literal')

/** A union inside a union is one list of alternatives. */
export const alternativesOf = (schema: TSchema): TSchema[] =>
  schema[Kind] === 'Union' ? (schema.anyOf as TSchema[]).flatMap(alternativesOf) : [schema]

const WORDS: Record<string, (schema: TSchema) => string> = {
  Any: () => 'any value',
  Unknown: () => 'any value',
  Null: () => 'null',
  Boolean: () => 'a boolean',
  Object: () => 'an object',
  Record: () => 'an object',
  Intersect: () => 'an object',
  Literal: (schema) => String(schema.const),
  String: (schema) =>
    `a string${characters(schema)}${schema.pattern === undefined ? '' : ` that matches ${schema.pattern}`}`,
  Number: (schema) => `a number${range(schema)}`,
  Integer: (schema) => `an integer${range(schema)}`,
  Array: (schema) =>
    `an array of ${itemCount(schema)}${plural(schema.items)}${schema.uniqueItems ? ' without repeats' : ''}`,
  Union: (schema) => oneOf(alternativesOf(schema)),
}

function oneOf(alternatives: TSchema[]): string {
  const literals = literalsOf(alternatives).map(describe)
  const others = alternatives.filter((each) => each[Kind] !== 'Literal').map(describe)
  const named = literals.length > 1 ? [`one of ${literals.join(', ')}`] : literals
  const parts = [...named, ...new Set(others)]
  const last = parts.pop() ?? ''
  return parts.length === 0 ? last : `${parts.join(', ')} or ${last}`
}

function characters({ minLength, maxLength }: TSchema): string {
  if (minLength === undefined && maxLength === undefined) return ''
  if (minLength === maxLength) return ` of ${minLength} characters`
  if (maxLength === undefined) return ` of at least ${minLength} character${minLength === 1 ? '' : 's'}`
  return minLength === undefined ? ` of at most ${maxLength} characters` : ` of ${minLength} to ${maxLength} characters`
}

function range(schema: TSchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  const low =
    minimum !== undefined ? digits(minimum) : exclusiveMinimum !== undefined ? `above ${digits(exclusiveMinimum)}` : ''
  const high =
    maximum !== undefined ? digits(maximum) : exclusiveMaximum !== undefined ? `below ${digits(exclusiveMaximum)}` : ''
  if (low === '' && high === '') return ''
  if (low === '') return maximum !== undefined ? ` of at most ${high}` : ` ${high}`
  if (high === '') return minimum !== undefined ? ` of at least ${low}` : ` ${low}`
  return ` from ${low} to ${high}`
}

/** 2⁶³ in full: a double prints itself shortened. */
const digits = (bound: number): string =>
  Number.isSafeInteger(bound) || !Number.isInteger(bound) ? String(bound) : BigInt(bound).toString()

function itemCount({ minItems, maxItems }: TSchema): string {
  if (minItems === undefined && maxItems === undefined) return ''
  if (maxItems === undefined) return `${minItems} or more `
  if (minItems === maxItems) return `exactly ${maxItems} `
  return minItems === undefined ? `at most ${maxItems} ` : `${minItems} to ${maxItems} `
}

function plural(items: TSchema): string {
  const alternatives = alternativesOf(items)
  if (literalsOf(alternatives).length === alternatives.length) return `values (${describe(items)})`
  switch (items[Kind]) {
    case 'String':
      return 'strings'
    case 'Integer':
      return 'integers'
    case 'Number':
      return 'numbers'
    case 'Array':
      return `arrays of ${itemCount(items)}${plural(items.items)}`
    default:
      return alternatives.every((each) => describe(each) === 'an object') ? 'objects' : 'values'
  }
}
