import type { Config } from '../../schema/config.ts'
import { FIELDS, type Field } from './fields.ts'
import { type Environment, parseReference } from './references.ts'

/**
 * What the environment sets (decision 6): path → value. Strings are taken as they are, anything else is a TOML value;
 * text that is none stays text, so that the contract complains of its type.
 */
export function settingsOf(env: Environment): Map<Field, unknown> {
  const settings = new Map<Field, unknown>()
  for (const field of FIELDS) {
    const text = env[field.env]
    if (text !== undefined) settings.set(field, isText(field) ? text : fromToml(text))
  }
  return settings
}

const isText = ({ schema }: Field) => schema['type'] === 'string' || schema['anyOf'] !== undefined

function fromToml(text: string): unknown {
  try {
    const parsed = Bun.TOML.parse(`value = ${text}`) as Record<string, unknown>
    return Object.keys(parsed).length === 1 ? parsed['value'] : text
  } catch {
    return text
  }
}

/** Names of ours that match no setting: ignored, since orchestrators inject such names, and said once (decision 6). */
export function strangeVariables(env: Environment, config: Config): string[] {
  const named = [config.database.password, config.master_key.source].map((text) => parseReference(text)?.name)
  const known = new Set<string | undefined>(['GATEHOUSE_CONFIG', ...FIELDS.map((field) => field.env), ...named])
  return Object.keys(env)
    .filter((name) => name.startsWith('GATEHOUSE_') && !known.has(name))
    .sort()
}
