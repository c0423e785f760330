import { type TSchema, Type } from '@sinclair/typebox'
import { invalid, invalidField } from '../errors.ts'
import { complaints } from '../http/complaints.ts'
import { isRawJson, rawJson } from '../json.ts'
import {
  CONTRACTS,
  type CompletionKind,
  FATES,
  FOREIGN_FIELDS,
  foreignMessage,
  isNumeric,
  templateField,
} from './completion-fields.ts'

type Root = Record<string, unknown>

/**
 * Sorts saved parameters (decision 22): a key that names a variable of the template is a default, a hyperparameter of
 * the kind is a hyperparameter. A scalar can be both, an object or array under a variable's name is only a default.
 * Every other key passes on to the model.
 */
export function splitParameters(
  kind: CompletionKind,
  parameters: Root,
  variableNames: ReadonlySet<string>,
): { hyperparameters: Root; defaults: Root } {
  const hyperparameters: Root = {}
  const defaults: Root = {}
  for (const [key, value] of Object.entries(parameters)) {
    const isVariable = variableNames.has(key)
    if (isVariable) put(defaults, key, value)
    if (!isVariable || (isScalar(value) && isHyperparameter(kind, key))) put(hyperparameters, key, value)
  }
  return { hyperparameters, defaults }
}

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null || isRawJson(value)

function isHyperparameter(kind: CompletionKind, key: string): boolean {
  const fate = FATES[kind].get(key)
  return (fate === 'nullable' || fate === 'plain') && key !== templateField(kind)
}

/** Assigning `__proto__` would change what the object inherits instead of adding a key. */
function put(target: Root, key: string, value: unknown): void {
  if (key !== '__proto__') target[key] = value
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

/**
 * Checks hyperparameters at save with the contract that render uses. Old interfaces saved numbers as text: in numeric
 * fields they come out as numbers.
 *
 * @param path what stands before each field in a complaint; '' for the columns `tools`, `functions`, `tool_choice`
 * @returns    a new object
 * @throws GatehouseError `invalid` with every complaint: out of range, of the other kind, or not a hyperparameter
 */
export function checkSavedParameters(kind: CompletionKind, hyperparameters: Root, path = 'parameters'): Root {
  const checked = withNumbers(kind, hyperparameters)
  const found = complaints(SAVED_CONTRACTS[kind], withoutIgnoredNulls(kind, checked), path)
  const refuse = (key: string, message: string) => {
    if ((checked[key] ?? null) !== null) found.push({ path: path === '' ? key : `${path}.${key}`, message })
  }
  for (const key of FOREIGN_FIELDS[kind]) refuse(key, foreignMessage(kind))
  refuse(templateField(kind), 'is what the template itself gives; write it into the template')
  refuse('hyperparameters', 'put hyperparameters directly into parameters')
  if (found.length > 0) throw invalid(found)
  return checked
}

/** A saved prompt need not have every field, and its template gives messages or prompt. */
const SAVED_CONTRACTS: Record<CompletionKind, TSchema> = {
  chat: Type.Omit(Type.Partial(CONTRACTS.chat), ['messages']),
  text: Type.Omit(Type.Partial(CONTRACTS.text), ['prompt']),
}

function withNumbers(kind: CompletionKind, hyperparameters: Root): Root {
  const result: Root = {}
  for (const [key, value] of Object.entries(hyperparameters)) {
    const schema = Object.hasOwn(CONTRACTS[kind].properties, key) ? CONTRACTS[kind].properties[key] : undefined
    const isNumberField = schema !== undefined && isNumeric(schema)
    put(result, key, isNumberField && typeof value === 'string' ? numberFrom(value) : value)
  }
  return result
}

/** The text itself where it is no JSON number, so that the contract complains of it. */
function numberFrom(text: string): unknown {
  const trimmed = text.trim()
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return text
  const isBigInteger = /^-?\d+$/.test(trimmed) && !Number.isSafeInteger(Number(trimmed))
  return isBigInteger ? rawJson(trimmed) : Number(trimmed)
}

function withoutIgnoredNulls(kind: CompletionKind, root: Root): Root {
  return Object.fromEntries(Object.entries(root).filter(([key, value]) => value !== null || keepsNull(kind, key)))
}

/** Decision 22: null replaces where the spec says nullable, counts as not sent in other known fields, else passes. */
function keepsNull(kind: CompletionKind, key: string): boolean {
  const fate = FATES[kind].get(key)
  return fate === undefined || fate === 'nullable'
}

/** What a version brings to a render, as its row holds it. `toolChoice`, `tools`, `functions`: null when unset. */
export interface SavedVersion {
  model: string | null
  functions: unknown
  tools: unknown
  toolChoice: unknown
  parameters: Root
}

/** A version made ready once, so that a render only copies and overlays. */
export interface PreparedVersion {
  kind: CompletionKind
  /** the root of `data` but for the template's own field, which holds its place */
  saved: Readonly<Root>
  /** values of variables that a request leaves out */
  defaults: Readonly<Root>
}

/** Applies the first two steps of the merge: parameters split, then what the version holds in columns of its own. */
export function prepareVersion(
  kind: CompletionKind,
  version: SavedVersion,
  variableNames: ReadonlySet<string>,
): PreparedVersion {
  const { hyperparameters, defaults } = splitParameters(kind, version.parameters, variableNames)
  const rest = withNumbers(kind, hyperparameters)
  const model = version.model || rest['model']
  const saved: Root = isSet(model) ? { model } : {}
  saved[templateField(kind)] = null
  for (const [key, value] of Object.entries(rest)) {
    const fate = FATES[kind].get(key)
    if (key === 'model' || key === templateField(kind) || fate === 'addressed' || fate === 'nested') continue
    if (value !== null || keepsNull(kind, key)) put(saved, key, value)
  }
  const columns: Root = { functions: version.functions, tools: version.tools, tool_choice: version.toolChoice }
  for (const [key, value] of Object.entries(columns)) if (isSet(value)) saved[key] = value
  return { kind, saved, defaults }
}

/** Clients save unset lists as [] and an unset model or choice as ''. */
const isSet = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0)

/**
 * Lays the root of a render body over what is saved: whole values, no deep merge. Null follows decision 22. Nothing
 * is added that was neither saved nor sent, and nothing is checked here: see `checkCompletion`.
 *
 * @param rendered messages or prompt, as the template gave them
 * @param body     the whole render body
 * @returns        a new object, with model first and messages or prompt next; values are shared with the arguments
 * @throws GatehouseError `invalid` when hyperparameters are nested
 */
export function mergeCompletion(prepared: PreparedVersion, rendered: unknown, body: Readonly<Root>): Root {
  const { kind, saved } = prepared
  const fates = FATES[kind]
  const data = { ...saved }
  data[templateField(kind)] = rendered
  for (const key in body) {
    const fate = fates.get(key)
    if (fate === 'addressed') continue
    if (fate === 'nested') throw invalidField('hyperparameters', 'put hyperparameters at the root, next to variables')
    const value = body[key]
    if (value !== null || fate === undefined || fate === 'nullable') put(data, key, value)
  }
  return data
}

/** What explain says of a merge: root keys of the body that replaced a saved one, and keys that no table knows. */
export function explainMerge(
  prepared: PreparedVersion,
  body: Readonly<Root>,
  data: Readonly<Root>,
): { overridden_parameters: string[]; unknown_parameters: string[] } {
  const { kind, saved } = prepared
  const replaces = (key: string) => Object.hasOwn(saved, key) && (body[key] !== null || keepsNull(kind, key))
  return {
    overridden_parameters: Object.keys(body).filter(replaces),
    unknown_parameters: Object.keys(data).filter((key) => !FATES[kind].has(key)),
  }
}
