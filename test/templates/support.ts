import { GatehouseError } from '../../src/errors.ts'
import {
  type CompiledTemplate,
  checkTemplate,
  compileTemplate,
  type FindPartial,
} from '../../src/templates/template.ts'

/** Partials by reference, each as version 1. */
export const partialsOf =
  (texts: Record<string, string>): FindPartial =>
  (reference) =>
    Object.hasOwn(texts, reference)
      ? {
          id: `id-${reference}`,
          slug: reference,
          version: 1,
          versionId: `version-${reference}`,
          text: texts[reference]!,
        }
      : undefined

/** Saves a template and compiles it, as a prompt version does. */
export function save(
  template: unknown,
  { raw = false, partials = {} }: { raw?: boolean; partials?: Record<string, string> } = {},
): CompiledTemplate {
  const text = typeof template === 'string' ? template : JSON.stringify(template)
  const { kind } = checkTemplate(text, raw, partialsOf(partials))
  return compileTemplate(text, raw, kind, partialsOf(partials))
}

/** A raw template with one tool call, whose function holds these members. */
export const rawCall = (members: string): string =>
  `[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"pay",${members}}}]}]`

/** The function of the one call in filled messages. */
export function callOf(filled: unknown): Record<string, unknown> {
  const [message] = filled as [{ tool_calls: [{ function: Record<string, unknown> }] }]
  return message.tool_calls[0].function
}

/** The arguments of the one call in filled messages. */
export const argumentsOf = (filled: unknown): string => callOf(filled)['arguments'] as string

/** The failure of `work`; a work that does not fail fails the test. */
export function failureOf(work: () => unknown): GatehouseError {
  try {
    work()
  } catch (error) {
    if (error instanceof GatehouseError) return error
    throw error
  }
  throw new Error('nothing was refused')
}
