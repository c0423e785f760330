import { GatehouseError } from '../errors.ts'
import type { Node } from './fill.ts'
import type { Name } from './parse.ts'

/** Names that a render looks up; collected only for strict and explain. */
export interface Lookups {
  /** variables of the request or the defaults that were found, by their first segment */
  used: Set<string>
  /** names as written that no context had; false, null and "" count as given (decision 26) */
  missing: Set<string>
}

/** One fill: what it looks things up in and what it has cost so far. */
export interface Run {
  readonly variables: Record<string, unknown>
  readonly defaults: Record<string, unknown>
  readonly lookups: Lookups | undefined
  /** nodes filled and contexts searched */
  steps: number
  /** UTF-16 units in finished leaves */
  size: number
  /** partials inside partials */
  depth: number
  /** texts for private partials that this fill has parsed */
  callerTexts: Map<string, Node[]> | undefined
}

export const startRun = (variables: Run['variables'], defaults: Run['defaults'], lookups: Run['lookups']): Run => ({
  variables,
  defaults,
  lookups,
  steps: 0,
  size: 0,
  depth: 0,
  callerTexts: undefined,
})

/** The innermost value that a section has opened; undefined at the root. */
export interface Frame {
  readonly value: unknown
  readonly parent: Frame | undefined
}

/** Decision 28: work is counted, not timed, so a template behaves alike on every machine. A million steps take about 50 ms. */
export const MAX_STEPS = 1_000_000

/** Counts work. @throws GatehouseError `template_limit` */
export function spend(run: Run, steps: number): void {
  run.steps += steps
  if (run.steps > MAX_STEPS)
    throw new GatehouseError(
      'template_limit',
      `filling the template takes more than ${MAX_STEPS} steps; shorten its lists or nest fewer sections`,
    )
}

/**
 * The value of a name: the first segment by the nearest context that has it, the others inside that value.
 * Undefined where there is none.
 */
export function lookUp(name: Name, frame: Frame | undefined, run: Run): unknown {
  const { path } = name
  const first = path[0]
  if (first === undefined) return frame === undefined ? { ...run.defaults, ...run.variables } : frame.value
  const holder = nearest(first, frame, run)
  if (holder === undefined) return missing(name, run)
  let value = holder[first]
  for (let i = 1; i < path.length; i++) {
    const key = path[i]!
    if (!has(value, key)) return missing(name, run)
    value = value[key]
  }
  return value
}

/** A variable by a name without dots, outside all sections. */
export const lookUpRoot = (name: string, run: Run): unknown =>
  Object.hasOwn(run.variables, name)
    ? run.variables[name]
    : Object.hasOwn(run.defaults, name)
      ? run.defaults[name]
      : undefined

/** A value inside a text: nothing for null, compact JSON for objects and arrays. */
export function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'boolean':
      return String(value)
    case 'object':
      return value === null ? '' : JSON.stringify(value)
    default:
      return ''
  }
}

/** A value as one whole JSON value; null where there is none. */
export const jsonOf = (value: unknown): string =>
  value === undefined || typeof value === 'function' ? 'null' : JSON.stringify(value)

/** Mustache's "falsey": nothing, false, "", 0 and the empty list. */
export const isTruthy = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 : typeof value !== 'function' && Boolean(value)

function nearest(key: string, frame: Frame | undefined, run: Run): Record<string, unknown> | undefined {
  for (let at = frame; at !== undefined; at = at.parent) {
    spend(run, 1)
    if (has(at.value, key)) return at.value
  }
  const root = Object.hasOwn(run.variables, key)
    ? run.variables
    : Object.hasOwn(run.defaults, key)
      ? run.defaults
      : undefined
  if (root !== undefined) run.lookups?.used.add(key)
  return root
}

function missing(name: Name, run: Run): undefined {
  run.lookups?.missing.add(name.text)
  return undefined
}

/** Only what JSON itself put there: no prototype, no `length` of a list, no inside of a big integer. */
function has(value: unknown, key: string): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return false
  return !(key === 'length' && Array.isArray(value)) && !(key === 'rawJSON' && JSON.isRawJSON(value))
}
